//! Resizes of containers that run, under a memory load that fills every limit.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::daemon::{
    Anything, Daemon, TOP, cgroup_of, container, counter, create, delete, events, file, get, pod,
    read_pod, request, running_pid, wait,
};
use super::storage::counting_disk;
use crate::Outcome;

tests![
    a_shrink_below_use_waits_until_memory_is_free,
    a_resize_outlives_kill_9,
    what_was_protected_before_is_not_spared_at_the_new_bound,
];

pub(super) const MIB: u64 = 1 << 20;

/// While this is not there, the load holds memory that cannot be reclaimed.
const GO: &str = "/tmp/let-go";

/// While this is not there, a load that waits for it leaves the page cache alone.
const FILL: &str = "/tmp/fill";

/// Holds 48 MiB, and fills the page cache again and again, once `until` is true.
fn load(until: &str) -> String {
    format!(
        "dd if=/dev/zero bs=48M count=1 2>/dev/null | (until [ -e {GO} ]; do sleep 0.1; done) & \
         until {until}; do sleep 0.1; done; while :; do dd if=/dev/zero of=file bs=1M count=160 2>/dev/null; sleep 0.2; done"
    )
}

pub(super) fn amounts(milli: u64, mib: u64) -> Value {
    let amounts = json!({"cpu": format!("{milli}m"), "memory": format!("{mib}Mi")});
    json!({"requests": amounts, "limits": amounts})
}

pub(super) fn loaded(name: &str, milli: u64, mib: u64) -> Anything<Value> {
    let c = json!({
        "name": "c", "image": "i", "command": ["sh", "-c", load("true")], "resources": amounts(milli, mib),
    });
    started(name, &json!([c]))
}

fn started(name: &str, containers: &Value) -> Anything<Value> {
    let _ = fs::remove_file(GO);
    let pod = create(&pod(name, &json!({"containers": containers})))?;
    running_pid(name, "c")?;
    let cgroup = cgroup_of(&pod);
    wait("the load", || {
        Ok(counter(&cgroup, "memory.stat", "anon")? > 48 * MIB)
    })?;
    Ok(pod)
}

