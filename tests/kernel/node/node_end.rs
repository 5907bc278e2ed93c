//! `allotd --end-pods` on a real kernel: hooks, grace periods and the bound, and pods that come back.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::daemon::{
    Anything, CONFIG, Daemon, cgroup_of, container, create, delete, events, file, pod, read_pod,
    running_pid, wait,
};
use crate::Outcome;

tests![
    pods_end_as_they_say_within_the_bound_and_come_back,
    a_second_run_goes_on_where_one_was_killed,
];

const ORDER: &str = "/tmp/order";
const NOTIFY: &str = "/run/notify-end";

fn end_pods(seconds: u32) -> Command {
    let mut command = Command::new("/bin/allotd");
    command.args(["--config", CONFIG, "--end-pods", &seconds.to_string()]);
    command.env("NOTIFY_SOCKET", NOTIFY).stdin(Stdio::null());
    command
}

/// A container `c` that writes of its end, after its hook has.
fn polite(hook: &str) -> Value {
    let script = format!("trap 'echo term >> {ORDER}; exit 3' TERM; while :; do sleep 0.1; done");
    let hook = format!("{hook}; echo stop >> {ORDER}");
    json!({"containers": [{"name": "c", "image": "i", "command": ["sh", "-c", script],
        "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", hook]}}}}]})
}

fn stubborn(grace: u32) -> Value {
    let script = "trap '' TERM; while :; do sleep 0.1; done";
    json!({"terminationGracePeriodSeconds": grace,
        "containers": [{"name": "c", "image": "i", "command": ["sh", "-c", script]}]})
}

/// Ends all pods; what was told.
fn ended(seconds: u32) -> Anything<String> {
    let Output {
        status,
        stdout,
        stderr,
    } = end_pods(seconds).output()?;
    let (told, wrong) = (String::from_utf8(stdout)?, String::from_utf8(stderr)?);
    if status.success() {
        return Ok(told);
    }
    Err(format!("{status}: {told} {wrong}").into())
}

fn is_alive(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn last(name: &str) -> Anything<Value> {
    Ok(container(name, "c")?["lastState"]["terminated"].clone())
}

fn pods_end_as_they_say_within_the_bound_and_come_back() -> Outcome {
    let _ = fs::remove_file(NOTIFY);
    let notified = UnixDatagram::bind(NOTIFY)?;
    notified.set_nonblocking(true)?;
    let _ = fs::remove_file(ORDER);
    let daemon = Daemon::start()?;
    create(&pod("web", &polite("sleep 1")))?;
    create(&pod("deaf", &stubborn(3600)))?;
    create(&pod("hasty", &stubborn(1)))?;
    let mut pids = Vec::new();
    for name in ["web", "deaf", "hasty"] {
        pids.push(running_pid(name, "c")?);
    }
    std::thread::sleep(Duration::from_secs(1));

    let refused = end_pods(5).output()?;
    assert_eq!(refused.status.code(), Some(1), "an agent runs");
    let why = String::from_utf8(refused.stderr)?;
    assert!(why.contains("cannot use /tmp/state/store.redb"), "{why}");
    for pid in &pids {
        assert!(is_alive(*pid));
    }

    daemon.stop()?;
    let start = Instant::now();
    let told = ended(5)?;
    let took = start.elapsed().as_secs_f64();
    assert!((5.0..12.0).contains(&took), "{took} {told}");
    let lines: Vec<_> = told.lines().collect();
    assert_eq!(lines.len(), 2, "{told}");
    assert_eq!(lines[0], "ending 3 containers of 3 pods within 5 s");
    assert!(
        lines[1].starts_with("3 containers have ended in "),
        "{told}"
    );
    assert!(lines[1].ends_with("; 2 had to be killed"), "{told}");
    assert_eq!(fs::read_to_string(ORDER)?, "stop\nterm\n");
    for pid in &pids {
        assert!(!is_alive(*pid), "{pid} {told}");
    }
    let none = notified.recv(&mut [0; 64]).map_err(|error| error.kind());
    assert_eq!(none, Err(ErrorKind::WouldBlock), "it is not the agent");
    assert_eq!(ended(5)?.lines().count(), 2, "there is nothing left to do");

    let daemon = Daemon::spawn(&[])?;
    Daemon::wait_until_it_answers()?;
    for name in ["web", "deaf", "hasty"] {
        let pid = running_pid(name, "c")?;
        assert!(!pids.contains(&pid));
        assert_eq!(container(name, "c")?["restartCount"], 1);
    }
    assert_eq!(last("web")?["exitCode"], 3);
    let (deaf, hasty) = (last("deaf")?, last("hasty")?);
    for killed in [&deaf, &hasty] {
        assert_eq!(killed["signal"], 9, "{killed}");
    }
    let at = |end: &Value| end["finishedAt"].as_str().unwrap_or_default().to_owned();
    assert!(
        at(&hasty) < at(&deaf),
        "its own grace is shorter: {hasty} {deaf}"
    );
    let told = events("Killing")?;
    assert!(told.iter().any(|(text, _)| text == "Stopping container c"));
    for name in ["web", "deaf", "hasty"] {
        delete(name, 1)?;
    }
    drop(daemon);
    Ok(())
}

fn a_second_run_goes_on_where_one_was_killed() -> Outcome {
    let _ = fs::remove_file(ORDER);
    let _ = fs::remove_file("/tmp/begun");
    let daemon = Daemon::start()?;
    create(&pod("web", &polite("touch /tmp/begun; sleep 2")))?;
    let pid = running_pid("web", "c")?;
    std::thread::sleep(Duration::from_secs(1));
    let own = cgroup_of(&read_pod("web")?).join("c");
    daemon.stop()?;
    let mut first: Child = end_pods(20).stdout(Stdio::null()).spawn()?;
    wait("the hook", || Ok(Path::new("/tmp/begun").exists()))?;
    first.kill()?;
    first.wait()?;
    assert!(is_alive(pid));
    let told = ended(20)?;
    assert!(told.ends_with("; 0 had to be killed\n"), "{told}");
    // The hook of the first run may have come to its end too.
    let order = fs::read_to_string(ORDER)?;
    assert!(order.ends_with("stop\nterm\n"), "{order}");
    assert_eq!(order.matches("term").count(), 1, "{order}");
    assert!(!is_alive(pid));
    assert_eq!(file(&own, "cgroup.procs")?, "");
    let _daemon = Daemon::spawn(&[])?;
    Daemon::wait_until_it_answers()?;
    running_pid("web", "c")?;
    assert_eq!(last("web")?["exitCode"], 3);
    delete("web", 1)
}
