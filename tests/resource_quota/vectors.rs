//! Which pods, claims and services Kubernetes' own code admits (tests/data/resourcequota.json).
//!
//! Where its answer is not ours, the vector stands in `OURS` with the reason.

use allotd::admission::quota::{self, Service, ServiceType, StorageClaim};
use allotd::admission::{Charge, Demand, defaults};
use allotd::model::{LimitedResource, Operator, Pod, ResourceQuota, Scope, ScopeTerm};
use serde_json::{Value, json};

use super::{demand, pods};

const VECTORS: &str = include_str!("../data/resourcequota.json");

/// The vectors of these operations.
pub fn vectors(ops: &[&str]) -> Vec<Value> {
    let all: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    assert_eq!(all.len(), 127, "the table is not to be cut");
    let of_op = |vector: &Value| ops.contains(&vector["input"]["op"].as_str().unwrap());
    all.into_iter().filter(of_op).collect()
}

/// Vectors whose recorded answer is not ours, with our answer: the refusal, or nothing.
const OURS: [(&str, &str, &str); 2] = [
    (
        "status unknown: used not yet computed",
        "",
        "an account is a function of what exists, so a key that is absent is not used",
    ),
    (
        "fresh quota with empty status lets everything pass",
        "exceeded quota: new, requested: pods=1, used: pods=0, limited: pods=0",
        "a quota holds from its first moment on",
    ),
];

/// A pod of a vector, with the affinity that its short form stands for.
fn pod(object: &Value, is_defaulted: bool) -> Pod {
    let mut object = object.clone();
    let spec = object["spec"].as_object_mut().unwrap();
    if spec.remove("x-crossNamespaceAffinity") == Some(json!(true)) {
        let term = json!({"namespaceSelector": {}, "topologyKey": "kubernetes.io/hostname"});
        let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
        spec.insert("affinity".to_owned(), json!({"podAntiAffinity": required}));
    }
    let mut pod = super::pod(&object);
    if is_defaulted {
        defaults::apply(&mut pod);
    }
    pod
}

/// The quotas of a vector. Upstream compares with `status.hard`; here it is the spec that holds.
fn quotas(input: &Value) -> Vec<ResourceQuota> {
    let all = input["quotas"].as_array().unwrap();
    all.iter()
        .map(|object| {
            let mut object = object.clone();
            if let Some(hard) = object["status"].get("hard").cloned() {
                object["spec"]["hard"] = hard;
            }
            super::quota(&object)
        })
        .collect()
}

