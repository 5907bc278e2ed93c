//! Probes and hooks: what becomes of a container, and when. Programs, requests and processes are real.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use super::bench::{Bench, one, runs};
use crate::agent::request::PodKey;
use crate::agent::run::Agent;

/// A pod of one container `c` with these fields.
fn with(policy: &str, fields: &Value) -> Value {
    let mut spec = one(policy);
    for (name, value) in fields.as_object().unwrap() {
        spec["containers"][0][name] = value.clone();
    }
    spec["terminationGracePeriodSeconds"] = json!(5);
    spec
}

/// A look each second that succeeds while the file is there.
fn look(file: &Path) -> Value {
    json!({"exec": {"command": ["cat", file]}, "periodSeconds": 1, "failureThreshold": 1})
}

/// Whether the first container is ready and started, and whether the pod is ready, as readers see it.
fn seen(agent: &Agent, key: &PodKey) -> (bool, bool, bool) {
    let pod = agent.pod_object(key).unwrap();
    let status = &pod["status"];
    let first = &status["containerStatuses"][0];
    let conditions = status["conditions"].as_array().unwrap();
    let is = |kind: &str| {
        let mut found = conditions.iter().filter(|one| one["type"] == kind);
        found.next().unwrap()["status"] == "True"
    };
    assert_eq!(is("Ready"), is("ContainersReady"));
    let is_so = |field: &str| first[field].as_bool().unwrap();
    (is_so("ready"), is_so("started"), is("Ready"))
}

fn has_failed(agent: &Agent) -> bool {
    let events = agent.events.list(None);
    let mut reasons = events.iter().map(|event| event.reason.as_deref());
    reasons.any(|reason| reason == Some("Unhealthy"))
}

fn is_over(agent: &Agent, key: &PodKey) -> bool {
    agent.pods.get(key).unwrap().phase().is_terminal()
}

/// Creates a pod whose container is this script.
fn run_script(bench: &mut Bench, script: &str, spec: &Value) -> PodKey {
    let pid = bench.next_process_of(script);
    let key = bench.create("web", spec);
    bench.until("it to run", |agent| runs(agent, &key, "c"));
    bench.put_in(&key, "c", pid);
    key
}

#[test]
fn a_container_is_ready_while_its_probe_says_so() {
    let mut bench = Bench::new();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ready");
    let spec = with("Always", &json!({"readinessProbe": look(&file)}));
    let (key, pid) = bench.run("web", &spec);
    assert_eq!(seen(bench.agent(), &key), (false, true, false));
    bench.until("a failed look", |agent| has_failed(agent));
    let told = bench.events("Unhealthy");
    assert!(
        told[0].starts_with("Readiness probe failed: cat: "),
        "{told:?}"
    );
    assert!(told[0].ends_with("No such file or directory"), "{told:?}");
    fs::write(&file, "").unwrap();
    bench.until("it to be ready", |agent| {
        seen(agent, &key) == (true, true, true)
    });
    // Another agent takes that for true until it has looked itself.
    bench.pass(Duration::from_millis(50));
    bench.crash();
    assert_eq!(seen(bench.agent(), &key), (true, true, true));
    fs::remove_file(&file).unwrap();
    bench.until("it not to be", |agent| {
        seen(agent, &key) == (false, true, false)
    });
    assert_eq!(bench.entry(&key).attempt("c"), 0, "that ends nothing");
    assert!(bench.processes(&key, "c").contains(&pid));
}

#[test]
fn a_container_that_does_not_live_ends_and_begins_anew() {
    for policy in ["Always", "OnFailure", "Never"] {
        let mut bench = Bench::new();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("alive");
        fs::write(&file, "").unwrap();
        let spec = with(policy, &json!({"livenessProbe": look(&file)}));
        // It ends well, and yet it did not live.
        let script = "trap 'exit 0' TERM; while :; do sleep 0.05; done";
        let key = run_script(&mut bench, script, &spec);
        bench.pass(Duration::from_millis(1500));
        assert_eq!(bench.events("Unhealthy"), [""; 0]);
        fs::remove_file(&file).unwrap();
        let next = bench.next_process();
        if policy == "Never" {
            bench.until("its end", |agent| is_over(agent, &key));
            assert_eq!(bench.entry(&key).attempt("c"), 0);
            let killing = bench.events("Killing");
            assert_eq!(killing, ["Container c failed liveness probe"]);
            continue;
        }
        bench.until("another run", |agent| {
            agent.pods.get(&key).unwrap().attempt("c") == 1 && runs(agent, &key, "c")
        });
        fs::write(&file, "").unwrap();
        bench.put_in(&key, "c", next);
        assert_eq!(
            bench.events("Killing"),
            ["Container c failed liveness probe, will be restarted"],
            "{policy}"
        );
        assert!(bench.events("Unhealthy")[0].starts_with("Liveness probe failed: "));
        let record = bench.entry(&key).record.containers["c"].clone();
        assert!(record.last.is_some() && !record.restart && record.unhealthy.is_none());
        assert_eq!(record.quick_ends, 1, "it counts for the pause");
    }
}

