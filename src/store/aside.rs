//! A store that cannot be used is moved aside, and an empty one takes its place.
//!
//! Decides what "cannot be used" means: damage, and never a lock, a later format or a failing disk. It
//! must never lose the damaged file, and never let it keep the daemon from starting.

use std::fs::{remove_file, rename};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{Step, Store, StoreError, private_file};

/// How often in a row opening may end the process before the store counts as damaged: the database does
/// not answer all damage with an error, some with a panic. More than once, so that whoever kills the
/// process in this very moment does not cost a sound store.
const MAX_CRASHES: u64 = 3;

/// Opens the store; one that is damaged is moved aside and replaced by an empty one. The second
/// value tells where the damaged one went. One whose opening ended the process three times in a row is
/// damaged too; the openings are counted in a file beside it.
///
/// # Errors
/// A store that is in use or of a later format is left alone; so is one that cannot be moved, and one with an
/// entry that a step does not understand.
pub fn open_or_set_aside(
    path: &Path,
    steps: &[Step],
) -> Result<(Store, Option<PathBuf>), StoreError> {
    let count = path.with_extension("opening");
    let opened = if begin(&count) < MAX_CRASHES {
        match open_and_read(path, steps) {
            Ok(store) => Ok((store, None)),
            Err(error) if is_damage(&error) => set_aside(path, steps),
            Err(error) => Err(error),
        }
    } else {
        set_aside(path, steps)
    };
    // The directory takes new files, so it lets this one go.
    let _ = remove_file(count);
    opened
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

/// Whoever opens a store reads all of it sooner or later: damage shows now.
fn open_and_read(path: &Path, steps: &[Step]) -> Result<Store, StoreError> {
    let store = Store::open(path, steps)?;
    store.list("")?;
    store.revision()?;
    Ok(store)
}

fn set_aside(path: &Path, steps: &[Step]) -> Result<(Store, Option<PathBuf>), StoreError> {
    let failed = |source| StoreError::Open {
        path: path.to_owned(),
        source: Box::new(redb::Error::Io(source)),
    };
    let aside = (0..1000)
        .map(|n| path.with_extension(format!("damaged.{n}")))
        .find(|candidate| !candidate.exists())
        .ok_or_else(|| failed(std::io::Error::other("1000 damaged stores lie beside it")))?;
    rename(path, &aside).map_err(failed)?;
    Store::open(path, steps).map(|store| (store, Some(aside)))
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
            std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::InvalidData
        ),
        _ => true,
    }
}
