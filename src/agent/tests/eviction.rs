//! Eviction by the owner, with looks at the node that a test makes up.

use std::time::Duration;

use serde_json::{Value, json};

use super::bench::{Bench, one, runs};
use crate::agent::News;
use crate::agent::request::PodKey;
use crate::cgroup::Pid;
use crate::model::kind::NODE;
use crate::observation::eviction::facts::{Disk, Facts, Memory, PodsMemory, Space, Tasks};
use crate::observation::machine::uptime;
use crate::units::Bytes;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

/// A node with enough of everything.
fn plenty() -> Facts {
    Facts {
        at: uptime(),
        memory: Memory {
            total: Some(4 * GIB),
            available: Some(2 * GIB),
            ..Memory::default()
        },
        pods: Some(PodsMemory {
            limit: 3 * GIB,
            current: GIB,
            ..PodsMemory::default()
        }),
        disks: vec![Disk {
            place: "/state".to_owned(),
            has_files: true,
            space: Ok(Space {
                bytes: 100 * GIB,
                bytes_available: 50 * GIB,
                inodes: 1_000_000,
                inodes_free: 900_000,
            }),
        }],
        tasks: Tasks {
            in_use: Some(100),
            pid_max: Some(32_768),
            threads_max: Some(30_000),
            pods: None,
        },
        slow: None,
    }
}

fn little_memory(available: u64) -> Facts {
    let mut facts = plenty();
    facts.memory.available = Some(available);
    facts
}

fn little_disk() -> Facts {
    let mut facts = plenty();
    if let Ok(space) = &mut facts.disks[0].space {
        space.bytes_available = 5 * GIB;
    }
    facts
}

impl Bench {
    fn see(&mut self, facts: Facts) {
        self.agent().take_news(News::Seen(facts));
    }

    /// Looks that show the same until something is so.
    fn see_until(
        &mut self,
        facts: impl Fn() -> Facts,
        what: &str,
        so: impl Fn(&mut Bench) -> bool,
    ) {
        let start = std::time::Instant::now();
        while !so(self) {
            assert!(
                start.elapsed() < Duration::from_secs(20),
                "in vain for {what}"
            );
            self.see(facts());
            self.pass(Duration::from_millis(30));
        }
    }

    /// Whether and why a pod was evicted.
    fn evicted(&mut self, key: &PodKey) -> Option<String> {
        let ended = self.entry(key).record.ended.clone()?;
        assert_eq!(ended.0, "Evicted");
        Some(ended.1)
    }

    /// A running pod that holds so much memory.
    fn hold(&mut self, name: &str, spec: &Value, mib: u64) -> (PodKey, i32) {
        let (key, pid) = self.run(name, spec);
        self.kernel
            .with(|kernel| kernel.grow(Pid(pid), Bytes::mib(mib)));
        (key, pid)
    }

    fn node_condition(&mut self, kind: &str) -> (String, String) {
        let node = self.seen(NODE, "", "node").unwrap();
        let conditions = node["status"]["conditions"].as_array().unwrap();
        let found = conditions.iter().find(|it| it["type"] == kind).unwrap();
        let text = |field: &str| found[field].as_str().unwrap().to_owned();
        (text("status"), text("reason"))
    }
}

fn best_effort(priority: i32) -> Value {
    let mut spec = one("Always");
    spec["containers"][0]["resources"] = json!({});
    spec["terminationGracePeriodSeconds"] = json!(1);
    spec["priority"] = json!(priority);
    spec
}

fn burstable(request: &str) -> Value {
    let mut spec = best_effort(0);
    spec["containers"][0]["resources"] = json!({"requests": {"memory": request}});
    spec
}

