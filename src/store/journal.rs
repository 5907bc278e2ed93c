//! The journal: a second copy of the store, as lines of text in another file.
//!
//! Decides what can still be known when the database is damaged or gone: all that was committed, for the last
//! change goes to the journal right after the database has it. It need not be safer than the database, only
//! damaged by something else, so it is not synced to the disk with each line. It must never be read while the
//! database can be: whatever it lacks, the next opening of a sound store writes it anew.
//!
//! What its end is worth: a commit is on the disk before its line is written, so the journal is never ahead of the
//! database. It can be behind, by whole lines and without a trace: the process ended between the two, the disk took
//! no more lines, a file system that failed and was mounted again forgot what was not synced, somebody cut the file.
//! The only other place that has the last revision is the database that is gone, and a third file in the same
//! directory would be lost in the same ways. So no journal is ever taken for whole: after any rebuild, what runs
//! without a record may be a pod of the last lines.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Change, Entry, StoreError, private_file};

/// A line may have this many bytes. What writes them stays far below: an object has 3 MiB at the most.
const LONGEST: u64 = 64 << 20;
/// It is written anew once it has so many bytes more than four times what it began with.
const ROOM: u64 = 4 << 20;
/// A journal that cannot be written is tried again so much later.
const AGAIN: Duration = Duration::from_secs(30);

/// What one commit changed, or one entry of a copy of all.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Line {
    format: u64,
    revision: u64,
    changes: Vec<(String, Option<Value>)>,
}

/// Values are JSON, which may be read by whoever looks into the file; others would be kept as well.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Value {
    Text(String),
    Bytes(Vec<u8>),
}

impl Value {
    fn of(value: &[u8]) -> Self {
        match str::from_utf8(value) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Bytes(value.to_vec()),
        }
    }

    fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// The file, while its store is open.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    format: u64,
    /// Where the next line goes; or since when it has not all that the store has, and why.
    state: Result<Open, (Instant, String)>,
}

#[derive(Debug)]
struct Open {
    file: File,
    length: u64,
    /// It is written anew at this length.
    most: u64,
}

/// Where the journal of a store is.
pub(super) fn beside(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".journal");
    PathBuf::from(name)
}

impl Journal {
    /// Begins with a copy of all that the store has, in place of what there was. One that cannot be written is told
    /// and tried again later: it is no reason not to start.
    pub(super) fn begin(store: &Path, format: u64, revision: u64, entries: &[Entry]) -> Self {
        let mut journal = Self {
            path: beside(store),
            format,
            state: Err((Instant::now(), String::new())),
        };
        journal.rewrite(revision, entries);
        journal
    }

    /// Adds what a commit changed. Answers whether it is to be written anew.
    pub(super) fn add(&mut self, revision: u64, changes: &[Change]) -> bool {
        let open = match &mut self.state {
            Ok(open) => open,
            Err((since, _)) => return since.elapsed() >= AGAIN,
        };
        let changes = changes.iter().map(|change| match change {
            Change::Put(key, value, _) => (key.clone(), Some(Value::of(value))),
            Change::Delete(key, _) => (key.clone(), None),
        });
        let line = Line {
            format: self.format,
            revision,
            changes: changes.collect(),
        };
        let text = text(&line);
        // As one write: a process that is killed leaves the whole line or none.
        match text.and_then(|text| open.file.write_all(&text).map(|()| text.len())) {
            Ok(length) => {
                let length = u64::try_from(length).unwrap_or(u64::MAX);
                open.length = open.length.saturating_add(length);
                open.length > open.most
            }
            Err(error) => {
                self.fail(&error);
                false
            }
        }
    }

    /// Writes it anew.
    pub(super) fn rewrite(&mut self, revision: u64, entries: &[Entry]) {
        match write_all(&self.path, self.format, revision, entries) {
            Ok((file, length)) => {
                let most = length.saturating_mul(4).saturating_add(ROOM);
                self.state = Ok(Open { file, length, most });
            }
            Err(error) => self.fail(&error),
        }
    }

