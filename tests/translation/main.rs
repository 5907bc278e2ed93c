//! From admitted pods to cgroup values: against the kubelet's own answers (Kubernetes 1.36), as
//! properties, and as whole trees.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

mod burst;
mod frontend;
mod levels;
mod notes;
#[path = "../support/pods.rs"]
mod pods;
mod properties;
mod vectors;
mod vectors_cpu;
mod vectors_memory;
mod vectors_pod;

use allotd::admission::{AdmittedPod, readmit};
use allotd::cgroup::{CgroupPath, InterfaceFile, Tree};
use allotd::model::{Node, Pod, Policy};
use allotd::translation::{Note, PodTree, translate_pod};

fn admitted(pod: Pod) -> AdmittedPod {
    readmit(pod).unwrap_or_else(|reasons| panic!("not admitted: {reasons:#?}"))
}

fn translated(pod: Pod, node: &Node, policy: &Policy) -> PodTree {
    translate_pod(&admitted(pod), node, policy)
}

/// The text that goes into a file.
fn value(tree: &Tree, path: &CgroupPath, file: &str) -> String {
    let file: InterfaceFile = file.parse().unwrap();
    tree.get(path)
        .unwrap_or_else(|| panic!("no cgroup {path}"))
        .get(file)
        .unwrap_or_else(|| panic!("{path} has no {file}"))
        .value()
}

/// The text that goes into a file of a container's cgroup, or of the pod's own.
fn of_cgroup(pod: &PodTree, container: Option<&str>, file: &str) -> String {
    let (_, cgroup) = pod.cgroup(container).unwrap();
    let file: InterfaceFile = file.parse().unwrap();
    cgroup.get(file).unwrap().value()
}

fn of_pod(pod: &PodTree, file: &str) -> String {
    of_cgroup(pod, None, file)
}

fn of_container(pod: &PodTree, container: &str, file: &str) -> String {
    of_cgroup(pod, Some(container), file)
}

/// The notes of a cgroup.
fn notes(pod: &PodTree, container: Option<&str>) -> Vec<String> {
    let (plan, _) = pod.cgroup(container).unwrap();
    plan.notes.iter().map(Note::to_string).collect()
}
