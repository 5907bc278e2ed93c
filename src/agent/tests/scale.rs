//! A thousand pods and a new agent: what is right is not touched, and what somebody changed is all that is
//! written.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::bench::{Bench, runs};
use crate::agent::request::PodKey;
use crate::cgroup::{CgroupPath, InterfaceFile, ModelKernel, Op, Pid, Setting};
use crate::config::Config;
use crate::model::kind::POD;
use crate::report::drift::DriftOutcome;
use crate::units::Limit;

const PODS: usize = 1000;

/// So many have a process of their own; the others share one that sleeps.
const REAL: usize = 30;

fn room(config: &mut Config) {
    config.max_pods = 2000;
}

fn name(number: usize) -> String {
    format!("pod-{number}")
}

fn key(number: usize) -> PodKey {
    PodKey::new("default", &name(number))
}

/// One of the three classes, in turn.
fn spec(number: usize) -> Value {
    let resources = match number % 3 {
        0 => json!({"limits": {"cpu": "1m", "memory": "1Mi"}}),
        1 => json!({"requests": {"cpu": "1m"}, "limits": {"memory": "2Mi"}}),
        _ => json!({}),
    };
    json!({
        "restartPolicy": "Always",
        "containers": [{"name": "c", "image": "i", "command": ["sleep", "1000"], "resources": resources}],
    })
}

/// What every reader is told of all pods and of the node's values.
fn told(bench: &mut Bench) -> (BTreeMap<String, Value>, usize) {
    let mut pods = BTreeMap::new();
    for number in 0..PODS {
        let pod = bench.seen(POD, "default", &name(number)).unwrap();
        pods.insert(name(number), pod);
    }
    let events = bench.agent().events.list(None).len();
    (pods, events)
}

fn a_thousand_pods() -> Bench {
    let mut bench = Bench::with(room);
    for number in 0..REAL {
        bench.run(&name(number), &spec(number));
    }
    bench.next_process();
    for number in REAL..PODS {
        bench.create(&name(number), &spec(number));
    }
    bench.until("all to run", |agent| {
        (0..PODS).all(|number| runs(agent, &key(number), "c"))
    });
    for number in REAL..PODS {
        let path = bench.path(&key(number), "c");
        let pid = Pid(i32::MAX - i32::try_from(number).unwrap());
        bench
            .kernel
            .with(|kernel| kernel.spawn_in(&path, pid))
            .unwrap();
    }
    bench.pass(Duration::from_millis(50));
    bench
}

#[test]
fn a_new_agent_touches_nothing_of_a_thousand_pods_that_is_right() {
    let mut bench = a_thousand_pods();
    let (pods, events) = told(&mut bench);
    let enforced = |pod: &Value| pod.to_string().contains("allotd.dev/Enforced");
    assert!(pods.values().all(enforced));
    bench.kernel.with(ModelKernel::take_performed);
    bench.kernel.with(ModelKernel::take_looks);
    let start = Instant::now();
    bench.crash();
    let took = start.elapsed();
    let looks = bench.kernel.with(ModelKernel::take_looks);
    println!("{PODS} pods were taken over in {took:?}, with {looks} looks at single cgroups");
    // The tree is read as a whole, however many pods there are.
    assert!(looks <= 10, "{looks}");
    bench.pass(Duration::from_millis(50));
    assert_eq!(bench.kernel.with(ModelKernel::take_performed), []);
    let (after, events_after) = told(&mut bench);
    for (name, pod) in &pods {
        assert_eq!(after.get(name), Some(pod));
    }
    assert_eq!(events_after, events);
    let restarts = |number: usize, bench: &mut Bench| {
        let record = bench.entry(&key(number)).record.containers["c"].clone();
        (record.attempt, record.end)
    };
    for number in 0..PODS {
        assert_eq!(restarts(number, &mut bench), (0, None), "{number}");
    }

    // One value among all of them, changed while no agent ran.
    let path: CgroupPath = bench.path(&key(700), "c");
    let before = bench.kernel.with(|kernel| kernel.node(&path));
    let right = before.get(InterfaceFile::PidsMax).unwrap();
    let wrong = Op::Write(path.clone(), Setting::PidsMax(Limit::At(7)));
    bench
        .kernel
        .with(|kernel| kernel.as_another(&wrong))
        .unwrap();
    bench.crash();
    bench.pass(Duration::from_millis(50));
    let performed = bench.kernel.with(ModelKernel::take_performed);
    assert_eq!(performed, [Op::Write(path, right)]);
    let drifts = bench.agent().drifts.after(0);
    let drifts: Vec<_> = drifts
        .iter()
        .map(|drift| (drift.pod.clone(), drift.file.clone(), drift.outcome))
        .collect();
    let expected = (name(700), "pids.max".to_owned(), DriftOutcome::Repaired);
    assert_eq!(drifts, [expected]);
    assert_eq!(bench.events("Drift").len(), 1);
}