#[test]
fn one_pod_after_the_other_goes_until_enough_is_left() {
    let mut bench = Bench::new();
    let (guaranteed, _) = bench.hold("guaranteed", &one("Always"), 60);
    let (burstable, _) = bench.hold("burstable", &burstable("100Mi"), 150);
    let (best_effort, pid) = bench.hold("besteffort", &best_effort(0), 200);
    bench.see(plenty());
    assert_eq!(
        bench.node_condition("MemoryPressure"),
        ("False".to_owned(), "KubeletHasSufficientMemory".to_owned())
    );
    bench.see(little_memory(80 * MIB));
    assert_eq!(
        bench.node_condition("MemoryPressure"),
        ("True".to_owned(), "KubeletHasInsufficientMemory".to_owned()),
        "at once"
    );
    assert_eq!(bench.events("NodeHasInsufficientMemory").len(), 1);
    bench.until("the first to be chosen", |agent| {
        agent.pods.get(&best_effort).unwrap().record.ended.is_some()
    });
    assert_eq!(
        bench.evicted(&best_effort).unwrap(),
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi. \
         Container c was using 200Mi, request is 0, has larger consumption of memory. "
    );
    assert_eq!(
        bench.events("EvictionThresholdMet"),
        ["Attempting to reclaim memory"]
    );
    // Nobody else while it ends; it takes its time because its process is slow to die here.
    bench.see(little_memory(80 * MIB));
    assert_eq!(bench.evicted(&burstable), None);
    bench.until("its end", |agent| {
        !agent.pods.get(&best_effort).unwrap().placed
    });
    assert!(!bench.kernel.with(|kernel| kernel.is_alive(Pid(pid))));
    bench.see_until(
        || little_memory(90 * MIB),
        "the second",
        |bench| bench.evicted(&burstable).is_some(),
    );
    assert_eq!(bench.evicted(&guaranteed), None);
    bench.until("its end", |agent| {
        !agent.pods.get(&burstable).unwrap().placed
    });
    for _ in 0..5 {
        bench.see(little_memory(100 * MIB));
        bench.pass(Duration::from_millis(30));
    }
    assert_eq!(bench.evicted(&guaranteed), None, "100Mi are enough");
    let tallies = &bench.agent().tallies.evictions;
    assert_eq!(tallies.get("memory.available"), Some(&2));
    let pod = bench
        .seen(crate::model::kind::POD, "default", "besteffort")
        .unwrap();
    assert_eq!(
        (&pod["status"]["phase"], &pod["status"]["reason"]),
        (&json!("Failed"), &json!("Evicted"))
    );
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    let target = conditions
        .iter()
        .find(|it| it["type"] == "DisruptionTarget")
        .unwrap();
    assert_eq!(
        (&target["status"], &target["reason"]),
        (&json!("True"), &json!("TerminationByKubelet"))
    );
}

/// kubernetes#73572: only the critical pod is left: it stays, and so does the condition.
#[test]
fn critical_pods_stay_and_that_nobody_goes_is_told_once() {
    let mut bench = Bench::new();
    let (critical, _) = bench.hold("critical", &best_effort(2_000_001_000), 12);
    let (other, _) = bench.hold("other", &best_effort(0), 0);
    for _ in 0..10 {
        bench.see(little_memory(50 * MIB));
        bench.pass(Duration::from_millis(30));
    }
    assert_eq!(
        (bench.evicted(&critical), bench.evicted(&other)),
        (None, None),
        "nothing to give back"
    );
    assert_eq!(bench.node_condition("MemoryPressure").0, "True");
    assert_eq!(bench.events("EvictionThresholdMet").len(), 1);
}

/// kubernetes#114332: the numbers of the report end no pod, and are told.
#[test]
fn figures_that_cannot_be_true_end_nothing() {
    let mut bench = Bench::new();
    let (key, _) = bench.hold("web", &best_effort(0), 500);
    let impossible = || {
        let mut facts = little_memory(50 * MIB);
        facts.memory.total = Some(32_879_017_984);
        facts.memory.in_use = Some(80_342_220_800);
        facts.memory.inactive_file = Some(0);
        facts
    };
    for _ in 0..5 {
        bench.see(impossible());
        bench.pass(Duration::from_millis(30));
    }
    assert_eq!(bench.evicted(&key), None);
    let told = bench.events("EvictionSignalUnknown");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("32879017984"), "{told:?}");
    assert_eq!(bench.agent().evictor.faults(), told);
    assert_eq!(bench.node_condition("MemoryPressure").0, "False");
    let mut stale = little_memory(50 * MIB);
    stale.at = stale.at.saturating_sub(Duration::from_secs(100));
    bench.see(stale);
    bench.pass(Duration::from_millis(100));
    assert_eq!(bench.evicted(&key), None);
    bench.see_until(
        || little_memory(50 * MIB),
        "a plausible figure to count",
        |bench| bench.evicted(&key).is_some(),
    );
    assert!(bench.agent().evictor.faults().is_empty());
}

/// The limit of all pods counts as it shall be: what somebody else writes there is drift.
#[test]
fn pods_that_near_their_common_limit_are_evicted_but_not_for_a_foreign_one() {
    let mut bench = Bench::new();
    let (key, _) = bench.hold("web", &best_effort(0), 500);
    let near = |limit: u64| {
        let mut facts = plenty();
        facts.pods = Some(PodsMemory {
            limit,
            current: limit - 50 * MIB,
            ..PodsMemory::default()
        });
        facts
    };
    for _ in 0..3 {
        bench.see(near(600 * MIB));
        bench.pass(Duration::from_millis(30));
    }
    assert_eq!(bench.evicted(&key), None);
    assert_eq!(bench.node_condition("MemoryPressure").0, "False");
    // 4Gi less the 100Mi that are reserved.
    bench.see_until(
        || near(3996 * MIB),
        "the pod to go",
        |bench| bench.evicted(&key).is_some(),
    );
    let tallies = &bench.agent().tallies.evictions;
    assert_eq!(tallies.get("allocatableMemory.available"), Some(&1));
}

