//! Does a pod fit beside those that are here already?
//!
//! Decides from amounts alone, for every resource at once. It must never drop a resource that the
//! node does not know: the kubelet does (1.36 `GeneralFilter`), and the pod then runs without.

use super::AdmittedPod;
use super::reason::Reason;
use crate::model::{EffectivePod, Node, ResourceList, ResourceName, name};
use crate::units::{Format, Quantity};

/// What these pods ask for together. Pods that have ended must not be among them.
pub fn used<'a>(pods: impl IntoIterator<Item = &'a AdmittedPod>) -> ResourceList {
    let mut sum = ResourceList::default();
    for pod in pods {
        sum.add(&pod.effective().requests);
    }
    sum
}

/// Every resource of which the node has too little left for this pod. `used` is what the `pods` pods
/// already here ask for. Asking for nothing always fits; each pod takes one of the node's `pods`.
pub fn fit(pod: &EffectivePod, node: &Node, used: &ResourceList, pods: u64) -> Vec<Reason> {
    let mut reasons: Vec<_> = pod
        .requests
        .iter()
        .filter(|(name, amount)| !amount.is_zero() && is_countable(name))
        .filter_map(|(name, amount)| shortage(name, amount, node, used))
        .collect();
    let one = Quantity::from_units(1, Format::DecimalSi);
    let pods = Quantity::from_units(pods, Format::DecimalSi);
    if let Some(most) = node.allocatable.get(&ResourceName::Pods)
        && pods.saturating_add(one) > most
    {
        let name = ResourceName::Pods;
        let message = format!("{}; Too many pods", kubelet_text(&name, one, pods, most));
        reasons.push(Reason::out_of(name, &message));
    }
    reasons
}

/// Names that `validate` refuses are none that a node could have.
fn is_countable(resource: &ResourceName) -> bool {
    match resource {
        ResourceName::Pods => false,
        ResourceName::Other(text) => text.contains('/') && name::qualified_name(text).is_empty(),
        _ => true,
    }
}

fn shortage(
    name: &ResourceName,
    amount: Quantity,
    node: &Node,
    used: &ResourceList,
) -> Option<Reason> {
    let taken = used.get(name).unwrap_or(Quantity::ZERO);
    let allocatable = node.allocatable.get(name);
    let most = allocatable.unwrap_or(Quantity::ZERO);
    if taken.saturating_add(amount) <= most {
        return None;
    }
    let familiar = kubelet_text(name, amount, taken, most);
    let left = most.checked_sub(taken).unwrap_or(Quantity::ZERO);
    let plainly = match name {
        _ if allocatable.is_some() => {
            format!(
                "{amount} asked for, {} left of {most}",
                left.max(Quantity::ZERO)
            )
        }
        ResourceName::HugePages(_) => no_such_pages(node),
        _ => "this node does not offer it".to_owned(),
    };
    let message = format!("{familiar}; Insufficient {name}: {plainly}");
    Some(Reason::out_of(name.clone(), &message))
}

/// The kubelet's words: cpu in thousandths, everything else in whole units.
fn kubelet_text(name: &ResourceName, asked: Quantity, used: Quantity, most: Quantity) -> String {
    let figure = |amount: Quantity| match name {
        ResourceName::Cpu => amount.milli_value(),
        _ => amount.value(),
    };
    format!(
        "Node didn't have enough resource: {name}, requested: {}, used: {}, capacity: {}",
        figure(asked),
        figure(used),
        figure(most)
    )
}

fn no_such_pages(node: &Node) -> String {
    let sizes: Vec<_> = node
        .huge_page_sizes()
        .iter()
        .map(|size| size.kubernetes_name())
        .collect();
    if sizes.is_empty() {
        "this node has no huge pages".to_owned()
    } else {
        format!(
            "this node has no huge pages of this size, but of {}",
            sizes.join(" and ")
        )
    }
}
