//! A clock that jumps by years, either way: nothing ends early for it, and nothing goes on for ever.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::bench::{Bench, one, runs};
use crate::agent::request::PodKey;
use crate::cgroup::Pid;

const DATES: [&str; 2] = ["1971-01-01T00:00:00Z", "9000-01-01T00:00:00Z"];

const GRACE: Duration = Duration::from_secs(4);

fn date(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// A pod whose process hears no SIGTERM.
fn stubborn(bench: &mut Bench) -> (PodKey, i32) {
    let pid = bench.next_process_of("trap '' TERM; exec sleep 1000");
    let key = bench.create("web", &one("Always"));
    bench.until("it to run", |agent| {
        runs(agent, &PodKey::new("default", "web"), "c")
    });
    bench.put_in(&key, "c", pid);
    bench.pass(Duration::from_millis(100));
    (key, pid)
}

fn lives(bench: &Bench, pid: i32) -> bool {
    bench.kernel.with(|kernel| kernel.is_alive(Pid(pid)))
}

#[test]
fn a_deletion_that_is_dated_anywhere_takes_its_grace_period() {
    for (text, crashes) in DATES.iter().flat_map(|text| [(text, true), (text, false)]) {
        let mut bench = Bench::new();
        let (key, pid) = stubborn(&mut bench);
        let start = Instant::now();
        let agent = bench.agent();
        let grace = Some(GRACE.as_secs());
        agent.delete_pod(&key, grace, None, false).unwrap();
        // As if the clock had jumped since.
        let entry = bench.entry(&key);
        entry.record.deletion.as_mut().unwrap().requested_at = date(text);
        entry.dirty = true;
        bench.pass(Duration::from_millis(50));
        if crashes {
            bench.crash();
        }
        let kept = bench.entry(&key).record.deletion.unwrap();
        assert_eq!(kept.requested_at, date(text), "it is the one that was kept");
        bench.pass(Duration::from_millis(500));
        let alive = lives(&bench, pid);
        assert!(
            alive || start.elapsed() >= GRACE,
            "{text}: it is killed early"
        );
        bench.until("the pod to go", |agent| agent.pods.get(&key).is_none());
        assert!(start.elapsed() >= GRACE, "{text}: {:?}", start.elapsed());
        assert!(!lives(&bench, pid));
    }
}

#[test]
fn a_deadline_counts_by_the_clock_that_nobody_sets() {
    const TIME: Duration = Duration::from_secs(4);
    for text in DATES {
        let mut bench = Bench::new();
        let mut spec = one("Always");
        spec["activeDeadlineSeconds"] = json!(TIME.as_secs());
        let start = Instant::now();
        let (key, pid) = bench.run("web", &spec);
        bench.entry(&key).record.started_at = date(text);
        bench.entry(&key).dirty = true;
        bench.pass(Duration::from_millis(50));
        bench.crash();
        assert_eq!(bench.entry(&key).record.started_at, date(text));
        bench.pass(Duration::from_millis(500));
        let over = bench.entry(&key).is_over();
        assert!(!over || start.elapsed() >= TIME, "{text}: it is over early");
        bench.until("the deadline", |agent| {
            agent.pods.get(&key).unwrap().is_over()
        });
        bench.until("its end", |agent| !agent.pods.get(&key).unwrap().placed);
        assert!(!lives(&bench, pid));
    }
}

/// A pause before the next run that the clock has made one of years is none at all, and one that is long ago
/// is over: in both cases the container runs, once.
#[test]
fn a_pause_of_years_is_none() {
    for years in [50, -50] {
        let mut bench = Bench::new();
        let (key, first) = bench.run("web", &one("Always"));
        bench.no_process();
        bench.kill(first);
        bench.until("the end to be seen", |agent| {
            let entry = agent.pods.get(&key).unwrap();
            entry.container_record("c").unwrap().attempt == 1
        });
        let second = bench.next_process();
        let at = Timestamp::now() + SignedDuration::from_hours(years * 365 * 24);
        bench.entry(&key).change("c").not_before = Some(at);
        bench.pass(Duration::from_millis(50));
        bench.crash();
        bench.until("it to run again", |agent| runs(agent, &key, "c"));
        bench.put_in(&key, "c", second);
        bench.pass(Duration::from_millis(300));
        assert!(runs(bench.agent(), &key, "c"));
        assert_eq!(bench.entry(&key).container_record("c").unwrap().attempt, 1);
    }
}
