//! LimitRanges: what they fill in, what they refuse, and in which words.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, in its helpers too"
)]

#[path = "../support/pods.rs"]
mod pods;

mod origins;
mod properties;
mod sound;
mod vectors;

use allotd::admission::{Situation, Verdict, admit};
use allotd::manifest::convert;
use allotd::model::{LimitRange, Pod, ResourceList};
use serde_json::{Value, json};

/// The namespace of all pods and LimitRanges here.
const NAMESPACE: &str = "demo";

/// A LimitRange from its JSON, which must be readable.
fn range(object: &Value) -> LimitRange {
    let read = convert::limit_range(&serde_json::from_value(object.clone()).unwrap());
    assert_eq!(read.problems, [], "{object}");
    LimitRange {
        namespace: NAMESPACE.to_owned(),
        ..read.object
    }
}

/// A LimitRange with these items.
fn range_of(name: &str, items: &Value) -> LimitRange {
    range(&json!({"metadata": {"name": name}, "spec": {"limits": items}}))
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
    pods::pod(&json!({
        "containers": resources
            .iter()
            .map(|resources| json!({"resources": resources}))
            .collect::<Vec<_>>()
    }))
}

/// Judges a pod on a node on which anything usual fits.
fn judge(pod: Pod, ranges: &[LimitRange]) -> Verdict {
    let node = pods::big_node();
    let used = ResourceList::default();
    let situation = Situation {
        limit_ranges: ranges,
        ..Situation::new(&node, &used, 0)
    };
    admit(pod, &situation)
}

/// All reasons as they are printed.
fn refusals(verdict: &Verdict) -> Vec<String> {
    verdict.reasons().iter().map(ToString::to_string).collect()
}
