//! OOM kills beyond one container's limit, and many of them.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::daemon::{
    Anything, Daemon, cgroup_of, container, counter, create, delete, events, get, pod, wait,
};
use crate::Outcome;
use crate::player::{Holding, Player};

tests![
    a_kill_at_the_limit_of_all_pods_is_theirs,
    a_kill_of_a_node_without_memory_is_the_nodes,
    none_of_two_hundred_kills_is_lost,
    kills_just_before_the_end_of_a_pod_are_kept,
];

fn kills(pod: &str) -> Anything<Vec<Value>> {
    let kills = get(&format!("/apis/allotd.dev/v1/oomkills?pod={pod}"))?;
    Ok(kills.as_array().cloned().unwrap_or_default())
}

/// A pod without limits that eats memory.
fn glutton(name: &str, mib: u32) -> Value {
    let command = json!(["/init", "play", "eat", mib.to_string()]);
    let container = json!({"name": "c", "image": "i", "command": command});
    pod(
        name,
        &json!({"restartPolicy": "Never", "containers": [container]}),
    )
}

fn ended_by_oom(name: &str) -> Anything<Value> {
    wait("the kill", || {
        Ok(container(name, "c")?["state"]["terminated"]["reason"] == "OOMKilled")
    })?;
    wait("its record", || Ok(!kills(name)?.is_empty()))?;
    Ok(kills(name)?.remove(0))
}

/// Report containerd#12133 again: all pods together have used up what the node gives them.
fn a_kill_at_the_limit_of_all_pods_is_theirs() -> Outcome {
    let _daemon = Daemon::start_with("kubeReserved: {memory: 600Mi}\nevictionHard: {}")?;
    create(&glutton("glutton", 700))?;
    let kill = ended_by_oom("glutton")?;
    assert_eq!(kill["limit"]["level"], "pods", "{kill}");
    assert_eq!(kill["limit"]["cgroup"], "/", "{kill}");
    let told = events("OOMKilling")?;
    assert!(
        told.iter()
            .any(|(text, _)| text.contains("the limit of all pods was hit")),
        "{told:?}"
    );
    Ok(())
}

fn a_kill_of_a_node_without_memory_is_the_nodes() -> Outcome {
    let _daemon = Daemon::start_with("evictionHard: {}")?;
    // Somebody outside of all pods has most of the memory.
    let mut outside = Player::holds(Holding::Memory, 450)?;
    outside.take()?;
    create(&glutton("glutton", 800))?;
    let kill = ended_by_oom("glutton")?;
    assert_eq!(kill["limit"]["level"], "node", "{kill}");
    assert_eq!(kill["log"]["constraint"], "CONSTRAINT_NONE", "{kill}");
    let told = events("OOMKilling")?;
    assert!(
        told.iter()
            .any(|(text, _)| text.contains("the node ran out of memory")),
        "{told:?}"
    );
    Ok(())
}

/// A pod whose shell outlives the loss of one process after the other.
fn loses(name: &str, number: u32) -> Value {
    let script = format!(
        "i=0; while [ $i -lt {number} ]; do /init play eat 24; i=$((i+1)); done; \
         echo >/tmp/done-{name}; sleep inf"
    );
    let mut pod = pod(
        name,
        &json!({"containers": [{
            "name": "c", "image": "i", "command": ["sh", "-c", script],
            "resources": {"limits": {"cpu": "800m", "memory": "16Mi"}},
        }]}),
    );
    pod["metadata"]["annotations"] = json!({"allotd.dev/oom-policy": "process"});
    pod
}

/// The kernel's log reports ten kills in five seconds. After these a test that needs the next report finds one.
fn let_the_log_rest() {
    std::thread::sleep(Duration::from_secs(5));
}

/// The kernel's log leaves out whose most of them were.
fn none_of_two_hundred_kills_is_lost() -> Outcome {
    const NUMBER: usize = 200;
    let _daemon = Daemon::start()?;
    let made = create(&loses("many", 200))?;
    // Longer than one wait may be.
    let there = || Ok(std::fs::exists("/tmp/done-many")?);
    wait("half of it", there).or_else(|_| wait("all of it", there))?;
    let cgroup = cgroup_of(&made).join("c");
    assert_eq!(counter(&cgroup, "memory.events.local", "oom_kill")?, 200);
    wait("the records", || Ok(kills("many")?.len() == NUMBER))?;
    wait("the names", || {
        Ok(kills("many")?
            .iter()
            .all(|kill| kill["log"]["name"] == "init"))
    })?;
    let kills = kills("many")?;
    let pids: BTreeSet<_> = kills
        .iter()
        .map(|kill| kill["log"]["pid"].as_i64())
        .collect();
    assert_eq!(pids.len(), NUMBER);
    for kill in &kills {
        assert_eq!(kill["limit"]["level"], "container", "{kill}");
        assert_eq!(
            (&kill["main"], &kill["group"]),
            (&json!(false), &json!(false))
        );
    }
    let inferred = kills.iter().filter(|kill| kill["log"]["inferred"] == true);
    println!(
        "measured: of 200 kills the log did not say of {} whose they were",
        inferred.count()
    );
    assert_eq!(container("many", "c")?["restartCount"], 0);
    let_the_log_rest();
    Ok(())
}

fn kills_just_before_the_end_of_a_pod_are_kept() -> Outcome {
    let _daemon = Daemon::start()?;
    create(&loses("brief", 20))?;
    wait("the kills", || Ok(std::fs::exists("/tmp/done-brief")?))?;
    delete("brief", 0)?;
    let kills = kills("brief")?;
    assert_eq!(kills.len(), 20, "{kills:?}");
    let_the_log_rest();
    Ok(())
}
