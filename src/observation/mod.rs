//! What really happens: kernel counters and facts, made into observations.
//!
//! Readings come in, observations go out; nothing here decides what to do about them.

pub mod eviction;
pub mod kmsg;
pub mod machine;
pub mod manifests;
pub mod node;
pub mod oom;
pub mod pressure;
pub mod storage;
pub mod watch;
