//! Pods of files: they come with their file, stay as it does, change and go with it, whatever becomes of
//! the agent meanwhile.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::bench::{Bench, one, runs};
use crate::agent::request::PodKey;
use crate::agent::run::Agent;
use crate::config::Config;

fn with_files(config: &mut Config) {
    config.static_pod_path = config.state_dir.with_file_name("manifests");
}

pub(super) fn bench() -> Bench {
    let mut bench = Bench::with(with_files);
    let dir = bench.agent().config.static_pod_path.clone();
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
    // Only now is there something to watch.
    bench.crash();
    bench
}

pub(super) fn write(bench: &mut Bench, file: &str, text: &str) {
    let path = bench.agent().config.static_pod_path.join(file);
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
}

/// A file with a pod `web` of one container `c`; `mark` makes it another one.
pub(super) fn manifest(mark: &str, spec: &Value) -> String {
    let metadata = json!({"name": "web", "labels": {"mark": mark}});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}).to_string()
}

pub(super) fn key() -> PodKey {
    PodKey::new("default", "web-node")
}

fn label(agent: &Agent) -> Option<String> {
    let metadata = &agent.pods.get(&key())?.record.object.metadata;
    metadata.labels.clone()?.get("mark").cloned()
}

fn problems(agent: &Agent) -> Vec<String> {
    agent.statics.problems().collect()
}

/// Waits until the pod with this mark runs, which takes the process that is next.
pub(super) fn until_runs(bench: &mut Bench, mark: &str, pid: i32) {
    bench.until("the static pod to run", |agent| {
        runs(agent, &key(), "c") && label(agent).as_deref() == Some(mark)
    });
    bench.put_in(&key(), "c", pid);
}

fn start(bench: &mut Bench) -> i32 {
    let pid = bench.next_process();
    write(bench, "web.json", &manifest("first", &one("Always")));
    until_runs(bench, "first", pid);
    pid
}

#[test]
fn it_comes_changes_and_goes_with_its_file() {
    let mut bench = bench();
    let first = start(&mut bench);
    let uid = bench.entry(&key()).uid().clone();
    let pod = bench.entry(&key()).admitted.pod().clone();
    assert!(pod.is_static && pod.is_critical());
    assert_eq!(pod.annotations["kubernetes.io/config.hash"], uid.as_str());

    // Another name of the same file changes nothing.
    let dir = bench.agent().config.static_pod_path.clone();
    fs::rename(dir.join("web.json"), dir.join("other.json")).unwrap();
    bench.until("the new name", |agent| {
        let entry = agent.pods.get(&key()).unwrap();
        entry.record.manifest.as_deref() == Some("other.json")
    });
    assert_eq!(bench.processes(&key(), "c"), [first]);

    let second = bench.next_process();
    write(
        &mut bench,
        "other.json",
        &manifest("second", &one("Always")),
    );
    until_runs(&mut bench, "second", second);
    assert_ne!(*bench.entry(&key()).uid(), uid);
    assert_eq!(bench.processes(&key(), "c"), [second]);
    assert_eq!(bench.events("Killing").len(), 1);

    fs::remove_file(dir.join("other.json")).unwrap();
    bench.until("the pod to be gone", |agent| {
        !agent.pods.contains_key(&key())
    });
    assert!(problems(bench.agent()).is_empty());
}

#[test]
fn nothing_but_its_file_ends_it() {
    let mut bench = bench();
    let pid = start(&mut bench);
    let refused = bench.agent().delete_pod(&key(), Some(0), None, false);
    let refused = refused.unwrap_err();
    assert_eq!(refused.code, 403);
    assert!(
        refused.message.contains("manifests/web.json"),
        "{refused:?}"
    );
    let refused = bench.agent().evict_by_hand(&key(), None).unwrap_err();
    assert_eq!(refused.code, 403);
    // Nor can a pod be made static, or no longer so, by what its annotations are changed to.
    let mut object = bench.entry(&key()).record.object.clone();
    object.metadata.annotations = None;
    let put = crate::agent::Put {
        new: false,
        dry_run: false,
    };
    let refused = bench.agent().put_pod(Box::new(object), put).unwrap_err();
    assert!(refused.message.contains("config.source"), "{refused:?}");
    assert_eq!(bench.processes(&key(), "c"), [pid]);
}

