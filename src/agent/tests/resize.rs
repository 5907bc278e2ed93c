//! Pods that run and take other amounts: what may change, what waits, what survives a crash.

use std::time::Duration;

use k8s_openapi::api::core::v1;
use serde_json::{Value, json};

use super::bench::{Bench, one, runs};
use crate::agent::request::{PodKey, Refusal};
use crate::cgroup::{InterfaceFile, ModelKernel, Op, Pid, Setting};
use crate::model::kind::{LIMIT_RANGE, POD, RESOURCE_QUOTA};
use crate::units::{Bytes, Limit};

/// Sends the pod as it is kept, after a change.
pub(super) fn resize(
    bench: &mut Bench,
    key: &PodKey,
    change: impl FnOnce(&mut Value),
) -> Result<Value, Refusal> {
    let mut object = bench.seen(POD, &key.namespace, &key.name).unwrap();
    change(&mut object);
    let object: v1::Pod = serde_json::from_value(object).unwrap();
    Ok(bench.agent().resize_pod(&object, false)?.object)
}

pub(super) fn amounts(cpu: &str, memory: &str) -> Value {
    json!({"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": cpu, "memory": memory}})
}

pub(super) fn pod(cpu: &str, memory: &str) -> Value {
    let mut spec = one("Always");
    spec["containers"][0]["resources"] = amounts(cpu, memory);
    spec
}

fn set(cpu: &str, memory: &str) -> impl FnOnce(&mut Value) {
    let amounts = amounts(cpu, memory);
    move |pod| pod["spec"]["containers"][0]["resources"] = amounts
}

fn condition(bench: &mut Bench, key: &PodKey, kind: &str) -> Option<(String, String)> {
    bench.agent().settle_all();
    let pod = bench.seen(POD, &key.namespace, &key.name).unwrap();
    let conditions = pod["status"]["conditions"].as_array().unwrap().clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    conditions
        .iter()
        .find(|condition| condition["type"] == kind)
        .map(|condition| (text(&condition["reason"]), text(&condition["message"])))
}

fn value(bench: &mut Bench, key: &PodKey, container: Option<&str>, file: InterfaceFile) -> String {
    let path = match container {
        Some(container) => bench.path(key, container),
        None => bench.entry(key).path(),
    };
    let node = bench.kernel.with(|kernel| kernel.node(&path));
    node.get(file).unwrap().value()
}

/// What the quota counts now, as all accounts counted anew say too.
#[track_caller]
fn uses(bench: &mut Bench, expected: &Value) {
    assert_eq!(bench.agent().ledger.recount(), []);
    let (quotas, _) = bench.agent().handle.cache().list("resourcequotas", None);
    assert_eq!(quotas[0].object["status"]["used"], *expected);
}

/// What its container has.
#[track_caller]
fn in_force(bench: &mut Bench, key: &PodKey, file: InterfaceFile, expected: &str) {
    assert_eq!(value(bench, key, Some("c"), file), expected);
}

fn until_done(bench: &mut Bench) {
    bench.until("all resizes", |agent| {
        let mut entries = agent.pods.values();
        entries.all(|it| it.record.pending.is_none() && it.record.resizing.is_none())
    });
}

fn quota(bench: &mut Bench, hard: &Value) {
    let quota = json!({
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": hard},
    });
    bench.put(RESOURCE_QUOTA, &quota, true).unwrap();
}

#[test]
fn a_running_pod_takes_other_amounts_at_once() {
    let mut bench = Bench::new();
    quota(
        &mut bench,
        &json!({"requests.cpu": "3", "limits.memory": "1Gi"}),
    );
    let (key, pid) = bench.run("web", &pod("500m", "128Mi"));
    let kept = resize(&mut bench, &key, set("1", "256Mi")).unwrap();
    assert_eq!(kept["metadata"]["generation"], 2);
    assert_eq!(kept["status"]["observedGeneration"], 2);
    let own = &kept["status"]["containerStatuses"][0];
    assert_eq!(
        own["allocatedResources"],
        json!({"cpu": "1", "memory": "256Mi"})
    );
    assert_eq!(own["resources"], amounts("1", "256Mi"));
    assert_eq!(own["restartCount"], 0);
    for container in [Some("c"), None] {
        for (file, expected) in [
            (InterfaceFile::CpuMax, "100000 100000"),
            (InterfaceFile::CpuWeight, "100"),
            (InterfaceFile::MemoryMax, "268435456"),
            (InterfaceFile::MemoryHigh, "max"),
        ] {
            assert_eq!(value(&mut bench, &key, container, file), expected);
        }
    }
    let used = json!({"requests.cpu": "1", "limits.memory": "256Mi"});
    uses(&mut bench, &used);
    assert_eq!(condition(&mut bench, &key, "PodResizeInProgress"), None);
    let said = "container c: requests.cpu 500m → 1, requests.memory 128Mi → 256Mi, \
                limits.cpu 500m → 1, limits.memory 128Mi → 256Mi";
    assert_eq!(bench.events("ResizeStarted"), [said]);
    assert_eq!(bench.events("ResizeCompleted"), [said]);
    // Nobody was restarted, then or by a crash afterwards, and nothing is to do.
    bench.kernel.with(ModelKernel::take_performed);
    bench.crash();
    let written = |op: &Op| matches!(op, Op::Write(..));
    assert!(
        !bench
            .kernel
            .with(ModelKernel::take_performed)
            .iter()
            .any(written)
    );
    uses(&mut bench, &used);
    assert_eq!(bench.processes(&key, "c"), [pid]);
    // The same again changes nothing.
    let revision = bench.entry(&key).revision;
    resize(&mut bench, &key, set("1", "256Mi")).unwrap();
    assert_eq!(bench.entry(&key).revision, revision);
}

