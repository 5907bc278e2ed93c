//! A smaller bound that is not written yet, because more is in use.
//!
//! Lowering `memory.max` below usage lets the kernel reclaim and then kill processes inside the
//! write; lowering a hugetlb bound below usage is refused (EBUSY). Neither may happen silently: the old
//! value stays, and the reason is told with numbers until there is room.

use std::cmp::Ordering;
use std::fmt;

use crate::cgroup::{CgroupPath, InterfaceFile, Setting};
use crate::units::{Bytes, Limit, PageSize};

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
    /// What must be free below the new bound for it to be written (bytes).
    pub spare: Bytes,
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, path) = (self.wanted.file(), &self.path);
        let (stays, wanted) = (self.stays.value(), self.wanted.value());
        write!(f, "{file} of {path} stays {stays}: {wanted} is wanted but ")?;
        let (Some(in_use), Some(bound)) = (self.in_use, bound(self.wanted)) else {
            return f.write_str("more is in use");
        };
        let most = bound.saturating_sub(self.spare);
        let in_the_way = in_use.saturating_sub(most);
        write!(f, "{in_use} bytes are in use, {in_the_way} in the way")?;
        if self.spare > Bytes::ZERO {
            write!(f, ": {} must be free below the new bound", self.spare)?;
        }
        Ok(())
    }
}

/// The bound that a write would put on memory in use, where it lowers one. A cgroup whose file was not
/// there before has nothing in use that counts against it.
pub(super) fn lowered_memory(before: Option<Setting>, wanted: Setting) -> Option<Bytes> {
    let lowers = before?.compare(wanted) == Some(Ordering::Greater);
    let is_bound = wanted.file() == InterfaceFile::MemoryMax;
    bound(wanted).filter(|_| is_bound && lowers)
}

/// What must be free below a new bound of memory while it is written: 2 MiB, or a sixteenth of a small one,
/// in whole pages, as all that is in use.
///
/// A throttled process still takes what its system call is about (1 MiB for each write of `dd bs=1M`), and
/// each CPU counts up to 64 pages before they are used. What passes the bound meanwhile is killed for, where
/// it cannot be reclaimed at once (`memory_max_write`): page cache that is still to be written, say.
pub(super) fn spare(bound: Bytes, page: PageSize) -> Bytes {
    page.floor(Bytes(bound.0 / 16).min(Bytes::mib(2)))
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
