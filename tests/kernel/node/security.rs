//! Containers that are not root, or root with less than all, and pods of files, on the whole agent.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::daemon::{Daemon, create, pod, read_pod, request, running_pid, send, wait};
use crate::Outcome;

tests![
    a_container_is_who_it_is_told_to_be_and_writes_to_its_own_alone,
    whoever_says_nothing_is_nobody_and_stays_it,
    whoever_asks_to_be_root_is_refused,
    where_root_is_allowed_it_is_had_and_kept_under_a_stricter_agent,
    probes_hooks_and_output_are_those_of_the_user,
    what_cannot_be_honoured_is_refused,
    a_pod_of_a_file_outlives_the_agent_and_goes_with_its_file,
];

fn log(name: &str) -> super::daemon::Anything<String> {
    let path = format!("/api/v1/namespaces/default/pods/{name}/log");
    Ok(request("GET", &path, None)?.1)
}

fn a_container_is_who_it_is_told_to_be_and_writes_to_its_own_alone() -> Outcome {
    let _daemon = Daemon::start_with("allowedCapabilities: [NET_BIND_SERVICE]")?;
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
        // CAP_NET_BIND_SERVICE
        "CapEff:\t0000000000000400",
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

/// A set-uid program of root that says who it is.
const GAINING: &str = "/tmp/gain";

/// A pod that runs a script and then sleeps.
fn scripted(name: &str, script: &str, context: &Value) -> Value {
    let script = format!("{script}; echo ready; exec sleep inf");
    pod(
        name,
        &json!({"containers": [{"name": "c", "image": "i", "command": ["sh", "-c", script],
            "securityContext": context}]}),
    )
}

fn make_gaining() -> Outcome {
    fs::copy("/init", GAINING)?;
    Ok(fs::set_permissions(
        GAINING,
        fs::Permissions::from_mode(0o4755),
    )?)
}

/// Fields of `/proc/PID/status` as the kernel has them, without tabs.
fn status(pid: i32, names: &[&str]) -> super::daemon::Anything<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = |name: &&str| {
        text.lines()
            .find(|line| line.starts_with(&format!("{name}:")))
    };
    let lines = names.iter().filter_map(line);
    Ok(lines.map(|line| line.replace('\t', " ")).collect())
}

fn whoever_says_nothing_is_nobody_and_stays_it() -> Outcome {
    let _daemon = Daemon::start()?;
    make_gaining()?;
    let script = format!(
        "echo gained $({GAINING} print-user); (: > /etc/probe) 2>/dev/null || echo denied; : > $HOME/f && echo home; \
         tr -s ' ' < /proc/self/limits | grep 'Max processes'"
    );
    let mut web = scripted("web", &script, &Value::Null);
    web["spec"]["initContainers"] = json!([{"name": "first", "image": "i", "command": ["sh", "-c", "id -u"]},
        {"name": "beside", "image": "i", "command": ["sleep", "inf"], "restartPolicy": "Always"}]);
    let kept = create(&web)?;
    let filled =
        json!({"runAsUser": 65534, "runAsGroup": 65534, "allowPrivilegeEscalation": false});
    for list in [
        "/spec/initContainers/0",
        "/spec/initContainers/1",
        "/spec/containers/0",
    ] {
        let context = kept.pointer(&format!("{list}/securityContext"));
        assert_eq!(context, Some(&filled), "{list}");
    }
    wait("the script", || {
        let path = "/api/v1/namespaces/default/pods/web/log?container=c";
        Ok(request("GET", path, None)?.1.contains("ready"))
    })?;
    let path = "/api/v1/namespaces/default/pods/web/log?container=";
    let told = request("GET", &format!("{path}c"), None)?.1;
    let lines: Vec<_> = told.lines().map(str::trim_end).collect();
    let unlimited = "Max processes unlimited unlimited processes";
    assert_eq!(
        lines,
        ["gained 65534", "denied", "home", unlimited, "ready"]
    );
    assert_eq!(request("GET", &format!("{path}first"), None)?.1, "65534\n");
    for name in ["c", "beside"] {
        let pid = running_pid("web", name)?;
        let names = [
            "Uid",
            "Gid",
            "Groups",
            "NoNewPrivs",
            "CapPrm",
            "CapEff",
            "CapAmb",
        ];
        let expected = [
            "Uid: 65534 65534 65534 65534",
            "Gid: 65534 65534 65534 65534",
            "Groups:  ",
            "NoNewPrivs: 1",
            "CapPrm: 0000000000000000",
            "CapEff: 0000000000000000",
            "CapAmb: 0000000000000000",
        ];
        assert_eq!(status(pid, &names)?, expected, "{name}");
    }
    let told = super::daemon::get("/apis/allotd.dev/v1/namespaces/default/pods/web/explain")?;
    let own = &told["containers"][2]["security"];
    assert_eq!(
        (&own["user"], &own["noNewPrivileges"]),
        (&json!(65534), &json!(true)),
        "{told}"
    );
    let defaults = told["defaults"].as_array().cloned().unwrap_or_default();
    let users = defaults.iter().filter(|row| row["resource"] == "runAsUser");
    assert_eq!(users.count(), 3, "{told}");
    super::daemon::delete("web", 0)
}