/// Report kubernetes#129152: a limit below what is in use waits, says so with the numbers, and kills nobody.
#[test]
fn memory_in_use_is_never_taken() {
    let mut bench = Bench::new();
    quota(&mut bench, &json!({"limits.memory": "1Gi"}));
    let (key, pid) = bench.run("web", &pod("500m", "256Mi"));
    let grow = |bytes: u64| {
        move |kernel: &mut ModelKernel| {
            kernel.grow(Pid(pid), Bytes(bytes));
        }
    };
    bench.kernel.with(grow(200 << 20));
    let kept = resize(&mut bench, &key, set("1", "128Mi")).unwrap();
    // Cpu is in effect, memory waits; both are told as they are.
    in_force(&mut bench, &key, InterfaceFile::CpuMax, "100000 100000");
    let (reason, message) = condition(&mut bench, &key, "PodResizeInProgress").unwrap();
    assert_eq!(reason, "Error");
    assert!(
        message.contains(
            "209715200 bytes are in use, 77594624 in the way: 2097152 must be free below the new bound"
        ),
        "{message}"
    );
    let own = &kept["status"]["containerStatuses"][0];
    assert_eq!(own["allocatedResources"]["memory"], "128Mi");
    assert_eq!(own["resources"]["limits"]["memory"], "268435456");
    uses(&mut bench, &json!({"limits.memory": "256Mi"}));
    bench.crash();
    assert!(bench.kernel.with(|kernel| kernel.is_alive(Pid(pid))));
    assert!(condition(&mut bench, &key, "PodResizeInProgress").is_some());
    uses(&mut bench, &json!({"limits.memory": "256Mi"}));
    // A second resize in between; what the kernel may still hold goes on counting.
    resize(&mut bench, &key, set("1", "64Mi")).unwrap();
    uses(&mut bench, &json!({"limits.memory": "256Mi"}));
    resize(&mut bench, &key, set("1", "128Mi")).unwrap();

    bench
        .kernel
        .with(|kernel| kernel.shrink(Pid(pid), Bytes(100 << 20)));
    until_done(&mut bench);
    for container in [Some("c"), None] {
        let max = value(&mut bench, &key, container, InterfaceFile::MemoryMax);
        assert_eq!(max, "134217728");
        let high = value(&mut bench, &key, container, InterfaceFile::MemoryHigh);
        assert_eq!(high, "max");
    }
    uses(&mut bench, &json!({"limits.memory": "128Mi"}));
    assert_eq!(condition(&mut bench, &key, "PodResizeInProgress"), None);
    assert_eq!(bench.processes(&key, "c"), [pid]);
}

#[test]
fn a_full_node_lets_a_resize_wait() {
    let mut bench = Bench::new();
    quota(&mut bench, &json!({"requests.cpu": "8"}));
    let (web, _) = bench.run("web", &pod("1", "128Mi"));
    let (other, _) = bench.run("other", &pod("2500m", "128Mi"));
    let kept = resize(&mut bench, &web, set("2", "64Mi")).unwrap();
    assert_eq!(
        kept["spec"]["containers"][0]["resources"],
        amounts("2", "64Mi")
    );
    let own = &kept["status"]["containerStatuses"][0];
    // All of it waits, what shrinks as well: as in Kubernetes a resize is one thing.
    assert_eq!(
        own["allocatedResources"],
        json!({"cpu": "1", "memory": "128Mi"})
    );
    let (reason, message) = condition(&mut bench, &web, "PodResizePending").unwrap();
    assert_eq!(reason, "Deferred");
    assert!(
        message.contains("requested: 2000, used: 2500, capacity: 3900"),
        "{message}"
    );
    in_force(&mut bench, &web, InterfaceFile::CpuMax, "100000 100000");
    // The quota keeps room for it, the node does not.
    uses(&mut bench, &json!({"requests.cpu": "4500m"}));
    assert_eq!(bench.agent().ledger.of_node().cpu().unwrap().0, 3500);
    bench.crash();
    uses(&mut bench, &json!({"requests.cpu": "4500m"}));
    assert!(condition(&mut bench, &web, "PodResizePending").is_some());

    // Another wish in its place; then room.
    resize(&mut bench, &web, set("1800m", "64Mi")).unwrap();
    uses(&mut bench, &json!({"requests.cpu": "4300m"}));
    resize(&mut bench, &other, set("2", "128Mi")).unwrap();
    until_done(&mut bench);
    in_force(&mut bench, &web, InterfaceFile::CpuMax, "180000 100000");
    uses(&mut bench, &json!({"requests.cpu": "3800m"}));
    assert_eq!(condition(&mut bench, &web, "PodResizePending"), None);
    assert_eq!(bench.agent().ledger.of_node().cpu().unwrap().0, 3800);

    // One that takes its wish back.
    resize(&mut bench, &web, set("3", "64Mi")).unwrap();
    resize(&mut bench, &web, set("1800m", "64Mi")).unwrap();
    assert_eq!(condition(&mut bench, &web, "PodResizePending"), None);
    uses(&mut bench, &json!({"requests.cpu": "3800m"}));
    // A pod that goes makes room too.
    resize(&mut bench, &web, set("3", "64Mi")).unwrap();
    bench
        .agent()
        .delete_pod(&other, Some(0), None, false)
        .unwrap();
    until_done(&mut bench);
    in_force(&mut bench, &web, InterfaceFile::CpuMax, "300000 100000");
}

