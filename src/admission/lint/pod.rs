//! A pod as admission left it, and the node it is for.

use std::collections::BTreeMap;

use super::amounts::MANY_CPUS;
use super::{Finding, Lint, MAX_FINDINGS, Owner};
use crate::admission::{Defaulted, Rule, Verdict};
use crate::model::{Container, List, Node, Pod, ResourceName, Resources};
use crate::units::{Format, Quantity};

/// All that is odd about a pod. Which of several defaults holds is not among it: that is told of the
/// LimitRanges.
pub fn pod(verdict: &Verdict, node: &Node) -> Vec<Finding> {
    let written = verdict.findings().iter();
    let mut findings: Vec<_> = written
        .filter(|finding| finding.lint != Lint::TiedDefaults)
        .cloned()
        .collect();
    let pod = verdict.pod();
    let copied = copied(verdict.defaults());
    if let Some(given) = copied.get(&None) {
        findings.push(request_from_limit(&Owner::Pod, "spec.resources", given));
    }
    let held = &verdict.effective().containers;
    for ((place, index, container), held) in pod.all_containers().zip(held) {
        let owner = Owner::Container(container.name.clone());
        let path = format!("spec.{place}[{index}].resources");
        if let Some(given) = copied.get(&Some(container.name.as_str())) {
            findings.push(request_from_limit(&owner, &path, given));
        }
        findings.extend(no_limit(pod, &owner, &path, container, &held.resources));
        findings.extend(above_node(&owner, &path, &container.resources, node));
        if findings.len() > MAX_FINDINGS {
            break;
        }
    }
    findings.truncate(MAX_FINDINGS);
    findings
}

/// The requests that are copies of limits, by container. Of what is never overcommitted the two must be
/// the same.
fn copied(defaults: &[Defaulted]) -> BTreeMap<Option<&str>, Vec<String>> {
    let mut copied: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for one in defaults {
        let is_copy = matches!(
            one.rule,
            Rule::RequestFromLimit | Rule::PodRequestFromPodLimit
        );
        if is_copy && !one.resource.is_never_overcommitted() {
            let container = one.container.as_deref();
            let text = format!("{} {}", one.resource, one.amount);
            copied.entry(container).or_default().push(text);
        }
    }
    copied
}

fn request_from_limit(owner: &Owner, path: &str, given: &[String]) -> Finding {
    let given = given.join(", ");
    let message = format!(
        "limits without requests: all of it is asked for and kept from others: {given}; \
         requests that are less leave the rest to them"
    );
    let field = format!("{path}.requests");
    Finding::new(Lint::RequestFromLimit, owner, field, &message)
}

/// What a container asks for and may exceed as it likes. `held` is what holds it, the pod's limits too.
fn no_limit(
    pod: &Pod,
    owner: &Owner,
    path: &str,
    container: &Container,
    held: &Resources,
) -> Option<Finding> {
    let is_positive = |amount: Option<Quantity>| amount.is_some_and(|it| it > Quantity::ZERO);
    let of_pod = |name: &ResourceName| pod.resources.as_ref()?.limits.get(name);
    let unbounded: Vec<_> = [ResourceName::Cpu, ResourceName::Memory]
        .into_iter()
        .filter(|name| {
            is_positive(container.resources.requests.get(name))
                && !is_positive(held.limits.get(name))
                && !is_positive(of_pod(name))
        })
        .collect();
    if unbounded.is_empty() {
        return None;
    }
    let list = |prefix: &str, with: &str| {
        let texts = unbounded.iter().map(|name| format!("{prefix}{name}"));
        texts.collect::<Vec<_>>().join(with)
    };
    let message = format!(
        "requests without limits: nothing but the node bounds its {}; {} would",
        list("", " and "),
        list("limits.", " and ")
    );
    let field = format!("{path}.limits");
    Some(Finding::new(Lint::NoLimit, owner, field, &message))
}

/// Limits that cannot be reached, and CPUs that were meant to be thousandths. That a request does not fit
/// is a reason against the pod already.
fn above_node(owner: &Owner, path: &str, resources: &Resources, node: &Node) -> Vec<Finding> {
    let mut findings = Vec::new();
    let many = Quantity::from_units(MANY_CPUS, Format::DecimalSi);
    for name in [
        ResourceName::Cpu,
        ResourceName::Memory,
        ResourceName::EphemeralStorage,
    ] {
        let Some(most) = node.allocatable.get(&name) else {
            continue;
        };
        for list in [List::Limits, List::Requests] {
            let Some(amount) = resources.list(list).get(&name) else {
                continue;
            };
            let is_cpu = name == ResourceName::Cpu;
            // Beyond all kernels it is told already.
            if amount <= most || is_cpu && amount > many {
                continue;
            }
            let milli = is_cpu && amount.is_integer();
            let question = if milli {
                format!("; did you mean {}m?", amount.exact())
            } else {
                String::new()
            };
            if list == List::Requests && !milli {
                continue;
            }
            let bounds = match list {
                List::Limits => ", so it bounds nothing",
                List::Requests => "",
            };
            let message = format!(
                "{list}.{name} of {amount} is more than the {most} of node {}{bounds}{question}",
                node.name
            );
            let field = format!("{path}.{list}[{name}]");
            findings.push(Finding::new(Lint::AboveNode, owner, field, &message));
            break;
        }
    }
    findings
}
