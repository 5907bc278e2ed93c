//! Which process is meant, for all time: a process id alone is used again by others.
//!
//! Nothing may be signalled or waited for by its number; it goes through a pidfd whose start time
//! and boot were compared first.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use procfs::ProcError;
use procfs::process::{Process, Stat, StatFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::sys::readable::readable;

/// A process of one boot of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProcessId {
    /// The process id.
    pub pid: i32,
    /// When it started: field 22 of `/proc/PID/stat`, clock ticks since boot.
    pub start_ticks: u64,
    /// `/proc/sys/kernel/random/boot_id` of the boot in which it ran.
    pub boot_id: String,
}

impl ProcessId {
    /// The identity of the process that has the number `pid` now; `None` where there is none.
    ///
    /// # Errors
    /// `/proc` could not be read.
    pub fn of(pid: i32) -> io::Result<Option<Self>> {
        let Some(stat) = stat(pid)? else {
            return Ok(None);
        };
        Ok(Some(Self {
            pid,
            start_ticks: stat.starttime,
            boot_id: boot_id()?,
        }))
    }

    /// A pidfd of the very process, or `None` where it has ended, as a zombie has.
    ///
    /// # Errors
    /// `/proc` could not be read, or no descriptor was free.
    pub fn open(&self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = Some(self.pid)
            .filter(|pid| *pid > 0)
            .and_then(Pid::from_raw)
        else {
            return Ok(None);
        };
        if boot_id()? != self.boot_id {
            return Ok(None);
        }
        let fd = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fd) => fd,
            // EINVAL: the number belongs to a thread now.
            Err(Errno::SRCH | Errno::INVAL) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        // The descriptor came first: had the number changed hands in between, the start time read
        // now would be later than the recorded one.
        let same = stat(self.pid)?.is_some_and(|stat| {
            stat.starttime == self.start_ticks && !matches!(stat.state, 'Z' | 'X' | 'x')
        });
        Ok(same.then_some(fd))
    }

    /// How long ago it started, by a clock that nobody sets. It must be of this boot.
    pub fn age(&self) -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let ticks = rustix::param::clock_ticks_per_second().max(1);
        let started = self.start_ticks.saturating_mul(1000) / ticks;
        let now = Duration::try_from(now).unwrap_or_default();
        now.saturating_sub(Duration::from_millis(started))
    }

    /// Whether the process still runs.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn is_alive(&self) -> io::Result<bool> {
        Ok(self.open()?.is_some())
    }

    /// Whether the process has ended or cannot but end: SIGKILL is on its way to it, or it is exiting.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn is_ending(&self) -> io::Result<bool> {
        const SIGKILL: u64 = 1 << (libc::SIGKILL - 1);
        if !self.is_alive()? {
            return Ok(true);
        }
        let seen = Process::new(self.pid).and_then(|process| {
            let (stat, status) = (process.stat()?, process.status()?);
            let exiting = StatFlags::from_bits_truncate(stat.flags).contains(StatFlags::PF_EXITING);
            Ok(exiting || (status.sigpnd | status.shdpnd) & SIGKILL != 0)
        });
        gone_or(seen).map(|ending| ending.unwrap_or(true))
    }

    /// Sends a signal; false where the process has ended.
    ///
    /// # Errors
    /// As [`Self::open`]; EPERM.
    pub fn signal(&self, signal: Signal) -> io::Result<bool> {
        let Some(fd) = self.open()? else {
            return Ok(false);
        };
        match pidfd_send_signal(fd, signal) {
            Ok(()) => Ok(true),
            Err(Errno::SRCH) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Waits until the process has ended; at once where it has. Needs a tokio runtime.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn ended(&self) -> io::Result<()> {
        match self.open()? {
            Some(fd) => readable(fd).await,
            None => Ok(()),
        }
    }
}

/// `/proc/PID/stat`, or `None` where there is no such process.
pub(super) fn stat(pid: i32) -> io::Result<Option<Stat>> {
    gone_or(Process::new(pid).and_then(|process| process.stat()))
}

/// What was read, or `None` where there is no such process.
fn gone_or<T>(read: Result<T, ProcError>) -> io::Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(ProcError::NotFound(_)) => Ok(None),
        Err(ProcError::Io(error, _)) if error.raw_os_error() == Some(libc::ESRCH) => Ok(None),
        Err(ProcError::Io(error, _)) => Err(error),
        Err(error) => Err(io::Error::other(error)),
    }
}

/// The name of this boot.
pub(super) fn boot_id() -> io::Result<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(id.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, id};

    use super::*;

    #[test]
    fn a_process_is_known_by_its_start_and_its_boot() {
        let me = ProcessId::of(id().cast_signed()).unwrap().unwrap();
        assert!(me.is_alive().unwrap());
        let mut other = me.clone();
        other.start_ticks += 1;
        assert!(!other.is_alive().unwrap());
        assert!(!other.signal(Signal::KILL).unwrap());
        let mut earlier = me.clone();
        earlier.boot_id = "another".to_owned();
        assert!(!earlier.signal(Signal::KILL).unwrap());
        assert!(!me.is_ending().unwrap());
        assert!(other.is_ending().unwrap());
        for pid in [0, -1, i32::MAX] {
            assert!(!ProcessId { pid, ..me.clone() }.is_alive().unwrap());
        }
    }

    #[test]
    fn a_process_is_as_old_as_it_is() {
        let me = ProcessId::of(id().cast_signed()).unwrap().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let age = me.age();
        // Tests of one process may take minutes, but no hours.
        assert!((100..7_200_000).contains(&age.as_millis()), "{age:?}");
        let start_ticks = u64::MAX;
        assert_eq!(ProcessId { start_ticks, ..me }.age(), Duration::ZERO);
    }

    #[test]
    fn a_zombie_has_ended() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let identity = ProcessId::of(child.id().cast_signed()).unwrap().unwrap();
        assert!(!identity.is_ending().unwrap());
        assert!(identity.signal(Signal::KILL).unwrap());
        assert!(identity.is_ending().unwrap(), "at the very instant");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        runtime.block_on(identity.ended()).unwrap();
        assert!(!identity.is_alive().unwrap());
        child.wait().unwrap();
        assert!(!identity.is_alive().unwrap());
    }
}
