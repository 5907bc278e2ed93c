//! The container's log file.
//!
//! A record is in the file whole or not at all: what a full disk cut short is taken back, and the
//! bytes of output that are missing are counted. A log that cannot be written must never make the
//! container wait.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use jiff::Timestamp;
use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::runtime::cri::Head;

/// Records are gathered up to this many bytes before they are written.
const ENOUGH: usize = 64 * 1024;

/// The log and what has been gathered for it.
#[derive(Debug)]
pub(super) struct LogFile {
    file: File,
    gathered: Vec<u8>,
    /// Bytes of output in `gathered`.
    payload: u64,
    dropped: u64,
    time: String,
}

impl LogFile {
    /// Opens the log to add to it, making it if need be.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::WRONLY
            | OFlags::CREATE
            | OFlags::APPEND
            | OFlags::NOFOLLOW
            | OFlags::CLOEXEC
            | OFlags::NOCTTY;
        let fd = openat(CWD, path, flags, Mode::from_raw_mode(0o640))?;
        Ok(Self {
            file: File::from(fd),
            gathered: Vec::new(),
            payload: 0,
            dropped: 0,
            time: String::new(),
        })
    }

    /// Sets the time of the records to come.
    pub(super) fn at(&mut self, time: Timestamp) {
        self.time = format!("{time:.9}");
    }

    /// Adds a record.
    pub(super) fn add(&mut self, head: Head, text: &[u8]) {
        // Writing to memory does not fail.
        let _ = write!(self.gathered, "{} {head} ", self.time);
        self.gathered.extend_from_slice(text);
        self.gathered.push(b'\n');
        let newline = u64::from(head.full);
        self.payload += u64::try_from(text.len()).unwrap_or(0) + newline;
        if self.gathered.len() >= ENOUGH {
            self.flush();
        }
    }

    /// Writes what has been gathered, or counts it as dropped.
    pub(super) fn flush(&mut self) {
        if self.write_gathered().is_err() {
            self.dropped = self.dropped.saturating_add(self.payload);
        }
        self.gathered.clear();
        self.payload = 0;
    }

    /// Bytes of output that are not in the file.
    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }

    fn write_gathered(&mut self) -> io::Result<()> {
        let mut rest = self.gathered.as_slice();
        let mut written = 0u64;
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(count) if count > 0 => {
                    rest = rest.get(count..).unwrap_or_default();
                    written += u64::try_from(count).unwrap_or(0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                failed => {
                    // Not the length from before: somebody may have emptied the file to make room.
                    let length = self.file.metadata()?.len();
                    self.file.set_len(length.saturating_sub(written))?;
                    failed?;
                    return Err(io::ErrorKind::WriteZero.into());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::cri::{Record, Stream};

    #[test]
    fn records_are_appended_with_nine_digits() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("0.log");
        for text in [&b"one"[..], b"\xfftwo"] {
            let mut log = LogFile::open(&path).unwrap();
            log.at("2026-01-02T03:04:05.12Z".parse().unwrap());
            let head = Head {
                stream: Stream::Stderr,
                full: text.len() > 3,
            };
            log.add(head, text);
            log.flush();
            assert_eq!(log.dropped(), 0);
        }
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(
            bytes,
            b"2026-01-02T03:04:05.120000000Z stderr P one\n\
              2026-01-02T03:04:05.120000000Z stderr F \xfftwo\n"
        );
        let lines = bytes.split(|&b| b == b'\n').take(2);
        assert!(lines.map(Record::parse).all(|record| record.is_some()));
    }

    #[test]
    fn what_cannot_be_written_is_counted() {
        let mut log = LogFile::open(Path::new("/dev/full")).unwrap();
        log.at(Timestamp::UNIX_EPOCH);
        for full in [true, false] {
            let stream = Stream::Stdout;
            log.add(Head { stream, full }, b"12345");
        }
        log.flush();
        assert_eq!(log.dropped(), 11);
    }
}
