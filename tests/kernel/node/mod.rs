//! The whole agent on this kernel: allotd as a process, its API on the socket, the cgroup files as the
//! kernel shows them.

pub mod burst;
pub mod command_line;
pub mod cpus;
pub mod crash;
mod daemon;
pub mod disks;
pub mod drift;
pub mod enforce;
pub mod eviction;
pub mod node_end;
pub mod oom;
pub mod oom_inner;
pub mod oom_many;
pub mod policies;
pub mod probes;
pub mod resize;
pub mod security;
pub mod storage;
pub mod storm;
pub mod storm_long;
pub mod supervisor;
pub mod thousand;
pub mod usage;
pub mod values;
