//! OOM kills: caught, told once, with the victim and whose limit it was.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};

use super::daemon::{
    Anything, Daemon, cgroup_of, container, counter, create, delete, events, file, get, pod,
    running_pid, wait,
};
use crate::Outcome;

tests![
    a_kill_at_the_containers_limit_is_reported_at_once,
    a_kill_at_the_pods_limit_is_the_pods,
    a_child_dies_and_its_parent_lives,
    a_page_cache_writer_is_not_killed,
    a_kill_while_the_agent_is_down_is_told_once,
    a_group_kill_gives_a_record_for_each_process,
];

/// A pipe: whoever reads it waits until the test writes.
const SIGNAL: &str = "/tmp/signal";
const LEAKS_WHEN_TOLD: &str = "read -r told </tmp/signal && exec /init play eat 100";

/// The records of OOM kills in a pod, once there are so many and the log has named all of them.
pub fn kills(pod: &str, number: usize) -> Anything<Vec<Value>> {
    let path = format!("/apis/allotd.dev/v1/oomkills?namespace=default&pod={pod}");
    let mut found = Vec::new();
    wait("the records", || {
        found = get(&path)?.as_array().cloned().unwrap_or_default();
        let named = found.iter().filter(|kill| kill["log"].is_object());
        Ok(named.count() >= number)
    })
    .map_err(|error| format!("{error}; {found:?}"))?;
    assert_eq!(found.len(), number, "{found:?}");
    println!(
        "{}",
        found
            .iter()
            .map(Value::to_string)
            .collect::<Vec<_>>()
            .join("\n")
    );
    Ok(found)
}

fn make_signal() -> nix::Result<()> {
    // The container that waits for it is not root.
    mkfifo(SIGNAL, Mode::S_IRWXU | Mode::S_IROTH)
}

fn a_kill_at_the_containers_limit_is_reported_at_once() -> Outcome {
    make_signal()?;
    // A host that is busy elsewhere may stop the machine for longer than that, but not every time.
    let mut after = SignedDuration::MAX;
    for _ in 0..3 {
        after = after.min(time_until_a_kill_is_told()?);
        if after < SignedDuration::from_millis(100) {
            return Ok(());
        }
    }
    Err(format!("told {after:?} after the kernel's count at best").into())
}

