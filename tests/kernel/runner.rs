//! Runs the tests one after the other, each in a process of its own, and leaves the machine as it found it.
//!
//! Process 1 reaps what nobody else does. A test may wait for its own children as it likes.

use crate::{Outcome, Test, all_tests, init, tests_on_request};
use nix::errno::Errno;
use nix::libc::O_NONBLOCK;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::error::Error;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::str::FromStr;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A test that needs longer hangs, even under emulation.
const TEST_TIMEOUT: Duration = Duration::from_mins(1);
/// The same for a test that runs on request only.
const LONG_TIMEOUT: Duration = Duration::from_mins(30);
/// How long killed processes and their cgroups may take to go.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);
/// A failed test shows this much of the end of its output, and this many of the kernel's last messages.
const OUTPUT_BYTES: usize = 64 * 1024;
const KERNEL_LINES: usize = 40;
const OUTPUT: &str = "/test-output";
/// What a test prints behind this is shown though it passed.
const MEASURED: &str = "measured: ";
const CGROUP_ROOT: &str = "/sys/fs/cgroup";

/// How a supervised process ended.
#[derive(Clone, Copy)]
pub enum Ending {
    /// By itself, with this status.
    Exited(i32),
    /// By a signal.
    Killed(Signal),
    /// Not within this time. It still runs.
    TimedOut(Duration),
}

impl Ending {
    /// The status a shell would report.
    pub fn exit_code(self) -> i32 {
        match self {
            Ending::Exited(code) => code,
            Ending::Killed(signal) => 128_i32.saturating_add(signal as i32),
            Ending::TimedOut(_) => 124,
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Exited(code) => write!(f, "ends with status {code}"),
            Ending::Killed(signal) => write!(f, "is killed by {signal}"),
            Ending::TimedOut(limit) => write!(f, "does not end within {} s", limit.as_secs()),
        }
    }
}

/// Which of the tests a machine runs: every `parts`th, from the `part`th on. Neighbours take about as long, so that the
/// parts do too.
#[derive(Clone, Copy)]
pub struct Share {
    part: usize,
    parts: usize,
}

impl FromStr for Share {
    type Err = Box<dyn Error>;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (part, parts) = text
            .split_once('/')
            .ok_or("a share is written PART/PARTS")?;
        let (part, parts) = (part.parse()?, parts.parse()?);
        if part == 0 || part > parts {
            return Err(format!("there is no part {part} of {parts}").into());
        }
        Ok(Self { part, parts })
    }
}

/// In process 1: runs its share of the tests whose name contains `filter` and tells `terminal`. True if there was one
/// and all passed.
pub fn run_all(mut terminal: &File, share: Share, filter: &str) -> Result<bool, Box<dyn Error>> {
    let (mut passed, mut failed) = (0_u32, 0_u32);
    let tests = all_tests()
        .filter(|test| test.name().contains(filter))
        .map(|test| (test, TEST_TIMEOUT));
    let requested = tests_on_request()
        .filter(|test| test.name() == filter)
        .map(|test| (test, LONG_TIMEOUT));
    let share = tests
        .chain(requested)
        .skip(share.part - 1)
        .step_by(share.parts);
    for (test, limit) in share {
        // The name comes first: a machine that stops shows where.
        write!(terminal, "test {} ... ", test.name())?;
        let started = Instant::now();
        let (is_good, text) = run_one(test, limit)?;
        let took = started.elapsed().as_millis();
        let count = if is_good { &mut passed } else { &mut failed };
        *count = count.saturating_add(1);
        let word = if is_good { "ok" } else { "FAILED" };
        writeln!(terminal, "{word} ({took} ms)")?;
        for line in text.lines() {
            writeln!(terminal, "    {line}")?;
        }
        // The next test would mean nothing on a machine that cannot be cleaned.
        if let Err(error) = clean_up() {
            writeln!(
                terminal,
                "giving up: the machine cannot be cleaned after {}: {error}",
                test.name()
            )?;
            return Ok(false);
        }
    }
    writeln!(terminal, "{passed} passed, {failed} failed")?;
    Ok(passed > 0 && failed == 0)
}

