//! A store that a bad disk has changed: it is opened, or set aside for an empty one, and works.
//!
//! The bytes are changes to a sound store: how far it is cut, then places and what stands there instead.

use std::panic::catch_unwind;
use std::path::Path;
use std::sync::LazyLock;

use allotd::store::{Change, Expect, Store, open_or_set_aside};

use super::choices::Choices;

static SOUND: LazyLock<Vec<u8>> = LazyLock::new(|| {
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
    drop(store);
    std::fs::read(path).unwrap()
});

pub fn run(data: &[u8]) {
    let mut bytes = SOUND.clone();
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
    let dir = tempfile::tempdir_in(shared_memory()).unwrap();
    let path = dir.path().join("store");
    std::fs::write(&path, &bytes).unwrap();
    // The database may end the process, as it panics in a release build, but not for ever.
    let opened = (0..4).find_map(|_| catch_unwind(|| open_or_set_aside(&path, &[])).ok());
    let (store, aside) = opened.expect("opened or set aside").unwrap();
    if let Some(aside) = aside {
        assert!(aside.is_file());
        assert_eq!(store.list("").unwrap(), []);
    }
    let put = Change::Put("a".to_owned(), vec![1], Expect::Any);
    store.commit(&[put]).unwrap();
    assert!(store.get("a").unwrap().is_some());
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
