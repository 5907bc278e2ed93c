//! Starting the program: found, cloned into its cgroup, recorded, released, in this order.
//!
//! The program must never run unrecorded, outside its cgroup or twice.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustix::fs::{Access, AtFlags, CWD, FileType, Mode, OFlags, accessat, openat, stat};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::WaitIdStatus;

use super::copy::Copier;
use super::log::LogFile;
use super::{Tell, confine, mounts, open_cgroup, pause};
use crate::runtime::identity::ProcessId;
use crate::runtime::record::{self, EXIT, Exit, ExitReason, Reserved, STARTED, Spec, Started};
use crate::sys::clone::Child;
use crate::sys::exec::{Held, Program, Step, Streams, hold};

/// Exit code of a program that is not there, as a shell has it.
const NOT_FOUND: i32 = 127;
/// Exit code of a program that cannot be executed, as a shell has it.
const NOT_EXECUTABLE: i32 = 126;
/// Exit code of a container that could not be set up, as containerd has it.
const NOT_SET_UP: i32 = 128;
/// How often the record of the exit is tried.
const TRIES: u32 = 10;

/// Why the program did not run: the exit code and a message.
pub(super) type Failure = (i32, String);

/// Starts the program of `spec` unless this attempt has had one, and stays until it has ended and
/// that is on record. An error means that nothing could be recorded.
pub(super) fn run(dir: &OwnedFd, spec: &Spec, tell: &mut Tell) -> Result<(), String> {
    let seen = |name| match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(format!("cannot look for {name}: {errno}")),
    };
    if seen(EXIT)? || seen(STARTED)? {
        return Ok(());
    }
    let mut room = Reserved::take(dir).map_err(|error| format!("cannot keep room: {error}"))?;
    let exit = match start(dir, spec) {
        Ok(running) => running.watch(tell)?,
        Err((exit_code, message)) => Exit {
            exit_code,
            signal: None,
            reason: ExitReason::StartError,
            message,
            started_at: None,
            finished_at: Timestamp::now(),
            dropped_log_bytes: 0,
        },
    };
    let mut tries = 0;
    while let Err(error) = room.write(dir, &exit) {
        tries += 1;
        if tries == TRIES {
            return Err(format!("cannot record the exit: {error}"));
        }
        pause(tries);
    }
    Ok(())
}

/// A program on its way.
struct Running {
    child: Child,
    outcome: OwnedFd,
    started_at: Timestamp,
    argv0: String,
    cwd: PathBuf,
    copier: Copier,
}

