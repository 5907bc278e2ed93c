//! `allotd.dev/cpu-burst`: an amount of CPU, whatever the period; never above a quota.

use allotd::model::{Pod, Policy};
use allotd::units::Micros;
use serde_json::{Value, json};

use crate::{notes, of_cgroup, pods, translated};

fn pod(burst: &str, containers: &Value) -> Pod {
    let mut pod = pods::pod(&json!({"containers": containers}));
    let annotation = "allotd.dev/cpu-burst".to_owned();
    pod.annotations.insert(annotation, burst.to_owned());
    pod
}

fn limited(name: &str, cpu: &str) -> Value {
    json!({"name": name, "resources": {"limits": {"cpu": cpu}}})
}

#[test]
fn a_burst_is_an_amount_of_cpu_in_each_period() {
    let two = json!([limited("a", "500m"), limited("b", "200m")]);
    let open = json!([limited("a", "500m"), {"name": "b"}]);
    for (burst, containers, period, of_a, of_b, of_pod) in [
        (
            "250m",
            &json!([limited("a", "500m")]),
            100_000,
            Some("25000"),
            None,
            "25000",
        ),
        (
            "250m",
            &json!([limited("a", "500m")]),
            20_000,
            Some("5000"),
            None,
            "5000",
        ),
        ("a=0.5", &two, 100_000, Some("50000"), None, "50000"),
        ("200m", &two, 100_000, Some("20000"), Some("20000"), "40000"),
        (
            "100m, a=400m",
            &two,
            100_000,
            Some("40000"),
            Some("10000"),
            "50000",
        ),
        ("0", &two, 100_000, Some("0"), Some("0"), "0"),
        // No quota at the pod, and none at b.
        ("100m", &open, 100_000, Some("10000"), Some("0"), "0"),
    ] {
        let policy = Policy {
            cpu_cfs_quota_period: Micros(period),
            ..Policy::default()
        };
        let tree = translated(pod(burst, containers), &pods::big_node(), &policy);
        let has = |container: &str| {
            let (_, node) = tree.cgroup(Some(container))?;
            Some(node.get("cpu.max.burst".parse().unwrap())?.value())
        };
        assert_eq!(has("a").as_deref(), of_a, "{burst}");
        assert_eq!(has("b").as_deref(), of_b, "{burst}");
        assert_eq!(of_cgroup(&tree, None, "cpu.max.burst"), of_pod, "{burst}");
    }
}

#[test]
fn what_becomes_of_a_burst_is_told() {
    let open = json!([limited("a", "500m"), {"name": "b"}]);
    let tree = translated(pod("100m", &open), &pods::big_node(), &Policy::default());
    let burst = |container| {
        let mut notes = notes(&tree, container);
        notes.retain(|note| note.starts_with("cpu.max.burst"));
        notes
    };
    assert_eq!(
        burst(Some("a")),
        ["cpu.max.burst: allotd.dev/cpu-burst 100m"]
    );
    assert_eq!(
        burst(Some("b")),
        ["cpu.max.burst: allotd.dev/cpu-burst 100m means nothing: there is no quota to go beyond"]
    );
    // A quota of the pod below the sum of the bursts.
    let mut both = json!([limited("a", "400m"), limited("b", "400m")]);
    for container in both.as_array_mut().unwrap() {
        container["resources"]["requests"] = json!({"cpu": "100m"});
    }
    let mut whole = pod("300m", &both);
    whole.resources = Some(pods::resources(&json!({"limits": {"cpu": "500m"}})));
    let tree = translated(whole, &pods::big_node(), &Policy::default());
    assert_eq!(of_cgroup(&tree, None, "cpu.max.burst"), "50000");
    let told = "cpu.max.burst: 60000 µs are cut to the quota: 50000 µs".to_owned();
    assert!(notes(&tree, None).contains(&told));
    // Nobody asked: nothing is set.
    let plain = pods::pod(&json!({"containers": [limited("a", "1")]}));
    let tree = translated(plain, &pods::big_node(), &Policy::default());
    for container in [None, Some("a")] {
        let (_, node) = tree.cgroup(container).unwrap();
        assert_eq!(node.get("cpu.max.burst".parse().unwrap()), None);
    }
}