/// Runs one test in this process, which gets mounts of its own: `/tmp` and `/run` are empty.
pub fn run_here(name: &str) -> ExitCode {
    let mut tests = all_tests().chain(tests_on_request());
    let Some(test) = tests.find(|test| test.name() == name) else {
        eprintln!("there is no test {name}");
        return ExitCode::from(2);
    };
    match own_mounts().and_then(|()| (test.body)()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn own_mounts() -> Outcome {
    let none = None::<&str>;
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    for target in ["/tmp", "/run"] {
        mount(Some("tmpfs"), target, Some("tmpfs"), MsFlags::empty(), none)?;
    }
    Ok(())
}

/// Runs one test in a fresh process. Whether it passed, and what is to be told of it: what it measured, or all
/// that may say why it failed.
fn run_one(test: &Test, limit: Duration) -> io::Result<(bool, String)> {
    let mut kernel_log = File::options()
        .read(true)
        .custom_flags(O_NONBLOCK)
        .open("/dev/kmsg")?;
    kernel_log.seek(SeekFrom::End(0))?;
    let output = File::create(OUTPUT)?;
    let mut command = init::command("/proc/self/exe");
    command
        .args(["run-test", test.name()])
        .stdout(output.try_clone()?)
        .stderr(output);
    let ending = supervise(&mut command, limit)?;
    let output = fs::read(OUTPUT)?;
    if let Ending::Exited(0) = ending {
        let said = String::from_utf8_lossy(&output);
        let figures = said.lines().filter(|line| line.starts_with(MEASURED));
        return Ok((true, figures.collect::<Vec<_>>().join("\n")));
    }
    let tail = output
        .get(output.len().saturating_sub(OUTPUT_BYTES)..)
        .unwrap_or_default();
    let mut report = format!(
        "{}\nthe test {ending}",
        String::from_utf8_lossy(tail).trim_end()
    );
    let messages = messages(kernel_log);
    for message in messages
        .iter()
        .skip(messages.len().saturating_sub(KERNEL_LINES))
    {
        report.push_str("\nkernel: ");
        report.push_str(message);
    }
    Ok((false, report))
}

/// In process 1: starts `command`, waits for it, and reaps orphans meanwhile.
pub fn supervise(command: &mut Command, limit: Duration) -> io::Result<Ending> {
    let child = command.spawn()?.id();
    let is_child = |pid: Pid| u32::try_from(pid.as_raw()) == Ok(child);
    let started = Instant::now();
    while started.elapsed() < limit {
        match waitpid(None, Some(WaitPidFlag::WNOHANG))? {
            WaitStatus::Exited(pid, code) if is_child(pid) => return Ok(Ending::Exited(code)),
            WaitStatus::Signaled(pid, signal, _) if is_child(pid) => {
                return Ok(Ending::Killed(signal));
            }
            WaitStatus::StillAlive => sleep(POLL),
            _ => {}
        }
    }
    Ok(Ending::TimedOut(limit))
}

/// Kills every process, removes every cgroup and turns every controller off.
fn clean_up() -> Outcome {
    let started = Instant::now();
    while let Err(error) = kill_all().and_then(|()| remove_below(Path::new(CGROUP_ROOT))) {
        if started.elapsed() > CLEANUP_TIMEOUT {
            return Err(error.into());
        }
        sleep(POLL);
    }
    let control = format!("{CGROUP_ROOT}/cgroup.subtree_control");
    for controller in fs::read_to_string(&control)?.split_whitespace() {
        fs::write(&control, format!("-{controller}"))?;
    }
    Ok(())
}

/// From process 1 the signal reaches every process but itself, and it is the last parent of each.
fn kill_all() -> io::Result<()> {
    match kill(Pid::from_raw(-1), Signal::SIGKILL) {
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => return Err(error.into()),
    }
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Err(Errno::ECHILD) => return Ok(()),
            Ok(WaitStatus::StillAlive) => {
                return Err(io::Error::other("a killed process does not end"));
            }
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn remove_below(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_below(&entry.path())?;
            fs::remove_dir(entry.path())?;
        }
    }
    Ok(())
}

/// The text of each message the kernel wrote since `log` was opened at its end.
fn messages(mut log: File) -> Vec<String> {
    let mut messages = Vec::new();
    let mut record = [0; 8192];
    loop {
        match log.read(&mut record) {
            Ok(length) if length > 0 => {
                let record = String::from_utf8_lossy(record.get(..length).unwrap_or_default());
                let text = record.split_once(';').map_or("", |(_, text)| text);
                messages.extend(text.lines().next().map(str::to_owned));
            }
            // Some were overwritten before they were read; the next read goes on with the oldest left.
            Err(error) if error.raw_os_error() == Some(Errno::EPIPE as i32) => {}
            _ => return messages,
        }
    }
}