#[test]
fn another_agent_finds_the_same_pod_with_the_same_process() {
    let mut bench = bench();
    let pid = start(&mut bench);
    bench.pass(Duration::from_millis(50));
    for _ in 0..3 {
        bench.crash();
        bench.until("the files to be seen", |agent| {
            agent.statics.files.is_some()
        });
        bench.pass(Duration::from_millis(50));
        assert_eq!(bench.processes(&key(), "c"), [pid]);
        assert_eq!(bench.entry(&key()).attempt("c"), 0);
    }
    assert!(bench.events("Killing").is_empty());
}

#[test]
fn a_file_that_changed_or_went_while_no_agent_ran_is_heeded() {
    let mut bench = bench();
    start(&mut bench);
    bench.pass(Duration::from_millis(50));
    // The agent that wrote this has no time to see it.
    write(&mut bench, "web.json", &manifest("second", &one("Always")));
    bench.crash();
    let second = bench.next_process();
    until_runs(&mut bench, "second", second);
    bench.pass(Duration::from_millis(50));
    let file = bench.agent().config.static_pod_path.join("web.json");
    fs::remove_file(file).unwrap();
    bench.crash();
    bench.until("the pod to be gone", |agent| {
        !agent.pods.contains_key(&key())
    });
}

#[test]
fn agents_that_die_at_any_instant_replace_it_all_the_same() {
    let mut bench = bench();
    start(&mut bench);
    bench.pass(Duration::from_millis(50));
    write(&mut bench, "web.json", &manifest("second", &one("Always")));
    let second = bench.next_process();
    // The file has to rest before it is read; from then on each of the steps is interrupted.
    for millis in [700, 1, 5, 10, 20, 40, 80, 160, 600] {
        bench.pass(Duration::from_millis(millis));
        bench.crash();
    }
    bench.until("the second to run", |agent| {
        runs(agent, &key(), "c") && label(agent).as_deref() == Some("second")
    });
    bench.put_in(&key(), "c", second);
    assert_eq!(bench.processes(&key(), "c"), [second]);
}

#[test]
fn it_returns_after_a_reboot() {
    let mut bench = bench();
    start(&mut bench);
    let uid = bench.entry(&key()).uid().clone();
    bench.pass(Duration::from_millis(50));
    bench.reboot();
    let again = bench.next_process();
    until_runs(&mut bench, "first", again);
    assert_eq!(*bench.entry(&key()).uid(), uid);
    assert_eq!(bench.entry(&key()).attempt("c"), 1);
}

#[test]
fn a_broken_file_ends_nothing_and_is_told_once() {
    let mut bench = bench();
    let pid = start(&mut bench);
    let whole = manifest("second", &one("Always"));
    let (half, _) = whole.split_at(whole.len() / 2);
    write(&mut bench, "web.json", half);
    bench.until("it to be told", |agent| !problems(agent).is_empty());
    // The sight of another file does not tell of it again.
    write(&mut bench, "more.json", "{}");
    bench.until("both to be told", |agent| problems(agent).len() == 2);
    let told = bench.events("InvalidManifest");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("web.json: document 1, line 1"), "{told:?}");
    assert_eq!(bench.processes(&key(), "c"), [pid]);
    let second = bench.next_process();
    write(&mut bench, "web.json", &whole);
    until_runs(&mut bench, "second", second);
}

#[test]
fn one_that_does_not_fit_comes_once_there_is_room() {
    let mut bench = bench();
    let mut large = one("Always");
    large["containers"][0]["resources"] = json!({"requests": {"cpu": "3"}});
    let (other, _) = bench.run("other", &large);
    write(&mut bench, "web.json", &manifest("first", &large));
    bench.until("it to be refused", |agent| !problems(agent).is_empty());
    // Other pods come and change the room, which tells of it no second time.
    bench.run("small", &one("Always"));
    bench.pass(Duration::from_millis(50));
    let told = bench.events("OutOfcpu");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(bench.agent().tallies.causes["OutOfcpu"], 1);
    let pid = bench.next_process();
    bench
        .agent()
        .delete_pod(&other, Some(0), None, false)
        .unwrap();
    until_runs(&mut bench, "first", pid);
    assert!(problems(bench.agent()).is_empty());
}

