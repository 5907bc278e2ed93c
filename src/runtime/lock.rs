//! Which shim owns an attempt: the one that holds a lock in its directory, alive as long as held.
//!
//! A POSIX record lock, because looking at it does not take it, it names its holder, and a child
//! does not inherit it. It ends with the process, however that ends. The holder must never open the
//! file a second time: closing any descriptor of it would free the lock.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{FlockOperation, Mode, OFlags, fcntl_lock, openat};
use rustix::io::Errno;
use rustix::process::{Flock, FlockType, Pid, PidfdFlags, fcntl_getlk, pidfd_open};

const LOCK: &str = "lock";

/// Takes the lock of an attempt, until the descriptor is closed; `None` where another has it.
pub(super) fn take(dir: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(dir, LOCK, flags, Mode::from_raw_mode(0o600))?;
    match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// The process that holds the lock of an attempt.
pub(super) fn holder(dir: &OwnedFd) -> io::Result<Option<Pid>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match openat(dir, LOCK, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let lock = fcntl_getlk(&file, &Flock::from(FlockType::WriteLock))?;
    Ok(lock.and_then(|lock| lock.pid))
}

/// A pidfd of the process that holds the lock.
pub(super) fn open_holder(dir: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = holder(dir)? else {
        return Ok(None);
    };
    let fd = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(fd) => fd,
        Err(Errno::SRCH) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    // The lock still being held by that number, the number did not change hands before.
    Ok((holder(dir)? == Some(pid)).then_some(fd))
}
