//! Containers that have CPUs to themselves, on a machine with several: where their processes really run.
//!
//! Needs four CPUs; on a machine with fewer these tests are not there (see `all_tests`).

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::daemon::{
    Anything, Daemon, cgroup_of, counter, create, delete, events, file, get, pod, running_pid, wait,
};
use crate::Outcome;

tests![whole_cpus_are_had_alone_before_and_after_kill_9];

/// A pod of one container that is always busy, with a child.
fn busy(name: &str, resources: &Value) -> Value {
    let script = "(while :; do :; done) & while :; do :; done";
    pod(
        name,
        &json!({"containers": [{"name": "c", "image": "i", "command": ["sh", "-c", script],
            "resources": resources}]}),
    )
}

fn whole(cpus: &str) -> Value {
    let amounts = json!({"cpu": cpus, "memory": "32Mi"});
    json!({"requests": amounts, "limits": amounts})
}

/// The CPUs that a container's processes may run on, as each of them and its cgroup say; with them the
/// processes.
fn allowed(cgroup: &Path) -> Anything<(String, Vec<i32>)> {
    let list = file(cgroup, "cpuset.cpus.effective")?;
    let mut pids = Vec::new();
    for pid in file(cgroup, "cgroup.procs")?.lines() {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let own = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let own = own.ok_or("no Cpus_allowed_list")?.trim();
        if own != list {
            return Err(format!(
                "process {pid} may run on {own}, {} on {list}",
                cgroup.display()
            )
            .into());
        }
        pids.push(pid.parse()?);
    }
    Ok((list, pids))
}

/// The CPUs on which the processes of a container were seen, and all its processes run.
fn seen(cgroup: &Path, cpus: &[u64]) -> Outcome {
    let before = counter(cgroup, "cpu.stat", "usage_usec")?;
    let (began, mut looks) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_millis(500) {
        for pid in file(cgroup, "cgroup.procs")?.lines() {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
            // Field 39; the name, which may hold anything, ends with the last bracket.
            let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
            let cpu: u64 = fields
                .split_whitespace()
                .nth(36)
                .ok_or("no field 39")?
                .parse()?;
            assert!(
                cpus.contains(&cpu),
                "process {pid} is on CPU {cpu}, not on {cpus:?}"
            );
            looks += 1;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let used = counter(cgroup, "cpu.stat", "usage_usec")? - before;
    assert!(looks > 10 && used > 50_000, "{looks} looks, {used} µs");
    Ok(())
}

fn whole_cpus_are_had_alone_before_and_after_kill_9() -> Outcome {
    let daemon = Daemon::start_with("cpuManagerPolicy: static")?;
    let web = cgroup_of(&create(&busy(
        "web",
        &json!({"requests": {"cpu": "100m"}}),
    ))?)
    .join("c");
    let web_pid = running_pid("web", "c")?;
    wait("the child", || Ok(allowed(&web)?.1.len() == 2))?;
    assert_eq!(allowed(&web)?.0, "0-3");

    let whole_pod = cgroup_of(&create(&busy("own", &whole("2")))?);
    let own = whole_pod.join("c");
    let own_pid = running_pid("own", "c")?;
    wait("the child", || Ok(allowed(&own)?.1.len() == 2))?;
    let is = |shared: &str| -> Outcome {
        // CPU 0 is the system's.
        let (list, pids) = allowed(&own)?;
        assert_eq!((list.as_str(), pids[0], pids.len()), ("1-2", own_pid, 2));
        assert_eq!(file(&own, "cpuset.mems")?, "0");
        assert_eq!(file(&own, "cpuset.mems.effective")?, "0");
        assert_eq!(file(&own, "cpu.max")?, "max 100000");
        assert_eq!(file(&whole_pod, "cpu.max")?, "max 100000");
        assert_eq!(file(&whole_pod, "cpuset.cpus")?, "");
        let (list, pids) = allowed(&web)?;
        assert_eq!((list.as_str(), pids[0], pids.len()), (shared, web_pid, 2));
        Ok(())
    };
    is("0,3")?;
    seen(&own, &[1, 2])?;
    seen(&web, &[0, 3])?;

    // Somebody spreads it; the agent puts it back.
    fs::write(own.join("cpuset.cpus"), "0-3")?;
    wait("the repair", || Ok(file(&own, "cpuset.cpus")? == "1-2"))?;
    is("0,3")?;
    wait("the word", || Ok(events("Drift")?.len() == 1))?;

    daemon.kill()?;
    is("0,3")?;
    let daemon = Daemon::spawn(&[])?;
    Daemon::wait_until_it_answers()?;
    is("0,3")?;
    seen(&own, &[1, 2])?;
    let third = cgroup_of(&create(&busy("third", &whole("1")))?).join("c");
    running_pid("third", "c")?;
    assert_eq!(allowed(&third)?.0, "3");
    is("0")?;
    seen(&third, &[3])?;
    assert_eq!(get("/apis/allotd.dev/v1/diff")?["drift"], false);

    // Killed between the commit and the first write.
    daemon.kill()?;
    let crashing = Daemon::start_to_crash_at("StoreCommitted")?;
    Daemon::wait_until_it_answers()?;
    delete("third", 0)?;
    // It commits, and ends.
    let _ = create(&busy("next", &whole("1")));
    crashing.wait_for_crash()?;
    let _daemon = Daemon::spawn(&[])?;
    Daemon::wait_until_it_answers()?;
    running_pid("next", "c")?;
    is("0")?;
    assert_eq!(events("CPUsLost")?, []);
    assert_eq!(events("Drift")?.len(), 1);
    delete("own", 0)?;
    delete("next", 0)?;
    wait("web to have all", || Ok(allowed(&web)?.0 == "0-3"))
}
