//! `preStop` runs wherever a container is ended, and before SIGTERM: what the ways to an end share.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::bench::{Bench, one, runs};
use super::resize::{amounts, resize};
use crate::agent::request::PodKey;

/// What a container and its hook write as they end.
pub struct Log(tempfile::TempDir);

impl Log {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> PathBuf {
        self.0.path().join("log")
    }

    pub fn text(&self) -> String {
        fs::read_to_string(self.path()).unwrap_or_default()
    }

    /// A program that goes on until SIGTERM, of which it writes.
    pub fn program(&self) -> String {
        let log = self.path();
        let log = log.display();
        format!("trap 'echo term >> {log}; exit 0' TERM; while :; do sleep 0.05; done")
    }

    /// A `preStop` that writes as well, after a while in which a SIGTERM too early would be seen.
    pub fn hook(&self) -> Value {
        let script = format!("sleep 0.3; echo stop >> {}", self.path().display());
        json!({"preStop": {"exec": {"command": ["sh", "-c", script]}}})
    }
}

/// A pod of one container `c` with this hook.
pub fn with_hook(policy: &str, log: &Log) -> Value {
    let mut spec = one(policy);
    spec["containers"][0]["lifecycle"] = log.hook();
    spec["terminationGracePeriodSeconds"] = json!(10);
    spec
}

/// Creates a pod whose container is this script, and gives it time to set its traps.
pub fn run_script(bench: &mut Bench, name: &str, script: &str, spec: &Value) -> PodKey {
    let pid = bench.next_process_of(script);
    let key = bench.create(name, spec);
    bench.until("it to run", |agent| runs(agent, &key, "c"));
    bench.put_in(&key, "c", pid);
    bench.pass(Duration::from_millis(200));
    key
}

fn until_second_run(bench: &mut Bench, key: &PodKey) {
    bench.until("another run", |agent| {
        agent.pods.get(key).unwrap().attempt("c") == 1 && runs(agent, key, "c")
    });
}

#[test]
fn before_the_end_of_what_does_not_live() {
    let (mut bench, log) = (Bench::new(), Log::new());
    let mut spec = with_hook("Always", &log);
    let look = json!({"exec": {"command": ["cat", Path::new("/nowhere/file")]}, "periodSeconds": 1,
        "initialDelaySeconds": 1, "failureThreshold": 1});
    spec["containers"][0]["livenessProbe"] = look;
    let key = run_script(&mut bench, "web", &log.program(), &spec);
    bench.next_process();
    until_second_run(&mut bench, &key);
    assert_eq!(log.text(), "stop\nterm\n");
    assert_eq!(bench.events("FailedPreStopHook"), [""; 0]);
}

#[test]
fn before_the_end_that_a_resize_takes() {
    let (mut bench, log) = (Bench::new(), Log::new());
    let mut spec = with_hook("Always", &log);
    spec["containers"][0]["resizePolicy"] =
        json!([{"resourceName": "memory", "restartPolicy": "RestartContainer"}]);
    let key = run_script(&mut bench, "web", &log.program(), &spec);
    bench.next_process();
    let memory = amounts("100m", "128Mi");
    resize(&mut bench, &key, |pod| {
        pod["spec"]["containers"][0]["resources"] = memory;
    })
    .unwrap();
    until_second_run(&mut bench, &key);
    assert_eq!(log.text(), "stop\nterm\n");
}
