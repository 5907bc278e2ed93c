//! Reports of users of other agents, each with the behaviour that we owe.

use serde_json::json;

use super::bench::{Bench, one, runs};
use crate::agent::objects::MAX_POLICIES;
use crate::agent::request::PodKey;
use crate::cgroup::Pid;
use crate::model::kind::{LIMIT_RANGE, RESOURCE_QUOTA};
use crate::model::lifecycle::PodPhase;
use crate::units::Bytes;

/// cadvisor#3015 (a counter that starts at 0 with each new container), moby#18470 (a watcher that ends with
/// its first event) and kubernetes#100483 (a child dies and nobody says so): kill after kill is counted,
/// across a crash of the agent and to the last one before the cgroup goes, under one name.
#[test]
fn kills_are_counted_for_the_life_of_the_pod() {
    let mut bench = Bench::new();
    let mut spec = one("Never");
    spec["containers"][0]["resources"] = json!({"limits": {"memory": "64Mi", "cpu": "1"}});
    spec["terminationGracePeriodSeconds"] = json!(0);
    let main = bench.next_process();
    let pod = json!({"spec": spec, "metadata": {
        "name": "web",
        "namespace": "default",
        "annotations": {"allotd.dev/oom-policy": "process"},
    }});
    let pod = serde_json::from_value(pod).unwrap();
    bench.agent().create_pod(Box::new(pod), false).unwrap();
    let key = PodKey::new("default", "web");
    bench.until("it to run", |agent| runs(agent, &key, "c"));
    bench.put_in(&key, "c", main);
    let path = bench.path(&key, "c");
    let kill_one = |bench: &mut Bench, number: i32| {
        let child = Pid(i32::MAX - number);
        bench.kernel.with(|kernel| {
            kernel.spawn_in(&path, child).unwrap();
            kernel.grow(child, Bytes(100 << 20));
            assert!(!kernel.is_alive(child));
        });
    };
    for number in 1..=50 {
        kill_one(&mut bench, number);
        bench.agent().look_for_oom(&key);
        if number % 20 == 0 {
            bench.crash();
        }
        let record = bench.entry(&key).record.containers["c"].clone();
        assert_eq!(record.oom_kills, u64::try_from(number).unwrap());
        assert_eq!(record.attempt, 0, "the main process lives");
    }
    assert!(bench.kernel.with(|kernel| kernel.is_alive(Pid(main))));
    assert_eq!(bench.agent().kills.list(None, None).len(), 50);
    // The last one, which nobody has seen when the pod is deleted.
    kill_one(&mut bench, 51);
    bench
        .agent()
        .delete_pod(&key, Some(0), None, false)
        .unwrap();
    bench.until("the pod to go", |agent| agent.pods.get(&key).is_none());
    assert_eq!(bench.agent().kills.list(None, None).len(), 51);
}

/// kubernetes#93032: a file of a kind that nobody thought of, in the pod's own directory, counts too; and the
/// neighbour without limits stays.
#[test]
fn whatever_a_pod_keeps_on_disk_counts_against_its_limit() {
    let mut bench = Bench::new();
    let mut spec = one("Always");
    let (neighbour, _) = bench.run("neighbour", &spec);
    spec["containers"][0]["resources"] = json!({"limits": {"ephemeral-storage": "10Mi"}});
    let (key, _) = bench.run("web", &spec);
    let id = bench.agent().container_id(&key, "c").unwrap();
    let hosts = bench.agent().runtime.pod_dir(&id).join("etc-hosts");
    std::fs::write(hosts, vec![1; 12 << 20]).unwrap();
    bench.until("the eviction", |agent| {
        agent.pods.get(&key).unwrap().phase() == PodPhase::Failed
    });
    let (reason, message) = bench.entry(&key).record.ended.clone().unwrap();
    assert_eq!(reason, "Evicted");
    let expected = "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. ";
    assert!(message.starts_with(expected), "{message}");
    let tallies = &bench.agent().tallies.evictions;
    assert_eq!(tallies.get("ephemeralpodfs.limit"), Some(&1), "{tallies:?}");
    assert!(!bench.entry(&neighbour).is_over());
}

/// Ten thousand quotas: told where it ends, and nobody else is held up.
#[test]
fn the_policies_of_a_namespace_are_bounded() {
    let mut bench = Bench::new();
    let range = |namespace: &str, number: usize| {
        json!({
            "apiVersion": "v1", "kind": "LimitRange",
            "metadata": {"name": format!("r{number}"), "namespace": namespace},
            "spec": {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]},
        })
    };
    for number in 0..MAX_POLICIES {
        bench
            .put(LIMIT_RANGE, &range("full", number), true)
            .unwrap();
    }
    let refusal = bench.put(LIMIT_RANGE, &range("full", MAX_POLICIES), true);
    let refusal = refusal.unwrap_err();
    assert_eq!((refusal.code, refusal.reason.as_str()), (403, "Forbidden"));
    let expected = "namespace \"full\" has 1000 limitranges already, and 1000 is the most";
    assert!(refusal.message.starts_with(expected), "{}", refusal.message);
    bench.put(LIMIT_RANGE, &range("full", 7), false).unwrap();
    bench.put(LIMIT_RANGE, &range("other", 0), true).unwrap();
}

/// Ten thousand quotas, sent one after the other: all but the first thousand are refused.
#[test]
fn ten_thousand_quotas_end_at_the_bound() {
    let mut bench = Bench::new();
    let quota = |number: usize| {
        json!({
            "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": {"name": format!("q{number}"), "namespace": "full"},
            "spec": {"hard": {"pods": "1"}},
        })
    };
    let sent = (0..10_000).map(|number| bench.put(RESOURCE_QUOTA, &quota(number), true));
    let refused: Vec<_> = sent.filter_map(Result::err).collect();
    assert_eq!(refused.len(), 10_000 - MAX_POLICIES);
    assert!(refused.iter().all(|refusal| refusal.code == 403));
    bench.create("web", &one("Always"));
}
