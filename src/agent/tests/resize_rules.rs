//! What a resize may not touch: the scenarios of Kubernetes 1.36 `TestValidatePodResize` and of its
//! end-to-end tests.

use serde_json::{Value, json};

use super::bench::Bench;
use super::resize::{amounts, pod, resize};

type Change = fn(&mut Value);

fn own(pod: &mut Value) -> &mut Value {
    &mut pod["spec"]["containers"][0]
}

fn limits(pod: &mut Value) -> &mut Value {
    &mut own(pod)["resources"]["limits"]
}

fn requests(pod: &mut Value) -> &mut Value {
    &mut own(pod)["resources"]["requests"]
}

fn remove(value: &mut Value, name: &str) {
    value.as_object_mut().unwrap().remove(name);
}

fn guaranteed(_: &mut Value) {}

fn burstable(pod: &mut Value) {
    own(pod)["resources"] = json!({
        "requests": {"cpu": "100m", "memory": "64Mi"},
        "limits": {"cpu": "200m", "memory": "128Mi", "ephemeral-storage": "1Gi"},
    });
}

fn best_effort(pod: &mut Value) {
    own(pod)["resources"] = json!({});
}

fn with_another(pod: &mut Value) {
    let mut other = own(pod).clone();
    other["name"] = json!("d");
    pod["spec"]["containers"]
        .as_array_mut()
        .unwrap()
        .push(other);
}

fn with_init(pod: &mut Value) {
    let mut init = own(pod).clone();
    init["name"] = json!("i");
    init["resizePolicy"] = json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
    pod["spec"]["initContainers"] = json!([init]);
}

/// What is allowed.
const ALLOWED: [(&str, Change, Change); 8] = [
    ("cpu", burstable, |pod| limits(pod)["cpu"] = json!("300m")),
    ("memory", burstable, |pod| {
        limits(pod)["memory"] = json!("100Mi");
    }),
    ("requests", burstable, |pod| {
        requests(pod)["cpu"] = json!("50m");
    }),
    ("request and limit", guaranteed, |pod| {
        own(pod)["resources"] = amounts("1", "96Mi");
    }),
    ("a limit more", best_effort_but_for_cpu, |pod| {
        own(pod)["resources"]["limits"] = json!({"cpu": "1"});
    }),
    ("at pod level", guaranteed, |pod| {
        pod["spec"]["resources"] = amounts("2", "128Mi");
    }),
    ("status and metadata are not looked at", burstable, |pod| {
        pod["status"] = json!({});
        pod["metadata"]["labels"] = json!({"a": "b"});
        limits(pod)["cpu"] = json!("300m");
    }),
    ("nothing", burstable, |_| {}),
];

fn best_effort_but_for_cpu(pod: &mut Value) {
    own(pod)["resources"] = json!({"requests": {"cpu": "100m"}});
}

/// What is not, and what is said.
const FORBIDDEN: [(Change, Change, &str); 19] = [
    (
        burstable,
        |pod| limits(pod)["ephemeral-storage"] = json!("2Gi"),
        "spec.containers[0].resources.limits.ephemeral-storage: Forbidden: only cpu and memory resources are mutable",
    ),
    (
        guaranteed,
        |pod| own(pod)["image"] = json!("other"),
        "spec.containers[0].image: Forbidden: only cpu and memory resources are mutable",
    ),
    (
        guaranteed,
        |pod| pod["spec"]["priority"] = json!(7),
        "spec.priority: Forbidden: only cpu and memory resources are mutable",
    ),
    (
        guaranteed,
        |pod| requests(pod)["cpu"] = json!("50m"),
        "spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a result of resizing: it is Guaranteed",
    ),
    (
        best_effort_but_for_cpu,
        |pod| own(pod)["resources"] = amounts("1", "64Mi"),
        "Pod QOS Class may not change as a result of resizing: it is Burstable",
    ),
    (
        best_effort,
        |pod| own(pod)["resources"]["requests"] = json!({"memory": "64Mi"}),
        "Pod QOS Class may not change as a result of resizing: it is BestEffort",
    ),
    (
        burstable,
        |pod| own(pod)["resources"] = json!({}),
        "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed: cpu, memory",
    ),
    (
        guaranteed,
        |pod| remove(own(pod), "resources"),
        "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed: cpu, memory",
    ),
    (
        burstable,
        |pod| remove(limits(pod), "cpu"),
        "spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed: cpu",
    ),
    (
        burstable,
        |pod| remove(requests(pod), "memory"),
        "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed: memory",
    ),
    (
        burstable,
        |pod| requests(pod)["cpu"] = json!("1"),
        "must be less than or equal to cpu limit of 200m",
    ),
    (
        guaranteed,
        with_another,
        "spec.containers: Forbidden: containers may not be added or removed on resize",
    ),
    (
        with_another,
        |pod| drop(pod["spec"]["containers"].as_array_mut().unwrap().pop()),
        "spec.containers: Forbidden: containers may not be added or removed on resize",
    ),
    (
        guaranteed,
        |pod| own(pod)["name"] = json!("e"),
        "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize",
    ),
    (
        with_another,
        |pod| pod["spec"]["containers"].as_array_mut().unwrap().reverse(),
        "spec.containers[1].name: Forbidden: containers may not be renamed or reordered on resize",
    ),
    (
        guaranteed,
        |pod| {
            let policy = json!([{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]);
            own(pod)["resizePolicy"] = policy;
        },
        "Forbidden: only cpu and memory resources are mutable",
    ),
    (
        with_init,
        |pod| pod["spec"]["initContainers"][0]["resources"] = amounts("90m", "64Mi"),
        "spec.initContainers[0]: Forbidden: non-sidecar init containers with a resize policy of RestartContainer cannot be resized",
    ),
    (
        guaranteed,
        |pod| own(pod)["resources"] = amounts("5", "64Mi"),
        "Insufficient cpu: 5 asked for, 3900m left of 3900m",
    ),
    (
        guaranteed,
        |pod| limits(pod)["cpu"] = json!("a lot"),
        "spec.containers[0].resources.limits[cpu]",
    ),
];

#[test]
fn amounts_alone_may_change() {
    let mut bench = Bench::new();
    let mut judge = |base: Change, change: Change| {
        let mut object = json!({"spec": pod("100m", "64Mi")});
        base(&mut object);
        let key = bench.create("p", &object["spec"]);
        let before = bench.entry(&key).record.object.clone();
        let answer = resize(&mut bench, &key, change);
        if answer.is_err() {
            assert_eq!(bench.entry(&key).record.object, before);
        }
        bench
            .agent()
            .delete_pod(&key, Some(0), None, false)
            .unwrap();
        bench.until("it to go", |agent| !agent.pods.contains_key(&key));
        answer
    };
    for (name, base, change) in ALLOWED {
        let answer = judge(base, change);
        assert!(answer.is_ok(), "{name}: {answer:?}");
    }
    for (base, change, expected) in FORBIDDEN {
        let refusal = judge(base, change).unwrap_err();
        assert!(refusal.message.contains(expected), "{}", refusal.message);
    }
}
