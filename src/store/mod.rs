//! The durable store: keys, values and one revision for each change.
//!
//! Decides what survives a crash: a commit is on disk before it is answered, and all of its changes
//! happen or none. It must never know what a value means. It is shaped like a revisioned key-value
//! store with compare-and-swap, so that a remote one can stand behind it for fleets (design D11).

mod format;
mod journal;
mod rebuild;

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

pub use format::Step;
#[cfg(test)]
pub(crate) use format::write_as;
use journal::Journal;
pub use rebuild::{REBUILT_KEY, Rebuilt, open_or_rebuild};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

const ENTRIES: TableDefinition<&str, (u64, &[u8])> = TableDefinition::new("entries");
const META: TableDefinition<&str, u64> = TableDefinition::new("meta");
const REVISION: &str = "revision";

/// One value with the revision that wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key, such as `pods/default/web`.
    pub key: String,
    /// The revision of its last change.
    pub revision: u64,
    /// The value.
    pub value: Vec<u8>,
}

/// What a change expects to find, or it fails as a whole commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Anything.
    Any,
    /// No such key.
    Absent,
    /// The key as of this revision.
    Revision(u64),
}

/// One change of a commit.
#[derive(Clone, Debug)]
pub enum Change {
    /// Writes a value.
    Put(String, Vec<u8>, Expect),
    /// Removes a key; one that is absent is no error under `Expect::Any`.
    Delete(String, Expect),
}

/// Why the store could not be opened, read or changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be used as it is.
    #[error("store {path}: {source}")]
    Open {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: Box<redb::Error>,
    },
    /// The store was written by a later version.
    #[error(
        "the store has format {found}; this version knows 1 to {wanted} and leaves it as it is"
    )]
    Format {
        /// The format found.
        found: u64,
        /// The format of this version.
        wanted: u64,
    },
    /// An entry of an older version is not as it should be.
    #[error("the store cannot be brought from format {from} to {}, {key}: {why}", from.saturating_add(1))]
    Step {
        /// The entry.
        key: String,
        /// The format it has.
        from: u64,
        /// What is wrong with it.
        why: String,
    },
    /// Another change came first.
    #[error("{key} is at revision {found}, not as expected")]
    Conflict {
        /// The key.
        key: String,
        /// Its revision, 0 where it is absent.
        found: u64,
    },
    /// The disk or the file failed.
    #[error("store: {0}")]
    Failed(#[source] Box<redb::Error>),
}

impl StoreError {
    fn failed(error: impl Into<redb::Error>) -> Self {
        Self::Failed(Box::new(error.into()))
    }
}

/// The store. One process owns it at a time: the file is locked.
#[derive(Debug)]
pub struct Store {
    database: Database,
    journal: Mutex<Journal>,
    /// A test's disk that takes no more.
    #[cfg(test)]
    pub(crate) full: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

impl Store {
    /// Opens the store, or makes one where there is none. Only root may read it. One of an older format is
    /// brought to that which `steps` lead to, in one transaction. All of it is read, so that damage shows now, and
    /// its journal is written anew.
    ///
    /// # Errors
    /// A file that is damaged, locked by another process, or of a later format; an entry that a step does not
    /// understand.
    pub fn open(path: &Path, steps: &[Step]) -> Result<Self, StoreError> {
        let open = |error: redb::Error| StoreError::Open {
            path: path.to_owned(),
            source: Box::new(error),
        };
        format::refuse_later(path, steps)?;
        let file = private_file(path).map_err(|error| open(redb::Error::Io(error)))?;
        let backend = redb::backends::FileBackend::new(file).map_err(|error| open(error.into()))?;
        let database = redb::Builder::new()
            .create_with_backend(backend)
            .map_err(|error| open(error.into()))?;
        let write = database.begin_write().map_err(|e| open(e.into()))?;
        {
            let mut meta = write.open_table(META).map_err(|e| open(e.into()))?;
            let mut entries = write.open_table(ENTRIES).map_err(|e| open(e.into()))?;
            format::bring(&mut meta, &mut entries, steps)?;
        }
        write.commit().map_err(|error| open(error.into()))?;
        let (revision, entries) = (last_revision(&database)?, each(&database, "", entry)?);
        let journal = Journal::begin(path, format::target(steps), revision, &entries);
        Ok(Self {
            database,
            journal: Mutex::new(journal),
            #[cfg(test)]
            full: std::sync::Arc::default(),
        })
    }

    /// The value of a key.
    ///
    /// # Errors
    /// The disk failed.
    pub fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        let read = self.database.begin_read().map_err(StoreError::failed)?;
        let entries = read.open_table(ENTRIES).map_err(StoreError::failed)?;
        let found = entries.get(key).map_err(StoreError::failed)?;
        Ok(found.map(|guard| entry(key, guard.value())))
    }

    /// All entries whose keys begin with `prefix`, in order of keys.
    ///
    /// # Errors
    /// The disk failed.
    pub fn list(&self, prefix: &str) -> Result<Vec<Entry>, StoreError> {
        each(&self.database, prefix, entry)
    }

