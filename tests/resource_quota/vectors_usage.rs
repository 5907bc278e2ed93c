//! What Kubernetes' own code counts (tests/data/resourcequota.json).
//!
//! A pod that is being deleted counts until it is over: the agent sees when its processes are gone, and
//! a deadline that has passed frees nothing. Upstream lets it go at a time of its own (and adds the
//! grace period twice, kubernetes#113292), since its node may be out of reach.

use allotd::admission::Demand;
use allotd::admission::quota::{self, Service, ServiceType, StorageClaim};
use allotd::model::{
    EffectivePod, Operator, Pod, QosClass, ResourceList, ResourceName, ResourceQuota, Resources,
    Scope, ScopeTerm,
};
use serde_json::{Value, json};

use super::vectors::vectors;
use super::{demand, pods};

fn is_over(phase: &Value) -> bool {
    ["Succeeded", "Failed"].contains(&phase.as_str().unwrap_or_default())
}

/// What is in force of a pod according to its status: of each container the larger of what it has and
/// what it was allotted; only what it asks for is left out.
fn in_force(pod: &Pod, status: &Value) -> Pod {
    let mut pod = pod.clone();
    for own in status["containerStatuses"].as_array().into_iter().flatten() {
        let name = own["name"].as_str().unwrap();
        let found = pod.containers.iter_mut().find(|one| one.name == name);
        let resources = &mut found.unwrap().resources;
        *resources = pods::resources(&own["resources"]);
        resources
            .requests
            .raise_to(&pods::amounts(&own["allocatedResources"]));
    }
    pod
}

/// Whether the node has said that the new size cannot be.
fn is_infeasible(status: &Value) -> bool {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| {
        condition["type"] == "PodResizePending" && condition["reason"] == "Infeasible"
    })
}

#[test]
fn pods_by_key() {
    let (mut whole, mut resized, mut deleted) = (0, 0, 0);
    for vector in vectors(&["pod_usage"]) {
        let (input, expected) = (&vector["input"], &vector["expected"]);
        let pod = super::pod(&input["pod"]);
        let status = &input["pod"]["status"];
        let mut usage = pods::amounts(&expected["usage"]);
        let demand = if is_over(&status["phase"]) {
            Demand::of_ended_pod(&pod)
        } else if status["containerStatuses"].is_array() {
            resized += 1;
            let force = demand(&in_force(&pod, status));
            if is_infeasible(status) {
                force
            } else {
                demand(&pod).raised_to(&force)
            }
        } else {
            demand(&pod)
        };
        if input["pod"]["metadata"].get("deletionTimestamp").is_some() {
            deleted += 1;
            usage.raise_to(&self::demand(&pod).usage().clone());
        }
        if vector["name"]
            == "resize swap between containers: per container max then sum (1.36 and older)"
        {
            // As in 1.37: the greater of the two sums, since no more than that is ever in force.
            for key in ["cpu", "requests.cpu"] {
                usage.set(key.into(), "4".parse().unwrap());
            }
        }
        assert_eq!(demand.usage(), &usage, "{vector}");
        let class = QosClass::of(&pod).to_string();
        assert_eq!(expected["qos"], json!(class), "{vector}");
        whole += 1;
    }
    assert_eq!((whole, resized, deleted), (33, 7, 4));
}

#[test]
fn services_by_key() {
    let vectors = vectors(&["service_usage"]);
    assert_eq!(vectors.len(), 7);
    for vector in vectors {
        let spec = &vector["input"]["spec"];
        let service = Service {
            kind: match spec["type"].as_str().unwrap() {
                "NodePort" => ServiceType::NodePort,
                "LoadBalancer" => ServiceType::LoadBalancer,
                _ => ServiceType::Other,
            },
            ports: spec["ports"]
                .as_array()
                .unwrap()
                .iter()
                .map(|port| port.get("nodePort").is_some())
                .collect(),
            only_named_node_ports: spec["allocateLoadBalancerNodePorts"] == json!(false),
        };
        let usage = pods::amounts(&vector["expected"]["usage"]);
        assert_eq!(service.demand().usage(), &usage, "{vector}");
    }
    let named = Service {
        kind: ServiceType::LoadBalancer,
        ports: vec![true, false],
        only_named_node_ports: true,
    };
    let ports = named.demand().usage().get(&"services.nodeports".into());
    assert_eq!(ports.unwrap().to_string(), "1");
}

