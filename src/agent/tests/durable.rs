//! What must survive: a crash between any two steps, a full disk, a reboot.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::bench::{Bench, one, runs};

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
}
