//! What the values do: CPU shares and quotas, protected memory, huge pages, tasks, and that a foreign
//! write does not last.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use super::daemon::{
    Anything, Daemon, TOP, cgroup_of, container, counter, create, delete, events, file, get, pod,
    request, running_pid, wait,
};
use crate::Outcome;

tests![
    a_busy_loop_gets_its_quota,
    busy_neighbours_share_by_their_requests,
    protected_memory_stays_resident,
    huge_pages_end_at_the_limit_without_a_signal,
    a_fork_bomb_stops_at_the_pods_bound,
    a_foreign_write_is_repaired_and_told,
    a_removed_cgroup_comes_back,
    an_idle_daemon_sleeps,
    a_process_is_attached_with_its_children,
    containers_start_in_order_and_restart,
];

const BUSY: &str = "while :; do :; done";

fn usage(cgroup: &Path) -> Anything<u64> {
    counter(cgroup, "cpu.stat", "usage_usec")
}

fn a_busy_loop_gets_its_quota() -> Outcome {
    let _daemon = Daemon::start()?;
    let pod = create(&pod(
        "busy",
        &json!({"containers": [{
            "name": "loop", "image": "i", "command": ["sh", "-c", BUSY],
            "resources": {"limits": {"cpu": "200m", "memory": "64Mi"}},
        }]}),
    ))?;
    running_pid("busy", "loop")?;
    let cgroup = cgroup_of(&pod).join("loop");
    std::thread::sleep(Duration::from_secs(1));
    let (from, start) = (usage(&cgroup)?, Instant::now());
    std::thread::sleep(Duration::from_secs(5));
    let used = usage(&cgroup)? - from;
    let share = 100.0 * used as f64 / start.elapsed().as_micros() as f64;
    println!("measured: 200m: {share:.1} % of a CPU");
    assert!((17.0..=23.0).contains(&share), "{share:.1} % of a CPU");
    Ok(())
}

fn busy_neighbours_share_by_their_requests() -> Outcome {
    let _daemon = Daemon::start()?;
    let busy = |name: &str, cpu: &str| {
        json!({
            "name": name, "image": "i", "command": ["sh", "-c", BUSY],
            "resources": {"requests": {"cpu": cpu}},
        })
    };
    let spec = json!({"containers": [busy("small", "100m"), busy("large", "400m")]});
    let pod = create(&pod("pair", &spec))?;
    running_pid("pair", "small")?;
    running_pid("pair", "large")?;
    let (small, large) = (cgroup_of(&pod).join("small"), cgroup_of(&pod).join("large"));
    let weight = |cgroup| -> Anything<f64> { Ok(file(cgroup, "cpu.weight")?.parse()?) };
    let expected = weight(&large)? / weight(&small)?;
    std::thread::sleep(Duration::from_secs(1));
    let (from_small, from_large) = (usage(&small)?, usage(&large)?);
    std::thread::sleep(Duration::from_secs(6));
    let ratio = (usage(&large)? - from_large) as f64 / (usage(&small)? - from_small) as f64;
    println!("measured: weights {expected:.2} : 1, time {ratio:.2} : 1");
    assert!(
        (ratio / expected - 1.0).abs() <= 0.1,
        "{ratio:.2}, not {expected:.2}"
    );
    Ok(())
}

fn protected_memory_stays_resident() -> Outcome {
    let _daemon = Daemon::start()?;
    let keeper = create(&pod(
        "keeper",
        &json!({"containers": [{
            "name": "c", "image": "i",
            "command": ["sh", "-c", "dd if=/dev/zero of=/tmp/kept bs=1M count=100 && cat /tmp/kept >/dev/null && sleep inf"],
            "resources": {"requests": {"memory": "120Mi"}, "limits": {"memory": "200Mi"}},
        }]}),
    ))?;
    let cgroup = cgroup_of(&keeper).join("c");
    let held = || -> Anything<u64> { Ok(file(&cgroup, "memory.current")?.parse()?) };
    wait("the keeper to hold 100 MiB", || Ok(held()? > 100 << 20))?;
    // The neighbour asks for more than the pods' top cgroup has left; only its own can be taken.
    create(&pod(
        "eater",
        &json!({"restartPolicy": "Never", "containers": [{
            "name": "c", "image": "i", "command": ["/init", "play", "eat", "900"],
        }]}),
    ))?;
    wait("the eater to be killed", || {
        Ok(container("eater", "c")?["state"]["terminated"].is_object())
    })?;
    assert!(held()? > 100 << 20, "only {} bytes are left", held()?);
    assert_eq!(container("keeper", "c")?["restartCount"], 0);
    Ok(())
}

