//! `oom_score_adj`: whom the kernel kills first when the whole node is out of memory.
//!
//! Decides the kubelet's scores (Kubernetes 1.36 `GetContainerOOMScoreAdjust`, KEP-2837). A score is
//! set when a process starts; it must never be changed for one that runs.

use crate::admission::AdmittedPod;
use crate::model::effective::sum_of_containers;
use crate::model::{ContainerKind, EffectivePod, List, Pod, QosClass, Resources};
use crate::units::Bytes;

/// Of Guaranteed and node-critical pods.
const GUARANTEED: i32 = -997;
/// Of BestEffort pods: first to go.
const BEST_EFFORT: i32 = 1000;
/// Burstable pods lie strictly between the two.
const BURSTABLE: (i32, i32) = (3, 999);

/// The score of each container of an admitted pod, on a node with this memory in all.
pub fn oom_score_adj(pod: &AdmittedPod, capacity: Bytes) -> Vec<(String, i32)> {
    scores(pod.pod(), pod.qos(), pod.effective(), capacity)
}

/// The score of each container: -1000 to 1000, in the order in which containers start.
pub fn scores(
    pod: &Pod,
    qos: QosClass,
    effective: &EffectivePod,
    capacity: Bytes,
) -> Vec<(String, i32)> {
    let same = match qos {
        _ if is_node_critical(pod) => Some(GUARANTEED),
        QosClass::Guaranteed => Some(GUARANTEED),
        QosClass::BestEffort => Some(BEST_EFFORT),
        QosClass::Burstable => None,
    };
    let request = |resources: &Resources| resources.requests.memory().unwrap_or_default();
    let extra = share_of_the_rest(pod);
    let least_of_apps = effective
        .containers
        .iter()
        .filter(|container| container.kind == ContainerKind::App)
        .map(|container| request(&container.resources))
        .min();
    effective
        .containers
        .iter()
        .map(|container| {
            let mut asked = request(&container.resources);
            // A sidecar lives as long as the app beside it that lives longest.
            if container.kind == ContainerKind::Sidecar {
                asked = asked.max(least_of_apps.unwrap_or_default());
            }
            let score = same.unwrap_or_else(|| burstable(asked.saturating_add(extra), capacity));
            (container.name.clone(), score)
        })
        .collect()
}

/// Whether the pod goes with the node: critical, and of the class that says so.
fn is_node_critical(pod: &Pod) -> bool {
    pod.is_critical() && pod.priority_class == "system-node-critical"
}

/// What the pod asks for beyond its containers, in equal parts for each of them.
fn share_of_the_rest(pod: &Pod) -> Bytes {
    let whole = pod
        .resources
        .as_ref()
        .and_then(|resources| resources.requests.memory());
    let parts = sum_of_containers(pod, List::Requests).memory();
    let rest = whole
        .unwrap_or_default()
        .saturating_sub(parts.unwrap_or_default());
    let containers = u64::try_from(pod.all_containers().count()).unwrap_or(u64::MAX);
    Bytes(rest.0.checked_div(containers).unwrap_or_default())
}

/// The greater the part of the node's memory that was asked for, the later it goes.
fn burstable(asked: Bytes, capacity: Bytes) -> i32 {
    let (least, most) = BURSTABLE;
    let thousandths = (u128::from(asked.0) * 1000)
        .checked_div(capacity.0.into())
        .unwrap_or(0);
    let thousandths = i32::try_from(thousandths.min(1000)).unwrap_or(1000);
    (1000 - thousandths).clamp(least, most)
}
