//! What a pod's annotation `allotd.dev/cpu-burst` becomes in the kernel.

use std::fs;

use serde_json::{Value, json};

use super::daemon::{
    Anything, Daemon, cgroup_of, create, delete, file, get, pod, running_pid, send, wait,
};
use crate::Outcome;

tests![
    a_burst_is_in_the_kernel_and_never_above_the_quota,
    a_burst_that_somebody_changes_is_written_again,
    a_resized_limit_takes_its_burst_with_it,
];

/// A pod of these containers and limits with this annotation.
fn bursting(text: &str, limits: &[(&str, &str)]) -> Value {
    let containers = limits.iter().map(|(name, limit)| {
        json!({"name": name, "image": "i", "command": ["sleep", "inf"],
            "resources": {"limits": {"cpu": limit, "memory": "16Mi"}}})
    });
    let containers: Vec<_> = containers.collect();
    let mut pod = pod("web", &json!({ "containers": containers }));
    pod["metadata"]["annotations"] = json!({"allotd.dev/cpu-burst": text});
    pod
}

/// Quota and burst of a cgroup (µs).
fn times(pod: &Value, container: &str) -> Anything<(u64, u64)> {
    let cgroup = cgroup_of(pod).join(container);
    let quota = file(&cgroup, "cpu.max")?;
    let quota = quota.split(' ').next().ok_or("no quota")?.parse()?;
    Ok((quota, file(&cgroup, "cpu.max.burst")?.parse()?))
}

fn a_burst_is_in_the_kernel_and_never_above_the_quota() -> Outcome {
    let _daemon = Daemon::start()?;
    let limits = [("a", "200m"), ("b", "300m")];
    let web = create(&bursting("100m, b=300m", &limits))?;
    for name in ["a", "b"] {
        running_pid("web", name)?;
    }
    // Of 100 ms; the pod has the sum of both.
    for (name, expected) in [
        ("a", (20_000, 10_000)),
        ("b", (30_000, 30_000)),
        ("", (50_000, 40_000)),
    ] {
        assert_eq!(times(&web, name)?, expected, "{name}");
    }
    // Nobody else got one.
    for above in ["", "burstable"] {
        let top = std::path::Path::new(super::daemon::TOP).join(above);
        assert_eq!(file(&top, "cpu.max.burst")?, "0", "{above}");
    }
    assert_eq!(get("/apis/allotd.dev/v1/diff")?["drift"], false);
    delete("web", 0)?;

    let (code, answer) = send(&bursting("a=201m", &limits))?;
    assert_eq!(code, 422, "{answer}");
    let field = &answer["details"]["causes"][0]["field"];
    assert_eq!(
        field, "metadata.annotations[allotd.dev/cpu-burst]",
        "{answer}"
    );
    Ok(())
}

fn a_burst_that_somebody_changes_is_written_again() -> Outcome {
    let daemon = Daemon::start()?;
    let web = create(&bursting("50m", &[("a", "100m")]))?;
    let pid = running_pid("web", "a")?;
    for (name, expected) in [("a", "5000"), ("", "5000")] {
        let cgroup = cgroup_of(&web).join(name);
        for other in ["0", "7000"] {
            fs::write(cgroup.join("cpu.max.burst"), other)?;
            wait("the repair", || {
                Ok(file(&cgroup, "cpu.max.burst")? == expected)
            })?;
        }
        // The kernel itself takes no burst above the quota.
        assert!(fs::write(cgroup.join("cpu.max.burst"), "10001").is_err());
    }
    wait("the records", || {
        let drifts = get("/apis/allotd.dev/v1/drifts")?;
        let drifts = drifts.as_array().cloned().unwrap_or_default();
        let own = drifts.iter().filter(|one| one["file"] == "cpu.max.burst");
        Ok(own.count() == 4)
    })?;

    daemon.kill()?;
    let cgroup = cgroup_of(&web).join("a");
    fs::write(cgroup.join("cpu.max.burst"), "0")?;
    let _daemon = Daemon::spawn(&[])?;
    Daemon::wait_until_it_answers()?;
    assert_eq!(file(&cgroup, "cpu.max.burst")?, "5000");
    assert_eq!(running_pid("web", "a")?, pid);
    delete("web", 0)
}

fn a_resized_limit_takes_its_burst_with_it() -> Outcome {
    let _daemon = Daemon::start()?;
    let web = create(&bursting("100m", &[("a", "200m")]))?;
    let pid = running_pid("web", "a")?;
    let resize = |limit: &str| -> Anything<(u16, String)> {
        let place = "/spec/containers/0/resources";
        let patch = json!([{"op": "replace", "path": format!("{place}/limits/cpu"), "value": limit},
            {"op": "replace", "path": format!("{place}/requests/cpu"), "value": limit}]);
        let url = "/api/v1/namespaces/default/pods/web/resize";
        super::daemon::request("PATCH", url, Some(&patch.to_string()))
    };
    assert_eq!(times(&web, "a")?, (20_000, 10_000));
    // Down to the burst itself, and up: at every moment the kernel holds no burst above the quota.
    for (limit, quota) in [("100m", 10_000), ("400m", 40_000)] {
        let (code, answer) = resize(limit)?;
        assert_eq!(code, 200, "{answer}");
        wait("the quota", || Ok(times(&web, "a")? == (quota, 10_000)))?;
        assert_eq!(times(&web, "")?, (quota, 10_000));
    }
    // Below the burst it would mean something else.
    let (code, answer) = resize("50m")?;
    assert_eq!(code, 422, "{answer}");
    assert_eq!(times(&web, "a")?, (40_000, 10_000));
    assert_eq!(running_pid("web", "a")?, pid);
    delete("web", 0)
}