fn huge_pages_end_at_the_limit_without_a_signal() -> Outcome {
    let _daemon = Daemon::start()?;
    let pod = create(&pod(
        "huge",
        &json!({"restartPolicy": "Never", "containers": [{
            "name": "c", "image": "i", "command": ["/init", "play", "map-huge-pages", "41"],
            "resources": {"limits": {"hugepages-2Mi": "80Mi", "memory": "64Mi", "cpu": "100m"}},
        }]}),
    ))?;
    assert_eq!(
        file(&cgroup_of(&pod).join("c"), "hugetlb.2MB.rsvd.max")?,
        "83886080"
    );
    wait("the end", || {
        Ok(container("huge", "c")?["state"]["terminated"].is_object())
    })?;
    let (_, log) = request("GET", "/api/v1/namespaces/default/pods/huge/log", None)?;
    // The player maps and touches one page after the other and says how many it got.
    assert_eq!(log.trim(), "40 of 41 huge pages", "{log}");
    let end = container("huge", "c")?["state"]["terminated"].clone();
    assert_eq!(
        (&end["exitCode"], &end["signal"]),
        (&json!(1), &json!(null)),
        "{end}"
    );
    Ok(())
}

/// Report buildbuddy#9138: refused forks are told.
fn a_fork_bomb_stops_at_the_pods_bound() -> Outcome {
    let _daemon = Daemon::start_with("podPidsLimit: 32")?;
    let pod = create(&pod(
        "bomb",
        &json!({"containers": [{
            "name": "c", "image": "i", "command": ["sh", "-c", "f() { f | f & }; f; sleep inf"],
            "resources": {"limits": {"cpu": "300m", "memory": "128Mi"}},
        }]}),
    ))?;
    let cgroup = cgroup_of(&pod);
    assert_eq!(file(&cgroup, "pids.max")?, "32");
    wait("forks to be refused", || {
        Ok(!events("PIDLimitReached")?.is_empty())
    })?;
    let now: u64 = file(&cgroup, "pids.current")?.parse()?;
    assert!(now <= 32, "{now} tasks");
    let usage = get("/apis/allotd.dev/v1/namespaces/default/pods/bomb/usage")?;
    assert_eq!(usage["pod"]["pidsMax"], 32);
    // Linux 6.1 counts at the container, 6.12 at the pod.
    let refused = |usage: &serde_json::Value| usage["pidsRefused"].as_u64().unwrap_or(0);
    assert!(
        refused(&usage["pod"]).max(refused(&usage["containers"][0])) > 0,
        "{usage}"
    );
    delete("bomb", 0)
}

fn a_foreign_write_is_repaired_and_told() -> Outcome {
    let _daemon = Daemon::start()?;
    let pod = create(&pod(
        "web",
        &json!({"containers": [{
            "name": "c", "image": "i", "command": ["sleep", "inf"],
            "resources": {"limits": {"cpu": "500m", "memory": "64Mi"}},
        }]}),
    ))?;
    running_pid("web", "c")?;
    let cgroup = cgroup_of(&pod).join("c");
    for (name, foreign, own) in [
        ("memory.max", "max", "67108864"),
        ("cpu.max", "max 100000", "50000 100000"),
        ("cpu.weight", "1", "59"),
        ("memory.min", "0", "62914560"),
        ("pids.max", "7", "max"),
    ] {
        fs::write(cgroup.join(name), foreign)?;
        wait(&format!("{name} to be repaired"), || {
            Ok(file(&cgroup, name)? == own)
        })?;
        wait("the event", || {
            Ok(events("Drift")?.iter().any(|(message, _)| {
                message.starts_with(&format!("{name} of ")) && message.contains(foreign)
            }))
        })?;
    }
    // A level above pods as well.
    fs::write(Path::new(TOP).join("burstable/memory.max"), "1073741824")?;
    wait("the level to be repaired", || {
        Ok(file(&Path::new(TOP).join("burstable"), "memory.max")? == "max")
    })?;
    assert_eq!(get("/apis/allotd.dev/v1/diff")?["drift"], false);
    Ok(())
}

fn a_removed_cgroup_comes_back() -> Outcome {
    let _daemon = Daemon::start()?;
    let pod = create(&pod(
        "empty",
        &json!({"containers": [{"name": "c", "image": "i"}]}),
    ))?;
    let cgroup = cgroup_of(&pod).join("c");
    for times in 1..=2 {
        fs::remove_dir(&cgroup)?;
        wait("the cgroup to come back", || {
            Ok(cgroup.join("memory.max").exists())
        })?;
        // It is watched as the first one was.
        fs::write(cgroup.join("pids.max"), "99")?;
        wait("its file to be repaired", || {
            Ok(file(&cgroup, "pids.max")? != "99")
        })?;
        wait("the drift to be told", || {
            let told = events("Drift")?;
            let removed = |(message, count): &&(String, u64)| {
                message.contains("was removed") && *count == times
            };
            Ok(told.iter().any(|event| removed(&event)))
        })?;
    }
    Ok(())
}