    /// A journal with a hole would tell what never was, so nothing more is added to it.
    fn fail(&mut self, error: &io::Error) {
        let path = self.path.display();
        let why = format!("the second copy of the store, {path}, cannot be written: {error}");
        tracing::error!("{why}");
        self.state = Err((Instant::now(), why));
    }

    /// Why it has not all that the store has.
    pub(super) fn problem(&self) -> Option<String> {
        self.state.as_ref().err().map(|(_, why)| why.clone())
    }
}

/// A line with its checksum before it.
fn text(line: &Line) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(line)?;
    let mut text = format!("{:08x} ", crc32fast::hash(&json)).into_bytes();
    text.extend(json);
    text.push(b'\n');
    Ok(text)
}

fn write_all(
    path: &Path,
    format: u64,
    revision: u64,
    entries: &[Entry],
) -> io::Result<(File, u64)> {
    let new = path.with_extension("new");
    let file = private_file(&new)?;
    file.set_len(0)?;
    let mut writer = BufWriter::new(file);
    let mut length: u64 = 0;
    let copies = entries.iter().map(|entry| Line {
        format,
        revision: entry.revision,
        changes: vec![(entry.key.clone(), Some(Value::of(&entry.value)))],
    });
    // The last one is the store's own revision, which may be that of an entry that is gone.
    let last = Line {
        format,
        revision,
        changes: Vec::new(),
    };
    for line in copies.chain([last]) {
        let text = text(&line)?;
        length = length.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
        writer.write_all(&text)?;
    }
    let file = writer
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?;
    file.sync_data()?;
    std::fs::rename(&new, path)?;
    Ok((file, length))
}

/// What a journal tells.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Contents {
    /// The format of its entries.
    pub format: u64,
    /// The last revision in it.
    pub revision: u64,
    /// What there is after all of its changes.
    pub entries: Vec<Entry>,
    /// Lines that are not as they were written.
    pub damaged: usize,
}

/// Reads the journal of a store; `None` where there is none. One with no sound line has revision 0.
///
/// # Errors
/// The disk failed.
pub(super) fn read(store: &Path) -> Result<Option<Contents>, StoreError> {
    let path = beside(store);
    let failed = |source| StoreError::Open {
        path: path.clone(),
        source: Box::new(redb::Error::Io(source)),
    };
    if !path.try_exists().map_err(failed)? {
        return Ok(None);
    }
    let mut reader = BufReader::new(private_file(&path).map_err(failed)?);
    let mut contents = Contents::default();
    let mut kept = BTreeMap::new();
    let mut text = Vec::new();
    loop {
        text.clear();
        let read = (&mut reader).take(LONGEST).read_until(b'\n', &mut text);
        if read.map_err(failed)? == 0 {
            break;
        }
        let Some(line) = line(&text) else {
            contents.damaged += 1;
            continue;
        };
        // All lines are of one format; a later one must not be taken for an earlier one.
        contents.format = contents.format.max(line.format);
        contents.revision = contents.revision.max(line.revision);
        for (key, value) in line.changes {
            match value {
                Some(value) => drop(kept.insert(key, (line.revision, value.into_bytes()))),
                None => drop(kept.remove(&key)),
            }
        }
    }
    contents.entries = kept
        .into_iter()
        .map(|(key, (revision, value))| Entry {
            key,
            revision,
            value,
        })
        .collect();
    Ok(Some(contents))
}

fn line(text: &[u8]) -> Option<Line> {
    let (sum, json) = text.strip_suffix(b"\n")?.split_at_checked(8)?;
    let json = json.strip_prefix(b" ")?;
    let sum = u32::from_str_radix(str::from_utf8(sum).ok()?, 16).ok()?;
    if sum != crc32fast::hash(json) {
        return None;
    }
    serde_json::from_slice(json).ok()
}

#[cfg(test)]
mod tests;
