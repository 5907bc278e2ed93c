//! Probes and hooks on the whole agent: where they run, what they end, and what a killed agent leaves.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::daemon::{
    Daemon, cgroup_of, container, create, delete, events, file, pod, read_pod, running_pid, wait,
};
use crate::Outcome;

tests![
    a_program_of_a_probe_is_in_the_containers_cgroup_and_sees_what_it_sees,
    a_container_that_does_not_live_begins_anew_under_the_next_agent_too,
    what_takes_too_long_is_killed_and_nothing_else,
    pre_stop_comes_before_sigterm,
];

fn shell(script: &str) -> Value {
    json!({"exec": {"command": ["sh", "-c", script]}})
}

fn probe(script: &str) -> Value {
    let mut probe = shell(script);
    probe["periodSeconds"] = json!(1);
    probe["failureThreshold"] = json!(1);
    probe["timeoutSeconds"] = json!(5);
    probe
}

fn is_ready(name: &str) -> super::daemon::Anything<bool> {
    let pod = read_pod(name)?;
    Ok(pod["status"]["containerStatuses"][0]["ready"] == true)
}

fn a_program_of_a_probe_is_in_the_containers_cgroup_and_sees_what_it_sees() -> Outcome {
    let _daemon = Daemon::start()?;
    let script = "(cat /proc/self/cgroup; id -u; id -G; grep -e CapBnd -e NoNewPrivs /proc/self/status; \
                  echo $COLOR; pwd; cat /mnt/mark; (: > /tmp/x) 2>/dev/null && echo wrote || echo kept) > $HOME/seen";
    let spec = json!({
        "securityContext": {"runAsUser": 1234, "runAsGroup": 56, "supplementalGroups": [78],
            "fsGroup": 90},
        "volumes": [{"name": "data", "emptyDir": {}}],
        "containers": [{"name": "c", "image": "i",
            "command": ["sh", "-c", "echo marked > /mnt/mark; exec sleep inf"],
            "env": [{"name": "COLOR", "value": "red"}], "workingDir": "/mnt",
            "volumeMounts": [{"name": "data", "mountPath": "/mnt"}],
            "securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]}},
            "readinessProbe": probe(script)}],
    });
    fs::create_dir_all("/mnt")?;
    let made = create(&pod("web", &spec))?;
    wait("it to be ready", || is_ready("web"))?;
    let uid = made["metadata"]["uid"].as_str().unwrap_or_default();
    let seen = fs::read_to_string(format!("/tmp/state/pods/{uid}/c/scratch/seen"))?;
    let lines: Vec<_> = seen.lines().map(str::trim_end).collect();
    let own = cgroup_of(&read_pod("web")?).join("c");
    let own = own.strip_prefix("/sys/fs/cgroup")?;
    let expected = [
        &format!("0::/{}", own.display()),
        "1234",
        "56 78 90",
        "CapBnd:\t0000000000000000",
        "NoNewPrivs:\t1",
        "red",
        "/mnt",
        "marked",
        "kept",
    ];
    assert_eq!(lines, expected, "{seen}");
    delete("web", 0)
}

fn a_container_that_does_not_live_begins_anew_under_the_next_agent_too() -> Outcome {
    let daemon = Daemon::start()?;
    fs::write("/tmp/alive", "")?;
    let spec = json!({"terminationGracePeriodSeconds": 2,
        "containers": [{"name": "c", "image": "i", "command": ["sleep", "inf"],
            "livenessProbe": probe("cat /tmp/alive"), "readinessProbe": probe("true")}]});
    create(&pod("web", &spec))?;
    let first = running_pid("web", "c")?;
    wait("it to be ready", || is_ready("web"))?;
    fs::remove_file("/tmp/alive")?;
    wait("the second run", || {
        Ok(container("web", "c")?["restartCount"] == 1)
    })?;
    fs::write("/tmp/alive", "")?;
    let second = running_pid("web", "c")?;
    assert_ne!(first, second);
    let told = events("Killing")?;
    let expected = "Container c failed liveness probe, will be restarted";
    assert!(told.iter().any(|(text, _)| text == expected), "{told:?}");
    wait("it to be ready again", || is_ready("web"))?;

    daemon.kill()?;
    let daemon = Daemon::spawn(&[])?;
    Daemon::wait_until_it_answers()?;
    assert!(is_ready("web")?, "the next agent has not looked yet");
    std::thread::sleep(Duration::from_secs(2));
    assert!(is_ready("web")?);
    assert_eq!(running_pid("web", "c")?, second);
    fs::remove_file("/tmp/alive")?;
    wait("its end", || {
        Ok(events("Killing")?
            .iter()
            .any(|(text, count)| text == expected && *count == 2))
    })?;
    drop(daemon);
    Ok(())
}

fn what_takes_too_long_is_killed_and_nothing_else() -> Outcome {
    let _daemon = Daemon::start()?;
    let mut slow = probe("sleep 1000 & setsid sleep 1001 & echo slow; sleep 1002");
    slow["timeoutSeconds"] = json!(1);
    slow["periodSeconds"] = json!(3600);
    let spec = json!({"containers": [{"name": "c", "image": "i", "command": ["sleep", "inf"],
        "readinessProbe": slow}]});
    create(&pod("web", &spec))?;
    let pid = running_pid("web", "c")?;
    let own = cgroup_of(&read_pod("web")?).join("c");
    wait("the look", || Ok(!events("Unhealthy")?.is_empty()))?;
    let told = events("Unhealthy")?;
    let expected = "Readiness probe failed: command timed out after 1s: slow";
    assert_eq!(told[0].0, expected, "{told:?}");
    let pids = file(&own, "cgroup.procs")?;
    assert_eq!(pids.trim(), pid.to_string());
    delete("web", 0)
}

fn pre_stop_comes_before_sigterm() -> Outcome {
    let _daemon = Daemon::start()?;
    let _ = fs::remove_file("/tmp/order");
    let script =
        "trap 'echo term >> /tmp/order; exit 0' TERM; echo ready; while :; do sleep 0.1; done";
    let spec = json!({"terminationGracePeriodSeconds": 20,
        "containers": [{"name": "c", "image": "i", "command": ["sh", "-c", script],
            "lifecycle": {"postStart": shell("echo start >> /tmp/order"),
                "preStop": shell("sleep 1; echo stop >> /tmp/order")}}]});
    create(&pod("web", &spec))?;
    wait("the hook", || is_ready("web"))?;
    std::thread::sleep(Duration::from_secs(1));
    delete("web", 20)?;
    assert_eq!(fs::read_to_string("/tmp/order")?, "start\nstop\nterm\n");
    Ok(())
}
