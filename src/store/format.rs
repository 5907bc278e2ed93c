//! From the formats of older versions to that of this one.
//!
//! Decides what "older" and "later" mean, and that a change of format happens as a whole or not at all: it is
//! part of the one transaction that opens the store. What changes stands in a table that the caller brings,
//! because it alone knows what a value means; a later format must never be rewritten.

use std::path::Path;

use redb::{ReadableDatabase, ReadableTable, Table};

use super::{Entry, REBUILT_KEY, StoreError, entry, private_file};

/// The first format there was.
const FIRST: u64 = 1;
/// In the table of numbers: the format of all entries.
const FORMAT: &str = "format";

/// How the entries of one format become those of the next. The n-th step of a table leads from format n to
/// n + 1, so a table of no steps means format 1; steps are added at its end and never removed.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// What it does, in words, for the log.
    pub what: &'static str,
    /// What becomes of one entry; `None` drops it. Its revision stays, whatever becomes of its key.
    ///
    /// The error says in words why the value cannot be understood: then the store stays as it is.
    pub change: fn(Entry) -> Result<Option<Entry>, String>,
}

/// The format that a table leads to.
pub(super) fn target(steps: &[Step]) -> u64 {
    FIRST.saturating_add(u64::try_from(steps.len()).unwrap_or(u64::MAX))
}

/// Refuses a file of a later format without changing a byte of it. A file that was not closed is put in order by its
/// next opening before anybody can read it; that of its entries nothing changes, `bring` sees to.
pub(super) fn refuse_later(path: &Path, steps: &[Step]) -> Result<(), StoreError> {
    let look = || {
        let database = redb::ReadOnlyDatabase::open(path).ok()?;
        let read = database.begin_read().ok()?;
        let meta = read.open_table(super::META).ok()?;
        Some(meta.get(FORMAT).ok()??.value())
    };
    match look() {
        Some(found) => known(found, steps),
        // Whoever opens it to write says why.
        None => Ok(()),
    }
}

/// Refuses a format that these steps cannot bring to theirs.
pub(super) fn known(found: u64, steps: &[Step]) -> Result<(), StoreError> {
    let wanted = target(steps);
    if (FIRST..=wanted).contains(&found) {
        return Ok(());
    }
    Err(StoreError::Format { found, wanted })
}

/// Brings all entries to the format that the table leads to. Whoever gets an error must not commit.
pub(super) fn bring(
    meta: &mut Table<'_, &str, u64>,
    entries: &mut Table<'_, &str, (u64, &[u8])>,
    steps: &[Step],
) -> Result<(), StoreError> {
    let wanted = target(steps);
    let found = meta.get(FORMAT).map_err(StoreError::failed)?;
    // A store without a mark is one that was made just now.
    let found = found.map(|found| found.value());
    let from = found.unwrap_or(wanted);
    known(from, steps)?;
    for (step, number) in steps.iter().zip(FIRST..).skip_while(|(_, n)| *n < from) {
        apply(entries, step, number)?;
        tracing::info!(
            "store: format {number} is now {}: {}",
            number + 1,
            step.what
        );
    }
    if found != Some(wanted) {
        meta.insert(FORMAT, wanted).map_err(StoreError::failed)?;
    }
    Ok(())
}

fn apply(
    entries: &mut Table<'_, &str, (u64, &[u8])>,
    step: &Step,
    from: u64,
) -> Result<(), StoreError> {
    let mut before = Vec::new();
    for row in entries.iter().map_err(StoreError::failed)? {
        let (key, value) = row.map_err(StoreError::failed)?;
        if key.value() != REBUILT_KEY {
            before.push(entry(key.value(), value.value()));
        }
    }
    // All of the old ones first: a new key may be that of another old entry.
    entries
        .retain(|key, _| key == REBUILT_KEY)
        .map_err(StoreError::failed)?;
    for old in before {
        let key = old.key.clone();
        let made = (step.change)(old).map_err(|why| StoreError::Step {
            key: key.clone(),
            from,
            why,
        })?;
        let Some(Entry {
            key: made,
            revision,
            value,
        }) = made
        else {
            continue;
        };
        let other = entries
            .insert(made.as_str(), (revision, value.as_slice()))
            .map_err(StoreError::failed)?;
        if other.is_some() {
            let why = format!("two entries would be {made}");
            return Err(StoreError::Step { key, from, why });
        }
    }
    Ok(())
}

/// Makes a store as a version of this format would have left it. Nothing is in its place before.
pub(crate) fn write_as(
    path: &Path,
    format: u64,
    revision: u64,
    entries: &[Entry],
) -> Result<(), StoreError> {
    let file = private_file(path).map_err(StoreError::failed)?;
    let backend = redb::backends::FileBackend::new(file).map_err(StoreError::failed)?;
    let database = redb::Builder::new()
        .create_with_backend(backend)
        .map_err(StoreError::failed)?;
    let write = database.begin_write().map_err(StoreError::failed)?;
    {
        let mut meta = write.open_table(super::META).map_err(StoreError::failed)?;
        for (name, number) in [(FORMAT, format), (super::REVISION, revision)] {
            meta.insert(name, number).map_err(StoreError::failed)?;
        }
        let mut table = write
            .open_table(super::ENTRIES)
            .map_err(StoreError::failed)?;
        for entry in entries {
            let value = (entry.revision, entry.value.as_slice());
            table
                .insert(entry.key.as_str(), value)
                .map_err(StoreError::failed)?;
        }
    }
    write.commit().map_err(StoreError::failed)
}