fn an_idle_daemon_sleeps() -> Outcome {
    let daemon = Daemon::start()?;
    create(&pod(
        "quiet",
        &json!({"containers": [{"name": "c", "image": "i", "command": ["sleep", "inf"]}]}),
    ))?;
    running_pid("quiet", "c")?;
    std::thread::sleep(Duration::from_secs(2));
    let (from, start) = (daemon.switches()?, Instant::now());
    std::thread::sleep(Duration::from_secs(8));
    let mut woken = 0;
    for (thread, count) in daemon.switches()? {
        let own = count - from.get(&thread).unwrap_or(&0);
        println!("    {thread}: {own}");
        woken += own;
    }
    let woken = woken as f64 / start.elapsed().as_secs_f64();
    println!("measured: {woken:.2} switches a second");
    assert!(woken < 1.0, "{woken:.2} switches a second");
    Ok(())
}

fn a_process_is_attached_with_its_children() -> Outcome {
    let _daemon = Daemon::start()?;
    let pod = create(&pod(
        "host",
        &json!({"containers": [{"name": "c", "image": "i"}]}),
    ))?;
    let mut parent = std::process::Command::new("sh")
        .args(["-c", "sleep 1000 & sleep 1000; true"])
        .spawn()?;
    let pid = parent.id();
    wait("the children", || {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        Ok(text.split_whitespace().count() == 2)
    })?;
    let body = json!({"container": "c", "pid": pid, "children": true}).to_string();
    let path = "/apis/allotd.dev/v1/namespaces/default/pods/host/attach";
    let (code, answer) = request("POST", path, Some(&body))?;
    assert_eq!(code, 200, "{answer}");
    let there = file(&cgroup_of(&pod).join("c"), "cgroup.procs")?;
    assert_eq!(there.lines().count(), 3, "{there}");
    assert_eq!(running_pid("host", "c")?, i32::try_from(pid)?);
    for (body, code) in [
        (json!({"container": "c", "pid": 1}), 400),
        (json!({"container": "c", "pid": 4_000_000}), 400),
        (json!({"container": "x", "pid": pid}), 404),
    ] {
        assert_eq!(
            request("POST", path, Some(&body.to_string()))?.0,
            code,
            "{body}"
        );
    }
    parent.kill()?;
    parent.wait()?;
    wait("the end to be seen", || {
        Ok(container("host", "c")?["lastState"]["terminated"].is_object())
    })?;
    delete("host", 0)
}

fn containers_start_in_order_and_restart() -> Outcome {
    let _daemon = Daemon::start()?;
    create(&pod(
        "steps",
        &json!({
            "restartPolicy": "OnFailure",
            "initContainers": [
                {"name": "first", "image": "i", "command": ["sh", "-c", "sleep 1; echo one >/tmp/steps"]},
                {"name": "side", "image": "i", "restartPolicy": "Always", "command": ["sleep", "inf"]},
            ],
            "containers": [
                {"name": "main", "image": "i", "command": ["sh", "-c", "cat /tmp/steps; echo $GREETING; test -e /tmp/again || { touch /tmp/again; exit 3; }"],
                 "env": [{"name": "GREETING", "value": "hello $(NAME)"}, {"name": "NAME", "value": "x"}]},
            ],
        }),
    ))?;
    wait("the pod to succeed", || {
        Ok(super::daemon::read_pod("steps")?["status"]["phase"] == "Succeeded")
    })?;
    let main = container("steps", "main")?;
    assert_eq!(main["restartCount"], 1, "{main}");
    assert_eq!(main["lastState"]["terminated"]["exitCode"], 3, "{main}");
    assert_eq!(main["state"]["terminated"]["reason"], "Completed");
    wait("the sidecar to be stopped", || {
        Ok(container("steps", "side")?["state"]["terminated"].is_object())
    })?;
    let path = "/api/v1/namespaces/default/pods/steps/log?container=main";
    let (_, log) = request("GET", path, None)?;
    assert_eq!(log, "one\nhello $(NAME)\n");
    let (_, log) = request("GET", &format!("{path}&previous=true"), None)?;
    assert_eq!(log, "one\nhello $(NAME)\n");
    delete("steps", 0)
}