fn claim(input: &Value) -> StorageClaim {
    let amount = |field: &str| input[field].as_str().map(|text| text.parse().unwrap());
    StorageClaim {
        request: amount("requests.storage"),
        allocated: amount("status.allocatedResources.storage"),
        storage_class: input["storageClassName"].as_str().map(str::to_owned),
        attributes_classes: Vec::new(),
    }
}

#[test]
fn claims_by_key() {
    let all = vectors(&["pvc_usage"]);
    assert_eq!(all.len(), 4);
    for vector in all {
        let usage = pods::amounts(&vector["expected"]["usage"]);
        assert_eq!(claim(&vector["input"]).demand().usage(), &usage, "{vector}");
    }
    // Which keys a quota must have for a claim to be counted by it.
    let all = vectors(&["pvc_matching_resources"]);
    assert_eq!(all.len(), 1);
    let names = all[0]["input"]["names"].as_array().unwrap().iter();
    let hard: ResourceList = names
        .map(|name| {
            (
                ResourceName::from(name.as_str().unwrap()),
                "1".parse().unwrap(),
            )
        })
        .collect();
    let quota = ResourceQuota {
        hard,
        ..ResourceQuota::default()
    };
    let gold = claim(&json!({"requests.storage": "1", "storageClassName": "gold"}));
    let counted = quota::share(&quota, &gold.demand());
    let expected = all[0]["expected"]["matched"].as_array().unwrap();
    let expected: Vec<_> = expected
        .iter()
        .map(|name| ResourceName::from(name.as_str().unwrap()))
        .collect();
    assert_eq!(counted.iter().count(), expected.len());
    assert!(expected.iter().all(|name| counted.contains(name)));
}

#[test]
fn scopes_of_pods() {
    let vectors = vectors(&["pod_matching_scopes"]);
    assert_eq!(vectors.len(), 2);
    for vector in vectors {
        let given = &vector["input"]["pod"];
        let mut spec = json!({"containers": []});
        if let Some(seconds) = given.get("activeDeadlineSeconds") {
            spec["activeDeadlineSeconds"] = seconds.clone();
        }
        if let Some(names) = given.get("podAffinity.required.namespaces") {
            let term = json!({"namespaces": names, "topologyKey": "zone"});
            spec["affinity"] = json!({
                "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
            });
        }
        let demand = demand(&super::pod(
            &json!({"metadata": {"name": "p"}, "spec": spec}),
        ));
        let scopes: Vec<_> = demand
            .traits()
            .plain()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(json!(scopes), vector["expected"]["scopes"], "{vector}");
    }
}

#[test]
fn pods_together() {
    let vectors = vectors(&["usage_stats"]);
    assert_eq!(vectors.len(), 2);
    for vector in vectors {
        let (input, expected) = (&vector["input"], &vector["expected"]);
        let demands: Vec<_> = input["pods"]
            .as_array()
            .unwrap()
            .iter()
            .map(|given| {
                let amounts = pods::amounts(&json!({"cpu": given["cpu"]}));
                let resources = Resources {
                    requests: amounts.clone(),
                    limits: amounts,
                };
                let app = allotd::model::ContainerKind::App;
                let mut pod = pods::pod_of(vec![pods::container("c", app, resources)]);
                pod.priority_class = given["priority"].as_str().unwrap_or_default().to_owned();
                if is_over(&given["phase"]) {
                    Demand::of_ended_pod(&pod)
                } else {
                    Demand::of_pod(&pod, &EffectivePod::of(&pod))
                }
            })
            .collect();
        let selector = match input["scopeSelector"].as_str() {
            None => Vec::new(),
            Some(text) => {
                assert_eq!(text, "PriorityClass In [high-priority]");
                vec![ScopeTerm {
                    scope: Scope::PriorityClass,
                    operator: Operator::In,
                    values: vec!["high-priority".to_owned()],
                }]
            }
        };
        let quota = ResourceQuota {
            hard: pods::amounts(&expected["used"]),
            selector,
            ..ResourceQuota::default()
        };
        let used = quota::recount(&quota, &demands);
        assert_eq!(used, pods::amounts(&expected["used"]), "{vector}");
    }
}
