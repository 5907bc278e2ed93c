//! The container's log files.
//!
//! A record is in a file whole or not at all: what a full disk cut short is taken back, and the
//! bytes of output that are missing are counted. A log that cannot be written must never make the
//! container wait. A file that is long enough is put aside as `NAME.1`, and what was `NAME.1` is `NAME.2`;
//! the oldest goes.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use jiff::Timestamp;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;

use crate::runtime::cri::Head;
use crate::runtime::dir::DIRECTORY;
use crate::runtime::logs::aside;
use crate::runtime::record::LogBounds;

/// Records are gathered up to this many bytes before they are written.
const ENOUGH: usize = 64 * 1024;

/// The log and what has been gathered for it.
#[derive(Debug)]
pub(super) struct LogFile {
    file: File,
    /// Open, because the container may see something else by that path.
    directory: OwnedFd,
    name: String,
    bounds: LogBounds,
    length: u64,
    gathered: Vec<u8>,
    /// Bytes of output in `gathered`.
    payload: u64,
    dropped: u64,
    time: String,
}

impl LogFile {
    /// Opens the log to add to it, making it if need be.
    pub(super) fn open(path: &Path, bounds: LogBounds) -> io::Result<Self> {
        let parts = path
            .parent()
            .zip(path.file_name().and_then(|name| name.to_str()));
        let (above, name) = parts.ok_or(io::ErrorKind::InvalidInput)?;
        let directory = openat(CWD, above, DIRECTORY, Mode::empty())?;
        let file = open_file(&directory, name)?;
        Ok(Self {
            length: file.metadata()?.len(),
            file,
            directory,
            name: name.to_owned(),
            bounds,
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
        // A file that cannot be put aside is written on: a log too long is better than none.
        if self.length >= self.bounds.size && self.rotate().is_err() {
            self.length = 0;
        }
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

    /// Puts the file aside and begins a new one.
    fn rotate(&mut self) -> io::Result<()> {
        let oldest = self.bounds.files.saturating_sub(1).max(1);
        match unlinkat(&self.directory, aside(&self.name, oldest), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        for number in (0..oldest).rev() {
            let [from, to] = [number, number + 1].map(|number| aside(&self.name, number));
            match renameat(&self.directory, from, &self.directory, to) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        self.file = open_file(&self.directory, &self.name)?;
        self.length = self.file.metadata()?.len();
        Ok(())
    }

    fn write_gathered(&mut self) -> io::Result<()> {
        let mut rest = self.gathered.as_slice();
        let mut written = 0u64;
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(count) if count > 0 => {
                    rest = rest.get(count..).unwrap_or_default();
                    written += u64::try_from(count).unwrap_or(0);
                    self.length += u64::try_from(count).unwrap_or(0);
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

fn open_file(directory: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::WRONLY
        | OFlags::CREATE
        | OFlags::APPEND
        | OFlags::NOFOLLOW
        | OFlags::CLOEXEC
        | OFlags::NOCTTY;
    let fd = openat(directory, name, flags, Mode::from_raw_mode(0o640))?;
    Ok(File::from(fd))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::cri::{Record, Stream};

    const BOUNDS: LogBounds = LogBounds {
        size: 100,
        files: 3,
    };

    #[test]
    fn a_long_log_is_put_aside_and_the_oldest_goes() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("0.log");
        let mut log = LogFile::open(&path, BOUNDS).unwrap();
        log.at("2026-01-02T03:04:05Z".parse().unwrap());
        for number in 0..20 {
            let head = Head {
                stream: Stream::Stdout,
                full: true,
            };
            log.add(head, format!("{number:030}").as_bytes());
            log.flush();
        }
        assert_eq!(log.dropped(), 0);
        let mut names: Vec<_> = std::fs::read_dir(temp.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["0.log", "0.log.1", "0.log.2"]);
        // Two records of 73 bytes make a file that has enough.
        let last = |name: &str| {
            let text = std::fs::read_to_string(temp.path().join(name)).unwrap();
            assert!(text.lines().count() <= 2, "{text}");
            text.lines().last().unwrap()[45..].to_owned()
        };
        let numbers = ["0.log.2", "0.log.1", "0.log"].map(|name| last(name).parse::<u32>());
        assert_eq!(numbers, [Ok(15), Ok(17), Ok(19)]);
    }

    #[test]
    fn records_are_appended_with_nine_digits() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("0.log");
        for text in [&b"one"[..], b"\xfftwo"] {
            let mut log = LogFile::open(&path, LogBounds::default()).unwrap();
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
        let mut log = LogFile::open(Path::new("/dev/full"), BOUNDS).unwrap();
        log.at(Timestamp::UNIX_EPOCH);
        for full in [true, false] {
            let stream = Stream::Stdout;
            log.add(Head { stream, full }, b"12345");
        }
        log.flush();
        assert_eq!(log.dropped(), 11);
    }
}
