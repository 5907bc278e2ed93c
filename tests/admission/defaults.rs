//! What is filled in, and the rule that is named for it.

use serde_json::{Value, json};

use crate::judge;
use crate::pods::{amounts, pod, resources};

fn told(spec: &Value) -> Vec<String> {
    judge(pod(spec))
        .defaults()
        .iter()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn a_request_that_is_absent_is_the_limit_and_zero_is_not_absent() {
    let verdict = judge(pod(&json!({
        "initContainers": [{"resources": {"limits": {"cpu": "1"}}}],
        "containers": [{"resources": {
            "requests": {"memory": "0"},
            "limits": {"memory": "1Gi", "example.com/x": "2"},
        }}],
    })));
    let requests = &verdict.pod().containers[0].resources.requests;
    assert_eq!(
        *requests,
        amounts(&json!({"memory": "0", "example.com/x": "2"}))
    );
    assert_eq!(
        verdict.pod().init_containers[0].resources.requests,
        amounts(&json!({"cpu": "1"}))
    );
    let told: Vec<_> = verdict.defaults().iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "container i0: requests.cpu = 1: request defaults to the limit",
            "container c0: requests.example.com/x = 2: request defaults to the limit",
        ]
    );
}

#[test]
fn amounts_finer_than_a_thousandth_are_rounded_up() {
    assert_eq!(
        told(&json!({
            "resources": {"requests": {"cpu": "1.2345"}},
            "containers": [{"resources": {"requests": {"cpu": "100u", "memory": "3n"}}}],
            "overhead": {"cpu": "0.0001"},
        })),
        [
            "container c0: requests.cpu = 1m: 100u is rounded up to thousandths",
            "container c0: requests.memory = 1m: 3n is rounded up to thousandths",
            "pod: requests.cpu = 1235m: 1234500u is rounded up to thousandths",
            "pod: requests.cpu = 1m: overhead of 100u is rounded up to thousandths",
        ]
    );
}

/// Pod-level resources before and after, beside containers that have these.
#[test]
fn resources_at_pod_level_are_completed() {
    let rows = [
        (
            "requests are what the containers ask for",
            json!({"limits": {"cpu": "5m", "memory": "7Mi"}}),
            json!([{"limits": {"cpu": "2m", "memory": "1Mi"}}, {"limits": {"cpu": "1m", "memory": "5Mi"}}]),
            json!({"limits": {"cpu": "5m", "memory": "7Mi"}, "requests": {"cpu": "3m", "memory": "6Mi"}}),
        ),
        (
            "requests are the limits where no container asks",
            json!({"limits": {"cpu": "5m", "memory": "7Mi"}}),
            json!([{}]),
            json!({"limits": {"cpu": "5m", "memory": "7Mi"}, "requests": {"cpu": "5m", "memory": "7Mi"}}),
        ),
        (
            "a request is filled in without a pod limit of the resource",
            json!({"limits": {"memory": "7Mi"}}),
            json!([{"requests": {"cpu": "1"}}]),
            json!({"limits": {"memory": "7Mi"}, "requests": {"cpu": "1", "memory": "7Mi"}}),
        ),
        (
            "requests alone derive nothing",
            json!({"requests": {"cpu": "2"}}),
            json!([{"requests": {"cpu": "1", "memory": "1Gi"}}]),
            json!({"requests": {"cpu": "2"}}),
        ),
        (
            "an empty block derives nothing",
            json!({}),
            json!([{"limits": {"cpu": "1", "hugepages-2Mi": "2Mi"}}]),
            json!({}),
        ),
        (
            "huge pages: the limit of the containers, and the request is the limit",
            json!({"requests": {"cpu": "2"}}),
            json!([{"limits": {"cpu": "1", "hugepages-2Mi": "4Mi"}}, {"limits": {"cpu": "1", "hugepages-2Mi": "2Mi"}}]),
            json!({
                "limits": {"hugepages-2Mi": "6Mi"},
                "requests": {"cpu": "2", "hugepages-2Mi": "6Mi"},
            }),
        ),
    ];
    for (name, given, containers, expected) in rows {
        let containers: Vec<_> = containers
            .as_array()
            .unwrap()
            .iter()
            .map(|resources| json!({"resources": resources}))
            .collect();
        let verdict = judge(pod(&json!({"resources": given, "containers": containers})));
        assert_eq!(
            verdict.pod().resources,
            Some(resources(&expected)),
            "{name}"
        );
        assert_eq!(verdict.reasons(), [], "{name}");
    }
}

#[test]
fn a_limit_taken_from_the_pod_is_told_and_not_written_into_the_spec() {
    let spec = json!({
        "resources": {"limits": {"cpu": "2"}},
        "containers": [{"resources": {"limits": {"memory": "1Gi"}}}],
    });
    assert_eq!(
        told(&spec),
        [
            "container c0: requests.memory = 1Gi: request defaults to the limit",
            "pod: requests.memory = 1Gi: pod request defaults to the sum of container requests",
            "pod: requests.cpu = 2: pod request defaults to the pod limit",
            "container c0: limits.cpu = 2: container limit from the pod's limit",
        ]
    );
    let verdict = judge(pod(&spec));
    assert_eq!(
        verdict.pod().containers[0].resources.limits,
        amounts(&json!({"memory": "1Gi"}))
    );
}