#[test]
fn without_a_directory_in_the_settings_there_are_none() {
    let mut bench = bench();
    start(&mut bench);
    bench.pass(Duration::from_millis(50));
    bench.settings(|config| config.static_pod_path = "".into());
    bench.crash();
    bench.until("the pod to be gone", |agent| {
        !agent.pods.contains_key(&key())
    });
}

#[test]
fn it_comes_back_when_its_namespace_has_ended() {
    let mut bench = bench();
    let key = PodKey::new("team", "web-node");
    let first = bench.next_process();
    let text = manifest("first", &one("Always"));
    let text = text.replace("\"metadata\":{", "\"metadata\":{\"namespace\":\"team\",");
    write(&mut bench, "web.json", &text);
    bench.until("it to run", |agent| runs(agent, &key, "c"));
    bench.put_in(&key, "c", first);
    let second = bench.next_process();
    bench.agent().delete_namespace("team", false).unwrap();
    bench.until("another to run", |agent| {
        let entry = agent.pods.get(&key);
        entry.is_some_and(|entry| entry.record.deletion.is_none()) && runs(agent, &key, "c")
    });
    bench.put_in(&key, "c", second);
    assert_eq!(bench.processes(&key, "c"), [second]);
}

#[test]
fn a_file_that_asks_for_root_waits_until_that_is_allowed_and_stays_root_after() {
    let mut bench = bench();
    let pid = bench.next_process();
    let mut spec = one("Always");
    spec["securityContext"] = json!({"runAsUser": 0});
    write(&mut bench, "web.json", &manifest("first", &spec));
    let refused = |agent: &mut Agent| {
        let told = problems(agent);
        told.iter()
            .any(|it| it.contains("spec.securityContext.runAsUser: must not run as root"))
    };
    bench.until("the refusal", refused);
    assert!(!bench.agent().pods.contains_key(&key()));
    let allow = |bench: &mut Bench, root: bool| {
        let mut config = bench.agent().config.clone();
        config.allow_root_containers = root;
        bench.agent().reload(Ok(Box::new(config))).unwrap();
    };
    allow(&mut bench, true);
    until_runs(&mut bench, "first", pid);
    assert!(problems(bench.agent()).is_empty());

    allow(&mut bench, false);
    bench.crash();
    bench.until("the files to be seen", |agent| {
        agent.statics.files.is_some()
    });
    bench.pass(Duration::from_millis(50));
    assert_eq!(bench.processes(&key(), "c"), [pid]);
    assert!(problems(bench.agent()).is_empty());
    // A changed file is a new pod.
    write(&mut bench, "web.json", &manifest("second", &spec));
    bench.until("the refusal", refused);
}

/// A static pod is looked after like any other: its probe decides on READY, and ends it.
#[test]
fn its_probes_are_run() {
    let mut bench = bench();
    let dir = tempfile::tempdir().unwrap();
    let (ready, alive) = (dir.path().join("ready"), dir.path().join("alive"));
    fs::write(&alive, "").unwrap();
    let look = |file: &Path| json!({"exec": {"command": ["cat", file]}, "periodSeconds": 1, "failureThreshold": 1});
    let mut spec = one("Always");
    spec["terminationGracePeriodSeconds"] = json!(5);
    spec["containers"][0]["readinessProbe"] = look(&ready);
    spec["containers"][0]["livenessProbe"] = look(&alive);
    let pid = bench.next_process();
    write(&mut bench, "web.json", &manifest("first", &spec));
    until_runs(&mut bench, "first", pid);
    let is_ready = |agent: &Agent| {
        agent.pod_object(&key()).unwrap()["status"]["containerStatuses"][0]["ready"] == true
    };
    bench.pass(Duration::from_millis(1500));
    assert!(!is_ready(bench.agent()));
    assert!(bench.events("Unhealthy")[0].starts_with("Readiness probe failed: cat: "));
    fs::write(&ready, "").unwrap();
    bench.until("it to be ready", |agent| is_ready(agent));
    assert_eq!(bench.events("Killing"), [""; 0]);
    bench.next_process();
    fs::remove_file(&alive).unwrap();
    bench.until("another run", |agent| {
        agent.pods.get(&key()).unwrap().attempt("c") == 1 && runs(agent, &key(), "c")
    });
    assert!(!is_ready(bench.agent()), "it has not been looked at yet");
    let killing = bench.events("Killing");
    assert_eq!(
        killing,
        ["Container c failed liveness probe, will be restarted"]
    );
}