/// Lets a container be killed, and sees that it is told as it should be.
fn time_until_a_kill_is_told() -> Anything<SignedDuration> {
    let daemon = Daemon::start()?;
    let pod = create(&pod(
        "leak",
        &json!({"containers": [{
            "name": "c", "image": "i", "command": ["sh", "-c", LEAKS_WHEN_TOLD],
            "resources": {"limits": {"cpu": "500m", "memory": "64Mi"}},
        }]}),
    ))?;
    let cgroup = cgroup_of(&pod).join("c");
    let pid = running_pid("leak", "c")?;
    fs::write(SIGNAL, "leak\n")?;
    // Nothing but the count is asked for until it rises: questions would compete for the one CPU.
    let start = Instant::now();
    while counter(&cgroup, "memory.events", "oom_kill").unwrap_or(0) == 0 {
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "nothing was killed"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    let counted = Timestamp::now();
    let mut told = None;
    wait("the kill to be told", || {
        let list = get("/api/v1/namespaces/default/events")?;
        let kill = list["items"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|event| event["reason"] == "OOMKilling");
        told = kill
            .and_then(|event| event["eventTime"].as_str())
            .map(str::parse::<Timestamp>);
        Ok(told.is_some())
    })?;
    // When the agent knew, not when this client got around to asking.
    let after = told.ok_or("no time")??.duration_since(counted);
    println!(
        "measured: told {} ms after the kernel's count",
        after.as_millis()
    );
    wait("the end of the run", || {
        Ok(container("leak", "c")?["lastState"]["terminated"].is_object())
    })?;
    let status = container("leak", "c")?;
    let end = &status["lastState"]["terminated"];
    assert_eq!(
        (&end["reason"], &end["exitCode"]),
        (&json!("OOMKilled"), &json!(137)),
        "{status}"
    );
    assert!(status["restartCount"].as_u64() >= Some(1), "{status}");
    let (message, _) = events("OOMKilling")?.remove(0);
    assert!(
        message.starts_with(
            "OOM killer took 1 process of container c: memory.max of the container, 67108864, was hit"
        ),
        "{message}"
    );
    let kill = kills("leak", 1)?.remove(0);
    assert_eq!(
        (&kill["main"], &kill["group"], &kill["restartCount"]),
        (&json!(true), &json!(true), &json!(0)),
        "{kill}"
    );
    assert_eq!(kill["log"]["pid"], pid, "{kill}");
    assert_eq!(kill["log"]["name"], "init", "{kill}");
    assert_eq!(kill["log"]["constraint"], "CONSTRAINT_MEMCG", "{kill}");
    assert_eq!(kill["limit"]["level"], "container", "{kill}");
    for field in ["limitBytes", "usageBytes"] {
        assert_eq!(kill["limit"][field], 64 << 20, "{kill}");
    }
    let anon = kill["log"]["anonRssBytes"].as_u64().unwrap_or(0);
    assert!((48 << 20..=64 << 20).contains(&anon), "{kill}");
    let time: Timestamp = kill["time"].as_str().ok_or("no time")?.parse()?;
    let apart = time.duration_since(counted).abs();
    assert!(apart < SignedDuration::from_secs(2), "{apart:?}: {kill}");
    delete("leak", 0)?;
    daemon.stop()?;
    // The next one knows nothing of this one's events.
    fs::remove_dir_all("/tmp/state")?;
    Ok(after)
}

/// Report containerd#12133: whose limit it was.
fn a_kill_at_the_pods_limit_is_the_pods() -> Outcome {
    let _daemon = Daemon::start()?;
    create(&pod(
        "shared",
        &json!({
            "restartPolicy": "Never",
            "resources": {"limits": {"memory": "64Mi"}},
            "containers": [
                {"name": "eater", "image": "i", "command": ["/init", "play", "eat", "100"]},
                {"name": "other", "image": "i", "command": ["sleep", "inf"]},
            ],
        }),
    ))?;
    wait("the kill", || Ok(!events("OOMKilling")?.is_empty()))?;
    let list = events("OOMKilling")?;
    assert!(
        list.iter()
            .any(|(message, _)| message.contains("container eater")
                && message.contains("memory.max of the pod, 67108864, was hit")),
        "{list:?}"
    );
    wait("the status", || {
        Ok(container("shared", "eater")?["state"]["terminated"]["reason"] == "OOMKilled")
    })
}

/// Report kubernetes#100483, and that of workloads which outlive the loss of a process
/// (tech.preferred.jp, kubernetes-single-process-oom-kill).
fn a_child_dies_and_its_parent_lives() -> Outcome {
    let _daemon = Daemon::start()?;
    let mut wanted = pod(
        "parent",
        &json!({"containers": [{
            "name": "c", "image": "i", "command": ["sh", "-c", "/init play eat 100; sleep inf"],
            "resources": {"limits": {"cpu": "500m", "memory": "64Mi"}},
        }]}),
    );
    wanted["metadata"]["annotations"] = json!({"allotd.dev/oom-policy": "process"});
    let made = create(&wanted)?;
    assert_eq!(file(&cgroup_of(&made).join("c"), "memory.oom.group")?, "0");
    let pid = running_pid("parent", "c")?;
    wait("the event", || {
        Ok(!events("ContainerChildOOMKilled")?.is_empty())
    })?;
    assert_eq!(running_pid("parent", "c")?, pid);
    assert_eq!(container("parent", "c")?["restartCount"], 0);
    let kill = kills("parent", 1)?.remove(0);
    assert_eq!(
        (&kill["main"], &kill["mainPid"], &kill["group"]),
        (&json!(false), &json!(pid), &json!(false)),
        "{kill}"
    );
    assert_ne!(kill["log"]["pid"], pid, "{kill}");
    // What the memory was, and whether anybody had to wait for it.
    let anon = kill["log"]["stat"]["anon"].as_u64();
    assert!(anon > Some(48 << 20), "{kill}");
    assert_eq!(
        kill["pressureAvg10"].as_array().map(Vec::len),
        Some(2),
        "{kill}"
    );
    assert!(kill["mainStarted"].is_string(), "{kill}");
    let usage = get("/apis/allotd.dev/v1/namespaces/default/pods/parent/usage")?;
    assert_eq!(usage["containers"][0]["oomKills"], 1, "{usage}");
    Ok(())
}

fn a_page_cache_writer_is_not_killed() -> Outcome {
    let _daemon = Daemon::start()?;
    let disk = crate::support::disk()?;
    // Guaranteed containers: all but the margin of the limit is protected.
    for (name, limit, protected) in [("small", "16Mi", 12 << 20), ("large", "64Mi", 60 << 20)] {
        let pod = create(&pod(
            name,
            &json!({"restartPolicy": "Never", "containers": [{
                "name": "c", "image": "i",
                "command": ["dd", "if=/dev/zero", format!("of={}/{name}", disk.display()), "bs=64k", "count=1600"],
                "resources": {"limits": {"cpu": "400m", "memory": limit}},
            }]}),
        ))?;
        let memory_min = file(&cgroup_of(&pod).join("c"), "memory.min")?;
        assert_eq!(memory_min, i32::to_string(&protected));
    }
    for name in ["small", "large"] {
        wait("the writer to end", || {
            Ok(container(name, "c")?["state"]["terminated"].is_object())
        })?;
        let end = container(name, "c")?["state"]["terminated"].clone();
        assert_eq!(
            (&end["reason"], &end["exitCode"]),
            (&json!("Completed"), &json!(0)),
            "{name}: {end}"
        );
    }
    assert!(events("OOMKilling")?.is_empty());
    Ok(())
}

fn a_kill_while_the_agent_is_down_is_told_once() -> Outcome {
    make_signal()?;
    let daemon = Daemon::start()?;
    let before = create(&pod(
        "alone",
        &json!({"restartPolicy": "Never", "containers": [
            {"name": "c", "image": "i", "command": ["sh", "-c", LEAKS_WHEN_TOLD],
             "resources": {"limits": {"cpu": "500m", "memory": "64Mi"}}},
            {"name": "steady", "image": "i", "command": ["sleep", "inf"]},
        ]}),
    ))?;
    let steady = running_pid("alone", "steady")?;
    running_pid("alone", "c")?;
    let cgroup = cgroup_of(&before).join("c");
    daemon.kill()?;
    fs::write(SIGNAL, "leak\n")?;
    wait("the kernel to kill", || {
        Ok(counter(&cgroup, "memory.events", "oom_kill")? > 0)
    })?;
    for _ in 0..2 {
        let daemon = Daemon::start()?;
        wait("the end to be told", || {
            Ok(container("alone", "c")?["state"]["terminated"]["reason"] == "OOMKilled")
        })?;
        let list = events("OOMKilling")?;
        assert_eq!(list.len(), 1, "{list:?}");
        assert_eq!(list[0].1, 1, "{list:?}");
        let kill = kills("alone", 1)?.remove(0);
        assert_eq!(
            (&kill["main"], &kill["log"]["name"]),
            (&json!(true), &json!("init")),
            "{kill}"
        );
        let after = super::daemon::read_pod("alone")?;
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
        assert_eq!(running_pid("alone", "steady")?, steady);
        assert_eq!(container("alone", "steady")?["restartCount"], 0);
        daemon.stop()?;
    }
    Ok(())
}

fn a_group_kill_gives_a_record_for_each_process() -> Outcome {
    let _daemon = Daemon::start()?;
    let script = "sleep inf & sleep inf & sleep inf & /init play eat 100 & wait";
    create(&pod(
        "group",
        &json!({"restartPolicy": "Never", "containers": [{
            "name": "c", "image": "i", "command": ["sh", "-c", script],
            "resources": {"limits": {"cpu": "500m", "memory": "64Mi"}},
        }]}),
    ))?;
    let kills = kills("group", 5)?;
    let pids: BTreeSet<_> = kills
        .iter()
        .map(|kill| kill["log"]["pid"].as_i64())
        .collect();
    assert_eq!(pids.len(), 5, "{kills:?}");
    assert!(kills.iter().all(|kill| kill["group"] == true), "{kills:?}");
    let mains = kills.iter().filter(|kill| kill["main"] == true);
    assert_eq!(mains.count(), 1, "{kills:?}");
    let eaters = kills.iter().filter(|kill| kill["log"]["name"] == "init");
    assert_eq!(eaters.count(), 1, "{kills:?}");
    Ok(())
}
