//! When the looking thread looks, and what it hands on.

use std::sync::mpsc;

use super::*;
use crate::model::node::EvictionThreshold;

const PATIENCE: Duration = Duration::from_secs(10);

fn places(dir: &Path) -> Places {
    let path = |name: &str| dir.join(name);
    for name in ["pods", "files", "logs"] {
        std::fs::create_dir_all(path(name)).unwrap();
    }
    Places {
        pods: path("pods"),
        files: path("files"),
        logs: path("logs"),
    }
}

fn memory_below(least: &str) -> Threshold {
    Threshold {
        signal: Signal::Memory,
        least: least.parse().unwrap(),
        grace: None,
        reclaim: EvictionThreshold::NONE,
    }
}

#[test]
fn this_machine_has_facts_of_all_kinds() {
    let dir = tempfile::tempdir().unwrap();
    let places = places(dir.path());
    for (file, text) in [
        ("memory.max", "1000000\n"),
        ("memory.current", "500000\n"),
        (
            "memory.stat",
            "anon 1\nfile 300000\nshmem 100000\ninactive_file 50000\nslab_reclaimable 7\n",
        ),
        ("pids.max", "100\n"),
        ("pids.current", "3\n"),
    ] {
        std::fs::write(places.pods.join(file), text).unwrap();
    }
    let facts = facts(&places);
    assert!(facts.memory.available > Some(1 << 20) && facts.memory.available < facts.memory.total);
    assert!(facts.memory.in_use > facts.memory.inactive_file);
    assert_eq!(
        facts.pods,
        Some(PodsMemory {
            limit: 1_000_000,
            current: 500_000,
            reclaimable: 200_007,
            inactive_file: 50_000
        })
    );
    assert_eq!(facts.tasks.pods, Some((3, 100)));
    assert!(facts.tasks.in_use > Some(1) && facts.tasks.pid_max > Some(1));
    // Both directories are on one file system.
    assert_eq!(facts.disks.len(), 1);
    assert!(facts.disks[0].has_files && facts.disks[0].space.is_ok());
    std::fs::write(places.pods.join("memory.max"), "max\n").unwrap();
    assert_eq!(pods(&places.pods), None);
    let gone = Places {
        logs: "/nonexistent".into(),
        ..places
    };
    let disks = disks(&gone);
    assert_eq!((disks.len(), disks[1].has_files), (2, false));
    assert!(
        disks[1]
            .space
            .as_ref()
            .is_err_and(|why| why.contains("/nonexistent"))
    );
}

#[test]
fn what_is_met_is_handed_on_again_and_again_and_all_else_once() {
    let dir = tempfile::tempdir().unwrap();
    let looks = |thresholds: Vec<Threshold>| {
        let (send, receive) = mpsc::channel();
        let pressure = Pressure::start(places(dir.path()), thresholds, move |facts| {
            send.send(facts).is_ok()
        });
        (pressure.unwrap(), receive)
    };
    let (pressure, receive) = looks(vec![memory_below("99.9%")]);
    let first = receive.recv_timeout(PATIENCE).unwrap();
    let second = receive.recv_timeout(PATIENCE).unwrap();
    assert!(second.at > first.at);
    drop(pressure);
    assert!(receive.iter().count() < 100, "the thread is gone");
    let (_pressure, receive) = looks(vec![memory_below("1")]);
    receive.recv_timeout(PATIENCE).unwrap();
    assert!(receive.recv_timeout(Duration::from_millis(700)).is_err());
}

#[test]
fn the_end_of_being_met_and_a_figure_that_gets_lost_are_news() {
    let dir = tempfile::tempdir().unwrap();
    let mut watcher = Watcher::new(places(dir.path()), vec![memory_below("100")]);
    let mut now = Instant::now();
    let mut look = |available: Option<u64>| {
        now += Duration::from_secs(1);
        let memory = Memory {
            total: Some(1000),
            available,
            ..Memory::default()
        };
        let facts = Facts {
            memory,
            ..Facts::default()
        };
        watcher.look(&facts, now)
    };
    assert!(look(Some(500)).0, "the first");
    assert!(!look(Some(400)).0);
    let (is_news, wait) = look(Some(50));
    assert!(is_news && wait < Duration::from_millis(500));
    assert!(look(Some(50)).0);
    assert!(look(Some(500)).0, "not met any more");
    assert!(!look(Some(500)).0);
    assert!(look(None).0, "unknown");
    assert!(!look(None).0);
    assert!(look(Some(500)).0, "known again");
    let told = (0..60).filter(|_| look(Some(500)).0).count();
    assert_eq!(told, 4, "in a minute");
}

#[test]
fn a_file_that_takes_no_trigger_is_told() {
    let why = trigger(Path::new("/nonexistent/pressure")).unwrap_err();
    assert!(why.contains("/nonexistent/pressure"), "{why}");
}
