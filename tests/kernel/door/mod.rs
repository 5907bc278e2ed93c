//! The real door, `cgroup::Cgroupfs`, against the real kernel: every operation and every answer.

pub mod counting;
pub mod finding;
pub mod lifecycle;
pub mod opening;
pub mod settings;
pub mod top;
