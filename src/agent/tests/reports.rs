//! More reports of users of other agents: values that are not ours, and amounts of pods that change.

use std::time::Duration;

use serde_json::{Value, json};

use super::bench::{Bench, runs};
use super::resize::{amounts, pod, resize};
use crate::agent::request::PodKey;
use crate::cgroup::{CgroupPath, InterfaceFile, ModelKernel, Op, Pid, Setting};
use crate::units::{Bytes, CpuMax, Limit, Micros};

fn memory_max(bench: &Bench, path: &CgroupPath) -> String {
    let node = bench.kernel.with(|kernel| kernel.node(path));
    node.get(InterfaceFile::MemoryMax).unwrap().value()
}

fn mib(mib: u64) -> String {
    (mib << 20).to_string()
}

/// kubernetes#138431: a pass over what is right writes nothing, and `cpu.max` of the top, which is the node owner's,
/// stays as somebody set it.
#[test]
fn values_that_are_not_ours_are_never_written() {
    let mut bench = Bench::new();
    let (key, _) = bench.run("web", &pod("500m", "64Mi"));
    bench.pass(Duration::from_millis(50));
    let set = Setting::CpuMax(CpuMax {
        quota: Limit::At(Micros(400_000)),
        period: CpuMax::DEFAULT_PERIOD,
    });
    let top = CgroupPath::top();
    let by_hand = Op::Write(top.clone(), set);
    bench
        .kernel
        .with(|kernel| kernel.as_another(&by_hand))
        .unwrap();
    bench.kernel.with(ModelKernel::take_performed);
    for _ in 0..10 {
        assert!(bench.agent().enforce(&top));
    }
    bench.crash();
    bench.pass(Duration::from_millis(50));
    assert_eq!(bench.kernel.with(ModelKernel::take_performed), []);
    let node = bench.kernel.with(|kernel| kernel.node(&top));
    assert_eq!(node.get(InterfaceFile::CpuMax), Some(set));
    assert_eq!(bench.agent().drifts.after(0), []);
    assert_eq!(bench.entry(&key).enforced, Ok(()));
}

/// kubernetes#138760: while a container is down after an OOM kill its pod gets more; the pod's level has it before
/// the next run begins.
#[test]
fn a_pod_grows_while_its_container_is_down() {
    let mut bench = Bench::new();
    let (key, pid) = bench.run("web", &pod("500m", "64Mi"));
    bench.no_process();
    bench.kernel.with(|kernel| {
        kernel.grow(Pid(pid), Bytes(100 << 20));
        assert!(!kernel.is_alive(Pid(pid)));
    });
    bench.until("the end to be seen", |agent| {
        let entry = agent.pods.get(&key).unwrap();
        entry.container_record("c").unwrap().attempt == 1
    });
    assert!(!runs(bench.agent(), &key, "c"));
    resize(&mut bench, &key, |pod| {
        pod["spec"]["containers"][0]["resources"] = amounts("500m", "256Mi");
    })
    .unwrap();
    let (above, own) = (bench.entry(&key).path(), bench.path(&key, "c"));
    assert!(!runs(bench.agent(), &key, "c"), "it is still down");
    assert_eq!(memory_max(&bench, &above), mib(256));
    assert_eq!(memory_max(&bench, &own), mib(256));
    assert_eq!(bench.entry(&key).enforced, Ok(()));
    // The next run has it all.
    let next = bench.next_process();
    bench.entry(&key).change("c").not_before = None;
    bench.agent().drive(&key);
    bench.until("it to run", |agent| runs(agent, &key, "c"));
    bench.put_in(&key, "c", next);
    bench
        .kernel
        .with(|kernel| kernel.grow(Pid(next), Bytes(200 << 20)));
    assert!(bench.kernel.with(|kernel| kernel.is_alive(Pid(next))));
}

/// kubernetes#129152, of several containers: only the one that uses more keeps its bound for now, and the pod's level
/// is not taken below what is in force.
#[test]
fn of_two_containers_only_the_one_that_uses_more_waits() {
    let mut bench = Bench::new();
    let container = |name: &str, memory: &str| {
        json!({"name": name, "image": "i", "command": ["sleep", "1000"],
            "resources": amounts("100m", memory)})
    };
    let spec: Value = json!({
        "restartPolicy": "Always",
        "containers": [container("a", "256Mi"), container("b", "256Mi")],
    });
    let pid = bench.next_process();
    let key = bench.create("web", &spec);
    bench.until("both to run", |agent| {
        let key = PodKey::new("default", "web");
        runs(agent, &key, "a") && runs(agent, &key, "b")
    });
    let [a, b] = ["a", "b"].map(|name| bench.path(&key, name));
    let above = bench.entry(&key).path();
    // Both share one process of this machine; in the kernel it is in `a`.
    bench.kernel.with(|kernel| {
        kernel.spawn_in(&a, Pid(pid)).unwrap();
        kernel.grow(Pid(pid), Bytes(200 << 20));
    });
    resize(&mut bench, &key, |pod| {
        for number in 0..2 {
            pod["spec"]["containers"][number]["resources"] = amounts("100m", "128Mi");
        }
    })
    .unwrap();
    assert_eq!(memory_max(&bench, &a), mib(256), "it would be killed");
    assert_eq!(memory_max(&bench, &b), mib(128));
    let whole: u64 = memory_max(&bench, &above).parse().unwrap();
    assert!(whole >= 200 << 20, "{whole}");
    assert!(bench.kernel.with(|kernel| kernel.is_alive(Pid(pid))));
    assert!(bench.entry(&key).record.resizing.is_some());
    bench
        .kernel
        .with(|kernel| kernel.shrink(Pid(pid), Bytes(100 << 20)));
    bench.until("the rest", |agent| {
        agent.pods.get(&key).unwrap().record.resizing.is_none()
    });
    assert_eq!(memory_max(&bench, &a), mib(128));
    assert_eq!(memory_max(&bench, &above), mib(256));
}
