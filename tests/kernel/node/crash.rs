//! `kill -9` between any two steps: the next allotd finds its way, and nothing is lost or done twice.

use std::fs;

use serde_json::json;

use super::daemon::{
    Anything, Daemon, TOP, cgroup_of, container, get, pod, read_pod, request, running_pid, wait,
};
use crate::Outcome;

tests![
    pods_outlive_the_agent,
    a_crash_after_the_commit_converges,
    a_crash_after_the_cgroups_converges,
    a_crash_after_the_start_converges,
    a_crash_at_the_end_of_a_run_converges,
    a_crash_in_a_deletion_converges,
    an_unwanted_cgroup_goes_at_start,
    pods_outlive_the_store,
];

fn sleeper(name: &str) -> serde_json::Value {
    pod(
        name,
        &json!({"containers": [{
            "name": "c", "image": "i", "command": ["sh", "-c", "echo started >>/tmp/starts; sleep inf"],
            "resources": {"limits": {"cpu": "100m", "memory": "32Mi"}},
        }]}),
    )
}

fn pods_outlive_the_agent() -> Outcome {
    let daemon = Daemon::start()?;
    let before = super::daemon::create(&sleeper("web"))?;
    let pid = running_pid("web", "c")?;
    daemon.kill()?;
    assert!(
        fs::exists(format!("/proc/{pid}"))?,
        "the process died with the agent"
    );
    let daemon = Daemon::start()?;
    let after = read_pod("web")?;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(running_pid("web", "c")?, pid);
    assert_eq!(container("web", "c")?["restartCount"], 0);
    daemon.stop()?;
    assert!(
        fs::exists(format!("/proc/{pid}"))?,
        "the process died with a stop"
    );
    Ok(())
}

/// The store's file is damaged, gone or empty, and its pods must neither end nor be counted twice.
fn pods_outlive_the_store() -> Outcome {
    let mut daemon = Daemon::start()?;
    super::daemon::create(&sleeper("web"))?;
    let pid = running_pid("web", "c")?;
    let before = read_pod("web")?;
    for (round, damage) in [Some("no store"), None, Some("")].into_iter().enumerate() {
        daemon.kill()?;
        let store = "/tmp/state/store.redb";
        match damage {
            Some(text) => fs::write(store, text)?,
            None => fs::remove_file(store)?,
        }
        daemon = Daemon::start()?;
        let after = read_pod("web")?;
        assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
        assert_eq!(running_pid("web", "c")?, pid);
        assert_eq!(container("web", "c")?["restartCount"], 0);
        let told: u64 = super::daemon::events("StoreRebuilt")?
            .iter()
            .map(|(_, count)| count)
            .sum();
        assert_eq!(told, u64::try_from(round)? + 1);
        assert_eq!(get("/apis/allotd.dev/v1/diff")?["drift"], false);
    }
    // Nothing is left of either: nobody knows the pod any more, and it lives on, under the next agent too.
    daemon.kill()?;
    for file in ["store.redb", "store.redb.journal"] {
        fs::write(format!("/tmp/state/{file}"), "no line of it\n")?;
    }
    Daemon::start()?.kill()?;
    let _daemon = Daemon::start()?;
    assert_eq!(
        request("GET", "/api/v1/namespaces/default/pods/web", None)?.0,
        404
    );
    let there = fs::read_to_string(cgroup_of(&before).join("c/cgroup.procs"))?;
    assert!(there.lines().any(|line| line == pid.to_string()), "{there}");
    Ok(())
}

