//! What must survive: a crash between any two steps, a full disk, a reboot.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;

use super::bench::{Bench, one, runs};
use crate::agent::request::PodKey;
use crate::model::kind::{LIMIT_RANGE, RESOURCE_QUOTA};
use crate::store::{Entry, write_as};

#[test]
fn a_crash_after_a_restart_does_not_kill_the_new_run() {
    let mut bench = Bench::new();
    let (key, first) = bench.run("web", &one("Always"));
    let second = bench.next_process();
    bench.kill(first);
    // The second run has begun; the agent may know of it from its own memory only.
    bench.until("the second start", |agent| {
        agent
            .pods
            .get(&key)
            .unwrap()
            .container_record("c")
            .unwrap()
            .attempt
            == 1
    });
    let attempt = bench.attempt(&key, "c", 1);
    Bench::wait_for(&attempt.join("started.json"));
    bench.put_in(&key, "c", second);
    bench.crash();
    bench.until("it to run", |agent| runs(agent, &key, "c"));
    bench.pass(Duration::from_millis(300));
    assert_eq!(bench.entry(&key).container_record("c").unwrap().attempt, 1);
    assert_eq!(bench.processes(&key, "c"), [second]);
}

#[test]
fn what_a_full_disk_refused_is_committed_later() {
    let mut bench = Bench::new();
    let (key, first) = bench.run("web", &one("Always"));
    bench.pass(Duration::from_millis(50));
    let full = bench.agent().store.full.clone();
    full.store(true, Ordering::Relaxed);
    bench.no_process();
    bench.kill(first);
    bench.until("the end to be seen", |agent| {
        agent
            .pods
            .get(&key)
            .unwrap()
            .container_record("c")
            .unwrap()
            .last
            .is_some()
    });
    assert!(bench.send("other", &one("Always")).is_err());
    bench.pass(Duration::from_millis(50));
    assert!(
        !bench.attempt(&key, "c", 1).exists(),
        "started before it was durable"
    );
    let second = bench.next_process();
    full.store(false, Ordering::Relaxed);
    bench.until("the second run", |agent| runs(agent, &key, "c"));
    bench.put_in(&key, "c", second);
    assert!(
        bench.agent().problems.is_empty(),
        "{:?}",
        bench.agent().problems
    );
    bench.pass(Duration::from_millis(50));
    bench.crash();
    for reason in ["Exited", "StoreFailed"] {
        assert_eq!(bench.events(reason).len(), 1, "{reason}");
    }
    assert_eq!(bench.entry(&key).container_record("c").unwrap().attempt, 1);
}

#[test]
fn a_reboot_starts_what_should_run_and_nothing_else() {
    let mut bench = Bench::new();
    let (always, _) = bench.run("always", &one("Always"));
    let (never, _) = bench.run("never", &one("Never"));
    bench.pass(Duration::from_millis(50));
    let seen = bench.entry(&always).change("c");
    (seen.oom_seen.oom, seen.oom_seen.oom_kill) = (1, 1);
    // It has ended a few times already; the machine's end is none of these.
    seen.quick_ends = 5;
    bench.pass(Duration::from_millis(50));
    bench.reboot();
    let again = bench.next_process();
    bench.until("it to run again", |agent| runs(agent, &always, "c"));
    bench.put_in(&always, "c", again);
    let entry = bench.entry(&never);
    assert_eq!(entry.phase().to_string(), "Failed");
    assert!(entry.statuses()[0].last.is_none());
    let record = bench.entry(&always).container_record("c").unwrap().clone();
    assert_eq!((record.attempt, record.oom_kills), (1, 0));
    assert_eq!(record.last.unwrap().reason, "ContainerStatusUnknown");
    // A kill in the new cgroup is not mistaken for the one in the old.
    assert_eq!(record.oom_seen.oom_kill, 0);
    assert_eq!(record.quick_ends, 1);
    assert!(bench.events("BackOff").is_empty());
}

/// The first format, with the very entries that the first version wrote: a pod in its second run, one that has
/// failed, a LimitRange, a quota and events. Nothing of it is lost on whoever comes later.
#[test]
fn the_store_of_the_first_version_is_understood() {
    let text = include_str!("../../../tests/data/store_format_1.json");
    let entries: Vec<Value> = serde_json::from_str(text).unwrap();
    let entries: Vec<_> = entries
        .iter()
        .map(|entry| Entry {
            key: entry["key"].as_str().unwrap().to_owned(),
            revision: entry["revision"].as_u64().unwrap(),
            value: serde_json::to_vec(&entry["value"]).unwrap(),
        })
        .collect();
    let mut bench = Bench::new();
    let beside = bench.agent().runtime.state.with_file_name("old.redb");
    write_as(&beside, 1, 13, &entries).unwrap();
    std::fs::rename(&beside, beside.with_file_name("store.redb")).unwrap();
    let again = bench.next_process();
    bench.crash();

    let agent = bench.agent();
    assert!(agent.problems.is_empty(), "{:?}", agent.problems);
    assert!(agent.store.revision().unwrap() >= 13);
    let (web, never) = (
        PodKey::new("default", "web"),
        PodKey::new("default", "never"),
    );
    let record = bench.entry(&web).container_record("c").unwrap().clone();
    assert_eq!(record.attempt, 1);
    assert_eq!(record.last.unwrap().signal, Some(9));
    assert_eq!(bench.entry(&web).record.defaults.len(), 2);
    assert_eq!(bench.entry(&never).phase().to_string(), "Failed");
    assert_eq!(bench.events("Exited").len(), 2);
    let range = bench.seen(LIMIT_RANGE, "default", "defaults").unwrap();
    assert_eq!(range["spec"]["limits"][0]["default"]["memory"], "32Mi");
    let quota = bench.seen(RESOURCE_QUOTA, "default", "team").unwrap();
    assert_eq!(quota["status"]["used"]["pods"], "1");
    // Its run is over, as no process has it, and the next one begins.
    bench.until("it to run", |agent| runs(agent, &web, "c"));
    bench.put_in(&web, "c", again);
    assert_eq!(bench.processes(&web, "c"), [again]);
}
