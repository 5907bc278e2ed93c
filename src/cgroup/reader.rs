//! The door to figures, beside the one to values: it only reads, on whatever thread somebody asks.

use std::fmt;

use super::{CgroupPath, Descendants, KernelError, Pid, Sample};

/// A way to the figures of cgroups that needs nobody's leave: it may be used on any thread.
pub trait Reader: Send + Sync + fmt::Debug {
    /// The figures of a cgroup now; `None` where it is not there, or went away while it was read.
    ///
    /// # Errors
    /// Any other answer of the kernel.
    fn sample(&self, path: &CgroupPath) -> Result<Option<Sample>, KernelError>;

    /// How many cgroups are below a cgroup; `None` where it is not there or does not say.
    ///
    /// # Errors
    /// Any other answer of the kernel.
    fn descendants(&self, path: &CgroupPath) -> Result<Option<Descendants>, KernelError>;

    /// The processes in a cgroup and below it; a part that went away while it was read has none.
    fn processes(&self, path: &CgroupPath) -> Vec<Pid>;
}