/// Sends a pod to an allotd that dies at `point`, then starts another: the pod must run, once.
fn crash_and_converge(point: &str) -> Outcome {
    Daemon::start()?.stop()?;
    let daemon = Daemon::start_to_crash_at(point)?;
    Daemon::wait_until_it_answers()?;
    let body = sleeper("web").to_string();
    // The answer may or may not come before the end.
    let _ = request("POST", "/api/v1/namespaces/default/pods", Some(&body));
    daemon.wait_for_crash()?;
    let _daemon = Daemon::start()?;
    let pod = read_pod("web")?;
    let pid = running_pid("web", "c")?;
    let there = fs::read_to_string(cgroup_of(&pod).join("c/cgroup.procs"))?;
    assert!(there.lines().any(|line| line == pid.to_string()), "{there}");
    assert_eq!(container("web", "c")?["restartCount"], 0);
    wait(
        "one start",
        || Ok(fs::read_to_string("/tmp/starts").is_ok()),
    )?;
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert_eq!(fs::read_to_string("/tmp/starts")?, "started\n");
    assert_eq!(get("/apis/allotd.dev/v1/diff")?["drift"], false);
    Ok(())
}

fn a_crash_after_the_commit_converges() -> Outcome {
    crash_and_converge("StoreCommitted")
}

fn a_crash_after_the_cgroups_converges() -> Outcome {
    crash_and_converge("CgroupsCreated")
}

fn a_crash_after_the_start_converges() -> Outcome {
    crash_and_converge("ProcessStarted")
}

fn a_crash_at_the_end_of_a_run_converges() -> Outcome {
    Daemon::start()?.stop()?;
    let daemon = Daemon::start_to_crash_at("EndSeen")?;
    Daemon::wait_until_it_answers()?;
    super::daemon::create(&pod(
        "job",
        &json!({"restartPolicy": "Never", "containers": [{
            "name": "c", "image": "i", "command": ["sh", "-c", "exit 7"],
        }]}),
    ))?;
    daemon.wait_for_crash()?;
    let _daemon = Daemon::start()?;
    wait("the end", || {
        Ok(read_pod("job")?["status"]["phase"] == "Failed")
    })?;
    let status = container("job", "c")?;
    assert_eq!(status["state"]["terminated"]["exitCode"], 7, "{status}");
    assert_eq!(status["restartCount"], 0, "{status}");
    Ok(())
}

fn pods_below_top() -> Anything<usize> {
    let pods = |dir: &str| -> Anything<usize> {
        Ok(fs::read_dir(format!("{TOP}/{dir}"))?
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("pod"))
            .filter(|entry| entry.path().is_dir())
            .count())
    };
    Ok(pods("")? + pods("burstable")? + pods("besteffort")?)
}

fn a_crash_in_a_deletion_converges() -> Outcome {
    Daemon::start()?.stop()?;
    let daemon = Daemon::start_to_crash_at("CgroupsRemoved")?;
    Daemon::wait_until_it_answers()?;
    super::daemon::create(&sleeper("web"))?;
    running_pid("web", "c")?;
    let path = "/api/v1/namespaces/default/pods/web?gracePeriodSeconds=0";
    let _ = request("DELETE", path, None);
    daemon.wait_for_crash()?;
    let _daemon = Daemon::start()?;
    wait("the pod to go", || {
        Ok(request("GET", "/api/v1/namespaces/default/pods/web", None)?.0 == 404)
    })?;
    assert_eq!(pods_below_top()?, 0);
    for dir in ["/tmp/state/pods", "/tmp/logs"] {
        let left: Vec<_> = fs::read_dir(dir)?
            .flatten()
            .map(|entry| entry.path())
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
    Ok(())
}

fn an_unwanted_cgroup_goes_at_start() -> Outcome {
    Daemon::start()?.stop()?;
    fs::create_dir_all(format!("{TOP}/burstable/podorphan/c/inner"))?;
    fs::create_dir_all(format!("{TOP}/foreign"))?;
    let _daemon = Daemon::start()?;
    assert!(!fs::exists(format!("{TOP}/burstable/podorphan"))?);
    assert!(
        fs::exists(format!("{TOP}/foreign"))?,
        "a foreign cgroup was removed"
    );
    Ok(())
}
