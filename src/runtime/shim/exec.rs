//! A program run beside a container's own, as a probe or a hook: in its cgroup, with its environment,
//! mounts and rights.
//!
//! `allotd exec` stays until the program has ended or its time is over, then kills all that it started,
//! and tells the outcome. It must never touch a process of the container that it did not start.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, pidfd_send_signal, set_child_subreaper, waitpid,
};

use super::{child, close_all_inherited, confine, mounts, open_cgroup};
use crate::runtime::dir;
use crate::runtime::exec::{MAX_OUTPUT, Outcome};
use crate::runtime::record::{self, SPEC, STARTED, Spec, Started};
use crate::sys::exec::{Held, Program, Streams, hold, outcome};

/// How often is looked whether all that is to be killed has gone.
const GLANCE: Duration = Duration::from_millis(5);
/// How long that may take; what is stuck in the kernel goes when it can.
const KILLING: Duration = Duration::from_secs(5);

/// Runs a program beside the run of a container in `dir` for at most so many milliseconds, tells the
/// outcome as JSON on standard output, and returns the exit code of this process: 0 once it is told.
///
/// Call it first in `main`, like [`super::main`].
pub fn main(dir: &Path, milliseconds: u64, words: Vec<OsString>) -> u8 {
    close_all_inherited();
    let time = Duration::from_millis(milliseconds);
    let words = words
        .into_iter()
        .map(|word| String::from_utf8(word.into_vec()));
    let outcome = words
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| "a word is not UTF-8".to_owned())
        .and_then(|words| run(dir, time, words))
        .unwrap_or_else(|why| Outcome::NotRun { why });
    let told = serde_json::to_vec(&outcome).map_err(io::Error::from);
    let told = told.and_then(|text| io::stdout().write_all(&text));
    u8::from(told.is_err())
}

fn run(path: &Path, time: Duration, words: Vec<String>) -> Result<Outcome, String> {
    let end = Instant::now()
        .checked_add(time)
        .ok_or_else(|| format!("{} s are too long", time.as_secs()))?;
    let dir = dir::open(path, &[])
        .map_err(|error| format!("cannot open {}: {error}", path.display()))?
        .ok_or_else(|| format!("there is no {}", path.display()))?;
    let spec: Option<Spec> = record::read(&dir, SPEC).map_err(|error| error.to_string())?;
    let started: Option<Started> =
        record::read(&dir, STARTED).map_err(|error| error.to_string())?;
    let (Some(spec), Some(started)) = (spec, started) else {
        return Err("the container has not been started".to_owned());
    };
    let spec = Spec {
        argv: words,
        ..spec
    };
    let cgroup = spec.cgroup.as_deref().map(open_cgroup).transpose()?;
    if !spec.mounts.is_empty() || spec.security.is_secluded() {
        enter(&started)?;
    }
    if spec.heeds_quota {
        mounts::heed_quotas()?;
    }
    let credentials = confine::credentials(&spec.security)?;
    let program = Program {
        credentials,
        ..child::program(&spec).map_err(|(_, why)| why)?
    };
    let failed = |error: Errno| error.to_string();
    let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).map_err(failed)?;
    if let Some(credentials) = &program.credentials {
        confine::make_room(credentials, &[&write])?;
    }
    // The program's end blocks, as programs expect.
    rustix::fs::fcntl_setfl(&write, OFlags::empty()).map_err(failed)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let stdin = openat(CWD, "/dev/null", flags, Mode::empty()).map_err(failed)?;
    let streams = Streams {
        stdin: stdin.as_fd(),
        stdout: write.as_fd(),
        stderr: write.as_fd(),
    };
    // What the program leaves behind comes to this process, and can be told from the container's.
    set_child_subreaper(Some(rustix::process::getpid())).map_err(failed)?;
    confine::limit(&spec.security)?;
    let held = hold(&program, &streams, cgroup.as_ref().map(AsFd::as_fd))
        .map_err(|error| child::clone_failed(&error, spec.cgroup.as_deref()))?;
    drop(write);
    if let Err(why) = child::settle(&spec, &held) {
        // Never released, the child ends by itself and has run nothing.
        let Held { child, .. } = held;
        let _ = child.wait();
        return Err(why);
    }
    let (child, told, _) = held.release();
    let mut output = Output::new(read);
    let in_time = output.until_readable(&child.pidfd, end);
    if !in_time {
        // Where the kernel lists no children, this one is still killed.
        let _ = pidfd_send_signal(&child.pidfd, Signal::KILL);
        kill_all();
        let text = output.text();
        return Ok(Outcome::TimedOut { output: text });
    }
    let failure = outcome(&told).map_err(|error| error.to_string())?;
    let status = child.wait().map_err(|error| error.to_string())?;
    output.drain();
    if let Some((step, error)) = failure {
        let argv0 = spec.argv.first().map(String::as_str).unwrap_or_default();
        return Err(child::not_run(step, &error, argv0, &spec.cwd).1);
    }
    Ok(Outcome::Exited {
        code: child::code(&status).0,
        output: output.text(),
    })
}

