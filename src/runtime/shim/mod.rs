//! The shim: the small process between the agent and one run of a container.
//!
//! It outlives the agent, starts the program in its cgroup, copies the output to the log and records
//! the exit. It decides nothing, takes no orders and never starts a second process.
//!
//! The container does not depend on the shim for its life, only for its output: were the shim
//! killed, a write to standard output would give SIGPIPE and the exit code would be unknown. That is
//! why it asks for an OOM score of −999, keeps out of the container's cgroup and does nothing else.

mod child;
mod confine;
mod copy;
pub mod exec;
mod log;
mod mounts;
mod seclude;

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{chdir, setsid};

use super::record::{self, SPEC, Spec};
use super::{dir, lock};
use crate::sys::process::{close_inherited, fork_into, ignore_requests};

/// How long the first process waits to hear that the program runs. A program on a dead network disk
/// can take longer: the shim goes on, and the attempt's directory tells.
const PATIENCE: Timespec = Timespec {
    tv_sec: 10,
    tv_nsec: 0,
};
/// The OOM score that the shim asks for: the last but one to be killed.
const OOM_SCORE_ADJ: &str = "-999";
/// What the second process says once the program runs or its failure is on record.
const WELL: &[u8] = b"ok";

/// Runs the shim of the attempt in `dir`, an absolute path that holds `spec.json`, and returns the
/// exit code of this process: 0 once the program runs, or the attempt has ended, or another shim has
/// it; 1 with a message on standard error where nothing was started or recorded.
///
/// Call it first in `main`, before any thread is started or any descriptor opened: it closes all
/// but the standard three and goes on in a copy of the process.
pub fn main(dir: &Path) -> u8 {
    match first(dir) {
        Ok(()) => 0,
        Err(message) => {
            let _ = writeln!(io::stderr(), "shim: {message}");
            1
        }
    }
}

/// The first process: makes the second one and waits until that has something to tell.
fn first(path: &Path) -> Result<(), String> {
    close_all_inherited();
    let dir = dir::open(path, &[])
        .map_err(|error| format!("cannot open {}: {error}", path.display()))?
        .ok_or_else(|| format!("there is no {}", path.display()))?;
    let spec: Spec = record::read(&dir, SPEC)
        .map_err(|error| error.to_string())?
        .ok_or_else(|| format!("there is no {}", path.join(SPEC).display()))?;
    let cgroup = spec.shim_cgroup.as_deref().map(open_cgroup).transpose()?;
    let (hear, tell) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| error.to_string())?;
    let child = fork_alone(cgroup.as_ref())
        .map_err(|error| format!("cannot start in {:?}: {error}", spec.shim_cgroup))?;
    let Some(child) = child else {
        // The second process, which ends here in any case.
        std::process::exit(i32::from(second(&dir, &spec, tell)));
    };
    drop(tell);
    if !child.placed
        && let Some(cgroup) = &spec.shim_cgroup
    {
        child::place(child.pid, cgroup)?;
    }
    listen(&hear)
}

/// Waits for what the second process has to tell.
fn listen(hear: &OwnedFd) -> Result<(), String> {
    let mut ready = [PollFd::new(hear, PollFlags::IN)];
    let ready = rustix::io::retry_on_intr(|| poll(&mut ready, Some(&PATIENCE)));
    if matches!(ready, Ok(0)) {
        return Ok(());
    }
    let mut told = Vec::new();
    let file = hear.try_clone().map(fs::File::from);
    file.and_then(|file| file.take(4096).read_to_end(&mut told))
        .map_err(|error| error.to_string())?;
    match told.as_slice() {
        WELL => Ok(()),
        b"" => Err("it died before the program ran".to_owned()),
        _ => Err(String::from_utf8_lossy(&told).into_owned()),
    }
}

/// The second process: the shim itself.
fn second(dir: &OwnedFd, spec: &Spec, tell: OwnedFd) -> u8 {
    let mut tell = Tell(Some(tell));
    match detach().and_then(|()| lock::take(dir)) {
        Err(error) => tell.say(error.to_string().as_bytes()),
        Ok(None) => tell.say(WELL),
        Ok(Some(lock)) => {
            let result = child::run(dir, spec, &mut tell);
            drop(lock);
            match result {
                Ok(()) => tell.say(WELL),
                Err(message) => {
                    tell.say(message.as_bytes());
                    return 1;
                }
            }
        }
    }
    0
}

/// The line to the first process: one message, or none if the shim dies.
struct Tell(Option<OwnedFd>);

impl Tell {
    fn say(&mut self, message: &[u8]) {
        if let Some(fd) = self.0.take() {
            // The first process may have gone; then the directory tells.
            let _ = rustix::io::write(fd, message);
        }
    }

    fn well(&mut self) {
        self.say(WELL);
    }
}

/// Leaves the session, the directory and the descriptors of the parent.
fn detach() -> io::Result<()> {
    setsid()?;
    chdir("/")?;
    ignore_requests();
    let null = openat(CWD, "/dev/null", OFlags::RDWR, Mode::empty())?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    // Both only help: a name for `ps`, and protection where this process may have it.
    let _ = fs::write("/proc/self/comm", "allotd-shim");
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE_ADJ);
    Ok(())
}

fn open_cgroup(path: &Path) -> Result<OwnedFd, String> {
    openat(CWD, path, dir::DIRECTORY, Mode::empty())
        .map_err(|error| format!("cannot open the cgroup {}: {error}", path.display()))
}

#[allow(unsafe_code)] // the two promises that only the beginning of a process can give
fn close_all_inherited() {
    // SAFETY: nothing in this process has opened a descriptor yet, see `main`.
    unsafe { close_inherited() }
}

#[allow(unsafe_code)] // as above
fn fork_alone(cgroup: Option<&OwnedFd>) -> io::Result<Option<crate::sys::clone::Child>> {
    // SAFETY: this process has one thread, see `main`.
    unsafe { fork_into(cgroup.map(AsFd::as_fd)) }
}

/// A pause between two tries.
fn pause(tries: u32) {
    std::thread::sleep(Duration::from_millis(50).saturating_mul(tries));
}
