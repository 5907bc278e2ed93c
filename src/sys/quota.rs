//! `quotactl_fd` (Linux 5.14) for project quotas: what a project uses and may use on one file system.
//!
//! It must never guess: a file system without project quotas is an error, not a project without use.
#![allow(unsafe_code)] // no library knows quotactl_fd, nor quotas of projects

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Quotas of projects, beside those of users (0) and groups (1).
const PRJQUOTA: libc::c_int = 2;
/// `QIF_BLIMITS | QIF_ILIMITS`: only the limits are set.
const LIMITS: u32 = 1 | 4;
/// The unit of limits (bytes).
const LIMIT_UNIT: u64 = 1024;

/// What a project uses and may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProjectUse {
    /// Allocated bytes, files that have no name any more included.
    pub bytes: u64,
    /// Files, directories and all others.
    pub inodes: u64,
    /// The hard limit (bytes); 0: none.
    pub limit: u64,
}

/// What `project` uses on the file system of `file`. XFS has no record of a project that nothing belongs to
/// and nothing limits, and answers ENOENT; that is no use, as elsewhere.
///
/// # Errors
/// ESRCH where project quotas are off, ENOSYS before Linux 5.14, EOPNOTSUPP where the file system has none.
pub fn project_use(file: impl AsFd, project: u32) -> io::Result<ProjectUse> {
    let mut answer = empty();
    match quotactl(file, libc::Q_GETQUOTA, project, &mut answer) {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
            return Ok(ProjectUse::default());
        }
        answered => answered?,
    }
    Ok(ProjectUse {
        bytes: answer.dqb_curspace,
        inodes: answer.dqb_curinodes,
        limit: answer.dqb_bhardlimit.saturating_mul(LIMIT_UNIT),
    })
}

/// Limits the bytes of `project` on the file system of `file`, down to a KiB; 0: no limit. A limit below
/// what is used already only stops further writes.
///
/// # Errors
/// As [`project_use`].
pub fn limit_project(file: impl AsFd, project: u32, bytes: u64) -> io::Result<()> {
    let mut limits = empty();
    // A limit of less than the unit would read as none.
    limits.dqb_bhardlimit = match bytes {
        0 => 0,
        bytes => (bytes / LIMIT_UNIT).max(1),
    };
    limits.dqb_valid = LIMITS;
    quotactl(file, libc::Q_SETQUOTA, project, &mut limits)
}

const fn empty() -> libc::dqblk {
    libc::dqblk {
        dqb_bhardlimit: 0,
        dqb_bsoftlimit: 0,
        dqb_curspace: 0,
        dqb_ihardlimit: 0,
        dqb_isoftlimit: 0,
        dqb_curinodes: 0,
        dqb_btime: 0,
        dqb_itime: 0,
        dqb_valid: 0,
    }
}

fn quotactl(
    file: impl AsFd,
    command: libc::c_int,
    project: u32,
    block: &mut libc::dqblk,
) -> io::Result<()> {
    let command = (command << 8) | PRJQUOTA;
    // SAFETY: the kernel reads or writes one `if_dqblk`, which `dqblk` is, during the call alone, and the
    // descriptor is open as long as it is borrowed.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_quotactl_fd,
            file.as_fd().as_raw_fd(),
            command,
            project,
            std::ptr::from_mut(block),
        )
    };
    if answer == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
