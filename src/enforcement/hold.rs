//! A smaller bound that is not written yet, because more is in use.
//!
//! Lowering `memory.max` below usage lets the kernel reclaim and then kill processes inside the
//! write; lowering a hugetlb bound below usage is refused (EBUSY). Neither may happen silently: the old
//! value stays, and the reason is told with numbers until there is room.

use std::cmp::Ordering;
use std::fmt;

use crate::cgroup::{CgroupPath, InterfaceFile, Setting};
use crate::units::{Bytes, Limit};

/// A write that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The cgroup.
    pub path: CgroupPath,
    /// What its file keeps for now.
    pub stays: Setting,
    /// What was to be written.
    pub wanted: Setting,
    /// What is in use (bytes); `None` where only the kernel's refusal says that it is more.
    pub in_use: Option<Bytes>,
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, path) = (self.wanted.file(), &self.path);
        let (stays, wanted) = (self.stays.value(), self.wanted.value());
        write!(f, "{file} of {path} stays {stays}: {wanted} is wanted but ")?;
        match (self.in_use, bound(self.wanted)) {
            (Some(in_use), Some(bound)) => write!(
                f,
                "{in_use} bytes are in use, {} in the way",
                in_use.saturating_sub(bound)
            ),
            _ => f.write_str("more is in use"),
        }
    }
}

/// The bound that a write would put on memory in use, where it lowers one. A cgroup whose file was not
/// there before has nothing in use that counts against it.
pub(super) fn lowered_memory(before: Option<Setting>, wanted: Setting) -> Option<Bytes> {
    let lowers = before?.compare(wanted) == Some(Ordering::Greater);
    let is_bound = wanted.file() == InterfaceFile::MemoryMax;
    bound(wanted).filter(|_| is_bound && lowers)
}

/// Whether EBUSY for this write means that more is in use than the new bound.
pub(super) fn is_busy_bound(wanted: Setting) -> bool {
    matches!(
        wanted.file(),
        InterfaceFile::HugetlbMax(_) | InterfaceFile::HugetlbRsvdMax(_)
    )
}

fn bound(setting: Setting) -> Option<Bytes> {
    match setting {
        Setting::MemoryMax(Limit::At(bytes))
        | Setting::HugetlbMax(_, Limit::At(bytes))
        | Setting::HugetlbRsvdMax(_, Limit::At(bytes)) => Some(bytes),
        _ => None,
    }
}