#[test]
fn the_probe_has_a_grace_of_its_own() {
    let mut bench = Bench::new();
    let mut probe = look(Path::new("/nowhere/file"));
    probe["terminationGracePeriodSeconds"] = json!(1);
    let mut spec = with("Never", &json!({"livenessProbe": probe}));
    spec["terminationGracePeriodSeconds"] = json!(3600);
    let script = "trap '' TERM; while :; do sleep 0.05; done";
    let key = run_script(&mut bench, script, &spec);
    // An agent that dies meanwhile leaves the end to the next.
    bench.until("the verdict", |agent| {
        agent.pods.get(&key).unwrap().unhealthy("c").is_some()
    });
    bench.crash();
    bench.until("its end", |agent| is_over(agent, &key));
}

#[test]
fn the_startup_probe_holds_back_the_others() {
    let mut bench = Bench::new();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("started");
    let mut startup = look(&file);
    startup["failureThreshold"] = json!(100);
    let never = look(Path::new("/nowhere/file"));
    let spec = with(
        "Always",
        &json!({"startupProbe": startup, "livenessProbe": never}),
    );
    let (key, _) = bench.run("web", &spec);
    bench.pass(Duration::from_millis(1500));
    assert_eq!(seen(bench.agent(), &key), (false, false, false));
    assert_eq!(bench.events("Killing"), [""; 0]);
    bench.next_process();
    fs::write(&file, "").unwrap();
    bench.until("the liveness probe to end it", |agent| {
        agent.pods.get(&key).unwrap().attempt("c") == 1
    });
    let told = bench.events("Unhealthy");
    let of_startup = |text: &String| text.starts_with("Startup probe failed");
    assert!(told.iter().any(of_startup), "{told:?}");
}

#[test]
fn a_sidecar_lets_the_others_start_once_it_has_started() {
    let mut bench = Bench::new();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("started");
    let mut startup = look(&file);
    startup["failureThreshold"] = json!(100);
    let mut spec = one("Always");
    spec["initContainers"] = json!([{"name": "s", "image": "i", "restartPolicy": "Always",
        "command": ["sleep", "1000"], "startupProbe": startup}]);
    let side = bench.next_process();
    let key = bench.create("web", &spec);
    bench.until("the sidecar to run", |agent| runs(agent, &key, "s"));
    bench.put_in(&key, "s", side);
    bench.next_process();
    bench.pass(Duration::from_millis(500));
    assert!(!runs(bench.agent(), &key, "c"));
    fs::write(&file, "").unwrap();
    bench.until("the other to run", |agent| runs(agent, &key, "c"));
}

#[test]
fn hooks_come_after_the_start_and_before_sigterm() {
    let mut bench = Bench::new();
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let shown = log.display();
    let append = |word: &str| {
        let script = format!("sleep 0.3; echo {word} >> {shown}");
        json!({"exec": {"command": ["sh", "-c", script]}})
    };
    let hooks = json!({"postStart": append("start"), "preStop": append("stop")});
    let spec = with("Always", &json!({"lifecycle": hooks}));
    let script = format!("trap 'echo term >> {shown}; exit 0' TERM; while :; do sleep 0.05; done");
    let key = run_script(&mut bench, &script, &spec);
    assert_eq!(seen(bench.agent(), &key), (false, false, false));
    bench.until("the hook", |agent| seen(agent, &key) == (true, true, true));
    assert_eq!(fs::read_to_string(&log).unwrap(), "start\n");
    let deleted = bench.agent().delete_pod(&key, None, None, false);
    deleted.unwrap();
    bench.until("it to go", |agent| !agent.pods.contains_key(&key));
    assert_eq!(fs::read_to_string(&log).unwrap(), "start\nstop\nterm\n");
}

