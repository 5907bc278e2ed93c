//! The journal tells all that was committed, and of what is damaged nothing.

use super::super::tests::{reopen, tells_all};
use super::super::{Expect, Step, Store, open_or_rebuild};
use super::*;

fn put(key: &str, value: &[u8]) -> Change {
    Change::Put(key.to_owned(), value.to_vec(), Expect::Any)
}

/// A store with changes of every kind, then closed.
fn changed(path: &Path) -> Vec<Entry> {
    let store = Store::open(path, &[]).unwrap();
    let long = "long ".repeat(1000);
    for changes in [
        vec![
            put("a", b"{\"first\": \"\\n\"}"),
            put("b", b"\xff\x00 no text\n"),
        ],
        vec![
            put("a", b"second"),
            Change::Delete("none".to_owned(), Expect::Any),
        ],
        vec![put("c", long.as_bytes())],
        vec![
            Change::Delete("b".to_owned(), Expect::Any),
            put("d", b"\xfe"),
        ],
        vec![
            Change::Delete("d".to_owned(), Expect::Any),
            put("e", b"\xfe"),
        ],
    ] {
        store.commit(&changes).unwrap();
    }
    store.list("").unwrap()
}

#[test]
fn the_journal_tells_all_that_was_committed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.redb");
    let all = changed(&path);
    let told = read(&path).unwrap().unwrap();
    assert_eq!((told.revision, told.damaged, told.format), (5, 0, 1));
    assert_eq!(told.entries, all);
    // Opening writes it anew: one line for each entry, one for the revision.
    drop(Store::open(&path, &[]).unwrap());
    let again = read(&path).unwrap().unwrap();
    assert_eq!(again, told);
    let lines = std::fs::read(beside(&path)).unwrap();
    assert_eq!(lines.split(|byte| *byte == b'\n').count(), 4 + 1);
    let mode = std::os::unix::fs::MetadataExt::mode(&beside(&path).metadata().unwrap());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_store_that_is_gone_goes_on_at_a_later_revision() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.redb");
    let all = changed(&path);
    std::fs::remove_file(&path).unwrap();
    let (store, rebuilt) = reopen(&path, &[]);
    let rebuilt = rebuilt.unwrap();
    let expected = "the store is gone; a new one has the 3 entries of its journal, which may lack the last \
                    changes";
    assert_eq!(rebuilt.to_string(), expected);
    assert!(tells_all(&rebuilt));
    assert_eq!(store.list("").unwrap(), all);
    assert_eq!(store.commit(&[put("f", b"")]).unwrap(), 1_000_007);
    drop(store);
    let (_, rebuilt) = reopen(&path, &[]);
    assert_eq!(rebuilt, None);
}

