//! Reading container logs: the last lines, a page from an offset, and on from there.
//!
//! Memory is bounded whatever the file holds. What is no record is skipped and counted, never shown
//! as if it were one.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

use super::cri::{MAX_RECORD, Record};

/// The bytes of log that one page covers at most.
pub const PAGE: usize = 256 * 1024;
/// The bytes read at once while searching backwards.
const BLOCK: u64 = 64 * 1024;
const _: () = assert!(PAGE > MAX_RECORD && BLOCK > MAX_RECORD as u64);

/// A container's log, open for reading.
#[derive(Debug)]
pub struct Log {
    file: File,
}

/// Records that stand one after the other in a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The records, both streams merged as they came.
    pub records: Vec<Record>,
    /// Where the next page begins. Equal to the offset asked for when nothing has been added since.
    pub next: u64,
    /// Bytes that were no records.
    pub skipped: u64,
}

/// The name of a log's file that was put aside as the `number`th, from the youngest on; 0 is the one
/// that is written to.
pub fn aside(name: &str, number: u32) -> String {
    match number {
        0 => name.to_owned(),
        number => format!("{name}.{number}"),
    }
}

/// How many files of a log that were put aside are looked for.
const MAX_ASIDE: u32 = 1000;

/// A log with all of its files, the oldest first; empty where there is none.
///
/// # Errors
/// What the kernel answered.
pub fn open_all(path: &Path) -> io::Result<Vec<Log>> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return Ok(Vec::new());
    };
    let mut logs: Vec<Log> = Vec::new();
    let mut seen = HashSet::new();
    for number in 0..=MAX_ASIDE {
        match Log::open(&path.with_file_name(aside(name, number)))? {
            // The same file again if it was put aside meanwhile.
            Some(log) if seen.insert(log.inode()?) => logs.push(log),
            Some(_) => {}
            None if number == 0 => {}
            None => break,
        }
    }
    logs.reverse();
    Ok(logs)
}

/// Removes a log with all of its files; nothing to remove is no error.
///
/// # Errors
/// What the kernel answered.
pub fn remove_all(path: &Path) -> io::Result<()> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return Ok(());
    };
    for number in 0..=MAX_ASIDE {
        match std::fs::remove_file(path.with_file_name(aside(name, number))) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && number > 0 => break,
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// The offset at which the last `lines` lines begin, in the first of the files that is left then.
///
/// # Errors
/// What the kernel answered.
pub fn tail(logs: &mut Vec<Log>, lines: u64) -> io::Result<u64> {
    let mut left = lines;
    for (index, log) in logs.iter().enumerate().rev() {
        let (offset, seen) = log.tail(left)?;
        left = left.saturating_sub(seen);
        if left == 0 || index == 0 {
            logs.drain(..index);
            return Ok(offset);
        }
    }
    Ok(0)
}

impl Log {
    /// Which file it is: another one after the log was rotated.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn inode(&self) -> io::Result<u64> {
        use std::os::unix::fs::MetadataExt;
        Ok(self.file.metadata()?.ino())
    }

    /// Opens a log; `None` where there is none.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        match openat(CWD, path, flags, Mode::empty()) {
            Ok(fd) => Ok(Some(Self { file: fd.into() })),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// How long the log is now (bytes).
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// The whole records from `offset` on that end before `end`, as many as a page holds. A log that
    /// has been emptied is read from its beginning.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn page(&self, offset: u64, end: u64) -> io::Result<Page> {
        let offset = if offset > self.length()? { 0 } else { offset };
        let room = usize::try_from(end.saturating_sub(offset)).unwrap_or(PAGE);
        let bytes = self.read(offset, room.min(PAGE))?;
        let whole = match bytes.iter().rposition(|&b| b == b'\n') {
            Some(last) => last + 1,
            // No record is that long: pass over it.
            None if bytes.len() == PAGE => PAGE,
            None => 0,
        };
        let mut page = Page {
            next: offset + to_u64(whole),
            ..Page::default()
        };
        let whole = bytes.get(..whole).unwrap_or_default();
        for line in whole.split_inclusive(|&b| b == b'\n') {
            match Record::parse(line.strip_suffix(b"\n").unwrap_or(line)) {
                Some(record) => page.records.push(record),
                None => page.skipped += to_u64(line.len()),
            }
        }
        Ok(page)
    }

    /// The offset at which the last `lines` lines begin, and how many there are from there on. A line that
    /// was cut into several records is one line, and so is what the end of a stream left without a newline.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn tail(&self, lines: u64) -> io::Result<(u64, u64)> {
        let end = self.length()?;
        let mut backwards = Backwards {
            log: self,
            block: Vec::new(),
            base: end,
        };
        let (mut position, mut seen) = (end, 0);
        while position > 0 {
            let (start, full) = backwards.record_before(position)?;
            if full || position == end {
                if seen == lines {
                    return Ok((position, seen));
                }
                seen += 1;
            }
            position = start;
        }
        Ok((0, seen))
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, offset + to_u64(filled)) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}

/// A block of the log that ends where a record does.
struct Backwards<'a> {
    log: &'a Log,
    block: Vec<u8>,
    base: u64,
}

