//! `allot` against a running allotd: what a person at a terminal does, from a file to the kernel's files
//! and back to nothing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use nix::mount::{MsFlags, mount, umount};
use serde_json::{Value, json};

use super::daemon::{Anything, Daemon, TOP, cgroup_of, file, pod, read_pod, running_pid};
use crate::Outcome;

tests![
    a_pod_is_applied_seen_and_deleted,
    a_running_pod_is_explained_by_what_the_kernel_holds,
    refusals_are_told_cause_by_cause,
    a_missing_controller_is_told_wherever_one_looks,
    a_running_process_is_attached,
    a_log_is_followed_while_it_grows,
];

/// What a command said, and its exit code.
#[derive(Debug)]
pub struct Said {
    pub out: String,
    pub err: String,
    pub code: i32,
}

fn command(words: &str) -> Command {
    let mut command = Command::new("/bin/allot");
    command
        .args(words.split_whitespace())
        .env("ALLOT_SOCKET", "/run/allotd.sock")
        .current_dir("/tmp");
    command
}

pub fn allot(words: &str) -> Anything<Said> {
    let output = command(words).output()?;
    Ok(Said {
        out: String::from_utf8(output.stdout)?,
        err: String::from_utf8(output.stderr)?,
        code: output.status.code().unwrap_or(-1),
    })
}

/// The output of a command that must end well.
pub fn done(words: &str) -> Anything<String> {
    match allot(words)? {
        said if said.code == 0 => Ok(said.out),
        said => Err(format!("allot {words}: {said:?}").into()),
    }
}

fn write(name: &str, pod: &Value) -> Anything<()> {
    Ok(fs::write(format!("/tmp/{name}"), pod.to_string())?)
}

fn web() -> Value {
    pod(
        "web",
        &json!({
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "app",
                "command": ["/bin/sh", "-c", "echo hello; while true; do sleep 0.2; echo tick; done"],
                "resources": {"limits": {"cpu": "500m", "memory": "64Mi"}},
            }],
        }),
    )
}