/// Sends the pod with other amounts; the answer.
pub(super) fn resize(pod: &Value, amounts: &Value) -> Anything<Value> {
    let mut pod = pod.clone();
    pod["spec"]["containers"][0]["resources"] = amounts.clone();
    if let Some(metadata) = pod["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("/api/v1/namespaces/default/pods/{name}/resize");
    match request("PUT", &path, Some(&pod.to_string()))? {
        (200, body) => Ok(serde_json::from_str(&body)?),
        (code, body) => Err(format!("PUT {path}: {code} {body}").into()),
    }
}

pub(super) fn condition(pod: &Value, kind: &str) -> Option<String> {
    let conditions = pod["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|one| one["type"] == kind)?;
    Some(found["message"].as_str().unwrap_or_default().to_owned())
}

pub(super) fn in_progress(name: &str) -> Anything<Option<String>> {
    Ok(condition(&read_pod(name)?, "PodResizeInProgress"))
}

/// Whether these amounts are what the kernel holds, for the pod and its container, with no throttle left.
pub(super) fn shows(cgroup: &Path, milli: u64, mib: u64) -> Anything<bool> {
    let max = (mib * MIB).to_string();
    let quota = format!("{} 100000", milli * 100);
    for cgroup in [cgroup.to_owned(), cgroup.join("c")] {
        if file(&cgroup, "memory.max")? != max
            || file(&cgroup, "cpu.max")? != quota
            || file(&cgroup, "memory.high")? != "max"
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Neither the container's bound nor the pod's nor the node's was one to kill for.
pub(super) fn nobody_died(name: &str, cgroup: &Path) -> Outcome {
    for cgroup in [&cgroup.join("c"), cgroup, Path::new(TOP)] {
        let told = file(cgroup, "memory.events")?;
        for count in ["oom", "oom_kill", "oom_group_kill"] {
            let died = counter(cgroup, "memory.events", count)?;
            assert_eq!(
                died,
                0,
                "{count} of {}:\n{told}\n{}",
                cgroup.display(),
                file(cgroup, "memory.stat")?
            );
        }
    }
    assert_eq!(container(name, "c")?["restartCount"], 0);
    let kills = get("/apis/allotd.dev/v1/oomkills")?;
    assert_eq!(kills, json!([]));
    Ok(())
}

fn a_shrink_below_use_waits_until_memory_is_free() -> Outcome {
    counting_disk()?;
    let _daemon = Daemon::start()?;
    let pod = loaded("web", 500, 128)?;
    let cgroup = cgroup_of(&pod);
    resize(&pod, &amounts(250, 32))?;
    // The processor's part is there, memory is not; and why is told.
    assert_eq!(file(&cgroup.join("c"), "cpu.max")?, "25000 100000");
    assert_eq!(
        file(&cgroup.join("c"), "memory.max")?,
        (128 * MIB).to_string()
    );
    let told = in_progress("web")?.unwrap_or_default();
    println!("{told}");
    assert!(
        told.contains("33554432 is wanted but") && told.contains("in the way"),
        "{told}"
    );
    std::thread::sleep(Duration::from_secs(3));
    assert!(in_progress("web")?.is_some());
    nobody_died("web", &cgroup)?;
    fs::write(GO, "")?;
    let start = Instant::now();
    wait("memory", || shows(&cgroup, 250, 32))?;
    println!(
        "in effect {:.1} s after memory was free",
        start.elapsed().as_secs_f64()
    );
    wait("the end of it", || Ok(in_progress("web")?.is_none()))?;
    assert_eq!(events("ResizeCompleted")?.len(), 1);
    nobody_died("web", &cgroup)?;
    delete("web", 0)
}

fn a_resize_outlives_kill_9() -> Outcome {
    counting_disk()?;
    let daemon = Daemon::start()?;
    let pod = loaded("web", 500, 128)?;
    let cgroup = cgroup_of(&pod);
    let pid = running_pid("web", "c")?;
    resize(&pod, &amounts(250, 32))?;
    // As an agent leaves it that dies between its two writes.
    fs::write(cgroup.join("c/memory.high"), (32 * MIB).to_string())?;
    daemon.kill()?;
    let _daemon = Daemon::spawn(&[])?;
    Daemon::wait_until_it_answers()?;
    assert_eq!(file(&cgroup.join("c"), "memory.high")?, "max");
    assert!(in_progress("web")?.is_some());
    fs::write(GO, "")?;
    wait("memory", || shows(&cgroup, 250, 32))?;
    assert_eq!(running_pid("web", "c")?, pid);
    nobody_died("web", &cgroup)?;
    delete("web", 0)
}

/// Linux 6.1: reclaim for a container's bound spared what was protected when reclaim last came from above, however
/// small `memory.min` was by then, and a writer was killed beside a page cache that could have gone.
fn what_was_protected_before_is_not_spared_at_the_new_bound() -> Outcome {
    counting_disk()?;
    let _daemon = Daemon::start()?;
    let waits = load(&format!("[ -e {FILL} ]"));
    // With the other container's share the pod's bound is not met, whose reclaim would come from above.
    let pod = started(
        "web",
        &json!([
            {"name": "c", "image": "i", "command": ["sh", "-c", waits], "resources": amounts(500, 128)},
            {"name": "d", "image": "i", "command": ["sleep", "1000"], "resources": amounts(100, 64)},
        ]),
    )?;
    let cgroup = cgroup_of(&pod);
    let own = cgroup.join("c");
    let kept: u64 = file(&own, "memory.min")?.parse()?;
    // There may be nothing to take: it is enough that the kernel looks.
    let _ = fs::write(cgroup.join("memory.reclaim"), "4096");
    resize(&pod, &amounts(500, 72))?;
    wait("the resize", || {
        Ok(file(&own, "memory.max")? == (72 * MIB).to_string())
    })?;
    assert!(kept > 72 * MIB, "{kept} bytes were protected");
    fs::write(FILL, "")?;
    wait("the bound to be met", || {
        assert_eq!(counter(&own, "memory.events", "oom_kill")?, 0);
        Ok(counter(&own, "memory.events", "max")? > 100)
    })?;
    nobody_died("web", &cgroup)?;
    assert_eq!(counter(&cgroup, "memory.events.local", "max")?, 0);
    delete("web", 0)
}
