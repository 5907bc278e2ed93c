//! The two pods that Kubernetes' own documentation explains resources with, as whole trees.

use allotd::cgroup::Tree;
use allotd::model::Policy;
use allotd::translation::{PodTree, Totals, levels};
use serde_json::{Value, json};

use crate::{notes, pods, translated};

fn as_text(tree: &Tree) -> Vec<String> {
    tree.iter()
        .flat_map(|(path, node)| {
            let values = node.settings.values().map(move |s| format!("{path} {s}"));
            let enabled = Some(&node.enabled).filter(|enabled| !enabled.is_empty());
            values.chain(enabled.map(|enabled| format!("{path} enables {enabled}")))
        })
        .collect()
}

fn frontend() -> PodTree {
    let resources = json!({
        "requests": {"memory": "64Mi", "cpu": "250m"},
        "limits": {"memory": "128Mi", "cpu": "500m"},
    });
    let spec = json!({"containers": [
        {"name": "app", "resources": resources},
        {"name": "log-aggregator", "resources": resources},
    ]});
    translated(pods::pod(&spec), &node(), &Policy::default())
}

fn node() -> allotd::model::Node {
    allotd::model::Node {
        reserved: pods::amounts(&json!({"cpu": "1", "memory": "1Gi"})),
        allocatable: pods::amounts(&json!({"cpu": "3", "memory": "7Gi"})),
        max_pids: Some(32_768),
        reserved_pids: 1000,
        ..pods::node(&json!({"cpu": "4", "memory": "8Gi", "hugepages-2Mi": "0"}))
    }
}

#[test]
fn two_containers_of_64_to_128_mebibytes() {
    let pod = frontend();
    let path = "burstable/pod6c1a4e95-6bb6-11e6-bc26-28d2444e470d";
    let mut expected: Vec<String> = [
        "cpu.weight = 59",
        "cpu.max = 100000 100000",
        "memory.min = 134217728",
        "memory.low = 0",
        "memory.high = max",
        "memory.max = 268435456",
        "memory.oom.group = 0",
        "hugetlb.2MB.max = 0",
        "hugetlb.2MB.rsvd.max = 0",
        "pids.max = max",
        "enables cpu memory pids hugetlb",
    ]
    .iter()
    .map(|line| format!("{path} {line}"))
    .collect();
    for container in ["app", "log-aggregator"] {
        expected.extend(
            [
                "cpu.weight = 35",
                "cpu.max = 50000 100000",
                "memory.min = 67108864",
                "memory.low = 0",
                "memory.high = max",
                "memory.max = 134217728",
                "memory.swap.max = 0",
                "memory.oom.group = 1",
                "hugetlb.2MB.max = 0",
                "hugetlb.2MB.rsvd.max = 0",
                "pids.max = max",
            ]
            .iter()
            .map(|line| format!("{path}/{container} {line}")),
        );
    }
    assert_eq!(as_text(&pod.tree), expected);
    assert!(pod.cgroups.iter().all(|cgroup| cgroup.notes.is_empty()));
    assert_eq!(
        pod.oom_scores,
        [("app".to_owned(), 993), ("log-aggregator".to_owned(), 993)]
    );
}

#[test]
fn the_levels_above_carry_the_sums() {
    let shares = [frontend().share, frontend().share];
    let levels = levels(
        &shares.iter().collect::<Totals>(),
        &node(),
        &Policy::default(),
    );
    let enabled = "enables cpu memory pids hugetlb";
    let expected: Vec<String> = [
        (
            "/",
            vec![
                "cpu.weight = 300",
                "memory.min = 268435456",
                "memory.low = 0",
                "memory.high = max",
                "memory.max = 7516192768",
                "memory.oom.group = 0",
                "hugetlb.2MB.max = 0",
                "hugetlb.2MB.rsvd.max = 0",
                "pids.max = 31768",
                enabled,
            ],
        ),
        (
            "besteffort",
            vec![
                "cpu.weight = 1",
                "cpu.max = max 100000",
                "memory.min = 0",
                "memory.low = 0",
                "memory.high = max",
                "memory.max = max",
                "memory.oom.group = 0",
                "hugetlb.2MB.max = max",
                "hugetlb.2MB.rsvd.max = max",
                "pids.max = max",
                enabled,
            ],
        ),
        (
            "burstable",
            vec![
                // 1 CPU in all.
                "cpu.weight = 100",
                "cpu.max = max 100000",
                "memory.min = 268435456",
                "memory.low = 0",
                "memory.high = max",
                "memory.max = max",
                "memory.oom.group = 0",
                "hugetlb.2MB.max = max",
                "hugetlb.2MB.rsvd.max = max",
                "pids.max = max",
                enabled,
            ],
        ),
    ]
    .into_iter()
    .flat_map(|(path, lines)| lines.into_iter().map(move |line| format!("{path} {line}")))
    .collect();
    assert_eq!(as_text(&levels.tree), expected);
}

/// A pod with a budget of its own: one container takes a part, the other whatever is left.
#[test]
fn a_budget_for_the_pod_as_a_whole() {
    let part = json!({"cpu": "0.5", "memory": "100Mi"});
    let spec = json!({
        "resources": {
            "limits": {"cpu": "1", "memory": "200Mi"},
            "requests": {"cpu": "1", "memory": "100Mi"},
        },
        "containers": [
            {"name": "ctr-1", "resources": {
                "limits": part, "requests": {"cpu": "0.5", "memory": "50Mi"},
            }},
            {"name": "ctr-2", "resources": Value::Null},
        ],
    });
    let pod = translated(pods::pod(&spec), &node(), &Policy::default());
    let values = |container: &str| {
        ["cpu.weight", "cpu.max", "memory.min", "memory.max"]
            .map(|file| crate::of_container(&pod, container, file))
    };
    assert_eq!(
        values("ctr-1"),
        ["59", "50000 100000", "52428800", "104857600"]
    );
    // Nothing of its own: the pod's limits hold, and nothing is protected for it alone.
    assert_eq!(values("ctr-2"), ["100", "100000 100000", "0", "209715200"]);
    assert_eq!(
        notes(&pod, Some("ctr-2")),
        ["cpu.weight: no cpu request: the weight follows the limit of 1"]
    );
    let of_pod = |file| crate::of_pod(&pod, file);
    assert_eq!(
        ["cpu.weight", "cpu.max", "memory.min", "memory.max"].map(of_pod),
        ["100", "100000 100000", "104857600", "209715200"]
    );
}
