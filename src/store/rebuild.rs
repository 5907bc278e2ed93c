//! A store that cannot be used is moved aside, and a new one is made of what its journal has.
//!
//! Decides what "cannot be used" means: damage or absence, and never a lock, a later format or a failing disk. It
//! must never lose a damaged file, never let it keep the daemon from starting, and never leave anything in the
//! store's place that another opening would take for all there is.

use std::fmt;
use std::fs::{copy, hard_link, remove_file, rename};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::journal::{self, Contents};
use super::{Entry, Step, Store, StoreError, format, private_file};

/// How often in a row opening may end the process before the store counts as damaged: the database does
/// not answer all damage with an error, some with a panic. More than once, so that whoever kills the
/// process in this very moment does not cost a sound store.
const MAX_CRASHES: u64 = 3;

/// The last changes may be in no journal, but their revisions were told: a new store goes on so many later.
const GAP: u64 = 1_000_000;

/// The entry that says in a store made anew that it is one. It stays until its reader deletes it, so that whoever is
/// killed before that leaves it to the next; no step of a format gets it.
pub const REBUILT_KEY: &str = "store/rebuilt";

/// What became of a store that could not be used. It never says that nothing is lost: a journal whose last lines are
/// missing is like a whole one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuilt {
    /// Where the damaged file is now; `None` where there was none.
    pub aside: Option<PathBuf>,
    /// How many entries the journal had; or why it has told nothing.
    pub entries: Result<usize, String>,
    /// How many lines of the journal are damaged: what they told is lost.
    pub damaged: usize,
}

impl fmt::Display for Rebuilt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.aside {
            Some(aside) => write!(
                f,
                "the store was damaged and is kept as {}",
                aside.display()
            )?,
            None => f.write_str("the store is gone")?,
        }
        match &self.entries {
            Ok(entries) => write!(
                f,
                "; a new one has the {entries} entries of its journal, which may lack the last changes"
            )?,
            Err(why) => write!(f, "; a new one is empty: {why}")?,
        }
        match self.damaged {
            0 => {}
            1 => f.write_str("; a line of the journal is damaged too, and what it told is lost")?,
            more => write!(
                f,
                "; {more} lines of the journal are damaged too, and what they told is lost"
            )?,
        }
        Ok(())
    }
}

/// Opens the store; one that is damaged or gone is made anew from its journal, which `Store::rebuilt` tells. One whose opening ended the process three times in a row is damaged too; the openings are counted in a file
/// beside it.
///
/// # Errors
/// A store that is in use or of a later format is left alone; so is one that cannot be moved, and one with an
/// entry that a step does not understand.
pub fn open_or_rebuild(path: &Path, steps: &[Step]) -> Result<Store, StoreError> {
    let count = path.with_extension("opening");
    let opened = if is_gone(path) || begin(&count) >= MAX_CRASHES {
        rebuild(path, steps)
    } else {
        match Store::open(path, steps) {
            Err(error) if is_damage(&error) => rebuild(path, steps),
            opened => opened,
        }
    };
    // The directory takes new files, so it lets this one go.
    let _ = remove_file(count);
    opened
}

/// There was one, since it has left its journal. What is not whole is never in its place, so an empty file is none.
fn is_gone(path: &Path) -> bool {
    let is_empty = match path.metadata() {
        Ok(found) => found.len() == 0,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    is_empty && matches!(journal::beside(path).try_exists(), Ok(true))
}

/// Counts this opening; how many before it did not come to their end. A count that cannot be kept is no
/// reason not to start.
fn begin(count: &Path) -> u64 {
    let Ok(mut file) = private_file(count) else {
        return 0;
    };
    let before = file.seek(SeekFrom::End(0)).unwrap_or(0);
    let _ = file.write_all(b".");
    before
}

/// At every instant either the old file or the whole new one is in the store's place.
fn rebuild(path: &Path, steps: &[Step]) -> Result<Store, StoreError> {
    let failed = |source| open_error(path, source);
    let (mut contents, mut why) = match journal::read(path) {
        Ok(Some(contents)) if contents.revision > 0 => (contents, None),
        Ok(Some(contents)) => {
            let why = "no line of its journal is as it was written";
            (contents, Some(why.to_owned()))
        }
        Ok(None) => (Contents::default(), Some("it has no journal".to_owned())),
        Err(error) => {
            let why = format!("its journal cannot be read: {error}");
            (Contents::default(), Some(why))
        }
    };
    if why.is_some() {
        contents.format = format::target(steps);
    }
    format::known(contents.format, steps)?;
    // What nobody has told of yet is told with this.
    if let Some(earlier) = contents.take_notice() {
        contents.damaged = contents.damaged.saturating_add(earlier.damaged);
        why = why.or(earlier.entries.err());
    }
    let aside = if path.try_exists().map_err(failed)? {
        let aside = free_name(path).map_err(failed)?;
        hard_link(path, &aside).map_err(failed)?;
        Some(aside)
    } else {
        None
    };
    if contents.damaged > 0 && journal::beside(path).exists() {
        let beside = match &aside {
            Some(aside) => aside.clone(),
            None => free_name(path).map_err(failed)?,
        };
        copy(journal::beside(path), journal::beside(&beside)).map_err(failed)?;
    }
    let rebuilt = Rebuilt {
        aside,
        entries: why.map_or(Ok(contents.entries.len()), Err),
        damaged: contents.damaged,
    };
    rename(make(path, contents, &rebuilt)?, path).map_err(failed)?;
    Store::open(path, steps)
}

/// A store of these contents with its notice, beside the place of the one they are of.
fn make(path: &Path, contents: Contents, rebuilt: &Rebuilt) -> Result<PathBuf, StoreError> {
    let new = path.with_extension("rebuilt");
    match remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(open_error(&new, error));
        }
        _ => {}
    }
    let revision = contents.revision.saturating_add(GAP);
    let notice = serde_json::to_vec(rebuilt);
    let mut entries = contents.entries;
    entries.push(Entry {
        key: REBUILT_KEY.to_owned(),
        revision,
        value: notice.map_err(|error| open_error(&new, error.into()))?,
    });
    format::write_as(&new, contents.format, revision, &entries)?;
    Ok(new)
}

impl Contents {
    fn take_notice(&mut self) -> Option<Rebuilt> {
        let at = self.entries.iter().position(|one| one.key == REBUILT_KEY)?;
        serde_json::from_slice(&self.entries.remove(at).value).ok()
    }
}

fn free_name(path: &Path) -> io::Result<PathBuf> {
    (0..1000)
        .map(|n| path.with_extension(format!("damaged.{n}")))
        .find(|one| !one.exists() && !journal::beside(one).exists())
        .ok_or_else(|| io::Error::other("1000 damaged stores lie beside it"))
}

fn open_error(path: &Path, source: io::Error) -> StoreError {
    StoreError::Open {
        path: path.to_owned(),
        source: Box::new(redb::Error::Io(source)),
    }
}

fn is_damage(error: &StoreError) -> bool {
    let (StoreError::Open { source, .. } | StoreError::Failed(source)) = error else {
        return false;
    };
    match &**source {
        // Neither is a file that another version of the database wrote.
        redb::Error::DatabaseAlreadyOpen | redb::Error::UpgradeRequired(_) => false,
        // A file that is no database, or one cut short, is told as an I/O error of these kinds.
        redb::Error::Io(io) => matches!(
            io.kind(),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData
        ),
        _ => true,
    }
}
