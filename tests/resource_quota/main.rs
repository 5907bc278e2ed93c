//! Quotas: what they count, what they refuse and in which words, and an account that is always true.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]

#[path = "../support/pods.rs"]
mod pods;

mod accounts;
mod admission;
mod ledger;
mod properties;
mod sound;
mod sound_cluster;
mod vectors;
mod vectors_usage;

use allotd::admission::{Demand, Situation, Verdict, admit};
use allotd::manifest::convert;
use allotd::model::{EffectivePod, Pod, ResourceList, ResourceQuota};
use serde_json::{Value, json};

/// The namespace of all pods and quotas here.
const NAMESPACE: &str = "demo";

/// A quota from its JSON, which must be readable.
fn quota(object: &Value) -> ResourceQuota {
    let read = convert::resource_quota(&serde_json::from_value(object.clone()).unwrap());
    assert_eq!(read.problems, [], "{object}");
    ResourceQuota {
        namespace: NAMESPACE.to_owned(),
        ..read.object
    }
}

/// A quota with these bounds, of which this is used.
fn quota_of(name: &str, hard: &Value, used: &Value) -> ResourceQuota {
    quota(&json!({
        "metadata": {"name": name},
        "spec": {"hard": hard},
        "status": {"used": used},
    }))
}

/// What everybody is told of a quota.
fn warnings(quota: &ResourceQuota) -> Vec<String> {
    let findings = allotd::admission::lint::quota(quota, None).into_iter();
    let told = findings.filter(|finding| finding.lint.is_always_told());
    told.map(|finding| finding.to_string()).collect()
}

/// A pod from its JSON, which must be readable.
fn pod(object: &Value) -> Pod {
    let pod = serde_json::from_value(object.clone()).unwrap();
    let uid = convert::placeholder_uid(NAMESPACE, "p").unwrap();
    let read = convert::pod(&pod, &uid);
    assert_eq!(read.problems, [], "{object}");
    Pod {
        namespace: NAMESPACE.to_owned(),
        ..read.object
    }
}

/// A pod of containers with these resources, called `c0`, `c1` ….
fn pod_of(resources: &[Value]) -> Pod {
    let containers: Vec<_> = resources
        .iter()
        .map(|resources| json!({"resources": resources}))
        .collect();
    pods::pod(&json!({"containers": containers}))
}

/// What a pod that is not over asks for.
fn demand(pod: &Pod) -> Demand {
    Demand::of_pod(pod, &EffectivePod::of(pod))
}

/// Judges a pod on a node on which anything usual fits.
fn judge(pod: Pod, quotas: &[ResourceQuota]) -> Verdict {
    let node = pods::big_node();
    let used = ResourceList::default();
    let situation = Situation {
        quotas,
        ..Situation::new(&node, &used, 0)
    };
    admit(pod, &situation)
}

/// All reasons as they are printed.
fn refusals(verdict: &Verdict) -> Vec<String> {
    verdict.reasons().iter().map(ToString::to_string).collect()
}
