//! Report kubernetes#23255, each of its parts: what walks may cost, and what those get who ask meanwhile.

use std::path::Path;

use super::*;
use crate::cgroup::Hierarchy;
use crate::cgroup::model_kernel::ModelKernel;

const LONG: Duration = Duration::from_secs(120);

struct Bench {
    walks: Walks,
    reader: Arc<dyn Reader>,
    cgroup: CgroupPath,
}

impl Bench {
    fn new() -> Self {
        Self {
            walks: Walks::default(),
            reader: ModelKernel::default().reader(),
            cgroup: CgroupPath::top(),
        }
    }

    fn measure(&self, uid: &str, place: &Place, patience: Duration) -> Figure {
        let files = Files {
            uid,
            place,
            cgroup: &self.cgroup,
            reader: &self.reader,
        };
        self.walks.measure(&files, Instant::now() + patience)
    }

    fn knows(&self, uid: &str) -> bool {
        let state = self.walks.0.lock();
        state.known.keys().any(|(own, _)| own == uid)
    }
}

fn place(directory: &Path) -> Place {
    Place {
        space: Space::Pod,
        directories: vec![directory.to_owned()],
        others: Vec::new(),
        aliases: Vec::new(),
        in_memory: false,
        project: None,
    }
}

fn fill(directory: &Path, files: u64) {
    for number in 0..files {
        std::fs::File::create(directory.join(number.to_string())).unwrap();
    }
}

#[test]
fn the_same_files_rest_twenty_times_as_long_as_their_walk_took() {
    let seconds = Duration::from_secs;
    for (took, pause) in [
        (seconds(0), AGAIN),
        (seconds(1), seconds(20)),
        (seconds(25), seconds(500)),
        (Duration::MAX, Duration::MAX),
    ] {
        assert_eq!(pause_after(took), pause, "{took:?}");
    }
}

#[test]
fn no_more_is_looked_at_in_a_second_than_is_allowed() {
    let steps = RATE / STEP;
    let millis = Duration::from_millis;
    assert!(ahead(steps, Duration::ZERO) > millis(980));
    assert!(ahead(steps, millis(980)) <= millis(20));
    assert_eq!(ahead(steps, millis(1000)), Duration::ZERO, "a slow disk");
    assert!(ahead(u64::MAX, Duration::ZERO) > millis(1000));
}

#[test]
fn who_asks_waits_no_longer_than_they_say() {
    let temp = tempfile::tempdir().unwrap();
    let bench = Bench::new();
    let place = place(temp.path());
    fill(temp.path(), 3 * STEP);
    let began = Instant::now();
    // The walk takes its time, by the pace that it keeps, and an impatient asker none.
    assert_eq!(bench.measure("u", &place, Duration::ZERO).measured, None);
    let figure = bench.measure("u", &place, LONG);
    let found = figure.measured.unwrap();
    assert!(began.elapsed() > Duration::from_millis(25));
    assert_eq!((found.inodes, found.partial), (3 * STEP + 1, false));
    // What is known is not found out again before its time.
    assert!(figure.due.unwrap() > began + AGAIN, "{figure:?}");
    std::fs::File::create(temp.path().join("more")).unwrap();
    assert_eq!(bench.measure("u", &place, LONG), figure);
}

#[test]
fn a_first_walk_tells_what_it_has_and_a_later_one_keeps_the_whole() {
    let bench = Bench::new();
    let key: Key = ("u".to_owned(), Space::Pod);
    let now = Instant::now();
    let known = Known {
        last: None,
        due: now,
        asked: now,
        busy: true,
    };
    let shared = &bench.walks.0;
    shared.lock().known.insert(key.clone(), known);
    let place = place(Path::new("/nowhere"));
    let so_far = |bytes| Usage {
        bytes,
        inodes: 1,
        ..Usage::default()
    };
    for bytes in [5, 9] {
        assert!(shared.goes_on(&key, so_far(bytes)));
        let told = bench.measure("u", &place, Duration::ZERO).measured.unwrap();
        assert_eq!((told.bytes, told.partial), (bytes, true));
    }
    let whole = Measured {
        bytes: 20,
        ..Measured::default()
    };
    shared.note(&key, Some(whole), Duration::ZERO);
    shared.lock().known.get_mut(&key).unwrap().busy = true;
    assert!(shared.goes_on(&key, so_far(1)));
    let told = bench.measure("u", &place, Duration::ZERO);
    assert_eq!(told.measured, Some(whole));
    // The pod goes: so does the walk.
    bench.walks.forget("u");
    assert!(!shared.goes_on(&key, so_far(1)));
    shared.note(&key, Some(whole), Duration::ZERO);
    assert!(!bench.knows("u"));
}

#[test]
fn a_walk_ends_with_its_pod_and_the_next_begins() {
    let (large, small) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bench = Bench::new();
    fill(large.path(), 20 * STEP);
    bench.measure("large", &place(large.path()), Duration::ZERO);
    bench.measure("small", &place(small.path()), Duration::ZERO);
    bench.walks.forget("large");
    let found = bench.measure("small", &place(small.path()), LONG).measured;
    assert_eq!(found.unwrap().inodes, 1);
    assert!(!bench.knows("large") && bench.knows("small"));
}

#[test]
fn what_cannot_be_read_is_not_known() {
    let temp = tempfile::tempdir().unwrap();
    let bench = Bench::new();
    let file = temp.path().join("file");
    std::fs::File::create(&file).unwrap();
    let figure = bench.measure("u", &place(&file), LONG);
    assert_eq!(figure.measured, None);
    assert!(figure.due > Some(Instant::now()), "not at once again");
}
