//! What can be done to the kernel's cgroups. Nothing else is.

use std::fmt;

use super::{CgroupPath, ControllerSet, Setting};
use crate::units::Bytes;

/// A process id, positive.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Pid(pub i32);

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One kernel operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// `mkdir`; a cgroup that exists already is no error.
    Create(CgroupPath),
    /// `+name` for each controller into `cgroup.subtree_control`.
    Enable(CgroupPath, ControllerSet),
    /// The value into the setting's file.
    Write(CgroupPath, Setting),
    /// The amount into `memory.reclaim`, Linux 5.19: so much is taken back from the cgroup and those
    /// below, without an OOM kill. Where it is not all to be had, EAGAIN (`ErrorKind::Interrupted`).
    Reclaim(CgroupPath, Bytes),
    /// The process, with its threads, into `cgroup.procs`.
    Attach(CgroupPath, Pid),
    /// `1` into `cgroup.kill`: SIGKILL to all processes in the cgroup and below, Linux 5.14.
    Kill(CgroupPath),
    /// `rmdir` of the cgroup and of all below it; one that is gone already is no error.
    Remove(CgroupPath),
}

impl Op {
    /// The cgroup it acts on.
    pub fn path(&self) -> &CgroupPath {
        match self {
            Self::Create(path)
            | Self::Enable(path, _)
            | Self::Write(path, _)
            | Self::Reclaim(path, _)
            | Self::Attach(path, _)
            | Self::Kill(path)
            | Self::Remove(path) => path,
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(path) => write!(f, "create {path}"),
            Self::Enable(path, controllers) => write!(f, "enable {controllers} in {path}"),
            Self::Write(path, setting) => write!(f, "write {path} {setting}"),
            Self::Reclaim(path, bytes) => write!(f, "reclaim {bytes} from {path}"),
            Self::Attach(path, pid) => write!(f, "attach {pid} to {path}"),
            Self::Kill(path) => write!(f, "kill {path}"),
            Self::Remove(path) => write!(f, "remove {path}"),
        }
    }
}
