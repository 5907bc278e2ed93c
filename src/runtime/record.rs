//! What agent and shim tell each other: small JSON files in the attempt's directory.
//!
//! A record is whole or absent, also after a crash or a power cut: it is written beside, synced,
//! renamed, and the directory is synced. `spec.json` is the agent's, all others the shim's.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use jiff::Timestamp;
use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, fsync, openat, renameat};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::identity::ProcessId;
use crate::model::security::Security;

/// The file of [`Spec`].
pub const SPEC: &str = "spec.json";
/// The file of [`Started`].
pub const STARTED: &str = "started.json";
/// The file of [`Exit`].
pub const EXIT: &str = "exit.json";

/// The longest record that is read (bytes): above what `execve` takes (2 MiB on most machines).
const MAX_RECORD: u64 = 8 << 20;
/// The room kept for the record of the exit (bytes).
const RESERVED: usize = 8192;
/// The longest message in a record of the exit (characters).
const MAX_MESSAGE: usize = 1024;

/// What the shim is asked to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// The program and its arguments; a name without a slash is searched in the `PATH` of `env`.
    pub argv: Vec<String>,
    /// `NAME=value` each, nothing is added.
    pub env: Vec<String>,
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// The cgroup's directory, absolute. `None` leaves the process in the shim's cgroup.
    pub cgroup: Option<PathBuf>,
    /// The directory of the cgroup that the shim lives in. `None`: where its parent is.
    pub shim_cgroup: Option<PathBuf>,
    /// `/proc/PID/oom_score_adj`, −1000 to 1000.
    pub oom_score_adj: i16,
    /// The log's file, absolute, in a directory that exists.
    pub log: PathBuf,
    /// How much of it is kept.
    #[serde(default)]
    pub log_bounds: LogBounds,
    /// What the program sees in place of the host's directories.
    #[serde(default)]
    pub mounts: Vec<Mount>,
    /// As whom it runs, and what it may not do.
    #[serde(default)]
    pub security: Security,
    /// The state directory, of which a program that is secluded sees the next two and nothing else.
    #[serde(default)]
    pub state: Option<PathBuf>,
    /// The container's own directory.
    #[serde(default)]
    pub scratch: Option<PathBuf>,
    /// The pod's volumes.
    #[serde(default)]
    pub volumes: Vec<PathBuf>,
    /// Whether the program lacks CAP_SYS_RESOURCE, with which quotas would not hold it.
    #[serde(default)]
    pub heeds_quota: bool,
}

/// How much of a container's log is kept: the kubelet's `containerLogMaxSize` and `containerLogMaxFiles`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogBounds {
    /// A file that has this many bytes gets no more.
    pub size: u64,
    /// How many files there are, the one that is written to included; 2 or more.
    pub files: u32,
}

impl Default for LogBounds {
    fn default() -> Self {
        Self {
            size: 10 << 20,
            files: 5,
        }
    }
}

/// A volume at the place where a container sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountSpec {
    /// The volume's name.
    pub volume: String,
    /// An existing directory of the host, absolute.
    pub path: PathBuf,
    /// Whether it cannot be written to.
    pub read_only: bool,
}

/// The same as the shim reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mount {
    /// The directory that is shown.
    pub source: PathBuf,
    /// Where.
    pub target: PathBuf,
    /// Whether it cannot be written to.
    pub read_only: bool,
}

/// The process that a shim has cloned. Durable before the process becomes the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Started {
    /// The process.
    pub process: ProcessId,
    /// When it was cloned.
    pub started_at: Timestamp,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exit {
    /// The exit code; 128 and the signal's number where a signal ended it; 126, 127 or 128 where it
    /// could not be started.
    pub exit_code: i32,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The reason in one word.
    pub reason: ExitReason,
    /// What went wrong, for a person; empty where nothing did.
    pub message: String,
    /// When it started; `None` where there never was a process.
    pub started_at: Option<Timestamp>,
    /// When it was seen to have ended.
    pub finished_at: Timestamp,
    /// Bytes of output that the log could not take, its disk being full for example.
    pub dropped_log_bytes: u64,
}

/// Why an attempt ended, in Kubernetes' words. `OOMKilled` is not among them: the shim cannot know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ExitReason {
    /// Exit code 0.
    Completed,
    /// Any other exit code, or a signal.
    Error,
    /// The program never ran.
    StartError,
}

/// A record that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file could not be read.
    #[error("cannot read {name}: {source}")]
    Io {
        /// The record.
        name: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The file is no such record.
    #[error("{name} is damaged: {why}")]
    Damaged {
        /// The record.
        name: &'static str,
        /// What is wrong.
        why: String,
    },
}