fn a_pod_is_applied_seen_and_deleted() -> Outcome {
    let _daemon = Daemon::start()?;
    write("web.json", &web())?;
    assert_eq!(
        done("apply --dry-run -f web.json")?,
        "pod/web created (dry run)\n"
    );
    assert_eq!(done("apply -f web.json")?, "pod/web created\n");
    assert_eq!(done("apply -f web.json")?, "pod/web unchanged\n");
    let again = allot("create -f web.json")?;
    assert_eq!(again.code, 1, "{again:?}");
    assert!(
        again.err.starts_with("error (AlreadyExists): "),
        "{again:?}"
    );
    let mut other = web();
    other["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!(1);
    write("other.json", &other)?;
    let changed = allot("apply -f other.json")?;
    assert_eq!(changed.code, 1, "{changed:?}");
    assert!(changed.err.contains("cannot be changed"), "{changed:?}");

    running_pid("web", "app")?;
    let cgroup = cgroup_of(&read_pod("web")?);
    assert!(cgroup.is_dir());
    let row = done("get pods --no-headers")?;
    let cells: Vec<_> = row.split_whitespace().take(4).collect();
    assert_eq!(cells, ["web", "1/1", "Running", "0"], "{row}");
    // What is printed can be sent again.
    fs::write("/tmp/printed.yaml", done("get pod web -o yaml")?)?;
    assert_eq!(done("apply -f printed.yaml")?, "pod/web unchanged\n");
    let page = done("describe pod web")?;
    for part in [
        "QoS Class:",
        "Guaranteed",
        "Restart Count:  0",
        "Started container app",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(done("describe node vm")?.contains("500m (55%)"));
    assert!(done("status")?.contains("1 containers running"));
    assert!(done("diff")?.starts_with("0 of "));

    assert_eq!(done("delete -f web.json")?, "pod/web deleted\n");
    assert!(!cgroup.exists(), "delete waits for the end");
    assert_eq!(allot("get pod web")?.code, 1);
    assert_eq!(allot("delete pod web")?.code, 1);
    assert_eq!(done("delete pod web --ignore-not-found")?, "");
    Ok(())
}

fn a_running_pod_is_explained_by_what_the_kernel_holds() -> Outcome {
    let _daemon = Daemon::start_with("syncFrequency: 1h")?;
    write("web.json", &web())?;
    done("create -f web.json")?;
    running_pid("web", "app")?;
    let cgroup = cgroup_of(&read_pod("web")?);
    let answer: Value = serde_json::from_str(&done("explain pod web -o json")?)?;
    let explained = answer["pods"][0]["cgroups"]
        .as_array()
        .ok_or("no cgroups")?;
    let levels: Vec<_> = explained.iter().map(|c| &c["level"]).collect();
    assert_eq!(levels, ["node", "pod", "container"]);
    for (dir, explained) in [
        (&cgroup, &explained[1]),
        (&cgroup.join("app"), &explained[2]),
    ] {
        let kernel = explained["kernel"].as_object().ok_or("no kernel")?;
        assert!(kernel.len() >= 9, "{kernel:?}");
        for (name, value) in kernel {
            assert_eq!(&json!(file(dir, name)?), value, "{name}");
        }
        assert_eq!(explained["kernel"], explained["files"]);
    }
    // The tasks of the container are bounded at the top alone.
    let bound = file(std::path::Path::new(TOP), "pids.max")?;
    let tightest = explained[2]["tightest"].as_array().ok_or("no bounds")?;
    assert!(
        tightest.contains(&json!({"file": "pids.max", "value": bound, "path": "/"})),
        "{tightest:?}"
    );
    done("delete pod web --grace-period 0")?;
    Ok(())
}

fn refusals_are_told_cause_by_cause() -> Outcome {
    let _daemon = Daemon::start()?;
    let mut greedy = web();
    greedy["spec"]["containers"][0]["resources"] =
        json!({"requests": {"cpu": 5, "memory": "1Ti"}, "limits": {"cpu": 1}});
    write("greedy.json", &greedy)?;
    for words in ["create", "apply", "create --dry-run"] {
        let said = allot(&format!("{words} -f greedy.json"))?;
        assert_eq!(said.code, 3, "{said:?}");
        let lines: Vec<_> = said.err.lines().collect();
        assert_eq!(lines.len(), 4, "{said:?}");
        assert!(lines[0].starts_with("error ("), "{said:?}");
        for (line, part) in lines[1..]
            .iter()
            .zip(["limit of 1", "OutOfcpu", "OutOfmemory"])
        {
            assert!(line.contains(part), "{part}: {said:?}");
        }
    }
    Ok(())
}

fn a_missing_controller_is_told_wherever_one_looks() -> Outcome {
    // A controller belongs to one hierarchy at a time; this one is taken by an old one.
    fs::create_dir("/tmp/v1")?;
    let (flags, options) = (MsFlags::empty(), Some("hugetlb"));
    mount(Some("cgroup"), "/tmp/v1", Some("cgroup"), flags, options)?;
    let daemon = Daemon::start()?;
    write("web.json", &web())?;
    done("apply -f web.json")?;
    // What can be enforced is, and the pod runs.
    running_pid("web", "app")?;
    let pod = read_pod("web")?;
    assert_eq!(
        file(&cgroup_of(&pod).join("app"), "memory.max")?,
        "67108864"
    );
    let conditions = pod["status"]["conditions"]
        .as_array()
        .ok_or("no conditions")?;
    let enforced = conditions
        .iter()
        .find(|condition| condition["status"] == "False");
    let enforced = enforced.ok_or("every condition is true")?;
    assert_eq!(enforced["type"], "allotd.dev/Enforced");
    let message = enforced["message"].as_str().unwrap_or_default();
    assert!(message.contains("hugetlb.2MB.max"), "{message}");
    let status = allot("status")?;
    assert_eq!(status.code, 1, "{status:?}");
    let told = "the kernel has no controller hugetlb on cgroup2";
    assert!(status.out.contains(told), "{status:?}");
    let diff = allot("diff")?;
    assert_eq!(diff.code, 1, "{diff:?}");
    assert!(diff.out.contains("hugetlb.2MB.max"), "{diff:?}");
    done("delete pod web --grace-period 1")?;
    daemon.stop()?;
    umount("/tmp/v1")?;
    Ok(())
}

fn a_running_process_is_attached() -> Outcome {
    let _daemon = Daemon::start()?;
    let spec = json!({"containers": [{"name": "waits", "image": "none"}]});
    write("waits.json", &pod("waits", &spec))?;
    done("create -f waits.json")?;
    let mut process = Command::new("/bin/sleep").arg("1000").spawn()?;
    let pid = process.id();
    let said = done(&format!("attach waits waits --pid {pid}"))?;
    assert_eq!(said, format!("attached to default/waits waits: {pid}\n"));
    let place = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    assert!(place.trim_end().ends_with("/waits"), "{place}");
    process.kill()?;
    process.wait()?;
    done("delete pod waits --grace-period 0")?;
    Ok(())
}

fn a_log_is_followed_while_it_grows() -> Outcome {
    let _daemon = Daemon::start()?;
    write("web.json", &web())?;
    done("create -f web.json")?;
    running_pid("web", "app")?;
    let mut follower = command("logs web -f").stdout(Stdio::piped()).spawn()?;
    let out = follower.stdout.take().ok_or("no output")?;
    let lines: Vec<_> = BufReader::new(out)
        .lines()
        .take(4)
        .collect::<Result<_, _>>()?;
    assert_eq!(lines, ["hello", "tick", "tick", "tick"]);
    follower.kill()?;
    follower.wait()?;
    let stamped = done("logs default/web --tail 1 --timestamps")?;
    let first = stamped.split(' ').next().unwrap_or("");
    assert!(first.parse::<jiff::Timestamp>().is_ok(), "{stamped}");
    done("delete pod web --grace-period 0")?;
    Ok(())
}
