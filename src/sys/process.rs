//! What a process changes about itself: its inherited descriptors, its signals, and its copy in
//! another cgroup.
#![allow(unsafe_code)] // these change the whole process; each function names what must hold

use std::io;
use std::os::fd::BorrowedFd;

use nix::sys::signal::{SigHandler, Signal, signal};

use super::clone::{Child, Side, clone};

/// Closes every descriptor but the standard three, whoever opened it.
///
/// # Safety
/// Nothing in the process may own a descriptor above 2: call it first in `main`.
pub unsafe fn close_inherited() {
    // SAFETY: the caller's promise. A kernel before 5.9 answers ENOSYS; ours are close-on-exec, so
    // only what a foreign parent left open stays open then.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0);
    }
}

/// Ignores the signals by which others ask a process to go: from a terminal, a manager or a pipe.
/// SIGKILL still ends it, and faults still do.
pub fn ignore_requests() {
    const REQUESTS: [Signal; 10] = [
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGTERM,
        Signal::SIGPIPE,
        Signal::SIGALRM,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
        Signal::SIGXFSZ,
        Signal::SIGTSTP,
    ];
    for request in REQUESTS {
        // SAFETY: ignoring installs no handler that could run.
        let _ = unsafe { signal(request, SigHandler::SigIgn) };
    }
}

/// Goes on as a copy of this process in `cgroup`: `Some` in the parent, `None` in the copy.
///
/// # Errors
/// As [`clone`].
///
/// # Safety
/// Only while this process has a single thread: the copy goes on with ordinary code.
pub unsafe fn fork_into(cgroup: Option<BorrowedFd<'_>>) -> io::Result<Option<Child>> {
    // SAFETY: the caller's promise.
    match unsafe { clone(cgroup) }? {
        Side::Parent(child) => Ok(Some(child)),
        Side::Child => Ok(None),
    }
}