    /// The keys of these entries alone.
    ///
    /// # Errors
    /// The disk failed.
    pub fn keys(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        each(&self.database, prefix, |key, _| key.to_owned())
    }

    /// The revision of the last commit.
    ///
    /// # Errors
    /// The disk failed.
    pub fn revision(&self) -> Result<u64, StoreError> {
        last_revision(&self.database)
    }

    /// Makes all changes durable under one new revision, which is returned. Nothing is changed
    /// when one of them does not find what it expects.
    ///
    /// # Errors
    /// `Conflict`, or the disk failed.
    pub fn commit(&self, changes: &[Change]) -> Result<u64, StoreError> {
        #[cfg(test)]
        if self.full.load(std::sync::atomic::Ordering::Relaxed) {
            let full = std::io::Error::from_raw_os_error(libc::ENOSPC);
            return Err(StoreError::failed(redb::Error::Io(full)));
        }
        let write = self.database.begin_write().map_err(StoreError::failed)?;
        let revision;
        {
            let mut meta = write.open_table(META).map_err(StoreError::failed)?;
            let last = meta.get(REVISION).map_err(StoreError::failed)?;
            revision = last.map_or(0, |r| r.value()).saturating_add(1);
            let mut entries = write.open_table(ENTRIES).map_err(StoreError::failed)?;
            for change in changes {
                let (key, expect) = match change {
                    Change::Put(key, _, expect) | Change::Delete(key, expect) => (key, *expect),
                };
                let found = entries
                    .get(key.as_str())
                    .map_err(StoreError::failed)?
                    .map_or(0, |guard| guard.value().0);
                let met = match expect {
                    Expect::Any => true,
                    Expect::Absent => found == 0,
                    Expect::Revision(expected) => found == expected,
                };
                if !met {
                    return Err(StoreError::Conflict {
                        key: key.clone(),
                        found,
                    });
                }
                match change {
                    Change::Put(key, value, _) => {
                        entries
                            .insert(key.as_str(), (revision, value.as_slice()))
                            .map_err(StoreError::failed)?;
                    }
                    Change::Delete(key, _) => {
                        entries.remove(key.as_str()).map_err(StoreError::failed)?;
                    }
                }
            }
            meta.insert(REVISION, revision)
                .map_err(StoreError::failed)?;
        }
        write.commit().map_err(StoreError::failed)?;
        self.note(revision, changes);
        Ok(revision)
    }

    /// What became of the store before this one, until somebody deletes `REBUILT_KEY`.
    ///
    /// # Errors
    /// The disk failed.
    pub fn rebuilt(&self) -> Result<Option<Rebuilt>, StoreError> {
        let notice = self.get(REBUILT_KEY)?;
        Ok(notice.and_then(|notice| serde_json::from_slice(&notice.value).ok()))
    }

    /// Why the journal, from which a damaged store is made anew, has not all that the store has.
    pub fn journal_problem(&self) -> Option<String> {
        let journal = self.journal.lock();
        journal.unwrap_or_else(PoisonError::into_inner).problem()
    }

    /// What is durable goes to the journal too. A journal that fails says so in the log; the commit stands.
    fn note(&self, revision: u64, changes: &[Change]) {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        if !journal.add(revision, changes) {
            return;
        }
        match self.list("") {
            Ok(entries) => journal.rewrite(revision, &entries),
            Err(error) => tracing::error!("{error}"),
        }
    }
}

fn each<T>(
    database: &Database,
    prefix: &str,
    make: impl Fn(&str, (u64, &[u8])) -> T,
) -> Result<Vec<T>, StoreError> {
    let read = database.begin_read().map_err(StoreError::failed)?;
    let entries = read.open_table(ENTRIES).map_err(StoreError::failed)?;
    let range = entries
        .range::<&str>((Bound::Included(prefix), Bound::Unbounded))
        .map_err(StoreError::failed)?;
    let mut found = Vec::new();
    for row in range {
        let (key, value) = row.map_err(StoreError::failed)?;
        if !key.value().starts_with(prefix) {
            break;
        }
        found.push(make(key.value(), value.value()));
    }
    Ok(found)
}

fn last_revision(database: &Database) -> Result<u64, StoreError> {
    let read = database.begin_read().map_err(StoreError::failed)?;
    let meta = read.open_table(META).map_err(StoreError::failed)?;
    let found = meta.get(REVISION).map_err(StoreError::failed)?;
    Ok(found.map_or(0, |revision| revision.value()))
}

fn entry(key: &str, (revision, value): (u64, &[u8])) -> Entry {
    Entry {
        key: key.to_owned(),
        revision,
        value: value.to_vec(),
    }
}

/// Opens the file for its owner only, and never through a symbolic link.
fn private_file(path: &Path) -> std::io::Result<std::fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
}

#[cfg(test)]
mod tests;