impl Backwards<'_> {
    /// Where the record that ends at `end` begins, and whether it ends a line.
    fn record_before(&mut self, end: u64) -> io::Result<(u64, bool)> {
        let mut start = self.start(end);
        if start.is_none() && self.base > 0 {
            self.base = end.saturating_sub(BLOCK);
            let length = usize::try_from(end - self.base).unwrap_or(0);
            self.block = self.log.read(self.base, length)?;
            start = self.start(end);
        }
        // Nothing that long is a record; a block of it counts as a line, as any line that is none.
        let start = start.unwrap_or(self.base);
        let line = self.slice(start, end);
        let full = line.splitn(4, |&b| b == b' ').nth(2) != Some(b"P");
        Ok((start, full))
    }

    /// Looks for the newline before the record that ends at `end`.
    fn start(&self, end: u64) -> Option<u64> {
        let before = self.slice(self.base, end.saturating_sub(1));
        let newline = before.iter().rposition(|&b| b == b'\n')?;
        Some(self.base + to_u64(newline) + 1)
    }

    fn slice(&self, from: u64, to: u64) -> &[u8] {
        let index = |offset: u64| usize::try_from(offset.saturating_sub(self.base)).ok();
        match (index(from), index(to)) {
            (Some(from), Some(to)) => self.block.get(from..to).unwrap_or_default(),
            _ => &[],
        }
    }
}

fn to_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::cri::MAX_TEXT;

    fn log(records: &[(&str, &str)]) -> (tempfile::TempDir, Log) {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("0.log");
        let mut lines = String::new();
        for (tag, text) in records {
            let record = [
                "2026-01-02T03:04:05.000000000Z stdout ",
                tag,
                " ",
                text,
                "\n",
            ];
            lines.extend(record);
        }
        std::fs::write(&path, lines).unwrap();
        let log = Log::open(&path).unwrap().unwrap();
        (temp, log)
    }

    fn texts(page: &Page) -> Vec<String> {
        let text = |record: &Record| String::from_utf8(record.text.clone()).unwrap();
        page.records.iter().map(text).collect()
    }

    fn tail(log: &Log, lines: u64) -> Vec<String> {
        texts(&log.page(log.tail(lines).unwrap().0, u64::MAX).unwrap())
    }

    #[test]
    fn the_last_lines_count_cut_lines_once() {
        let (_temp, log) = log(&[
            ("F", "a"),
            ("P", "b1"),
            ("P", "b2"),
            ("F", "b3"),
            ("F", "c"),
        ]);
        assert_eq!(tail(&log, 0), [""; 0]);
        assert_eq!(tail(&log, 1), ["c"]);
        assert_eq!(tail(&log, 2), ["b1", "b2", "b3", "c"]);
        for lines in [3, 4, u64::MAX] {
            assert_eq!(tail(&log, lines), ["a", "b1", "b2", "b3", "c"]);
        }
    }

    #[test]
    fn an_unfinished_line_is_a_line() {
        let (_temp, log) = log(&[("F", "a"), ("P", "b")]);
        assert_eq!(tail(&log, 1), ["b"]);
        assert_eq!(tail(&log, 2), ["a", "b"]);
        let (_temp, empty) = self::log(&[]);
        assert_eq!(tail(&empty, 5), [""; 0]);
    }

    #[test]
    fn lines_are_found_across_blocks() {
        let text = "x".repeat(MAX_TEXT);
        let records: Vec<_> = (0..40).map(|_| ("F", text.as_str())).collect();
        let (_temp, log) = log(&records);
        let record = log.file.metadata().unwrap().len() / 40;
        for lines in 0..=40 {
            assert_eq!(log.tail(lines).unwrap().0, (40 - lines) * record, "{lines}");
        }
        let (mut offset, mut count) = (0, 0);
        loop {
            let page = log.page(offset, u64::MAX).unwrap();
            if page.next == offset {
                break;
            }
            count += page.records.len();
            offset = page.next;
        }
        assert_eq!(count, 40);
    }

    #[test]
    fn a_page_ends_with_a_whole_record_and_goes_on_later() {
        let (temp, log) = log(&[("F", "a")]);
        let first = log.page(0, u64::MAX).unwrap();
        let path = temp.path().join("0.log");
        let add = |text: &str| {
            use std::io::Write;
            let mut file = File::options().append(true).open(&path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        add("2026-01-02T03:04:05Z stderr F b");
        let half = log.page(first.next, u64::MAX).unwrap();
        assert_eq!((half.records.len(), half.next), (0, first.next));
        add("c\n");
        assert_eq!(texts(&log.page(half.next, u64::MAX).unwrap()), ["bc"]);
        std::fs::write(&path, "").unwrap();
        assert_eq!(log.page(first.next, u64::MAX).unwrap(), Page::default());
    }

    #[test]
    fn what_is_no_record_is_passed_over() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("0.log");
        let good = b"2026-01-02T03:04:05Z stdout F good\n";
        let bytes = [&vec![b'x'; 3 * PAGE][..], b"\n", good].concat();
        std::fs::write(&path, &bytes).unwrap();
        let log = Log::open(&path).unwrap().unwrap();
        let (mut offset, mut skipped, mut seen) = (0, 0, 0);
        loop {
            let page = log.page(offset, u64::MAX).unwrap();
            if page.next == offset {
                break;
            }
            skipped += page.skipped;
            seen += page.records.len();
            offset = page.next;
        }
        assert_eq!((skipped, seen), (to_u64(3 * PAGE + 1), 1));
        assert_eq!(tail(&log, 1), ["good"]);
        assert_eq!(log.tail(2).unwrap().0, skipped - BLOCK);
        assert_eq!(log.tail(u64::MAX).unwrap().0, 0);
    }
}
