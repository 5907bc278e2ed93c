//! A pod as somebody wrote it, before anything was filled in.

use super::{Finding, Lint, MAX_FINDINGS, Owner, amounts, tame};
use crate::model::{List, Pod, Resources, annotation};

/// What is odd about it. Told to everybody.
pub fn written(pod: &Pod) -> Vec<Finding> {
    let mut findings: Vec<_> = pod
        .annotations
        .keys()
        .filter(|key| {
            key.starts_with(annotation::DOMAIN) && !annotation::KNOWN.contains(&key.as_str())
        })
        .map(|key| {
            let known = annotation::KNOWN.join(", ");
            let field = format!("metadata.annotations[{key}]");
            let key = tame(key, 256);
            let message = format!("annotation {key} is not known: {known} are");
            Finding::new(Lint::UnknownAnnotation, &Owner::Object, field, &message)
        })
        .collect();
    if let Some(own) = &pod.resources {
        findings.extend(odd_amounts(&Owner::Pod, "spec.resources", own));
    }
    for (place, index, container) in pod.all_containers() {
        let owner = Owner::Container(container.name.clone());
        let path = format!("spec.{place}[{index}]");
        if container.command.is_empty() && !container.args.is_empty() {
            let field = format!("{path}.args");
            let message = "args are not used without a command";
            findings.push(Finding::new(Lint::UnusedArgs, &owner, field, message));
        }
        let path = format!("{path}.resources");
        findings.extend(odd_amounts(&owner, &path, &container.resources));
        if findings.len() > MAX_FINDINGS {
            break;
        }
    }
    findings.truncate(MAX_FINDINGS);
    findings
}

fn odd_amounts(owner: &Owner, path: &str, resources: &Resources) -> Vec<Finding> {
    let mut findings = Vec::new();
    for list in [List::Requests, List::Limits] {
        for (name, amount) in resources.list(list).iter() {
            if let Some((lint, odd)) = amounts::of_container(list, name, amount) {
                let field = format!("{path}.{list}[{name}]");
                let message = format!("{list}.{name} of {amount} {odd}");
                findings.push(Finding::new(lint, owner, field, &message));
            }
        }
    }
    findings
}
