//! A child that stands before its `execve` until it is released.
//!
//! Between clone and exec the parent can place it, set its OOM score and put it on record; if the
//! parent dies before, the child ends too and nothing has run. The child makes only
//! async-signal-safe calls on memory that was laid out beforehand.
#![allow(unsafe_code)] // between clone and exec only bare system calls are sound

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::ptr;

use rustix::pipe::{PipeFlags, pipe_with};

use super::clone::{Child, Side, clone};

/// Exit code of a child that was never released, or that could not `execve`; the shim replaces it.
const NOT_STARTED: libc::c_int = 126;
/// The number of signals in Linux on every architecture but MIPS.
const SIGNALS: libc::c_int = 64;

/// What is to be executed.
#[derive(Debug)]
pub struct Program {
    /// The file; a relative path counts from `cwd`.
    pub path: CString,
    /// The argument vector, the program's own name first.
    pub argv: Vec<CString>,
    /// The environment, `NAME=value` each.
    pub env: Vec<CString>,
    /// The working directory.
    pub cwd: CString,
    /// As whom it runs; `None`: as its parent.
    pub credentials: Option<Credentials>,
}

/// As whom a program runs: real, effective and saved alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The user.
    pub user: u32,
    /// The group.
    pub group: u32,
    /// All further groups.
    pub groups: Vec<u32>,
    /// What a user who is not root can do all the same, as can all that it starts: capabilities, a bit each.
    pub capabilities: u64,
}

/// What the child gets as standard input, output and error.
#[derive(Debug)]
pub struct Streams<'a> {
    /// Standard input.
    pub stdin: BorrowedFd<'a>,
    /// Standard output.
    pub stdout: BorrowedFd<'a>,
    /// Standard error.
    pub stderr: BorrowedFd<'a>,
}

/// A child that waits to be released. Dropped, the child ends without running anything.
#[derive(Debug)]
pub struct Held {
    /// The child.
    pub child: Child,
    release: OwnedFd,
    outcome: OwnedFd,
}

/// The step that failed in the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Setting up standard input, output and error.
    Streams,
    /// Changing into the working directory.
    WorkingDir,
    /// `execve`
    Exec,
    /// Becoming the user.
    Credentials,
}

/// Clones a child that will become `program`, in `cgroup` if one is given, and holds it before it
/// does anything.
///
/// # Errors
/// What the kernel answered to `pipe2` or `clone3`.
pub fn hold(
    program: &Program,
    streams: &Streams<'_>,
    cgroup: Option<BorrowedFd<'_>>,
) -> io::Result<Held> {
    let (wait, release) = pipe_with(PipeFlags::CLOEXEC)?;
    let (outcome, report) = pipe_with(PipeFlags::CLOEXEC)?;
    let argv = pointers(&program.argv);
    let env = pointers(&program.env);
    let plan = ChildPlan {
        path: &program.path,
        cwd: &program.cwd,
        credentials: program.credentials.as_ref(),
        argv: argv.as_ptr(),
        env: env.as_ptr(),
        streams: [
            streams.stdin.as_raw_fd(),
            streams.stdout.as_raw_fd(),
            streams.stderr.as_raw_fd(),
        ],
        close: [release.as_raw_fd(), outcome.as_raw_fd()],
        wait: wait.as_raw_fd(),
        report: report.as_raw_fd(),
    };
    // SAFETY: the child calls `become_program` only, which makes bare system calls and never
    // returns, so it is sound in a process of any number of threads.
    match unsafe { clone(cgroup) }? {
        // SAFETY: as above; `plan` points at memory that lives until `execve` replaces it.
        Side::Child => unsafe { become_program(&plan) },
        Side::Parent(child) => Ok(Held {
            child,
            release,
            outcome,
        }),
    }
}

impl Held {
    /// Lets the child go on to `execve`. The second value tells the outcome: see [`outcome`].
    ///
    /// # Errors
    /// EPIPE where the child has been killed meanwhile; it is handed back to be waited for.
    pub fn release(self) -> (Child, OwnedFd, io::Result<()>) {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(&self.release, &[1]));
        (
            self.child,
            self.outcome,
            written.map(drop).map_err(Into::into),
        )
    }
}

/// Reads the outcome of a released child, waiting for it if need be: `None` once it has become the
/// program (or was killed before), else the step that failed and the error.
///
/// # Errors
/// What the kernel answered to `read`.
pub fn outcome(fd: &OwnedFd) -> io::Result<Option<(Step, io::Error)>> {
    let mut report = [0; 8];
    let mut length = 0;
    while let Some(rest) = report.get_mut(length..).filter(|rest| !rest.is_empty()) {
        match rustix::io::retry_on_intr(|| rustix::io::read(fd.as_fd(), &mut *rest))? {
            0 => return Ok(None),
            count => length += count,
        }
    }
    let [s0, s1, s2, s3, errno @ ..] = report;
    let step = match i32::from_ne_bytes([s0, s1, s2, s3]) {
        0 => Step::Streams,
        1 => Step::WorkingDir,
        3 => Step::Credentials,
        _ => Step::Exec,
    };
    let error = io::Error::from_raw_os_error(i32::from_ne_bytes(errno));
    Ok(Some((step, error)))
}

/// The kernel's `struct __user_cap_header_struct`.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: libc::c_int,
}

