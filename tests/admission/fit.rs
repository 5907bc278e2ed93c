//! What fits beside what is there.

use allotd::admission::fit::used;
use allotd::admission::{Situation, admit};
use allotd::model::{Node, ResourceList};
use serde_json::{Value, json};

use crate::pods::{amounts, node, pod};

fn against(spec: &Value, node: &Node, used: &ResourceList, pods: u64) -> Vec<String> {
    let verdict = admit(pod(spec), &Situation::new(node, used, pods));
    verdict
        .reasons()
        .iter()
        .map(|r| format!("{}: {}", r.code, r.message))
        .collect()
}

fn asking(requests: &Value) -> Value {
    json!({"containers": [{"resources": {"requests": requests, "limits": {}}}]})
}

/// The kubelet's own table (1.36 `predicate_test.go`) with our answers to unknown resources.
#[test]
fn a_pod_fits_or_every_shortage_is_told() {
    let small = node(&json!({"cpu": "10m", "memory": "20", "pods": "32", "example.com/none": "0"}));
    let rows: [(&str, Value, Value, &[&str]); 8] = [
        (
            "fits",
            asking(&json!({"cpu": "1m", "memory": "1"})),
            json!({"cpu": "5m", "memory": "19"}),
            &[],
        ),
        (
            "two shortages",
            asking(&json!({"cpu": "8m", "memory": "10"})),
            json!({"cpu": "5m", "memory": "19"}),
            &[
                "OutOfcpu: Node didn't have enough resource: cpu, requested: 8, used: 5, capacity: 10; \
                 Insufficient cpu: 8m asked for, 5m left of 10m",
                "OutOfmemory: Node didn't have enough resource: memory, requested: 10, used: 19, capacity: 20; \
                 Insufficient memory: 10 asked for, 1 left of 20",
            ],
        ),
        (
            "nothing asked of a full node",
            asking(&json!({})),
            json!({"cpu": "10m", "memory": "20"}),
            &[],
        ),
        (
            "zero of an overfull node",
            asking(&json!({"cpu": "0", "memory": "0"})),
            json!({"cpu": "11m", "memory": "21"}),
            &[],
        ),
        (
            "init containers one after another",
            json!({
                "initContainers": [
                    {"resources": {"requests": {"cpu": "3m", "memory": "1"}}},
                    {"resources": {"requests": {"cpu": "3m", "memory": "1"}}},
                ],
                "containers": [{"resources": {"requests": {"cpu": "1m", "memory": "1"}}}],
            }),
            json!({"cpu": "7m", "memory": "5"}),
            &[],
        ),
        (
            "a device of which the node has none",
            json!({"containers": [{"resources": {"limits": {"example.com/none": "1"}}}]}),
            json!({}),
            &[
                "OutOfexample.com/none: Node didn't have enough resource: example.com/none, requested: 1, used: 0, \
               capacity: 0; Insufficient example.com/none: 1 asked for, 0 left of 0",
            ],
        ),
        (
            "a device that the node does not know; the kubelet drops it",
            json!({"containers": [{"resources": {"limits": {"example.com/foo": "1"}}}]}),
            json!({}),
            &[
                "OutOfexample.com/foo: Node didn't have enough resource: example.com/foo, requested: 1, used: 0, \
               capacity: 0; Insufficient example.com/foo: this node does not offer it",
            ],
        ),
        (
            "disk that the node did not measure",
            asking(&json!({"ephemeral-storage": "1"})),
            json!({}),
            &[
                "OutOfephemeral-storage: Node didn't have enough resource: ephemeral-storage, requested: 1, used: 0, \
               capacity: 0; Insufficient ephemeral-storage: this node does not offer it",
            ],
        ),
    ];
    for (name, spec, used, expected) in rows {
        assert_eq!(
            against(&spec, &small, &amounts(&used), 1),
            expected,
            "{name}"
        );
    }
}

#[test]
fn huge_pages_must_be_of_a_size_the_node_has() {
    let spec = json!({"containers": [{"resources": {"limits": {
        "cpu": "1m", "hugepages-1Gi": "1Gi", "hugepages-2Mi": "6Mi",
    }}}]});
    let familiar = |size, asked, used, capacity| {
        format!(
            "OutOfhugepages-{size}: Node didn't have enough resource: hugepages-{size}, requested: {asked}, \
             used: {used}, capacity: {capacity}; Insufficient hugepages-{size}: "
        )
    };
    let one_size = node(&json!({"cpu": "1", "hugepages-2Mi": "8Mi"}));
    let gib = familiar("1Gi", 1_073_741_824, 0, 0);
    assert_eq!(
        against(
            &spec,
            &one_size,
            &amounts(&json!({"hugepages-2Mi": "4Mi"})),
            0
        ),
        [
            familiar("2Mi", 6_291_456, 4_194_304, 8_388_608) + "6Mi asked for, 4Mi left of 8Mi",
            gib.clone() + "this node has no huge pages of this size, but of 2Mi",
        ]
    );
    let none = node(&json!({"cpu": "1"}));
    let found = against(&spec, &none, &ResourceList::default(), 0);
    assert_eq!(found[1], gib + "this node has no huge pages");
}

#[test]
fn each_pod_takes_one_place() {
    let one = node(&json!({"cpu": "1", "pods": "1"}));
    let none = ResourceList::default();
    assert_eq!(
        against(&asking(&json!({})), &one, &none, 0),
        Vec::<String>::new()
    );
    assert_eq!(
        against(&asking(&json!({})), &one, &none, 1),
        [
            "OutOfpods: Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1; Too many pods"
        ]
    );
}

#[test]
fn what_is_used_is_the_sum_of_requests() {
    let node = node(&json!({"cpu": "1800m", "memory": "7474992Ki", "pods": "110"}));
    let nothing = ResourceList::default();
    let situation = Situation::new(&node, &nothing, 0);
    let admitted = ["260m", "420m"].map(|cpu| {
        let spec = json!({"containers": [{"resources": {"requests": {"cpu": cpu}}}]});
        admit(pod(&spec), &situation).into_admitted().unwrap()
    });
    let used = used(&admitted);
    assert_eq!(used, amounts(&json!({"cpu": "680m"})));
    assert_eq!(
        against(&asking(&json!({"cpu": "1120m"})), &node, &used, 2),
        Vec::<String>::new()
    );
    assert_eq!(
        against(&asking(&json!({"cpu": "1121m"})), &node, &used, 2),
        [
            "OutOfcpu: Node didn't have enough resource: cpu, requested: 1121, used: 680, capacity: 1800; \
          Insufficient cpu: 1121m asked for, 1120m left of 1800m"
        ]
    );
}