fn whoever_asks_to_be_root_is_refused() -> Outcome {
    let _daemon = Daemon::start()?;
    let own = "spec.containers[0].securityContext";
    for (context, field, text) in [
        (
            json!({"runAsUser": 0}),
            "runAsUser",
            "must not run as root: allowRootContainers is false on this node",
        ),
        (
            json!({"allowPrivilegeEscalation": true}),
            "allowPrivilegeEscalation",
            "must not be true",
        ),
        (
            json!({"capabilities": {"add": ["NET_BIND_SERVICE"]}}),
            "capabilities.add",
            "must not ask for NET_BIND_SERVICE",
        ),
    ] {
        let (code, answer) = send(&scripted("web", "true", &context))?;
        assert_eq!(
            (code, &answer["reason"]),
            (403, &json!("Forbidden")),
            "{answer}"
        );
        let cause = &answer["details"]["causes"][0];
        assert_eq!(
            cause["field"],
            format!("{own}.{field}").as_str(),
            "{answer}"
        );
        let message = answer["message"].as_str().unwrap_or_default();
        let begins = format!("pods \"web\" is forbidden: {own}.{field}: {text}");
        assert!(message.starts_with(&begins), "{message}");
    }
    Ok(())
}

fn where_root_is_allowed_it_is_had_and_kept_under_a_stricter_agent() -> Outcome {
    let daemon = Daemon::start_with("allowRootContainers: true")?;
    make_gaining()?;
    let kept = create(&scripted("silent", "true", &Value::Null))?;
    assert_eq!(kept.pointer("/spec/containers/0/securityContext"), None);
    create(&scripted("root", "true", &json!({"runAsUser": 0})))?;
    // Without no_new_privs the program does make root of a user: it proves something where it does not.
    let script = format!("echo gained $({GAINING} print-user)");
    create(&scripted("user", &script, &json!({"runAsUser": 1234})))?;
    wait("the script", || Ok(log("user")?.contains("ready")))?;
    assert!(log("user")?.starts_with("gained 0\n"));
    let pids = [running_pid("silent", "c")?, running_pid("root", "c")?];
    let names = ["Uid", "NoNewPrivs"];
    for pid in pids {
        assert_eq!(status(pid, &names)?, ["Uid: 0 0 0 0", "NoNewPrivs: 0"]);
    }

    daemon.kill()?;
    let daemon = Daemon::start_with("")?;
    let again = || -> super::daemon::Anything<[i32; 2]> {
        Ok([running_pid("silent", "c")?, running_pid("root", "c")?])
    };
    assert_eq!(again()?, pids);
    let status_now = super::daemon::get("/apis/allotd.dev/v1/status")?;
    assert_eq!(status_now["problems"], json!([]), "{status_now}");
    // What it was admitted as it is in its next run too.
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(pids[0]),
        nix::sys::signal::Signal::SIGKILL,
    )?;
    wait("another run", || Ok(running_pid("silent", "c")? != pids[0]))?;
    assert_eq!(
        status(running_pid("silent", "c")?, &names)?[0],
        "Uid: 0 0 0 0"
    );
    drop(daemon);
    let _daemon = Daemon::spawn(&[])?;
    Daemon::wait_until_it_answers()?;
    assert_eq!(running_pid("root", "c")?, pids[1]);
    for name in ["silent", "root", "user"] {
        super::daemon::delete(name, 0)?;
    }
    Ok(())
}

fn probes_hooks_and_output_are_those_of_the_user() -> Outcome {
    let _daemon = Daemon::start()?;
    let exec = |script: &str| json!({"exec": {"command": ["sh", "-c", script]}});
    let mut probe = exec(
        "[ $(id -u) = 65534 ] && [ $(id -g) = 65534 ] && [ -e $ALLOTD_VOLUME_DATA/made ] && grep -q 'NoNewPrivs:.1' /proc/self/status",
    );
    probe["periodSeconds"] = json!(1);
    let web = pod(
        "web",
        &json!({
            "volumes": [{"name": "data", "emptyDir": {}}, {"name": "fast", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}],
            "containers": [{"name": "c", "image": "i",
                "command": ["sh", "-c", "echo to stdout >/dev/stdout; echo to stderr >/dev/stderr; pwd; \
                    : > $ALLOTD_VOLUME_FAST/made && echo fast; exec sleep inf"],
                "volumeMounts": [{"name": "data", "mountPath": "/root"}],
                "readinessProbe": probe,
                "lifecycle": {"postStart": exec("echo hook >$ALLOTD_VOLUME_DATA/made")}}],
        }),
    );
    create(&web)?;
    wait("it to be ready", || {
        Ok(super::daemon::container("web", "c")?["ready"] == true)
    })?;
    let told = log("web")?;
    for line in ["to stdout", "to stderr", "fast", "/tmp/state/"] {
        assert!(told.contains(line), "{line}: {told}");
    }
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
        (json!({"runAsNonRoot": true, "runAsUser": 0}), "runAsUser"),
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