#[test]
fn under_pressure_only_those_come_in_who_do_not_make_it_worse() {
    let mut bench = Bench::new();
    bench.see(little_memory(50 * MIB));
    let refused = bench.send("a", &best_effort(0)).unwrap_err();
    assert_eq!((refused.code, refused.reason.as_str()), (403, "Evicted"));
    assert_eq!(
        refused.causes[0].message,
        "The node had condition: [MemoryPressure]. "
    );
    let mut tolerant = best_effort(0);
    tolerant["tolerations"] =
        json!([{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}]);
    bench.no_process();
    bench.send("tolerant", &tolerant).unwrap();
    bench.send("burstable", &burstable("10Mi")).unwrap();
    bench.send("critical", &best_effort(2_000_000_000)).unwrap();
    let mut both = little_disk();
    both.memory.available = Some(50 * MIB);
    bench.see(both);
    for (name, spec) in [
        ("b", burstable("10Mi")),
        ("c", tolerant),
        ("d", one("Never")),
    ] {
        let refused = bench.send(name, &spec).unwrap_err();
        assert!(
            refused.message.ends_with("[MemoryPressure, DiskPressure]."),
            "{}",
            refused.message
        );
    }
    bench
        .send("critical-too", &best_effort(2_000_000_000))
        .unwrap();
    // A new agent knows nothing of it before its first look.
    bench.crash();
    assert_eq!(bench.node_condition("DiskPressure").0, "False");
    bench.see(little_disk());
    assert_eq!(
        bench.node_condition("DiskPressure"),
        ("True".to_owned(), "KubeletHasDiskPressure".to_owned())
    );
    let mut tasks = plenty();
    tasks.tasks.in_use = Some(29_999);
    bench.see(tasks);
    assert_eq!(
        bench.node_condition("PIDPressure").0,
        "False",
        "it has no threshold by default"
    );
    assert_eq!(
        bench.node_condition("DiskPressure").0,
        "True",
        "for the time of transition"
    );
}

#[test]
fn files_of_pods_that_are_over_go_before_any_pod_does() {
    let mut bench = Bench::new();
    let (done, first) = bench.run("done", &one("Never"));
    let (web, _) = bench.hold("web", &best_effort(0), 10);
    let scratch = |bench: &mut Bench, key: &PodKey| {
        let id = bench.agent().container_id(key, "c").unwrap();
        let dir = bench.agent().runtime.scratch_dir(&id);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("file"), vec![1; 4 << 20]).unwrap();
        dir
    };
    let (of_done, of_web) = (scratch(&mut bench, &done), scratch(&mut bench, &web));
    bench.kill(first);
    bench.until("its end", |agent| !agent.pods.get(&done).unwrap().placed);
    bench.see(little_disk());
    bench.until("the files to go", |_| !of_done.exists());
    assert_eq!(bench.evicted(&web), None);
    bench.see_until(little_disk, "the pod to go", |bench| {
        bench.evicted(&web).is_some()
    });
    let told = bench.evicted(&web).unwrap();
    assert!(told.starts_with("The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 5Gi. Container c was using 4"), "{told}");
    bench.until("its end", |agent| !agent.pods.get(&web).unwrap().placed);
    bench.see_until(little_disk, "its files to go", |_| !of_web.exists());
    // Nothing of this starts it again.
    bench.crash();
    bench.pass(Duration::from_millis(100));
    assert!(!runs(bench.agent(), &web, "c"));
    assert_eq!(bench.entry(&web).phase().to_string(), "Failed");
    assert_eq!(bench.entry(&done).phase().to_string(), "Failed");
}

#[test]
fn a_pod_is_evicted_by_hand_once() {
    let mut bench = Bench::new();
    let (key, _) = bench.run("web", &best_effort(0));
    assert!(
        bench
            .agent()
            .evict_by_hand(&PodKey::new("default", "other"), None)
            .is_err()
    );
    bench.agent().evict_by_hand(&key, Some(1)).unwrap();
    let again = bench.agent().evict_by_hand(&key, None).unwrap_err();
    assert_eq!(again.reason, "Conflict");
    bench.until("its end", |agent| !agent.pods.get(&key).unwrap().placed);
    assert_eq!(
        bench.evicted(&key).unwrap(),
        "The pod was evicted by hand. "
    );
}