#[test]
fn an_older_journal_is_brought_to_the_present_format_and_a_later_one_is_refused() {
    const UPPER: Step = Step {
        what: "values are upper case",
        change: |mut entry| {
            entry.value.make_ascii_uppercase();
            Ok(Some(entry))
        },
    };
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.redb");
    changed(&path);
    let damage = |text: &str| std::fs::write(&path, text).unwrap();
    damage("no store");
    let (store, rebuilt) = reopen(&path, &[UPPER]);
    assert!(tells_all(&rebuilt.unwrap()));
    assert_eq!(store.get("a").unwrap().unwrap().value, b"SECOND");
    drop(store);
    damage("no store again");
    let error = open_or_rebuild(&path, &[]).unwrap_err().to_string();
    assert!(
        error.contains("has format 2; this version knows 1 to 1"),
        "{error}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"no store again");
    assert_eq!(read(&path).unwrap().unwrap().entries.len(), 3);
}

/// Each byte in turn is another: then one line is damaged, or two where they run together, and never is anything
/// told that nobody wrote.
#[test]
fn a_damaged_line_is_counted_and_what_it_told_is_all_that_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.redb");
    let store = Store::open(&path, &[]).unwrap();
    for n in 0..6 {
        store.commit(&[put(&format!("k{n}"), b"v")]).unwrap();
    }
    let all = store.list("").unwrap();
    drop(store);
    let whole = std::fs::read(beside(&path)).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x01;
        std::fs::write(beside(&path), &damaged).unwrap();
        let told = read(&path).unwrap().unwrap();
        assert!((1..=2).contains(&told.damaged), "{at}: {}", told.damaged);
        assert!(told.entries.len() >= all.len() - 2, "{at}");
        assert!(told.entries.iter().all(|one| all.contains(one)), "{at}");
    }
    // Cut anywhere: what came before is told, and a line in two is damaged.
    for length in 0..whole.len() {
        std::fs::write(beside(&path), &whole[..length]).unwrap();
        let told = read(&path).unwrap().unwrap();
        let is_cut = !whole[..length].is_empty() && whole[length - 1] != b'\n';
        assert_eq!(told.damaged, usize::from(is_cut), "{length}");
        assert_eq!(told.entries, all[..told.entries.len()]);
    }
    // Both are damaged: both are kept, and it is said.
    std::fs::write(beside(&path), &whole[..whole.len() - 60]).unwrap();
    std::fs::write(&path, "no store").unwrap();
    let (_, rebuilt) = reopen(&path, &[]);
    let rebuilt = rebuilt.unwrap();
    assert!(!tells_all(&rebuilt));
    let told = rebuilt.to_string();
    assert!(
        told.contains("a line of the journal is damaged too"),
        "{told}"
    );
    let aside = rebuilt.aside.unwrap();
    assert_eq!(std::fs::read(&aside).unwrap(), b"no store");
    let kept = std::fs::read(beside(&aside)).unwrap();
    assert!(kept == whole[..whole.len() - 60]);
    for file in [&path, &beside(&path)] {
        std::fs::write(file, "nothing\nof it").unwrap();
    }
    let (store, rebuilt) = reopen(&path, &[]);
    let told = rebuilt.unwrap().to_string();
    let expected = "a new one is empty: no line of its journal is as it was written; 2 lines of the journal are \
                    damaged too, and what they told is lost";
    assert!(told.ends_with(expected), "{told}");
    assert_eq!(store.list("").unwrap(), []);
}

#[test]
fn it_stays_of_bounded_length() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.redb");
    let store = Store::open(&path, &[]).unwrap();
    let value = vec![b'x'; 1 << 18];
    let mut longest = 0;
    for _ in 0..64 {
        store.commit(&[put("same", &value)]).unwrap();
        longest = longest.max(beside(&path).metadata().unwrap().len());
    }
    assert!((ROOM..=ROOM * 2).contains(&longest), "{longest} bytes");
    assert_eq!(
        read(&path).unwrap().unwrap().entries,
        store.list("").unwrap()
    );
}

#[test]
fn a_journal_that_cannot_be_written_is_no_reason_to_refuse_and_has_no_hole_later() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.redb");
    // A directory is in its way.
    std::fs::create_dir(beside(&path)).unwrap();
    let store = Store::open(&path, &[]).unwrap();
    store.commit(&[put("a", b"1")]).unwrap();
    std::fs::remove_dir(beside(&path)).unwrap();
    store.commit(&[put("b", b"2")]).unwrap();
    assert!(!beside(&path).exists(), "not tried again yet");
    let why = store.journal_problem().unwrap();
    assert!(why.contains("s.redb.journal, cannot be written: "), "{why}");
    let long_ago = Instant::now().checked_sub(AGAIN).unwrap();
    store.journal.lock().unwrap().state = Err((long_ago, why));
    store.commit(&[put("c", b"3")]).unwrap();
    assert_eq!(store.journal_problem(), None);
    assert_eq!(
        read(&path).unwrap().unwrap().entries,
        store.list("").unwrap()
    );
}
