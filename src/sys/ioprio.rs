//! `ioprio_set`: the calling thread reads and writes only when nobody else does.
#![allow(unsafe_code)] // no library offers ioprio_set

use std::io;

/// `IOPRIO_WHO_PROCESS`; with the id 0 it is the calling thread.
const THREAD: libc::c_int = 1;
/// `IOPRIO_CLASS_IDLE << IOPRIO_CLASS_SHIFT`
const IDLE: libc::c_int = 3 << 13;

/// Puts the calling thread into the idle class of I/O.
///
/// # Errors
/// What the kernel answered.
pub fn idle_thread() -> io::Result<()> {
    // SAFETY: three integers, and nothing but the calling thread's own class is changed.
    let answer = unsafe { libc::syscall(libc::SYS_ioprio_set, THREAD, 0, IDLE) };
    if answer == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
