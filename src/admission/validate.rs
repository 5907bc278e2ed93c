//! Is a pod allowed at all, on whatever node?
//!
//! Decides from the defaulted pod alone and tells every rule it breaks, in the order of the fields.
//! Paths and texts are those of Kubernetes 1.36 (`pkg/apis/core/validation`); bounds of our own keep
//! hostile input small. It must never look at a node: that is `fit`.

mod containers;
mod pod_level;
pub(super) mod resources;
mod security;
mod volumes;

use std::collections::BTreeMap;

use super::reason::Reason;
use crate::model::kind::POD;
use crate::model::{Kind, Pod, annotation, name};

/// Containers of all kinds in one pod. A bound of ours: each becomes a cgroup and a process.
pub const MAX_CONTAINERS: usize = 512;

/// All annotations together, in bytes (`TotalAnnotationSizeLimitB`).
const MAX_ANNOTATIONS: usize = 256 << 10;

/// Every rule that the pod breaks.
pub fn validate(pod: &Pod) -> Vec<Reason> {
    let mut reasons = metadata(pod);
    if pod.containers.is_empty() {
        reasons.push(Reason::required("spec.containers", ""));
    }
    let number = pod
        .containers
        .len()
        .saturating_add(pod.init_containers.len());
    if number > MAX_CONTAINERS {
        reasons.push(Reason::too_many("spec.containers", number, MAX_CONTAINERS));
    } else {
        reasons.extend(containers::all(pod));
    }
    reasons.extend(pod_level::check(pod));
    reasons.extend(volumes::check(pod));
    reasons.extend(resources::amounts("spec.overhead", &pod.overhead));
    if let Some(seconds) = pod.active_deadline_seconds
        && !(1..=i32::MAX.unsigned_abs().into()).contains(&seconds)
    {
        reasons.push(Reason::invalid(
            "spec.activeDeadlineSeconds",
            seconds,
            "must be between 1 and 2147483647, inclusive",
        ));
    }
    reasons
}

/// Every rule that the name and the namespace of an object break.
pub fn identity(kind: Kind, namespace: &str, name: &str) -> Vec<Reason> {
    let mut reasons = named("metadata.name", name, &kind.name_problems(name));
    if kind.namespaced {
        let problems = name::dns_label(namespace);
        reasons.extend(named("metadata.namespace", namespace, &problems));
    }
    reasons
}

fn named(field: &str, value: &str, problems: &[String]) -> Vec<Reason> {
    if value.is_empty() {
        return vec![Reason::required(field, "")];
    }
    let problems = problems.iter();
    problems
        .map(|problem| Reason::invalid(field, value, problem))
        .collect()
}

fn metadata(pod: &Pod) -> Vec<Reason> {
    let mut reasons = identity(POD, &pod.namespace, &pod.name);
    reasons.extend(labels(&pod.labels, "metadata.labels"));
    reasons.extend(annotations(&pod.annotations, "metadata.annotations"));
    let mut refuse = |key: &str, problem: Option<String>| {
        if let (Some(problem), Some(value)) = (problem, pod.annotations.get(key)) {
            let field = format!("metadata.annotations[{key}]");
            reasons.push(Reason::invalid(field, value, problem));
        }
    };
    refuse(annotation::PIDS_LIMIT, annotation::pids_limit(pod).err());
    refuse(annotation::OOM_POLICY, annotation::oom_policies(pod).err());
    refuse(annotation::CPU_BURST, annotation::cpu_bursts(pod).err());
    let storage = annotation::storage_policy(pod);
    refuse(annotation::STORAGE_POLICY, storage.err());
    reasons
}

/// Every rule that labels break.
pub(super) fn labels(labels: &BTreeMap<String, String>, field: &str) -> Vec<Reason> {
    let pairs = labels.iter().flat_map(|(key, value)| {
        [
            (key, name::qualified_name(key)),
            (value, name::label_value(value)),
        ]
    });
    pairs
        .flat_map(|(text, problems)| {
            let problems = problems.into_iter();
            problems.map(move |problem| Reason::invalid(field, text, problem))
        })
        .collect()
}

/// Every rule that annotations break.
pub(super) fn annotations(annotations: &BTreeMap<String, String>, field: &str) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for key in annotations.keys() {
        // Upstream takes capitals in the prefix here.
        let problems = name::qualified_name(&key.to_ascii_lowercase());
        reasons.extend(
            problems
                .iter()
                .map(|problem| Reason::invalid(field, key, problem)),
        );
    }
    let size = annotations.iter().fold(0_usize, |sum, (key, value)| {
        sum.saturating_add(key.len()).saturating_add(value.len())
    });
    if size > MAX_ANNOTATIONS {
        reasons.push(Reason::too_long(field, size, MAX_ANNOTATIONS));
    }
    reasons
}
