//! The sums, the bounds and the class of a pod, held to the tests of Kubernetes 1.36.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

#[path = "support/pods.rs"]
mod pods;

use allotd::model::effective::{sum_of_containers, sum_without_overhead};
use allotd::model::{EffectivePod, List, QosClass, ResourceList, ResourceName};
use pods::{amounts, data, pod};
use proptest::prelude::*;
use serde_json::{Value, json};

fn rows<'a>(data: &'a Value, array: &str) -> &'a Vec<Value> {
    let rows = data[array].as_array().unwrap();
    assert!(!rows.is_empty(), "{array} has no rows");
    rows
}

fn sum(input: &Value, list: List) -> ResourceList {
    let pod = pod(&input["pod"]);
    let effective = EffectivePod::of(&pod);
    let option = |name: &str| input["options"][name] == json!(true);
    if option("skipPodLevelResources") {
        sum_of_containers(&pod, list)
    } else if option("excludeOverhead") {
        sum_without_overhead(&pod, list)
    } else {
        match list {
            List::Requests => effective.requests,
            List::Limits => effective.limits,
        }
    }
}

#[test]
fn sums_are_those_of_kubernetes() {
    let data = data(include_str!("data/pod_sums.json"));
    for (array, list) in [
        ("pod_requests", List::Requests),
        ("pod_level_requests", List::Requests),
        ("pod_limits", List::Limits),
    ] {
        for row in rows(&data, array) {
            let name = &row["name"];
            assert_eq!(
                sum(&row["input"], list),
                amounts(&row["expected"]),
                "{array}: {name}"
            );
        }
    }
    for row in rows(&data, "pod_requests_limits_with_overhead") {
        for list in [List::Requests, List::Limits] {
            let expected = amounts(&row["expected"][list.to_string()]);
            assert_eq!(
                sum(&row["input"], list),
                expected,
                "{list}: {}",
                row["name"]
            );
        }
    }
    for row in rows(&data, "pod_requests_limits_excluding_overhead") {
        for list in [List::Requests, List::Limits] {
            let expected = amounts(&row["expected"][list.to_string()]);
            let sum = sum_without_overhead(&pod(&row["input"]["pod"]), list);
            assert_eq!(sum, expected, "{list}: {}", row["name"]);
        }
    }
}

#[test]
fn classes_are_those_of_kubernetes() {
    for row in rows(&data(include_str!("data/qos.json")), "qos_class") {
        let class = QosClass::of(&pod(&row["input"]["pod"]));
        assert_eq!(class.to_string(), row["expected"], "{}", row["name"]);
    }
}

#[test]
fn an_empty_block_at_pod_level_leaves_the_class_to_the_containers() {
    // Upstream says BestEffort here (kubernetes#135082).
    let spec = json!({"resources": {}, "containers": [{"resources": {"requests": {"cpu": "1"}}}]});
    assert_eq!(QosClass::of(&pod(&spec)), QosClass::Burstable);
}

/// The one row in which we differ: an init container without any limit stands behind a sidecar with
/// limits. Upstream looks at the sum of both and bounds the pod; here the container that may use all
/// it likes unbounds it, like any other.
const CUMULATIVE: &str =
    "sidecar with limits then limitless init container: counted as declared (cumulative quirk)";

#[test]
fn a_pod_is_bounded_where_kubernetes_bounds_it() {
    let mut differing = Vec::new();
    for row in rows(&data(include_str!("data/pod_bounds.json")), "pod_bounds") {
        let effective = EffectivePod::of(&pod(&row["input"]["pod"]));
        for (resource, name) in [("cpu", ResourceName::Cpu), ("memory", ResourceName::Memory)] {
            if effective.is_bounded(&name) != row["expected"][resource] {
                differing.push(format!("{resource}: {}", row["name"].as_str().unwrap()));
            }
        }
    }
    let expected = ["cpu", "memory"].map(|resource| format!("{resource}: {CUMULATIVE}"));
    assert_eq!(differing, expected);
}

