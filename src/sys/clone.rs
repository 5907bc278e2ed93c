//! `clone3` into a cgroup (Linux 5.7): the child is born where its limits are.
//!
//! It must never pretend: where the kernel cannot do it the child is forked and `placed` says no.
#![allow(unsafe_code)] // clone3 and fork have no safe form: the child's side runs on a copied heap

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, WaitIdStatus, pidfd_open, waitid};

/// `CLONE_PIDFD`, Linux 5.2
const PIDFD: u64 = 0x1000;
/// `CLONE_INTO_CGROUP`, Linux 5.7. The `libc` crate's constant is an `int` and overflows to zero.
const INTO_CGROUP: u64 = 0x2_0000_0000;

/// `struct clone_args` up to Linux 5.7.
#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// A child process and the descriptor that means it and no other.
#[derive(Debug)]
pub struct Child {
    /// The child's process id.
    pub pid: i32,
    /// Readable once the child has ended.
    pub pidfd: OwnedFd,
    /// Whether it was born in the cgroup that was asked for; true where none was.
    pub placed: bool,
}

impl Child {
    /// Waits for the end of the child.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn wait(&self) -> io::Result<WaitIdStatus> {
        loop {
            match waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED) {
                Ok(Some(status)) => return Ok(status),
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// Which of the two processes returned.
#[derive(Debug)]
pub enum Side {
    /// The old one.
    Parent(Child),
    /// The new one.
    Child,
}

/// Copies this process into `cgroup`, or into its own where `cgroup` is `None`. Where the kernel
/// does not know `clone3` or its cgroup flag, or a filter forbids it, this is a plain fork with
/// `placed: false`.
///
/// # Errors
/// What the kernel answered: EAGAIN where `pids.max` or a process limit is reached, EBUSY where the
/// cgroup has controllers enabled for its children, ENODEV where it is gone, EACCES where this
/// process may not move processes there.
///
/// # Safety
/// In a process with several threads the child may only make async-signal-safe calls.
pub unsafe fn clone(cgroup: Option<BorrowedFd<'_>>) -> io::Result<Side> {
    let mut pidfd: libc::c_int = -1;
    let args = CloneArgs {
        flags: PIDFD | cgroup.map_or(0, |_| INTO_CGROUP),
        pidfd: std::ptr::from_mut(&mut pidfd).addr() as u64,
        exit_signal: u64::from(libc::SIGCHLD.unsigned_abs()),
        cgroup: cgroup.map_or(0, |fd| u64::from(fd.as_raw_fd().unsigned_abs())),
        ..CloneArgs::default()
    };
    // SAFETY: `args` is a whole clone_args and `pidfd` outlives the call. No CLONE_VM and no stack:
    // the child goes on here with a copy of everything, as after fork.
    let answer =
        unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<CloneArgs>()) };
    if answer == 0 {
        return Ok(Side::Child);
    }
    if let Ok(pid) = i32::try_from(answer)
        && pid > 0
    {
        // SAFETY: with CLONE_PIDFD the kernel stored a new descriptor that nobody else owns.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        let placed = true;
        return Ok(Side::Parent(Child { pid, pidfd, placed }));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // SAFETY: the caller's promise.
        Some(libc::ENOSYS | libc::EINVAL | libc::E2BIG | libc::EPERM) => unsafe {
            fork(cgroup.is_none())
        },
        _ => Err(error),
    }
}

/// # Safety
/// As `clone`.
unsafe fn fork(placed: bool) -> io::Result<Side> {
    // SAFETY: the caller's promise.
    let pid = match unsafe { libc::fork() } {
        0 => return Ok(Side::Child),
        pid if pid > 0 => pid,
        _ => return Err(io::Error::last_os_error()),
    };
    let opened = Pid::from_raw(pid)
        .ok_or(io::ErrorKind::InvalidData.into())
        .and_then(|pid| Ok(pidfd_open(pid, PidfdFlags::empty())?));
    match opened {
        Ok(pidfd) => Ok(Side::Parent(Child { pid, pidfd, placed })),
        Err(error) => {
            // A child that cannot be watched is worse than none. It is ours and not yet waited for,
            // so the number still means it.
            // SAFETY: plain system calls on an own child.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, std::ptr::null_mut(), 0);
            }
            Err(error)
        }
    }
}