/// The version of it that has capabilities above 31 (`_LINUX_CAPABILITY_VERSION_3`).
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// The kernel's `struct __user_cap_data_struct`, of 32 capabilities.
#[repr(C)]
#[derive(Clone, Copy)]
struct CapabilityWord {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// The kernel's `struct sigaction`; all zero it is the default. Two architectures lack `restorer`,
/// where the last word is not read.
#[repr(C)]
#[derive(Default)]
struct KernelSigaction {
    handler: usize,
    flags: libc::c_ulong,
    restorer: usize,
    mask: u64,
}

/// All that the child needs, as values that take no allocation to use.
struct ChildPlan<'a> {
    path: &'a CStr,
    cwd: &'a CStr,
    credentials: Option<&'a Credentials>,
    argv: *const *const libc::c_char,
    env: *const *const libc::c_char,
    streams: [RawFd; 3],
    close: [RawFd; 2],
    wait: RawFd,
    report: RawFd,
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    let ends = std::iter::once(ptr::null());
    strings.iter().map(|s| s.as_ptr()).chain(ends).collect()
}

/// # Safety
/// Only in a fresh child, once; the pointers of `plan` must be NULL-terminated arrays of C strings.
unsafe fn become_program(plan: &ChildPlan<'_>) -> ! {
    // SAFETY: bare system calls on descriptors and memory that this process owns alone. Those that
    // may fail without harm (closing, `setsid`, the two signals that nobody can change) are not
    // looked at.
    unsafe {
        for fd in plan.close {
            libc::close(fd);
        }
        // Defaults first: a signal that comes while the child is held must end it.
        // Asked of the kernel: the C library keeps 32 and 33 to itself, which a parent may ignore.
        let default = KernelSigaction::default();
        for signal in 1..=SIGNALS {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                &raw const default,
                ptr::null::<KernelSigaction>(),
                size_of::<u64>(),
            );
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        libc::setsid();

        let mut released = 0u8;
        loop {
            match libc::read(plan.wait, (&raw mut released).cast(), 1) {
                1 => break,
                -1 if *libc::__errno_location() == libc::EINTR => {}
                _ => libc::_exit(NOT_STARTED),
            }
        }
        for (target, fd) in (0..).zip(plan.streams) {
            if libc::dup2(fd, target) < 0 {
                fail(plan.report, 0);
            }
        }
        if let Some(own) = plan.credentials
            && !become_user(own)
        {
            fail(plan.report, 3);
        }
        if libc::chdir(plan.cwd.as_ptr()) < 0 {
            fail(plan.report, 1);
        }
        libc::umask(0o022);
        libc::execve(plan.path.as_ptr(), plan.argv, plan.env);
        fail(plan.report, 2)
    }
}

/// The groups first: a user who is not root may not choose them. Asked of the kernel: the C library would
/// have all threads of its parent, which are not here, do the same.
///
/// # Safety
/// As `become_program`.
unsafe fn become_user(own: &Credentials) -> bool {
    let Credentials {
        user,
        group,
        groups,
        capabilities,
    } = own;
    // Root has what it has; what it shall not have was taken from it before.
    let keeps = *user != 0 && *capabilities != 0;
    // SAFETY: bare system calls on numbers, and on a list that is borrowed.
    unsafe {
        (!keeps || prctl(libc::PR_SET_KEEPCAPS, 1, 0))
            && libc::syscall(libc::SYS_setgroups, groups.len(), groups.as_ptr()) == 0
            && libc::syscall(libc::SYS_setresgid, *group, *group, *group) == 0
            && libc::syscall(libc::SYS_setresuid, *user, *user, *user) == 0
            && (!keeps || keep(*capabilities))
    }
}

/// Keeps these capabilities and no other, over each `execve` (they are ambient).
///
/// # Safety
/// As `become_program`.
unsafe fn keep(capabilities: u64) -> bool {
    let word = |bits: u64| {
        let bits = u32::try_from(bits & 0xffff_ffff).unwrap_or(0);
        CapabilityWord {
            effective: bits,
            permitted: bits,
            inheritable: bits,
        }
    };
    let words = [word(capabilities), word(capabilities >> 32)];
    let header = CapabilityHeader {
        version: CAPABILITY_VERSION,
        pid: 0,
    };
    // SAFETY: bare system calls on numbers and on two structures of this stack.
    unsafe {
        if libc::syscall(libc::SYS_capset, &raw const header, words.as_ptr()) != 0 {
            return false;
        }
        for number in 0..u64::BITS {
            let is_kept = capabilities >> number & 1 == 1;
            let raise = libc::PR_CAP_AMBIENT_RAISE.unsigned_abs().into();
            if is_kept && !prctl(libc::PR_CAP_AMBIENT, raise, number.into()) {
                return false;
            }
        }
    }
    true
}

/// # Safety
/// As `become_program`.
unsafe fn prctl(option: libc::c_int, first: libc::c_ulong, second: libc::c_ulong) -> bool {
    // SAFETY: a bare system call on numbers.
    unsafe { libc::syscall(libc::SYS_prctl, option, first, second, 0_u64, 0_u64) == 0 }
}

/// # Safety
/// As `become_program`.
unsafe fn fail(report: RawFd, step: i32) -> ! {
    // SAFETY: a write of 8 bytes from the stack (a pipe takes them whole), then the end.
    unsafe {
        let words = [step, *libc::__errno_location()];
        libc::write(report, (&raw const words).cast(), size_of_val(&words));
        libc::_exit(NOT_STARTED)
    }
}
