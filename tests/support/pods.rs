//! Pods and nodes for tests: read from the JSON of a Kubernetes pod spec, or built.

#![allow(dead_code)]

use std::collections::BTreeMap;

use allotd::model::pod::RestartPolicy;
use allotd::model::{
    Container, ContainerKind, Node, Pod, PodUid, ResourceList, ResourceName, Resources,
};
use allotd::units::{Bytes, PageSize, Quantity};
use serde_json::Value;

/// A data file of `tests/data`.
pub fn data(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Amounts from `{"cpu": "1"}`; none from `null`. Two spellings of one name are summed.
pub fn amounts(json: &Value) -> ResourceList {
    let mut list = ResourceList::default();
    for (name, amount) in json.as_object().into_iter().flatten() {
        let amount: Quantity = amount.as_str().unwrap().parse().unwrap();
        list.add(
            &[(ResourceName::from(name.as_str()), amount)]
                .into_iter()
                .collect(),
        );
    }
    list
}

/// Requests and limits from `{"requests": …, "limits": …}`.
pub fn resources(json: &Value) -> Resources {
    Resources {
        requests: amounts(&json["requests"]),
        limits: amounts(&json["limits"]),
    }
}

/// A container that sleeps.
pub fn container(name: &str, kind: ContainerKind, resources: Resources) -> Container {
    Container {
        name: name.to_owned(),
        kind,
        image: String::new(),
        command: vec!["sleep".to_owned(), "inf".to_owned()],
        args: Vec::new(),
        env: Vec::new(),
        working_dir: None,
        mounts: Vec::new(),
        resources,
        resize_policy: allotd::model::pod::ResizePolicy::default(),
        probes: allotd::model::probe::Probes::default(),
        security: allotd::model::security::Security::default(),
    }
}

/// A pod of these containers, `demo/web`.
pub fn pod_of(containers: Vec<Container>) -> Pod {
    let (containers, init_containers) = containers
        .into_iter()
        .partition(|container| container.kind == ContainerKind::App);
    Pod {
        namespace: "demo".to_owned(),
        name: "web".to_owned(),
        uid: PodUid::new("6c1a4e95-6bb6-11e6-bc26-28d2444e470d").unwrap(),
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        init_containers,
        containers,
        volumes: Vec::new(),
        foreign_volumes: Vec::new(),
        fs_group: None,
        resources: None,
        overhead: ResourceList::default(),
        restart_policy: RestartPolicy::Always,
        termination_grace_seconds: 30,
        active_deadline_seconds: None,
        priority: 0,
        priority_class: String::new(),
        has_cross_namespace_affinity: false,
        is_static: false,
    }
}

/// A pod from the parts of a pod spec that concern resources. Containers without a name are called
/// `c0`, `c1` …, init containers `i0`, `i1` ….
pub fn pod(spec: &Value) -> Pod {
    let read = |field: &str, prefix: &str| {
        let items = spec[field].as_array().cloned().unwrap_or_default();
        let read_one = |(index, json): (usize, Value)| {
            let kind = match (prefix, json["restartPolicy"].as_str()) {
                ("c", _) => ContainerKind::App,
                (_, Some("Always")) => ContainerKind::Sidecar,
                _ => ContainerKind::Init,
            };
            let name = json["name"]
                .as_str()
                .map_or_else(|| format!("{prefix}{index}"), str::to_owned);
            container(&name, kind, resources(&json["resources"]))
        };
        items
            .into_iter()
            .enumerate()
            .map(read_one)
            .collect::<Vec<_>>()
    };
    Pod {
        init_containers: read("initContainers", "i"),
        containers: read("containers", "c"),
        resources: spec.get("resources").map(resources),
        overhead: amounts(&spec["overhead"]),
        ..pod_of(Vec::new())
    }
}

/// A node that takes pods up to these amounts.
pub fn node(allocatable: &Value) -> Node {
    let amounts = amounts(allocatable);
    Node {
        name: "node".to_owned(),
        capacity: amounts.clone(),
        reserved: ResourceList::default(),
        allocatable: amounts,
        page_size: PageSize::FOUR_KIB,
        max_pids: None,
        reserved_pids: 0,
        swap: Bytes::ZERO,
    }
}

/// A node on which anything usual fits.
pub fn big_node() -> Node {
    node(&serde_json::json!({
        "cpu": "1000", "memory": "16Ti", "ephemeral-storage": "16Ti",
        "hugepages-2Mi": "1Ti", "hugepages-1Gi": "1Ti", "pods": "1000",
    }))
}
