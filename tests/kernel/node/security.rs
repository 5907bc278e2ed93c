//! Containers that are not root, or root with less than all, and pods of files, on the whole agent.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::daemon::{Daemon, create, pod, read_pod, request, running_pid, send, wait};
use crate::Outcome;

tests![
    a_container_is_who_it_is_told_to_be_and_writes_to_its_own_alone,
    what_cannot_be_honoured_is_refused,
    a_pod_of_a_file_outlives_the_agent_and_goes_with_its_file,
];

fn log(name: &str) -> super::daemon::Anything<String> {
    let path = format!("/api/v1/namespaces/default/pods/{name}/log");
    Ok(request("GET", &path, None)?.1)
}

fn a_container_is_who_it_is_told_to_be_and_writes_to_its_own_alone() -> Outcome {
    let _daemon = Daemon::start()?;
    let script = "echo id $(id -u) $(id -g) $(id -G); \
                  grep -e CapEff -e CapBnd -e NoNewPrivs /proc/self/status; \
                  for d in / /tmp $HOME $ALLOTD_VOLUME_DATA; do \
                    (: > $d/probe) 2>/dev/null && echo yes || echo no; done; \
                  echo ready; sleep inf";
    let spec = json!({
        "securityContext": {"runAsUser": 1234, "runAsGroup": 56, "runAsNonRoot": true,
            "supplementalGroups": [78], "fsGroup": 90},
        "volumes": [{"name": "data", "emptyDir": {}}],
        "containers": [{"name": "c", "image": "i", "command": ["sh", "-c", script],
            "securityContext": {"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}}],
    });
    create(&pod("web", &spec))?;
    wait("the script", || Ok(log("web")?.contains("ready")))?;
    let told = log("web")?;
    let lines: Vec<_> = told.lines().map(str::trim_end).collect();
    let expected = [
        "id 1234 56 56 78 90",
        "CapEff:\t0000000000000000",
        // CAP_NET_BIND_SERVICE
        "CapBnd:\t0000000000000400",
        "NoNewPrivs:\t1",
        "no",
        "no",
        "yes",
        "yes",
    ];
    assert_eq!(lines.get(..expected.len()), Some(&expected[..]), "{told}");
    assert!(fs::write("/tmp/still-mine", "x").is_ok());
    super::daemon::delete("web", 0)
}

fn what_cannot_be_honoured_is_refused() -> Outcome {
    let _daemon = Daemon::start()?;
    for (context, field) in [
        (json!({"privileged": true}), "privileged"),
        (
            json!({"seccompProfile": {"type": "RuntimeDefault"}}),
            "seccompProfile.type",
        ),
        (json!({"runAsNonRoot": true}), "runAsUser"),
        (
            json!({"capabilities": {"add": ["SYS_ADMIN"]}}),
            "capabilities.add",
        ),
    ] {
        let container = json!({"name": "c", "image": "i", "command": ["sleep", "inf"],
            "securityContext": context});
        let (code, answer) = send(&pod("web", &json!({"containers": [container]})))?;
        assert_eq!(code, 422, "{answer}");
        let cause = &answer["details"]["causes"][0];
        let expected = format!("spec.containers[0].securityContext.{field}");
        assert_eq!(cause["field"], expected.as_str(), "{answer}");
    }
    Ok(())
}

fn a_pod_of_a_file_outlives_the_agent_and_goes_with_its_file() -> Outcome {
    let dir = "/tmp/manifests";
    let settings = format!("staticPodPath: {dir}");
    let file = format!("{dir}/web.json");
    fs::create_dir_all(dir)?;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755))?;
    let write = |pod: &Value| -> Outcome {
        fs::write(&file, pod.to_string())?;
        Ok(fs::set_permissions(
            &file,
            fs::Permissions::from_mode(0o644),
        )?)
    };
    let spec = |seconds: &str| {
        json!({"terminationGracePeriodSeconds": 1,
            "containers": [{"name": "c", "image": "i", "command": ["sleep", seconds]}]})
    };
    let daemon = Daemon::start_with(&settings)?;
    write(&pod("web", &spec("10000")))?;
    wait("the pod", || Ok(read_pod("web-vm").is_ok()))?;
    let pid = running_pid("web-vm", "c")?;
    let uid = read_pod("web-vm")?["metadata"]["uid"].clone();
    let path = "/api/v1/namespaces/default/pods/web-vm";
    let (code, answer) = request("DELETE", path, None)?;
    assert_eq!(code, 403, "{answer}");

    daemon.kill()?;
    let daemon = Daemon::spawn(&[])?;
    Daemon::wait_until_it_answers()?;
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(running_pid("web-vm", "c")?, pid);

    // What changes while no agent runs is heeded by the next one.
    daemon.kill()?;
    write(&pod("web", &spec("20000")))?;
    let _daemon = Daemon::spawn(&[])?;
    Daemon::wait_until_it_answers()?;
    wait("another pod", || {
        Ok(read_pod("web-vm").is_ok_and(|pod| pod["metadata"]["uid"] != uid))
    })?;
    assert_ne!(running_pid("web-vm", "c")?, pid);
    fs::remove_file(&file)?;
    wait("the pod to go", || Ok(request("GET", path, None)?.0 == 404))
}