#[cfg(test)]
mod tests {
    use super::super::{Change, Expect, Store, open_or_rebuild};
    use super::*;

    const UPPER: Step = Step {
        what: "values are upper case, and b goes",
        change: |mut entry| {
            entry.value.make_ascii_uppercase();
            Ok((entry.key != "b").then_some(entry))
        },
    };
    const SWAP: Step = Step {
        what: "a is c, c is a",
        change: |mut entry| {
            let other = if entry.key == "a" { "c" } else { "a" };
            entry.key = other.to_owned();
            Ok(Some(entry))
        },
    };
    const STEPS: [Step; 2] = [UPPER, SWAP];

    fn old(key: &str, revision: u64, value: &str) -> Entry {
        Entry {
            key: key.to_owned(),
            revision,
            value: value.as_bytes().to_vec(),
        }
    }

    fn three() -> [Entry; 3] {
        [old("a", 3, "x"), old("b", 1, "y"), old("c", 7, "z")]
    }

    fn refused(path: &Path, steps: &[Step]) -> String {
        let error = open_or_rebuild(path, steps).unwrap_err();
        // Nothing was put aside, and nothing made in its place.
        for made in ["damaged.0", "rebuilt"] {
            assert!(!path.with_extension(made).exists(), "{error}");
        }
        error.to_string()
    }

    #[test]
    fn each_older_format_becomes_this_one_for_good() {
        let dir = tempfile::tempdir().unwrap();
        let now = [
            (1, vec![old("a", 7, "Z"), old("c", 3, "X")]),
            (2, vec![old("a", 7, "z"), old("c", 3, "x")]),
            (3, vec![old("a", 3, "x"), old("c", 7, "z")]),
        ];
        for (format, wanted) in now {
            let path = dir.path().join(format.to_string());
            let kept = three().into_iter().filter(|e| format == 1 || e.key != "b");
            write_as(&path, format, 7, &kept.collect::<Vec<_>>()).unwrap();
            // The second time there is nothing to do.
            for _ in 0..2 {
                let store = Store::open(&path, &STEPS).unwrap();
                assert_eq!(store.list("").unwrap(), wanted, "{format}");
                assert_eq!(store.revision().unwrap(), 7);
            }
            let store = Store::open(&path, &STEPS).unwrap();
            let put = Change::Put("d".to_owned(), Vec::new(), Expect::Absent);
            assert_eq!(store.commit(&[put]).unwrap(), 8);
        }
    }

    #[test]
    fn a_later_format_is_refused_and_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.redb");
        write_as(&path, 3, 7, &three()).unwrap();
        let before = std::fs::read(&path).unwrap();
        let said = refused(&path, &STEPS[..1]);
        assert!(std::fs::read(&path).unwrap() == before, "it was written");
        let wanted = "has format 3; this version knows 1 to 2 and leaves it as it is";
        assert!(said.contains(wanted), "{said}");
        // One that was not closed.
        let store = Store::open(&path, &STEPS).unwrap();
        let killed = dir.path().join("killed").join("s.redb");
        std::fs::create_dir(killed.parent().unwrap()).unwrap();
        std::fs::copy(&path, &killed).unwrap();
        assert!(refused(&killed, &STEPS[..1]).contains(wanted));
        assert_eq!(store.list("").unwrap(), three());
        drop(store);
        for path in [path, killed] {
            let store = Store::open(&path, &STEPS).unwrap();
            assert_eq!(store.list("").unwrap(), three());
        }
        let path = dir.path().join("zero").join("s.redb");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        write_as(&path, 0, 7, &three()).unwrap();
        assert!(refused(&path, &STEPS).contains("has format 0"));
    }

    #[test]
    fn a_step_that_fails_changes_nothing_and_names_the_entry() {
        const PICKY: Step = Step {
            what: "",
            change: |entry| match entry.key.as_str() {
                "b" => Err("it is no b".to_owned()),
                _ => Ok(Some(entry)),
            },
        };
        const SAME: Step = Step {
            what: "",
            change: |mut entry| {
                "one".clone_into(&mut entry.key);
                Ok(Some(entry))
            },
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.redb");
        write_as(&path, 1, 7, &three()).unwrap();
        for (steps, why) in [
            (
                [UPPER, SAME],
                "from format 2 to 3, c: two entries would be one",
            ),
            ([PICKY, SWAP], "from format 1 to 2, b: it is no b"),
        ] {
            let said = refused(&path, &steps);
            assert!(said.contains(why), "{said}");
        }
        assert_eq!(Store::open(&path, &[]).unwrap().list("").unwrap(), three());
    }

    #[test]
    fn a_new_store_has_the_last_format() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.redb");
        drop(Store::open(&path, &STEPS).unwrap());
        assert!(refused(&path, &[]).contains("has format 3"));
    }
}
