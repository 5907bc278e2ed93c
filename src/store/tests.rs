//! The store's promises: all or nothing, durable, and never an empty store in place of a damaged one.

use super::*;

fn put(key: &str, value: &str, expect: Expect) -> Change {
    Change::Put(key.to_owned(), value.as_bytes().to_vec(), expect)
}

/// Opens it as the agent does, which takes the notice of one that was made anew.
pub(super) fn reopen(path: &Path, steps: &[Step]) -> (Store, Option<Rebuilt>) {
    let store = open_or_rebuild(path, steps).unwrap();
    let rebuilt = store.rebuilt().unwrap();
    if rebuilt.is_some() {
        let taken = Change::Delete(REBUILT_KEY.to_owned(), Expect::Any);
        store.commit(&[taken]).unwrap();
    }
    (store, rebuilt)
}

/// Whether the journal has told all that it had.
pub(super) fn tells_all(rebuilt: &Rebuilt) -> bool {
    rebuilt.entries.is_ok() && rebuilt.damaged == 0
}

#[test]
fn a_commit_happens_as_a_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&dir.path().join("s.redb"), &[]).unwrap();
    assert_eq!(store.commit(&[put("a/1", "x", Expect::Absent)]).unwrap(), 1);
    let conflict = store.commit(&[
        put("a/2", "y", Expect::Any),
        put("a/1", "z", Expect::Absent),
    ]);
    assert!(matches!(
        conflict,
        Err(StoreError::Conflict { found: 1, .. })
    ));
    assert_eq!(store.get("a/2").unwrap(), None);
    assert_eq!(store.revision().unwrap(), 1);
    store
        .commit(&[put("a/1", "z", Expect::Revision(1))])
        .unwrap();
    assert_eq!(store.get("a/1").unwrap().unwrap().revision, 2);
}

#[test]
fn lists_by_prefix_and_survives_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.redb");
    let store = Store::open(&path, &[]).unwrap();
    store
        .commit(&[
            put("pods/a/1", "1", Expect::Any),
            put("pods/b/1", "2", Expect::Any),
            put("podsx", "3", Expect::Any),
        ])
        .unwrap();
    assert!(Store::open(&path, &[]).is_err(), "one owner at a time");
    drop(store);
    let store = Store::open(&path, &[]).unwrap();
    let keys = |prefix| -> Vec<_> {
        store
            .list(prefix)
            .unwrap()
            .into_iter()
            .map(|e| e.key)
            .collect()
    };
    assert_eq!(keys("pods/"), ["pods/a/1", "pods/b/1"]);
    store
        .commit(&[Change::Delete("pods/a/1".to_owned(), Expect::Any)])
        .unwrap();
    assert_eq!(keys("pods/"), ["pods/b/1"]);
}

#[test]
fn a_damaged_store_is_set_aside_and_kept() {
    for damage in [b"not a database at all".to_vec(), vec![0; 8192]] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.redb");
        std::fs::write(&path, &damage).unwrap();
        let (store, rebuilt) = reopen(&path, &[]);
        let rebuilt = rebuilt.unwrap();
        assert!(
            rebuilt
                .to_string()
                .ends_with("; a new one is empty: it has no journal")
        );
        assert!(!tells_all(&rebuilt));
        assert_eq!(std::fs::read(rebuilt.aside.unwrap()).unwrap(), damage);
        assert_eq!(store.list("").unwrap(), []);
    }
}

/// Everything, whatever the damage is; and where something was lost it is said.
#[test]
fn a_store_cut_short_anywhere_has_all_it_had() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.redb");
    let store = Store::open(&path, &[]).unwrap();
    for n in 0..50 {
        store
            .commit(&[put(&format!("k/{n}"), &"v".repeat(900), Expect::Any)])
            .unwrap();
    }
    let all = store.list("").unwrap();
    drop(store);
    let [whole, journal] = [&path, &journal::beside(&path)].map(|one| std::fs::read(one).unwrap());
    for cut in [
        0,
        1,
        100,
        511,
        512,
        4096,
        5000,
        whole.len() / 2,
        whole.len() - 1,
    ] {
        let path = dir.path().join(format!("cut{cut}.redb"));
        std::fs::write(&path, &whole[..cut]).unwrap();
        let (store, rebuilt) = reopen(&path, &[]);
        let kept = store.list("k/").unwrap().len();
        assert!(
            cut == 0 || kept == 50 || rebuilt.is_some_and(|rebuilt| !tells_all(&rebuilt)),
            "cut at {cut}: {kept} of 50 and nothing said"
        );
        drop(store);
        std::fs::write(&path, &whole[..cut]).unwrap();
        std::fs::write(journal::beside(&path), &journal).unwrap();
        let (store, rebuilt) = reopen(&path, &[]);
        assert_eq!(store.list("").unwrap(), all, "cut at {cut}: {rebuilt:?}");
        assert!(rebuilt.is_none_or(|rebuilt| tells_all(&rebuilt)));
    }
}

#[test]
fn a_store_in_use_is_never_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.redb");
    let _owner = Store::open(&path, &[]).unwrap();
    assert!(open_or_rebuild(&path, &[]).is_err());
}

/// Found by fuzzing: the database panics on some damage, and a release build ends with the panic.
#[test]
fn a_store_that_ends_whoever_opens_it_is_set_aside_the_fourth_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.redb");
    let count = path.with_extension("opening");
    Store::open(&path, &[])
        .unwrap()
        .commit(&[put("k", "v", Expect::Any)])
        .unwrap();
    // An opening that ends well is not counted.
    std::fs::write(&count, "..").unwrap();
    for _ in 0..5 {
        let (store, rebuilt) = reopen(&path, &[]);
        assert_eq!((store.list("").unwrap().len(), rebuilt), (1, None));
        assert!(!count.exists());
    }
    std::fs::write(&count, "...").unwrap();
    let (store, rebuilt) = reopen(&path, &[]);
    assert_eq!(store.list("").unwrap().len(), 1);
    let aside = rebuilt.unwrap().aside.unwrap();
    let aside = Store::open(&aside, &[]).unwrap();
    assert_eq!(aside.list("").unwrap().len(), 1);
    assert!(!count.exists());
}

/// Whoever is killed before the loss is told leaves that to the next, be it killed once more while it makes the store
/// anew from what there is then.
#[test]
fn a_loss_is_told_however_often_it_is_interrupted() {
    for journal_is in [None, Some("no line"), Some("")] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.redb");
        std::fs::write(&path, "no store").unwrap();
        if let Some(text) = journal_is {
            std::fs::write(journal::beside(&path), text).unwrap();
        }
        for damage in [false, false, true, true, false] {
            if damage {
                std::fs::write(&path, "no store again").unwrap();
            }
            let store = open_or_rebuild(&path, &[]).unwrap();
            let rebuilt = store.rebuilt().unwrap().unwrap();
            assert!(!tells_all(&rebuilt), "{journal_is:?} {rebuilt}");
            store.commit(&[put("k", "v", Expect::Any)]).unwrap();
        }
        let (store, rebuilt) = reopen(&path, &[]);
        assert!(rebuilt.is_some());
        assert_eq!(store.list("").unwrap().len(), 1, "what came since is kept");
        drop(store);
        assert_eq!(reopen(&path, &[]).1, None);
    }
}