/// Reads a record; `None` where there is none.
pub(super) fn read<T: DeserializeOwned>(
    dir: &OwnedFd,
    name: &'static str,
) -> Result<Option<T>, RecordError> {
    let io = |source| RecordError::Io { name, source };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match openat(dir, name, flags, Mode::empty()) {
        Ok(fd) => File::from(fd),
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(io(errno.into())),
    };
    let mut text = Vec::new();
    file.take(MAX_RECORD).read_to_end(&mut text).map_err(io)?;
    match serde_json::from_slice(&text) {
        Ok(record) => Ok(Some(record)),
        Err(error) => Err(RecordError::Damaged {
            name,
            why: error.to_string(),
        }),
    }
}

/// Writes a record so that it is whole or absent, and durable once this returns.
pub(super) fn write(dir: &OwnedFd, name: &str, record: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(record)?;
    let beside = format!(".{name}.new");
    let mut file = create(dir, &beside)?;
    file.write_all(&text)?;
    publish(dir, &file, &beside, name)
}

/// Room on the disk for the record of the exit, taken before the program can fill it.
#[derive(Debug)]
pub(super) struct Reserved {
    file: File,
}

impl Reserved {
    const BESIDE: &str = ".exit.json.new";

    pub(super) fn take(dir: &OwnedFd) -> io::Result<Self> {
        let mut file = create(dir, Self::BESIDE)?;
        match fallocate(file.as_fd(), FallocateFlags::KEEP_SIZE, 0, RESERVED as u64) {
            // A file system without it gets the bytes themselves; the end cuts them off again.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.write_all(&[b' '; RESERVED])?,
            other => other?,
        }
        fsync(&file)?;
        Ok(Self { file })
    }

    pub(super) fn write(&mut self, dir: &OwnedFd, exit: &Exit) -> io::Result<()> {
        use std::os::unix::fs::FileExt;
        let mut exit = exit.clone();
        exit.message = exit.message.chars().take(MAX_MESSAGE).collect();
        let text = serde_json::to_vec(&exit)?;
        self.file.write_all_at(&text, 0)?;
        self.file.set_len(text.len() as u64)?;
        publish(dir, &self.file, Self::BESIDE, EXIT)
    }
}

fn create(dir: &OwnedFd, name: &str) -> io::Result<File> {
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o640);
    Ok(File::from(openat(dir, name, flags, mode)?))
}

fn publish(dir: &OwnedFd, file: &File, beside: &str, name: &str) -> io::Result<()> {
    fsync(file)?;
    renameat(dir, beside, dir, name)?;
    Ok(fsync(dir)?)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::runtime::dir;

    fn exit(message: String) -> Exit {
        Exit {
            exit_code: 137,
            signal: Some(9),
            reason: ExitReason::Error,
            message,
            started_at: None,
            finished_at: "2026-01-02T03:04:05.000000006Z".parse().unwrap(),
            dropped_log_bytes: u64::MAX,
        }
    }

    fn open(path: &Path) -> OwnedFd {
        dir::open(path, &[]).unwrap().unwrap()
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let temp = tempfile::tempdir().unwrap();
        let dir = open(temp.path());
        assert!(read::<Exit>(&dir, EXIT).unwrap().is_none());
        for message in ["", "two"] {
            write(&dir, EXIT, &exit(message.to_owned())).unwrap();
            let got = read::<Exit>(&dir, EXIT).unwrap().unwrap();
            assert_eq!(got, exit(message.to_owned()));
        }
        assert_eq!(dir::names(&dir).unwrap(), [EXIT]);
    }

    #[test]
    fn what_is_no_record_is_told_as_damaged() {
        let temp = tempfile::tempdir().unwrap();
        let dir = open(temp.path());
        for text in ["", "{", "{}", "[1]", "\0\0\0"] {
            std::fs::write(temp.path().join(EXIT), text).unwrap();
            let error = read::<Exit>(&dir, EXIT).unwrap_err();
            assert!(matches!(error, RecordError::Damaged { .. }), "{text:?}");
        }
        std::fs::remove_file(temp.path().join(EXIT)).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", temp.path().join(EXIT)).unwrap();
        assert!(matches!(
            read::<Exit>(&dir, EXIT),
            Err(RecordError::Io { .. })
        ));
    }

    #[test]
    fn the_longest_record_of_an_exit_fits_into_its_room() {
        let temp = tempfile::tempdir().unwrap();
        let dir = open(temp.path());
        let mut room = Reserved::take(&dir).unwrap();
        assert!(read::<Exit>(&dir, EXIT).unwrap().is_none());
        // A control character takes six bytes of JSON.
        room.write(&dir, &exit("\u{1}".repeat(1 << 20))).unwrap();
        let length = temp.path().join(EXIT).metadata().unwrap().len();
        assert!((6 * 1024..RESERVED as u64).contains(&length), "{length}");
        let got = read::<Exit>(&dir, EXIT).unwrap().unwrap();
        assert_eq!(got.message.chars().count(), MAX_MESSAGE);
    }
}