#[test]
fn a_container_without_a_limit_is_held_by_that_of_the_pod() {
    let effective = EffectivePod::of(&pod(&json!({
        "resources": {"limits": {"cpu": "4", "memory": "1Gi", "hugepages-2Mi": "8Mi"}},
        "initContainers": [{"resources": {"limits": {"cpu": "1"}}}],
        "containers": [
            {"resources": {}},
            {"resources": {"limits": {"memory": "0", "hugepages-2Mi": "0"}, "requests": {"cpu": "2"}}},
        ],
    })));
    let limits: Vec<_> = effective
        .containers
        .iter()
        .map(|c| c.resources.limits.clone())
        .collect();
    assert_eq!(
        limits,
        [
            json!({"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "8Mi"}),
            json!({"cpu": "4", "memory": "1Gi", "hugepages-2Mi": "8Mi"}),
            json!({"cpu": "4", "memory": "1Gi", "hugepages-2Mi": "0"}),
        ]
        .map(|list| amounts(&list))
    );
    let requests: Vec<_> = effective
        .containers
        .iter()
        .map(|c| c.resources.requests.cpu())
        .collect();
    assert_eq!(
        requests
            .iter()
            .flatten()
            .map(|cpu| cpu.0)
            .collect::<Vec<_>>(),
        [2000]
    );
}

#[test]
fn a_limit_of_zero_at_pod_level_holds_no_container() {
    let effective = EffectivePod::of(&pod(&json!({
        "resources": {"limits": {"cpu": "0"}},
        "containers": [{"resources": {}}],
    })));
    assert!(effective.containers[0].resources.limits.is_empty());
    assert_eq!(effective.bounded, []);
}

#[test]
fn a_limit_of_zero_bounds_nothing() {
    let effective = EffectivePod::of(&pod(&json!({
        "containers": [{"resources": {"limits": {"cpu": "0", "memory": "0"}}}],
        "overhead": {"cpu": "1"},
    })));
    assert_eq!(effective.bounded, []);
    assert_eq!(
        effective.limits,
        amounts(&json!({"cpu": "0", "memory": "0"}))
    );
}

fn any_list() -> impl Strategy<Value = Value> {
    let amount = prop_oneof![Just("0"), Just("1m"), Just("3"), Just("1Gi"), Just("1e29")];
    prop::collection::btree_map(
        prop_oneof![
            Just("cpu"),
            Just("memory"),
            Just("hugepages-2Mi"),
            Just("example.com/x")
        ],
        amount,
        0..4,
    )
    .prop_map(|map| json!(map))
}

fn any_containers(most: usize) -> impl Strategy<Value = Vec<Value>> {
    let one = (any_list(), any_list(), any::<bool>()).prop_map(|(requests, limits, sidecar)| {
        let policy = if sidecar {
            json!("Always")
        } else {
            Value::Null
        };
        json!({"resources": {"requests": requests, "limits": limits}, "restartPolicy": policy})
    });
    prop::collection::vec(one, 0..most)
}

proptest! {
    #[test]
    fn a_sum_covers_each_container(
        init in any_containers(4),
        main in any_containers(4),
        overhead in any_list(),
    ) {
        let pod = pod(&json!({
            "initContainers": init, "containers": main, "overhead": overhead,
        }));
        let effective = EffectivePod::of(&pod);
        for (_, _, container) in pod.all_containers() {
            for (name, amount) in container.resources.requests.iter() {
                prop_assert!(effective.requests.get(name).unwrap() >= amount);
            }
            for (name, amount) in container.resources.limits.iter() {
                prop_assert!(effective.limits.get(name).unwrap() >= amount);
            }
        }
        for (name, amount) in pod.overhead.iter() {
            prop_assert!(effective.requests.get(name).unwrap() >= amount);
        }
        for name in &effective.bounded {
            for (_, _, container) in pod.all_containers() {
                prop_assert!(container.resources.limits.get(name).is_some_and(|l| !l.is_zero()));
            }
        }
    }

    #[test]
    fn the_order_of_app_containers_does_not_matter(main in any_containers(5)) {
        let mut turned = main.clone();
        turned.reverse();
        let effective = EffectivePod::of(&pod(&json!({"containers": main})));
        let reversed = EffectivePod::of(&pod(&json!({"containers": turned})));
        prop_assert_eq!(effective.requests, reversed.requests);
        prop_assert_eq!(effective.limits, reversed.limits);
        prop_assert_eq!(effective.bounded, reversed.bounded);
    }
}