#[test]
fn hooks_that_fail_are_told() {
    let mut bench = Bench::new();
    let fails = json!({"exec": {"command": ["sh", "-c", "echo no; exit 3"]}});
    let hooks = json!({"postStart": fails, "preStop": fails});
    let spec = with("Never", &json!({"lifecycle": hooks}));
    let (key, _) = bench.run("web", &spec);
    bench.until("its end", |agent| is_over(agent, &key));
    for (reason, message) in [
        ("FailedPostStartHook", "PostStartHook failed: no"),
        ("Killing", "Container c failed its postStart hook"),
        ("FailedPreStopHook", "PreStopHook failed: no"),
    ] {
        assert_eq!(bench.events(reason), [message]);
    }
}

/// A server that gives everybody the same answer, and what it is asked.
fn serve(answer: &'static str) -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (send, asked) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut text = [0; 4096];
            let length = stream.read(&mut text).unwrap();
            let _ = send.send(String::from_utf8_lossy(&text[..length]).into_owned());
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (port, asked)
}

#[test]
fn requests_are_judged_by_their_status() {
    for (answer, expected) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", None),
        (
            "HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n",
            None,
        ),
        (
            "HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\nbusy",
            Some("HTTP probe failed with statuscode: 500: busy"),
        ),
        ("nonsense\r\n\r\n", Some("no answer from 127.0.0.1:")),
        ("", Some("no answer from 127.0.0.1:")),
    ] {
        let mut bench = Bench::new();
        let (port, asked) = serve(answer);
        let http = json!({"port": port, "path": "/healthz?a=b",
            "httpHeaders": [{"name": "X-Who", "value": "me"}]});
        let probe = json!({"httpGet": http, "periodSeconds": 1, "failureThreshold": 1});
        let spec = with("Always", &json!({"readinessProbe": probe}));
        let (key, _) = bench.run("web", &spec);
        if let Some(expected) = expected {
            bench.until("a failed look", |agent| has_failed(agent));
            let told = bench.events("Unhealthy");
            let expected = format!("Readiness probe failed: {expected}");
            assert!(told[0].starts_with(&expected), "{told:?} of {answer:?}");
        } else {
            bench.until("it to be ready", |agent| seen(agent, &key).0);
        }
        let asked = asked.recv().unwrap();
        assert!(
            asked.starts_with("GET /healthz?a=b HTTP/1.1\r\n"),
            "{asked}"
        );
        assert!(asked.to_lowercase().contains("x-who: me\r\n"), "{asked}");
        assert!(asked.contains(&format!("127.0.0.1:{port}\r\n")), "{asked}");
    }
}

#[test]
fn connections_are_tried() {
    let mut bench = Bench::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let probe = json!({"tcpSocket": {"port": port}, "periodSeconds": 1, "failureThreshold": 1});
    let spec = with("Always", &json!({"readinessProbe": probe}));
    let (key, _) = bench.run("web", &spec);
    bench.until("it to be ready", |agent| seen(agent, &key).0);
    drop(listener);
    bench.until("it not to be", |agent| !seen(agent, &key).0);
    let told = bench.events("Unhealthy");
    let expected = "Readiness probe failed: cannot connect to 127.0.0.1:";
    assert!(told[0].starts_with(expected), "{told:?}");
}

#[test]
fn pre_stop_comes_before_an_eviction_too_and_within_its_time() {
    let mut bench = Bench::new();
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let append = format!("echo stop >> {}", log.display());
    let hooks = json!({"preStop": {"exec": {"command": ["sh", "-c", append]}}});
    let mut spec = with("Always", &json!({"lifecycle": hooks}));
    spec["terminationGracePeriodSeconds"] = json!(3600);
    let script = format!(
        "trap 'echo term >> {}' TERM; while :; do sleep 0.05; done",
        log.display()
    );
    let key = run_script(&mut bench, &script, &spec);
    bench.pass(Duration::from_millis(200));
    assert!(bench.agent().evict(&key, "no room", 2));
    bench.until("its end", |agent| is_over(agent, &key));
    assert_eq!(fs::read_to_string(&log).unwrap(), "stop\nterm\n");
    assert_eq!(bench.events("Killing"), ["Stopping container c"]);
}
