//! A store that a bad disk has changed: it is opened, or made anew from its journal, and works.
//!
//! The bytes are changes to a sound store, then to its journal alone: how far it is cut, then places and what stands
//! there instead.

use std::panic::catch_unwind;
use std::path::Path;
use std::sync::LazyLock;

use allotd::store::{Change, Entry, Expect, REBUILT_KEY, Rebuilt, Store, open_or_rebuild};

use super::choices::Choices;

/// The bytes of a store and of its journal, and what is in them.
static SOUND: LazyLock<(Vec<u8>, Vec<u8>, Vec<Entry>)> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Store::open(&path, &[]).unwrap();
    for round in 0..8 {
        let put = |n: u8| {
            Change::Put(
                format!("pods/default/web-{n}"),
                vec![n; 300 * usize::from(n)],
                Expect::Any,
            )
        };
        store
            .commit(&(round..round + 8).map(put).collect::<Vec<_>>())
            .unwrap();
    }
    let entries = store.list("").unwrap();
    drop(store);
    let read = |path| std::fs::read(path).unwrap();
    let journal = path.with_extension("journal");
    (read(path), read(journal), entries)
});

pub fn run(data: &[u8]) {
    let (sound, journal, entries) = &*SOUND;
    let (store, rebuilt) = open(&changed(sound, data), journal);
    if let Some(rebuilt) = rebuilt {
        assert!(rebuilt.entries.is_ok() && rebuilt.damaged == 0 && rebuilt.aside.is_some());
        assert_eq!(store.list("").unwrap(), *entries);
    }
    let (store, rebuilt) = open(b"no store", &changed(journal, data));
    assert!(rebuilt.is_some());
    // Never anything that nobody wrote.
    for one in store.list("").unwrap() {
        let n = one.key.rsplit('-').next().unwrap().parse::<u8>().unwrap();
        assert_eq!(one.value, vec![n; 300 * usize::from(n)]);
    }
}

/// Opens them, and shows that what is opened works.
fn open(store: &[u8], journal: &[u8]) -> (Store, Option<Rebuilt>) {
    let dir = tempfile::tempdir_in(shared_memory()).unwrap();
    let path = dir.path().join("store");
    std::fs::write(&path, store).unwrap();
    std::fs::write(path.with_extension("journal"), journal).unwrap();
    // The database may end the process, as it panics in a release build, but not for ever.
    let opened = (0..4).find_map(|_| catch_unwind(|| open_or_rebuild(&path, &[])).ok());
    let store = opened.expect("opened or made anew").unwrap();
    let rebuilt = store.rebuilt().unwrap();
    let put = Change::Put("a".to_owned(), vec![1], Expect::Any);
    store.commit(&[put]).unwrap();
    assert!(store.get("a").unwrap().is_some());
    let delete = |key: &str| Change::Delete(key.to_owned(), Expect::Any);
    store.commit(&[delete("a"), delete(REBUILT_KEY)]).unwrap();
    (store, rebuilt)
}

fn changed(sound: &[u8], data: &[u8]) -> Vec<u8> {
    let mut bytes = sound.to_vec();
    let mut rest = Choices::new(data);
    let mut number = || (usize::from(rest.byte()) << 8) | usize::from(rest.byte());
    match number() {
        0 => {}
        kept => bytes.truncate(bytes.len() * kept / 65536),
    }
    for _ in 0..16 {
        // Mostly at the beginning, where the file describes itself.
        let near = rest.byte() < 192;
        let place = (usize::from(rest.byte()) << 8) | usize::from(rest.byte());
        let place = if near {
            place % 512
        } else {
            place * bytes.len() / 65536
        };
        let new = rest.bytes(8);
        for (at, byte) in (place..).zip(new) {
            if let Some(there) = bytes.get_mut(at) {
                *there = *byte;
            }
        }
    }
    bytes
}

/// A place that needs no disk.
fn shared_memory() -> &'static Path {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        memory
    } else {
        Path::new("/tmp")
    }
}
