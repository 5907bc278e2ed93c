//! Waiting for a descriptor to become readable, without a thread.
#![allow(unsafe_code)] // tokio asks for a promise that the descriptor stays open: it is owned here

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Waits until `fd` is readable; for a pidfd: until the process has ended. Needs a tokio runtime
/// with its I/O driver on.
///
/// # Errors
/// What the kernel answered to `epoll_ctl`.
pub async fn readable(fd: OwnedFd) -> io::Result<()> {
    // SAFETY: the `AsyncFd` owns the descriptor, and nothing takes it out or closes it before.
    let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
    fd.readable().await?.retain_ready();
    Ok(())
}