/// Goes where the container's program sees its mounts.
fn enter(started: &Started) -> Result<(), String> {
    let pid = started.process.pid;
    let path = format!("/proc/{pid}/ns/mnt");
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let namespace = openat(CWD, &path, flags, Mode::empty())
        .map_err(|errno| format!("cannot open {path}: {errno}"))?;
    // Opened before it is looked whose it is: the number may mean another process by now.
    match started.process.is_alive() {
        Ok(true) => {}
        Ok(false) => return Err("the container's process has ended".to_owned()),
        Err(error) => return Err(format!("cannot look at process {pid}: {error}")),
    }
    setns(namespace, CloneFlags::CLONE_NEWNS)
        .map_err(|errno| format!("cannot enter the mounts of process {pid}: {errno}"))
}

/// Kills every process that descends from this one, as it comes to be its child.
fn kill_all() {
    let end = Instant::now() + KILLING;
    while Instant::now() < end {
        let Ok(children) = std::fs::read_to_string("/proc/thread-self/children") else {
            return;
        };
        let children = children.split_ascii_whitespace();
        let children: Vec<_> = children
            .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
            .collect();
        for child in &children {
            // A child that has not been waited for keeps its number.
            let _ = kill_process(*child, Signal::KILL);
        }
        while let Ok(Some(_)) = waitpid(None, WaitOptions::NOHANG) {}
        if children.is_empty() {
            return;
        }
        std::thread::sleep(GLANCE);
    }
}

/// What the program says, of which the beginning is kept.
struct Output {
    pipe: OwnedFd,
    kept: Vec<u8>,
    open: bool,
}

impl Output {
    fn new(pipe: OwnedFd) -> Self {
        Self {
            pipe,
            kept: Vec::new(),
            open: true,
        }
    }

    /// Reads until `other` is readable; false if that takes too long.
    fn until_readable(&mut self, other: &OwnedFd, end: Instant) -> bool {
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let time = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(left.subsec_nanos()),
            };
            let mut ready = vec![PollFd::new(other, PollFlags::IN)];
            if self.open {
                ready.push(PollFd::new(&self.pipe, PollFlags::IN));
            }
            if poll(&mut ready, Some(&time)).is_err() {
                continue;
            }
            let ended = ready
                .first()
                .is_some_and(|ready| !ready.revents().is_empty());
            let said = ready
                .get(1)
                .is_some_and(|ready| !ready.revents().is_empty());
            drop(ready);
            if ended {
                return true;
            }
            if said {
                self.read_some();
            }
        }
    }

    /// What lies in the pipe now; somebody else may hold it open for ever.
    fn drain(&mut self) {
        for _ in 0..=MAX_OUTPUT.div_ceil(1024) {
            if !self.open || !self.read_some() {
                return;
            }
        }
    }

    /// Whether there was anything.
    fn read_some(&mut self) -> bool {
        let mut piece = [0; 4096];
        match rustix::io::read(&self.pipe, &mut piece) {
            Ok(0) => self.open = false,
            Ok(count) => {
                let room = MAX_OUTPUT.saturating_sub(self.kept.len());
                self.kept.extend(piece.iter().take(count.min(room)));
                return true;
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.open = false,
        }
        false
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}
