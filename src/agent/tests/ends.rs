//! How runs and pods end: by a deadline, with processes left behind, by an OOM kill between two looks.

use std::time::Duration;

use serde_json::json;

use super::bench::{Bench, one, runs};
use crate::cgroup::{Hierarchy, Pid};
use crate::model::lifecycle::PodPhase;
use crate::observation::kmsg::Reports;
use crate::observation::oom::OomRise;
use crate::report::oom::OomLimit;
use crate::units::Bytes;

#[test]
fn a_pod_that_had_its_time_is_over() {
    let mut bench = Bench::new();
    let mut spec = one("Always");
    spec["activeDeadlineSeconds"] = json!(1);
    spec["terminationGracePeriodSeconds"] = json!(5);
    let (key, pid) = bench.run("web", &spec);
    bench.until("the deadline", |agent| {
        agent.pods.get(&key).unwrap().is_over()
    });
    bench.until("its end", |agent| !agent.pods.get(&key).unwrap().placed);
    assert!(!bench.kernel.with(|kernel| kernel.is_alive(Pid(pid))));
    let entry = bench.entry(&key);
    assert_eq!(entry.phase().to_string(), "Failed");
    let (reason, _) = entry.record.ended.clone().unwrap();
    assert_eq!(reason, "DeadlineExceeded");
    assert_eq!(entry.attempt("c"), 0, "it does not start again");
    assert_eq!(bench.events("DeadlineExceeded").len(), 1);
    // The record says so after a crash too.
    bench.crash();
    assert_eq!(bench.entry(&key).phase().to_string(), "Failed");
}

/// A group kill is counted process by process, and looks come in between.
#[test]
fn every_process_of_a_group_kill_is_one_of_a_group() {
    let mut bench = Bench::new();
    let (key, _) = bench.run("web", &one("Always"));
    for (killed, groups) in [(1, 0), (2, 1), (2, 0)] {
        let rise = OomRise {
            inner: 0,
            oom: 0,
            killed,
            groups,
        };
        bench
            .agent()
            .keep_kills(&key, "c", rise, &OomLimit::default());
    }
    let kills = bench.agent().kills.list(None, None);
    assert_eq!(kills.len(), 5);
    assert!(kills.iter().all(|kill| kill.group), "{kills:?}");
}

#[test]
fn an_evicted_pod_ends_within_the_time_it_is_left_and_does_not_start_again() {
    let mut bench = Bench::new();
    let pid = bench.next_process_of("trap '' TERM; while :; do sleep 0.05; done");
    let mut spec = one("Always");
    spec["terminationGracePeriodSeconds"] = json!(3600);
    let key = bench.create("web", &spec);
    bench.until("it to run", |agent| runs(agent, &key, "c"));
    bench.put_in(&key, "c", pid);
    let agent = bench.agent();
    assert!(agent.evict(&key, "The node was low on resource: memory.", 1));
    assert!(!agent.evict(&key, "again", 1), "once");
    bench.crash();
    bench.until("its end", |agent| {
        agent.pods.get(&key).unwrap().phase() == PodPhase::Failed
    });
    let entry = bench.entry(&key);
    assert_eq!(
        entry.record.ended,
        Some((
            "Evicted".to_owned(),
            "The node was low on resource: memory.".to_owned()
        ))
    );
    assert_eq!(entry.attempt("c"), 0, "it does not start again");
    assert_eq!(bench.events("Evicted").len(), 1);
}

#[test]
fn a_pod_counts_until_its_last_process_is_gone() {
    let mut bench = Bench::new();
    let mut spec = one("Never");
    spec["activeDeadlineSeconds"] = json!(1);
    spec["terminationGracePeriodSeconds"] = json!(1);
    spec["containers"][0]["resources"] = json!({"limits": {"cpu": "3", "memory": "64Mi"}});
    let pid = bench.next_process_of("trap '' TERM; while :; do sleep 0.05; done");
    let key = bench.create("web", &spec);
    bench.until("it to run", |agent| runs(agent, &key, "c"));
    bench.put_in(&key, "c", pid);
    bench.until("the deadline", |agent| {
        agent.pods.get(&key).unwrap().is_over()
    });
    let refusal = bench.send("other", &spec).unwrap_err();
    assert_eq!(refusal.reason, "OutOfcpu", "{}", refusal.message);
    assert_eq!(bench.entry(&key).phase().to_string(), "Running");
    bench.until("its end", |agent| !agent.pods.get(&key).unwrap().placed);
    bench.next_process();
    bench.send("other", &spec).unwrap();
}

#[test]
fn what_a_run_left_behind_dies_before_the_next() {
    let mut bench = Bench::new();
    let (key, first) = bench.run("web", &one("Always"));
    let path = bench.path(&key, "c");
    let child = Pid(i32::MAX - 1);
    bench
        .kernel
        .with(|kernel| kernel.spawn_in(&path, child))
        .unwrap();
    let second = bench.next_process();
    bench.kill(first);
    let next = bench.attempt(&key, "c", 1);
    bench.until("the second start", |agent| {
        agent.pods.get(&key).unwrap().attempt("c") == 1 && next.join("started.json").exists()
    });
    assert!(!bench.kernel.with(|kernel| kernel.is_alive(child)));
    bench.put_in(&key, "c", second);
    bench.pass(Duration::from_millis(50));
    assert_eq!(bench.processes(&key, "c"), [second]);
}