fn start(dir: &OwnedFd, spec: &Spec) -> Result<Running, Failure> {
    let set_up = |message: String| (NOT_SET_UP, message);
    let log = LogFile::open(&spec.log, spec.log_bounds)
        .map_err(|error| set_up(format!("cannot open {}: {error}", spec.log.display())))?;
    let cgroup = spec.cgroup.as_deref().map(open_cgroup).transpose();
    let cgroup = cgroup.map_err(set_up)?;
    // From here on paths mean what they mean to the program.
    mounts::show(spec).map_err(set_up)?;
    if spec.heeds_quota {
        mounts::heed_quotas().map_err(set_up)?;
    }
    let credentials = confine::credentials(&spec.security).map_err(set_up)?;
    if let Some(credentials) = &credentials {
        confine::give_scratch(spec, credentials).map_err(set_up)?;
    }
    let program = Program {
        credentials,
        ..program(spec)?
    };
    let pipe = || pipe_with(PipeFlags::CLOEXEC).map_err(|error| set_up(error.to_string()));
    let ((out_read, out_write), (err_read, err_write)) = (pipe()?, pipe()?);
    if let Some(credentials) = &program.credentials {
        confine::make_room(credentials, &[&out_write, &err_write]).map_err(set_up)?;
    }
    let copier = Copier::new(log, out_read, err_read).map_err(|e| set_up(e.to_string()))?;
    let stdin = openat(
        CWD,
        "/dev/null",
        OFlags::RDONLY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(|errno| set_up(format!("cannot open /dev/null: {errno}")))?;
    let streams = Streams {
        stdin: stdin.as_fd(),
        stdout: out_write.as_fd(),
        stderr: err_write.as_fd(),
    };
    confine::limit(&spec.security).map_err(set_up)?;
    let held = hold(&program, &streams, cgroup.as_ref().map(AsFd::as_fd))
        .map_err(|error| set_up(clone_failed(&error, spec.cgroup.as_deref())))?;
    let started_at = Timestamp::now();
    if let Err(message) = put_on_record(dir, spec, &held, started_at) {
        // Never released, the child ends by itself and has run nothing.
        let Held { child, .. } = held;
        let _ = child.wait();
        return Err(set_up(message));
    }
    // A child killed meanwhile is no error: its end will be seen like any other's.
    let (child, outcome, _) = held.release();
    Ok(Running {
        child,
        outcome,
        started_at,
        argv0: spec.argv.first().cloned().unwrap_or_default(),
        cwd: spec.cwd.clone(),
        copier,
    })
}

/// Records a held child, once it is where it belongs.
fn put_on_record(
    dir: &OwnedFd,
    spec: &Spec,
    held: &Held,
    started_at: Timestamp,
) -> Result<(), String> {
    settle(spec, held)?;
    let pid = held.child.pid;
    let process = ProcessId::of(pid)
        .map_err(|error| format!("cannot read /proc/{pid}: {error}"))?
        .ok_or("the process was killed before it started")?;
    let started = Started {
        process,
        started_at,
    };
    record::write(dir, STARTED, &started).map_err(|e| format!("cannot record the start: {e}"))
}

/// Puts a held child where it belongs and proves it, and gives it the container's OOM score.
pub(super) fn settle(spec: &Spec, held: &Held) -> Result<(), String> {
    let pid = held.child.pid;
    if let Some(cgroup) = &spec.cgroup {
        if !held.child.placed {
            place(pid, cgroup)?;
        }
        prove(pid, cgroup)?;
    }
    let score = format!("/proc/{pid}/oom_score_adj");
    fs::write(&score, spec.oom_score_adj.to_string())
        .map_err(|error| format!("cannot write {} to {score}: {error}", spec.oom_score_adj))
}

/// Moves a process that was not born in `cgroup` there.
pub(super) fn place(pid: i32, cgroup: &Path) -> Result<(), String> {
    let file = cgroup.join("cgroup.procs");
    // Opened without O_CREAT: cgroupfs answers EACCES to that in place of ENOENT.
    let write = |file: &Path| -> io::Result<()> {
        let fd = openat(CWD, file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        rustix::io::write(fd, pid.to_string().as_bytes())?;
        Ok(())
    };
    write(&file).map_err(|error| format!("cannot move {pid} into {}: {error}", cgroup.display()))
}

/// The kernel's own word that `pid` is in `cgroup`.
fn prove(pid: i32, cgroup: &Path) -> Result<(), String> {
    let pids = fs::read_to_string(cgroup.join("cgroup.procs"))
        .map_err(|error| format!("cannot read {}/cgroup.procs: {error}", cgroup.display()))?;
    let pid = pid.to_string();
    if pids.lines().any(|line| line == pid) {
        Ok(())
    } else {
        Err(format!("process {pid} is not in {}", cgroup.display()))
    }
}

impl Running {
    /// Copies the output until the program has ended, and says how it ended.
    fn watch(mut self, tell: &mut Tell) -> Result<Exit, String> {
        let copy = |error| format!("cannot copy output: {error}");
        let failure = self
            .copier
            .run(&self.child.pidfd, self.outcome, || tell.well());
        let failure = failure.map_err(copy)?;
        let status = self.child.wait().map_err(|e| format!("cannot wait: {e}"))?;
        let finished_at = Timestamp::now();
        let dropped_log_bytes = self.copier.drain().map_err(copy)?;
        let (exit_code, signal) = code(&status);
        let (exit_code, reason, message) = match failure {
            Some((step, error)) => {
                let (code, message) = not_run(step, &error, &self.argv0, &self.cwd);
                (code, ExitReason::StartError, message)
            }
            None if exit_code == 0 => (0, ExitReason::Completed, String::new()),
            None => (exit_code, ExitReason::Error, killed_by(signal)),
        };
        Ok(Exit {
            exit_code,
            signal,
            reason,
            message,
            started_at: Some(self.started_at),
            finished_at,
            dropped_log_bytes,
        })
    }
}

pub(super) fn code(status: &WaitIdStatus) -> (i32, Option<i32>) {
    match status.terminating_signal() {
        Some(signal) => (128 + signal, Some(signal)),
        None => (status.exit_status().unwrap_or(NOT_SET_UP), None),
    }
}

fn killed_by(signal: Option<i32>) -> String {
    let name = |number| nix::sys::signal::Signal::try_from(number).ok();
    match signal.map(|number| (number, name(number))) {
        None => String::new(),
        Some((_, Some(name))) => format!("ended by {name}"),
        Some((number, None)) => format!("ended by signal {number}"),
    }
}

pub(super) fn clone_failed(error: &io::Error, cgroup: Option<&Path>) -> String {
    let place = cgroup.map_or_else(String::new, |path| format!(" in {}", path.display()));
    match error.raw_os_error() {
        Some(libc::EAGAIN) => format!("cannot clone{place}: a limit of processes is reached"),
        Some(libc::EBUSY) => format!("cannot clone{place}: it has controllers for its children"),
        _ => format!("cannot clone{place}: {error}"),
    }
}

pub(super) fn not_run(step: Step, error: &io::Error, argv0: &str, cwd: &Path) -> Failure {
    let there = || stat(argv0).is_ok() || stat(cwd.join(argv0)).is_ok();
    match (step, error.raw_os_error()) {
        (Step::Streams, _) => (NOT_SET_UP, format!("cannot set up the streams: {error}")),
        (Step::Credentials, _) => (
            NOT_SET_UP,
            format!("cannot become the user that is asked for: {error}"),
        ),
        (Step::WorkingDir, _) => (
            NOT_SET_UP,
            format!(
                "cannot enter the working directory {}: {error}",
                cwd.display()
            ),
        ),
        (Step::Exec, Some(libc::ENOENT)) if there() => (
            NOT_FOUND,
            format!("program {argv0:?} needs an interpreter that is not there"),
        ),
        (Step::Exec, Some(libc::ENOENT)) => (NOT_FOUND, format!("program {argv0:?} is not there")),
        (Step::Exec, _) => (
            NOT_EXECUTABLE,
            format!("program {argv0:?} cannot be executed: {error}"),
        ),
    }
}

/// Lays out the program for `execve`.
pub(super) fn program(spec: &Spec) -> Result<Program, Failure> {
    let c = |bytes: &[u8]| {
        CString::new(bytes).map_err(|_| (NOT_SET_UP, "a string holds a zero byte".to_owned()))
    };
    let all = |strings: &[String]| {
        strings
            .iter()
            .map(|s| c(s.as_bytes()))
            .collect::<Result<Vec<_>, Failure>>()
    };
    let argv0 = spec.argv.first().filter(|name| !name.is_empty());
    let argv0 = argv0.ok_or_else(|| (NOT_SET_UP, "there is no command".to_owned()))?;
    let path = if argv0.contains('/') {
        PathBuf::from(argv0)
    } else {
        search(argv0, &spec.env)?
    };
    Ok(Program {
        path: c(path.as_os_str().as_bytes())?,
        argv: all(&spec.argv)?,
        env: all(&spec.env)?,
        cwd: c(spec.cwd.as_os_str().as_bytes())?,
        credentials: None,
    })
}

/// Searches the `PATH` of the container, absolute directories only: an entry such as `.` would mean
/// a directory that the container writes.
fn search(name: &str, env: &[String]) -> Result<PathBuf, Failure> {
    let path = env
        .iter()
        .rev()
        .find_map(|entry| entry.strip_prefix("PATH="));
    let path = path.unwrap_or_default();
    let mut refused = None;
    for dir in path.split(':').filter(|dir| dir.starts_with('/')) {
        let file = Path::new(dir).join(name);
        if stat(&file).is_ok_and(|s| FileType::from_raw_mode(s.st_mode) == FileType::RegularFile) {
            match accessat(CWD, &file, Access::EXEC_OK, AtFlags::EACCESS) {
                Ok(()) => return Ok(file),
                Err(errno) => refused = Some((file, errno)),
            }
        }
    }
    Err(match refused {
        None => (
            NOT_FOUND,
            format!("program {name:?} is not in PATH ({path})"),
        ),
        Some((file, errno)) => (
            NOT_EXECUTABLE,
            format!("program {} cannot be executed: {errno}", file.display()),
        ),
    })
}
