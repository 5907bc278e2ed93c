//! A container's log as a file that the container wrote: reading it by pages misses nothing and ends.
//!
//! The first byte says how often the rest stands in the file, so that it grows beyond the blocks it is
//! read in.

use std::cell::RefCell;
use std::io::{Seek, Write};

use allotd::runtime::cri::{Cutter, Head, MAX_TEXT, Record, Stream};
use allotd::runtime::logs::{Log, PAGE};
use tempfile::NamedTempFile;

/// Longer than a page and than what is read at once while searching backwards.
const MOST: usize = PAGE + PAGE / 2;

thread_local! {
    static FILE: RefCell<NamedTempFile> = RefCell::new(NamedTempFile::new().unwrap());
}

pub fn run(data: &[u8]) {
    let Some((&repeat, text)) = data.split_first() else {
        return;
    };
    for line in text.split(|byte| *byte == b'\n') {
        record(line);
    }
    cut(usize::from(repeat) + 1, text);
    let times = match repeat {
        0..=254 => 1,
        _ => MOST / text.len().max(1),
    };
    FILE.with_borrow_mut(|file| {
        file.as_file().set_len(0).unwrap();
        file.rewind().unwrap();
        file.write_all(&text.repeat(times)).unwrap();
        paged(&Log::open(file.path()).unwrap().unwrap());
    });
}

/// What is read as a record reads the same when it is written again.
fn record(line: &[u8]) {
    let Some(record) = Record::parse(line) else {
        return;
    };
    let head = Head {
        stream: record.stream,
        full: record.full,
    };
    let mut again = format!("{:.9} {head} ", record.time).into_bytes();
    again.extend(&record.text);
    assert_eq!(Record::parse(&again).as_ref(), Some(&record));
}

/// However the bytes arrive, all of them are told, in pieces that fit into a record.
fn cut(step: usize, bytes: &[u8]) {
    let mut told = Vec::new();
    let mut cutter = Cutter::new(Stream::Stderr);
    let mut emit = |head: Head, text: &[u8]| {
        assert!(text.len() <= MAX_TEXT && !text.contains(&b'\n'));
        told.extend_from_slice(text);
        if head.full {
            told.push(b'\n');
        }
    };
    bytes
        .chunks(step)
        .for_each(|chunk| cutter.feed(chunk, &mut emit));
    cutter.finish(emit);
    assert_eq!(told, bytes);
}

fn paged(log: &Log) {
    let length = log.length().unwrap();
    let mut offset = 0;
    let mut records = 0;
    loop {
        let page = log.page(offset, u64::MAX).unwrap();
        assert!(page.next <= length);
        records += page.records.len();
        if page.next == offset {
            assert!(page.records.is_empty());
            break;
        }
        assert!(page.skipped <= page.next - offset);
        offset = page.next;
    }
    // What is left has no newline yet.
    assert!(length - offset <= PAGE as u64);

    assert_eq!(log.tail(0).unwrap().0, length);
    let mut last = length;
    for lines in [1, 2, 3, 10, 1000] {
        let start = log.tail(lines).unwrap().0;
        assert!(start <= last, "{lines} lines begin behind fewer");
        last = start;
    }
    if records > 0 {
        assert!(log.tail(1).unwrap().0 < length);
    }
    assert_eq!(log.tail(u64::MAX).unwrap().0, 0);
}