fn limited(input: &Value) -> Vec<LimitedResource> {
    let texts = |list: &Value| -> Vec<String> {
        let texts = list.as_array().cloned().unwrap_or_default();
        let texts = texts.iter().map(|text| text.as_str().unwrap().to_owned());
        texts.collect()
    };
    let limited = input["limitedResources"].as_array().cloned();
    let scopes = |limited: &Value| -> Vec<ScopeTerm> {
        let terms = limited["matchScopes"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let terms = terms.iter().map(|term| ScopeTerm {
            scope: Scope::from_name(term["scopeName"].as_str().unwrap()).unwrap(),
            operator: Operator::from_name(term["operator"].as_str().unwrap()).unwrap(),
            values: texts(&term["values"]),
        });
        terms.collect()
    };
    let limited = limited.unwrap_or_default();
    limited
        .iter()
        .map(|limited| LimitedResource {
            resource: limited["resource"].as_str().unwrap().to_owned(),
            match_contains: texts(&limited["matchContains"]),
            match_scopes: scopes(limited),
        })
        .collect()
}

/// Judges and keeps account: the names of the quotas that were charged, or all refusals in upstream's
/// words.
fn settle(
    demand: &Demand,
    before: Option<&Demand>,
    quotas: &mut [ResourceQuota],
    limited: &[LimitedResource],
) -> Result<Vec<String>, Vec<String>> {
    let in_force = quota::in_force(quotas, super::NAMESPACE);
    match quota::judge(demand, before, &in_force, limited) {
        Ok(charges) => {
            for charge in &charges {
                charge.apply(quotas);
            }
            let name = |charge: Charge| charge.quota;
            Ok(charges.into_iter().map(name).collect())
        }
        Err(reasons) => {
            let familiar = |text: &str| text.split("; left: ").next().unwrap().to_owned();
            let texts = reasons.iter().map(|reason| familiar(&reason.message));
            Err(texts.collect())
        }
    }
}

#[test]
fn pods_against_quotas() {
    let mut own = 0;
    let vectors = vectors(&["admit_pod"]);
    assert_eq!(vectors.len(), 47);
    let mut dry_runs = 0;
    for vector in &vectors {
        let (input, expected) = (&vector["input"], &vector["expected"]);
        if input["dryRun"] == json!(true) {
            // Judging charges nothing: only whoever keeps the pod does.
            dry_runs += 1;
            let given = &input["quota"];
            let quotas = [super::quota_of("quota", &given["hard"], &given["used"])];
            let pod = super::pod_of(&[json!({"requests": input["requests"]})]);
            let judged = quota::judge(
                &demand(&pod),
                None,
                &quota::in_force(&quotas, super::NAMESPACE),
                &[],
            );
            assert_eq!(expected["admitted"], json!(judged.is_ok()));
            assert_eq!(quotas[0].used, pods::amounts(&given["used"]));
            continue;
        }
        let is_defaulted = input["applyPodDefaulting"] == json!(true);
        // A pod that was never stored has nothing that it could have used before.
        let old = input.get("oldPod").filter(|old| {
            let version = old["metadata"]["resourceVersion"].as_str();
            version.is_some_and(|version| !version.is_empty())
        });
        let before = old.map(|old| demand(&pod(old, is_defaulted)));
        let new = demand(&pod(&input["pod"], is_defaulted));
        let mut quotas = quotas(input);
        let outcome = settle(&new, before.as_ref(), &mut quotas, &limited(input));

        let ours = OURS.iter().find(|(name, ..)| vector["name"] == *name);
        if let Some((_, refusal, _)) = ours {
            own += 1;
            let refusals = outcome.err().unwrap_or_default().join("; ");
            assert_eq!(refusals, *refusal, "{vector}");
            continue;
        }
        match outcome {
            Err(refusals) => {
                // Upstream gives scopes that are not covered without the head.
                let head = format!("pods {} is forbidden: ", input["pod"]["metadata"]["name"]);
                let message = expected["message"].as_str().unwrap();
                let message = message.strip_prefix(&head).unwrap_or(message);
                assert_eq!(refusals, [message], "{vector}");
            }
            Ok(charged) => {
                assert_eq!(expected["admitted"], json!(true), "{vector}");
                let all = &expected["quotas_charged"];
                assert_eq!(&json!(charged), all, "{vector}");
                for quota in &quotas {
                    let used = &expected["used_after"][&quota.name];
                    if !used.is_null() {
                        assert_eq!(quota.used, pods::amounts(used), "{vector}");
                    }
                }
            }
        }
    }
    assert_eq!((own, dry_runs), (OURS.len(), 1));
}

#[test]
fn claims_that_grow_and_shrink() {
    let vectors = vectors(&["admit_pvc_update"]);
    assert_eq!(vectors.len(), 2);
    for vector in vectors {
        let (input, expected) = (&vector["input"], &vector["expected"]);
        let demand = |field: &str| {
            let request = input[field].as_str().unwrap().parse().unwrap();
            let claim = StorageClaim {
                request: Some(request),
                ..StorageClaim::default()
            };
            claim.demand()
        };
        let given = &input["quota"];
        let mut quotas = [super::quota_of("quota", &given["hard"], &given["used"])];
        let charged = settle(&demand("new"), Some(&demand("old")), &mut quotas, &[]).unwrap();
        let all = &expected["quotas_charged"];
        assert!(all.is_null() || json!(charged) == *all, "{vector}");
        let used = match &expected["used_after"] {
            Value::Null => &given["used"],
            used => used,
        };
        assert_eq!(quotas[0].used, pods::amounts(used), "{vector}");
    }
}

#[test]
fn a_service_that_uses_less_needs_no_quota() {
    let vectors = vectors(&["admit_service_update"]);
    assert_eq!(vectors.len(), 1);
    let limited = LimitedResource {
        resource: "services".to_owned(),
        match_contains: vec![vectors[0]["input"]["limited"].as_str().unwrap().to_owned()],
        match_scopes: Vec::new(),
    };
    let balancer = Service {
        kind: ServiceType::LoadBalancer,
        ..Service::default()
    };
    let ports = Service {
        kind: ServiceType::NodePort,
        ports: vec![false],
        ..Service::default()
    };
    let (balancer, ports) = (balancer.demand(), ports.demand());
    let limited = [limited];
    assert_eq!(
        settle(&ports, Some(&balancer), &mut [], &limited),
        Ok(vec![])
    );
    assert_eq!(
        settle(&balancer, Some(&ports), &mut [], &limited),
        Err(vec![
            "insufficient quota to consume: services.loadbalancers".to_owned()
        ])
    );
}

/// Upstream looks at an update only where it may matter. Here every change is looked at, and one that
/// adds nothing to any quota asks nothing.
#[test]
fn updates_that_are_looked_at() {
    let vectors = vectors(&["pod_handles", "delete_pod"]);
    let mut deletions = 0;
    let mut updates = 0;
    for vector in vectors {
        let (input, expected) = (&vector["input"], &vector["expected"]);
        if input["operation"] != json!("UPDATE") {
            // Deleting and connecting: nothing is judged, so there is no function to ask.
            deletions += 1;
            continue;
        }
        updates += 1;
        let with_deadline = |seconds: &Value| {
            let mut pod = super::pod_of(&[json!({})]);
            pod.active_deadline_seconds = seconds.as_u64();
            demand(&pod)
        };
        let scoped = |scope: Scope| ResourceQuota {
            scopes: vec![scope],
            ..super::quota_of(&scope.to_string(), &json!({"pods": "5"}), &json!({}))
        };
        let mut quotas = [scoped(Scope::Terminating), scoped(Scope::NotTerminating)];
        let before = with_deadline(&input["oldActiveDeadlineSeconds"]);
        let now = with_deadline(&input["activeDeadlineSeconds"]);
        let charged = settle(&now, Some(&before), &mut quotas, &[]).unwrap();
        assert_eq!(expected["handled"], json!(!charged.is_empty()), "{vector}");
    }
    assert_eq!((updates, deletions), (3, 3));
}