#[test]
fn a_pod_deleted_while_it_starts_goes() {
    let mut bench = Bench::new();
    bench.no_process();
    let key = bench.create("web", &one("Always"));
    // The start is under way: there is no process yet that could be told to end.
    bench
        .agent()
        .delete_pod(&key, Some(0), None, false)
        .unwrap();
    bench.until("it to go", |agent| !agent.pods.contains_key(&key));
}

#[test]
fn the_limit_behind_a_kill_between_two_reads_is_found() {
    // The kill falls before the first or the second of the reads that matter.
    for (owner, nth) in [("container", 0), ("container", 1), ("pod", 0), ("pod", 1)] {
        let mut bench = Bench::new();
        let mut spec = one("Never");
        let containers = spec["containers"].as_array_mut().unwrap();
        containers.push(json!({"name": "other", "image": "i"}));
        match owner {
            "pod" => {
                spec["resources"] = json!({"limits": {"memory": "32Mi"}});
                spec["containers"][0]["resources"] = json!({});
            }
            _ => spec["resources"] = json!({"limits": {"memory": "128Mi"}}),
        }
        let (key, pid) = bench.run("web", &spec);
        let (path, pod) = (bench.path(&key, "c"), bench.entry(&key).path());
        let bytes = if owner == "pod" {
            let (other, neighbour) = (bench.path(&key, "other"), Pid(i32::MAX - 1));
            bench.kernel.with(|kernel| {
                kernel.spawn_in(&other, neighbour).unwrap();
                kernel.grow(neighbour, Bytes(20 << 20));
            });
            Bytes(20 << 20)
        } else {
            Bytes(100 << 20)
        };
        let mut reads = 0;
        bench.kernel.meanwhile(move |read, kernel| {
            if *read == path || *read == pod {
                if reads == nth {
                    kernel.grow(Pid(pid), bytes);
                }
                reads += 1;
            }
        });
        bench.agent().look_for_oom(&key);
        bench.until("it to be told", |agent| agent.tallies.oom_kills > 0);
        let told = bench.events("OOMKilling");
        assert_eq!(told.len(), 1, "{told:?}");
        let blamed = format!("memory.max of the {owner}");
        assert!(told[0].contains(&blamed), "{nth}: {told:?}");
    }
}

#[test]
fn a_kill_is_kept_with_its_count_and_named_by_the_log() {
    let mut bench = Bench::new();
    let mut spec = one("Never");
    spec["containers"][0]["resources"] = json!({"limits": {"memory": "64Mi", "cpu": "1"}});
    let (key, pid) = bench.run("web", &spec);
    let (uid, path) = (bench.entry(&key).uid().clone(), bench.path(&key, "c"));
    bench
        .kernel
        .with(|kernel| kernel.grow(Pid(pid), Bytes(100 << 20)));
    bench.agent().look_for_oom(&key);
    // Whatever is committed next takes both the count and the record.
    bench.agent().commit(Vec::new()).unwrap();
    bench.crash();
    bench.pass(Duration::from_millis(50));
    let kills = bench.agent().kills.list(Some("default"), Some("web"));
    assert_eq!(kills.len(), 1, "{kills:?}");
    let kill = &kills[0];
    assert_eq!(
        (kill.uid.as_str(), kill.main_pid),
        (uid.as_str(), Some(pid))
    );
    assert_eq!(kill.limit.level, "container");
    assert_eq!(kill.limit.cgroup.as_deref(), Some(path.as_str()));
    assert_eq!(kill.limit.limit_bytes, Some(64 << 20));
    assert_eq!(kill.log, None);

    let mut reports = Reports::default();
    bench.agent().caught_up = false;
    for record in [
        format!(
            "6,1,1,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c,mems_allowed=0,oom_memcg=/t/{path},task_memcg=/t/{path}/pod0/x,task=a,pid={pid},uid=5"
        ),
        format!(
            "3,2,2,-;Memory cgroup out of memory: Killed process {pid} (a) total-vm:4kB, anon-rss:4kB, file-rss:0kB, shmem-rss:0kB, UID:5 pgtables:4kB oom_score_adj:1"
        ),
    ] {
        for _ in 0..2 {
            if let Some(told) = reports.take(record.as_bytes()).1 {
                bench.agent().hear(Some(told));
            }
        }
    }
    let kills = bench.agent().kills.list(None, None);
    assert_eq!(kills.len(), 1, "the log counts nothing");
    let log = kills[0].log.as_ref().unwrap();
    assert_eq!(
        (log.name.as_str(), log.pid, kills[0].main),
        ("a", pid, Some(true))
    );
}

/// A newer agent that is stricter finds a pod in the store that it would refuse: it says so and lets it run.
#[test]
fn a_pod_that_is_not_valid_any_more_is_left_alone() {
    let mut bench = Bench::new();
    let (key, pid) = bench.run("web", &one("Always"));
    bench.pass(Duration::from_millis(50));
    let entry = bench.entry(&key);
    entry.record.object.spec.as_mut().unwrap().containers[0].name = "Not A Name".to_owned();
    entry.dirty = true;
    bench.agent().settle_all();
    let path = bench.path(&key, "c");
    bench.crash();
    assert!(!bench.agent().pods.contains_key(&key));
    let problems = &bench.agent().problems;
    let told = |text: &String| text.contains("is not valid any more, so it is left as it is");
    assert!(problems.values().any(told), "{problems:?}");
    assert!(bench.kernel.with(|kernel| kernel.is_alive(Pid(pid))));
    let found = bench.kernel.processes(&path).unwrap();
    assert_eq!(found, [Pid(pid)]);
}
