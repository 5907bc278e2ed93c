//! A layer of faults between this program and the real kernel: system calls of one thread, answered with an error.
//!
//! The thread has a seccomp filter that asks this program about each call of the door's kinds (`SECCOMP_RET_USER_NOTIF`,
//! Linux 5.5); all but the one that shall fail go on to the kernel. Nothing else of the program is touched, and the
//! filter ends with its thread.

#![allow(unsafe_code)] // no library offers the listener of a seccomp filter

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::mpsc::channel;
use std::thread;

use libc::{c_long, c_uint, seccomp_notif, seccomp_notif_resp, sock_filter, sock_fprog};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// The system calls by which the door reaches cgroupfs.
pub const CALLS: [c_long; 10] = [
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    libc::SYS_unlinkat,
    libc::SYS_getdents64,
    libc::SYS_fstatfs,
    libc::SYS_newfstatat,
];

/// Which call shall fail, counted from 0, and with which errno.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub nth: usize,
    pub errno: i32,
}

#[allow(clippy::cast_possible_truncation)] // it is 1
const CONTINUE: u32 = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;

mod notify {
    nix::ioctl_readwrite!(receive, b'!', 0, libc::seccomp_notif);
    nix::ioctl_readwrite!(answer, b'!', 1, libc::seccomp_notif_resp);
}

/// Runs `body` in a thread of its own. What it answers, or the panic it ended in, and the calls it made.
pub fn intercepted<T: Send>(
    fault: Option<Fault>,
    body: impl FnOnce() -> T + Send,
) -> io::Result<(thread::Result<T>, Vec<c_long>)> {
    thread::scope(|scope| {
        let (send, listener) = channel();
        let worker = scope.spawn(move || {
            let filter = filter_this_thread();
            let is_filtered = filter.is_ok();
            let _ = send.send(filter);
            is_filtered.then(body)
        });
        let listener = listener.recv().map_err(io::Error::other)??;
        let calls = answer_all(&listener, fault)?;
        let answer = worker.join();
        Ok((answer.map(|answer| answer.expect("a filter")), calls))
    })
}

/// Answers until the thread has ended.
fn answer_all(listener: &OwnedFd, fault: Option<Fault>) -> io::Result<Vec<c_long>> {
    let mut calls = Vec::new();
    loop {
        let mut fds = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::NONE)?;
        if !fds[0]
            .revents()
            .is_some_and(|is| is.contains(PollFlags::POLLIN))
        {
            return Ok(calls);
        }
        // SAFETY: all zeroes are a value of these plain structures, and the kernel wants them so.
        let (mut call, mut answer): (seccomp_notif, seccomp_notif_resp) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        // SAFETY: the descriptor is a listener, and the structure is one to write to.
        unsafe { notify::receive(listener.as_raw_fd(), &raw mut call) }?;
        answer.id = call.id;
        match fault {
            Some(fault) if fault.nth == calls.len() => answer.error = -fault.errno,
            _ => answer.flags = CONTINUE,
        }
        calls.push(c_long::from(call.data.nr));
        // SAFETY: as above; the call is the one that waits.
        unsafe { notify::answer(listener.as_raw_fd(), &raw mut answer) }?;
    }
}

/// From now on somebody else answers the calls of this thread.
fn filter_this_thread() -> io::Result<OwnedFd> {
    let statement = |code: c_uint, jt, jf, k| sock_filter {
        code: u16::try_from(code).unwrap(),
        jt,
        jf,
        k,
    };
    let return_ = |k| statement(libc::BPF_RET | libc::BPF_K, 0, 0, k);
    // The number of the call is the first word of what the filter sees.
    let mut program = vec![statement(
        libc::BPF_LD | libc::BPF_W | libc::BPF_ABS,
        0,
        0,
        0,
    )];
    for call in CALLS {
        let call = u32::try_from(call).unwrap();
        program.push(statement(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            call,
        ));
        program.push(return_(libc::SECCOMP_RET_USER_NOTIF));
    }
    program.push(return_(libc::SECCOMP_RET_ALLOW));
    let program = sock_fprog {
        len: u16::try_from(program.len()).unwrap(),
        filter: program.as_mut_ptr(),
    };
    nix::sys::prctl::set_no_new_privs()?;
    // SAFETY: the program lives until the kernel has copied it.
    let listener = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
            &raw const program,
        )
    };
    match i32::try_from(listener) {
        // SAFETY: the kernel has just made this descriptor for us alone.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}