#[test]
fn who_waits_for_longest_or_matters_most_comes_first() {
    let mut bench = Bench::new();
    let (blocker, _) = bench.run("blocker", &pod("3", "64Mi"));
    let (plain, _) = bench.run("plain", &pod("100m", "64Mi"));
    let mut important = pod("100m", "64Mi");
    important["priority"] = json!(100);
    let (important, _) = bench.run("important", &important);
    for key in [&plain, &important] {
        resize(&mut bench, key, set("2", "64Mi")).unwrap();
    }
    resize(&mut bench, &blocker, set("1800m", "64Mi")).unwrap();
    bench.pass(Duration::from_millis(50));
    assert_eq!(condition(&mut bench, &important, "PodResizePending"), None);
    assert!(condition(&mut bench, &plain, "PodResizePending").is_some());
}

#[test]
fn what_needs_another_run_gets_one() {
    let mut bench = Bench::new();
    let mut spec = pod("500m", "256Mi");
    spec["restartPolicy"] = json!("OnFailure");
    spec["containers"][0]["resizePolicy"] =
        json!([{"resourceName": "memory", "restartPolicy": "RestartContainer"}]);
    let (key, pid) = bench.run("web", &spec);
    bench
        .kernel
        .with(|kernel| kernel.grow(Pid(pid), Bytes(200 << 20)));
    resize(&mut bench, &key, set("1", "256Mi")).unwrap();
    assert_eq!(bench.entry(&key).attempt("c"), 0);
    let next = bench.next_process();
    resize(&mut bench, &key, set("1", "128Mi")).unwrap();
    assert_eq!(
        condition(&mut bench, &key, "PodResizeInProgress")
            .unwrap()
            .0,
        "Error"
    );
    // Even an agent that dies meanwhile knows that the end is no failure, and that another run is due.
    bench.crash();
    bench.until("another run", |agent| {
        runs(agent, &key, "c") && agent.pods.get(&key).unwrap().attempt("c") == 1
    });
    bench.put_in(&key, "c", next);
    until_done(&mut bench);
    in_force(&mut bench, &key, InterfaceFile::MemoryMax, "134217728");
    assert_eq!(bench.events("BackOff"), Vec::<String>::new());
    let record = bench.entry(&key).record.containers["c"].clone();
    assert!(!record.restart && record.attempt == 1, "{record:?}");
}

/// The throttle of an agent that died in the middle of a resize.
#[test]
fn a_throttle_that_was_left_is_taken_off() {
    let mut bench = Bench::new();
    let (key, _) = bench.run("web", &pod("500m", "256Mi"));
    let path = bench.path(&key, "c");
    let throttle = Setting::MemoryHigh(Limit::At(Bytes(64 << 20)));
    bench
        .kernel
        .with(|kernel| kernel.as_another(&Op::Write(path, throttle)))
        .unwrap();
    bench.crash();
    in_force(&mut bench, &key, InterfaceFile::MemoryHigh, "max");
}

/// A resize is bound by the policies of the namespace, all of them at once.
#[test]
fn policies_hold_for_a_resize_too() {
    let mut bench = Bench::new();
    let (key, _) = bench.run("web", &pod("500m", "128Mi"));
    quota(
        &mut bench,
        &json!({"requests.cpu": "1", "limits.memory": "200Mi"}),
    );
    let range = json!({
        "metadata": {"name": "r", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}}]},
    });
    bench.put(LIMIT_RANGE, &range, true).unwrap();
    let refused = resize(&mut bench, &key, set("3", "1Gi")).unwrap_err();
    assert_eq!(refused.code, 403);
    for text in [
        "exceeded quota: q, requested: limits.memory=896Mi,requests.cpu=2500m",
        "maximum cpu usage per Container is 2, but limit is 3",
    ] {
        assert!(refused.message.contains(text), "{}", refused.message);
    }
    uses(
        &mut bench,
        &json!({"requests.cpu": "500m", "limits.memory": "128Mi"}),
    );
    resize(&mut bench, &key, set("1", "200Mi")).unwrap();
    uses(
        &mut bench,
        &json!({"requests.cpu": "1", "limits.memory": "200Mi"}),
    );
}
