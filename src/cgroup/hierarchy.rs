//! The one seam to the kernel: the real cgroupfs and the model kernel stand behind it.

use std::sync::Arc;

use super::{CgroupPath, ControllerSet, InterfaceFile, Node, Op, Pid, Reader, Setting, Tree};
use crate::units::{Bytes, HugePageSize, PageSize};

/// A tree of cgroups in a kernel, below one top cgroup that is ours.
pub trait Hierarchy: Send {
    /// The cgroup at `above` and all of ours below it, down to the containers' own; a cgroup that
    /// vanishes while it is read is left out.
    ///
    /// # Errors
    /// What the kernel answered when `above` itself could not be read.
    fn found(&mut self, above: &CgroupPath) -> Result<Tree, KernelError>;

    /// One cgroup, or `None` where there is none.
    ///
    /// # Errors
    /// Any answer of the kernel but "no such cgroup".
    fn look(&mut self, path: &CgroupPath) -> Result<Option<Node>, KernelError>;

    /// One file of one cgroup, or `None` where it is not there or holds no setting.
    ///
    /// # Errors
    /// Any answer of the kernel but "no such cgroup".
    fn value(
        &mut self,
        path: &CgroupPath,
        file: InterfaceFile,
    ) -> Result<Option<Setting>, KernelError> {
        Ok(self.look(path)?.and_then(|node| node.get(file)))
    }

    /// The counters of one cgroup.
    ///
    /// # Errors
    /// `ErrorKind::Gone` where there is no such cgroup.
    fn counters(&mut self, path: &CgroupPath) -> Result<Counters, KernelError>;

    /// A way to all figures of all cgroups, to be used on other threads.
    fn reader(&mut self) -> Arc<dyn Reader>;

    /// The processes in the cgroup itself, not in those below.
    ///
    /// # Errors
    /// `ErrorKind::Gone` where there is no such cgroup.
    fn processes(&mut self, path: &CgroupPath) -> Result<Vec<Pid>, KernelError>;

    /// Does one operation.
    ///
    /// # Errors
    /// What the kernel answered.
    fn perform(&mut self, op: &Op) -> Result<(), KernelError>;

    /// The controllers that the top cgroup has: those that can be enabled below it.
    ///
    /// # Errors
    /// What the kernel answered.
    fn controllers(&mut self) -> Result<ControllerSet, KernelError>;

    /// The page size that memory limits are rounded to.
    fn page_size(&self) -> PageSize;

    /// The sizes of huge page that the kernel has hugetlb files for.
    fn huge_page_sizes(&self) -> &[HugePageSize];

    /// What of this kernel's set-up an operator should know, because it takes something away.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What the owner decides by; `Sample` has all that is there to be shown. A counter is absent where its file or key is: absent is not zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// `memory.current`
    pub memory_current: Option<Bytes>,
    /// `memory.peak`, Linux 5.19
    pub memory_peak: Option<Bytes>,
    /// `oom` of `memory.events.local`: it rises when this cgroup's own limit leads to the OOM killer.
    /// By how much means nothing: a `memory.max` lowered below usage was seen to add 240 for one kill
    /// (Linux 6.12 counts every round in which it waits for the victim's end).
    pub oom_local: Option<u64>,
    /// `oom` of `memory.events`: the same for this cgroup and all below, also those removed. It is read
    /// before `oom_local` and counted after it, so what it has more is of the cgroups below.
    pub oom: Option<u64>,
    /// `oom_kill` of `memory.events.local`: processes of this very cgroup killed by any OOM.
    pub oom_kill_local: Option<u64>,
    /// `oom_kill` of `memory.events`: the same for this cgroup and all below, also those removed.
    pub oom_kill: Option<u64>,
    /// `oom_group_kill` of `memory.events.local`, Linux 5.17.
    pub oom_group_kill_local: Option<u64>,
    /// `oom_group_kill` of `memory.events`: the same for this cgroup and all below.
    pub oom_group_kill: Option<u64>,
    /// `max` of `memory.events.local`: how often usage was held at `memory.max`.
    pub memory_max_local: Option<u64>,
    /// `pids.current`: tasks, threads included.
    pub pids_current: Option<u64>,
    /// `pids.peak`, Linux 6.1
    pub pids_peak: Option<u64>,
    /// `max` of `pids.events`: forks that were refused.
    pub pids_refused: Option<u64>,
    /// `usage_usec` of `cpu.stat` (µs).
    pub cpu_usage_usec: Option<u64>,
    /// `nr_throttled` of `cpu.stat`: periods in which the cgroup was throttled.
    pub cpu_throttled_periods: Option<u64>,
    /// `throttled_usec` of `cpu.stat` (µs).
    pub cpu_throttled_usec: Option<u64>,
    /// `populated` of `cgroup.events`: whether a live process is in the cgroup or below.
    pub populated: Option<bool>,
}

/// How the project reacts to an error of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The cgroup or the process is not there (ENOENT for a directory, ENODEV, ESRCH).
    Gone,
    /// In use: try again later (EBUSY).
    Busy,
    /// The kernel refuses the value (EINVAL, ERANGE).
    Invalid,
    /// The file is not there: the controller is missing or the kernel is too old (ENOENT for a file,
    /// EOPNOTSUPP).
    Unsupported,
    /// Not permitted (EPERM, EACCES, EROFS).
    Denied,
    /// Interrupted or out of resources: trying again may help (EINTR, EAGAIN, ENOMEM, ENOSPC).
    Interrupted,
    /// Anything else.
    Other,
}

impl ErrorKind {
    /// The reaction to an answer of the kernel. ENOENT is taken for a missing cgroup; who knows that
    /// it was a file that is missing says `Unsupported`.
    pub fn of(error: &std::io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::ESRCH) => Self::Gone,
            Some(libc::EBUSY | libc::ENOTEMPTY) => Self::Busy,
            Some(libc::EINVAL | libc::ERANGE | libc::ENAMETOOLONG) => Self::Invalid,
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => Self::Unsupported,
            // ELOOP and EXDEV: a symbolic link or a foreign mount stood in the way (openat2).
            Some(libc::EPERM | libc::EACCES | libc::EROFS | libc::ELOOP | libc::EXDEV) => {
                Self::Denied
            }
            Some(
                libc::EINTR
                | libc::EAGAIN
                | libc::ENOMEM
                | libc::ENOSPC
                | libc::EMFILE
                | libc::ENFILE,
            ) => Self::Interrupted,
            _ => Self::Other,
        }
    }
}

/// An operation that the kernel refused.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {path}: {source}")]
pub struct KernelError {
    /// What was tried: `create`, `write 100 to` …
    pub operation: String,
    /// The cgroup or file.
    pub path: String,
    /// How to react.
    pub kind: ErrorKind,
    /// What the kernel said.
    #[source]
    pub source: std::io::Error,
}

impl KernelError {
    /// The answer of the kernel to an operation; its errno decides the kind.
    pub fn new(
        operation: impl Into<String>,
        path: impl Into<String>,
        source: impl Into<std::io::Error>,
    ) -> Self {
        let source = source.into();
        Self {
            operation: operation.into(),
            path: path.into(),
            kind: ErrorKind::of(&source),
            source,
        }
    }

    /// A refusal that is explained in words rather than by an errno.
    pub fn explained(
        operation: impl Into<String>,
        path: impl Into<String>,
        kind: ErrorKind,
        why: impl Into<String>,
    ) -> Self {
        Self {
            operation: operation.into(),
            path: path.into(),
            kind,
            source: std::io::Error::other(why.into()),
        }
    }
}
