//! Descriptors that the service manager passed at the start.
#![allow(unsafe_code)] // to own a descriptor by its number is a promise that only the protocol can give

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether they are taken.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The descriptors that were passed to this process (`LISTEN_FDS`), closed on `execve`. They are given
/// once; later there are none.
///
/// # Errors
/// The environment's words for it are no numbers, or a descriptor is not open.
pub fn take_passed() -> io::Result<Vec<OwnedFd>> {
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    let passed = sd_notify::listen_fds()?;
    // SAFETY: the protocol hands these numbers over to the process that LISTEN_PID names, which is this one;
    // each was found open, and they are given out once.
    Ok(passed
        .map(|number| unsafe { OwnedFd::from_raw_fd(number) })
        .collect())
}
