//! What has become of an attempt, read from its directory alone.
//!
//! The answer never depends on the agent's memory, so it is the same after the agent was killed at
//! any instant. Whoever acts on it must act on what it says and look again.

use std::os::fd::OwnedFd;

use jiff::Timestamp;

use super::identity::{self, ProcessId};
use super::lock;
use super::process::RuntimeError;
use super::record::{self, EXIT, Exit, RecordError, STARTED, Started};

/// What has become of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptState {
    /// No program has run, and no shim is about to start one: it may be started.
    NotStarted,
    /// A shim is alive and has not recorded its process yet.
    Starting,
    /// The process runs.
    Running(Running),
    /// It has ended, or could not be started, and the shim recorded how.
    Exited(Exit),
    /// It has ended, or may never have begun, and nobody recorded how.
    Lost(Lost),
}

impl AttemptState {
    /// Whether nothing will change any more.
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Exited(_) | Self::Lost(_))
    }
}

/// A running process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The process.
    pub process: ProcessId,
    /// When it started.
    pub started_at: Timestamp,
    /// Whether its shim is alive. Without one its output goes nowhere (a write gives it SIGPIPE) and
    /// its exit code will be unknown.
    pub supervised: bool,
}

/// A process whose end nobody saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// What is known of it; `None` where its record is damaged.
    pub started: Option<Started>,
    /// Why nobody saw the end.
    pub why: LostReason,
}

/// Why nobody saw the end of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostReason {
    /// The machine has been started anew.
    Rebooted,
    /// The shim died before.
    ShimDied,
    /// The record is no record: the disk or somebody damaged it.
    Damaged,
}

impl LostReason {
    /// The reason for a person.
    pub const fn message(self) -> &'static str {
        match self {
            Self::Rebooted => "the machine restarted while the process ran",
            Self::ShimDied => "the process ended after the shim that watched it had died",
            Self::Damaged => "the record of the process is damaged",
        }
    }
}

/// What has become of the attempt in `dir`.
pub(super) fn inspect(dir: &OwnedFd) -> Result<AttemptState, RuntimeError> {
    // The lock first: records read after it was seen free are the last ones.
    let supervised = lock::holder(dir)
        .map_err(RuntimeError::io("look at the lock in", "the attempt"))?
        .is_some();
    match record::read::<Exit>(dir, EXIT) {
        Ok(Some(exit)) => return Ok(AttemptState::Exited(exit)),
        Ok(None) => {}
        Err(RecordError::Damaged { .. }) => return Ok(lost(None, LostReason::Damaged)),
        Err(error) => return Err(error.into()),
    }
    let started = match record::read::<Started>(dir, STARTED) {
        Ok(Some(started)) => started,
        Ok(None) if supervised => return Ok(AttemptState::Starting),
        Ok(None) => return Ok(AttemptState::NotStarted),
        Err(RecordError::Damaged { .. }) => return Ok(lost(None, LostReason::Damaged)),
        Err(error) => return Err(error.into()),
    };
    let proc = |source| RuntimeError::io("read", "/proc")(source);
    // A living shim has the last word: it is about to record the end of a process just gone.
    if supervised || started.process.is_alive().map_err(proc)? {
        return Ok(AttemptState::Running(Running {
            process: started.process,
            started_at: started.started_at,
            supervised,
        }));
    }
    let this_boot = identity::boot_id().map_err(proc)? == started.process.boot_id;
    let why = if this_boot {
        LostReason::ShimDied
    } else {
        LostReason::Rebooted
    };
    Ok(lost(Some(started), why))
}

fn lost(started: Option<Started>, why: LostReason) -> AttemptState {
    AttemptState::Lost(Lost { started, why })
}
