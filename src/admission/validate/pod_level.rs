//! Resources of the pod as a whole (`spec.resources`, Kubernetes 1.34 and later).

use super::resources::{amount_reasons, entry, pairs};
use crate::admission::Reason;
use crate::model::effective::sum_of_containers;
use crate::model::{List, Pod, ResourceName, Resources};

const PATH: &str = "spec.resources";

/// Every rule that the pod-level resources break.
pub(super) fn check(pod: &Pod) -> Vec<Reason> {
    let Some(own) = &pod.resources else {
        return Vec::new();
    };
    let mut reasons = Vec::new();
    for list in [List::Limits, List::Requests] {
        for (name, amount) in own.list(list).iter() {
            let field = entry(&format!("{PATH}.{list}"), name);
            if !name.is_pod_level() {
                let supported = ["cpu", "hugepages-", "memory"];
                reasons.push(Reason::not_supported(&field, name, &supported));
            }
            reasons.extend(amount_reasons(&field, name, amount));
        }
    }
    reasons.extend(pairs(PATH, own));
    reasons.extend(sums(pod, own));
    reasons.extend(container_limits(pod, own));
    reasons
}

/// The pod must ask for what its containers ask for together. Limits may be overcommitted: sharing is
/// the point; but not those of huge pages.
fn sums(pod: &Pod, own: &Resources) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for list in [List::Requests, List::Limits] {
        let together = sum_of_containers(pod, list);
        for (name, amount) in own
            .list(list)
            .iter()
            .filter(|(name, _)| name.is_pod_level())
        {
            let counts = list == List::Requests || matches!(name, ResourceName::HugePages(_));
            if let Some(sum) = together.get(name).filter(|sum| counts && amount < *sum) {
                let field = entry(&format!("{PATH}.{list}"), name);
                let detail =
                    format!("must be greater than or equal to aggregate container {list} of {sum}");
                reasons.push(Reason::invalid(field, amount, detail));
            }
        }
    }
    reasons
}

/// No app container may have a greater limit than the pod; as upstream, init containers are free to.
/// Upstream names the field `spec.resources.containers[0][cpu].limits`, which no object has.
fn container_limits(pod: &Pod, own: &Resources) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for (index, container) in pod.containers.iter().enumerate() {
        for (name, most) in own.limits.iter().filter(|(name, _)| name.is_pod_level()) {
            let limit = container.resources.limits.get(name);
            if let Some(limit) = limit.filter(|limit| *limit > most) {
                let field = entry(&format!("spec.containers[{index}].resources.limits"), name);
                let detail = format!("must be less than or equal to pod limits of {most}");
                reasons.push(Reason::invalid(field, limit, detail).about(&container.name));
            }
        }
    }
    reasons
}
