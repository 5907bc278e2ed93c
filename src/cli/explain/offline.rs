//! An input judged as the daemon would judge it, without a daemon.
//!
//! It must never pass over an object that could have led to another verdict.

use std::path::Path;

use crate::cli::input::{self, InputPod};
use crate::cli::offline::{self, Asked, Policies, Room, is_over};
use crate::config::Config;
use crate::manifest::{Manifest, Object};
use crate::model::Node;
use crate::observation::node::{DEVICES, offline_cpus};
use crate::report::explain::{
    self, Explanation, Judged, NodeExplanation, PodExplanation, QuotaExplanation,
};
use crate::translation::{Totals, levels, translate_pod};

/// Judges all pods of an input in order; beside the answer, what it did not look at.
pub fn explain(manifest: &Manifest, asked: &Asked<'_>) -> (Explanation, Vec<String>) {
    let mut problems = manifest.problems.clone();
    let mut remarks = Vec::new();
    let mut pods = Vec::new();
    let mut nodes = Vec::new();
    for located in &manifest.objects {
        match &located.object {
            Object::Pod(written) => match input::pod(located, written, asked.namespace) {
                Ok(pod) => pods.push((located, pod)),
                Err(more) => problems.extend(more),
            },
            Object::Node(node) => nodes.push((located, node.as_ref())),
            Object::Namespace(_)
            | Object::LimitRange(_)
            | Object::ResourceQuota(_)
            | Object::ClusterResourceQuota(_) => {}
            Object::Other(other) => {
                remarks.push(format!("{} {} is not looked at", other.kind, other.name));
            }
        }
    }
    let policies = Policies::read(&manifest.objects, asked.namespace).unwrap_or_else(|more| {
        problems.extend(more);
        Policies::default()
    });
    let findings = policies.findings().into_iter();
    let told = findings.filter(|(_, finding)| finding.lint.is_always_told());
    remarks.extend(told.map(|(_, finding)| finding.to_string()));
    let namespaces = pods.iter().map(|(_, pod)| pod.pod.namespace.as_str());
    let unlabelled = offline::unlabelled(&policies, namespaces).into_iter();
    remarks.extend(unlabelled.map(|(_, told)| told));
    problems.extend(offline::twins(&pods));
    let node = offline::node(&nodes, asked.config, &mut problems);
    if pods.is_empty() && problems.is_empty() {
        problems.push(offline::of_input("there is no pod in the input".to_owned()));
    }
    let mut explanation = Explanation {
        problems,
        ..Explanation::default()
    };
    if let Some((node, source)) = node
        && explanation.problems.is_empty()
    {
        explanation.node = Some(NodeExplanation {
            name: node.name.clone(),
            source: source.to_owned(),
            allocatable: explain::amounts(&node.allocatable),
        });
        remarks.extend((source == "machine").then(offline_cpus_here).flatten());
        let pods = pods.into_iter().map(|(_, pod)| pod);
        let (pods, quotas) = judge(pods, &node, asked.config, policies);
        explanation.pods = pods;
        explanation.quotas = quotas;
    }
    (explanation, remarks)
}

fn offline_cpus_here() -> Option<String> {
    let off = offline_cpus(Path::new(DEVICES)).filter(|off| !off.is_empty())?;
    Some(format!(
        "CPUs {off} of this machine are off and not counted"
    ))
}

/// Judges pods one after another; each that is admitted takes its part of the node and of the quotas that
/// count its namespace.
fn judge<'a>(
    pods: impl Iterator<Item = InputPod<'a>>,
    node: &Node,
    config: &Config,
    policies: Policies,
) -> (Vec<PodExplanation>, Vec<QuotaExplanation>) {
    let policy = config.policy();
    let mut room = Room::new(node, config, policies);
    let mut totals = Totals::default();
    let mut verdicts = Vec::new();
    for InputPod {
        written,
        pod,
        notes,
    } in pods
    {
        let is_over = is_over(written);
        let verdict = room.admit(pod, is_over);
        let translated = verdict.clone().into_admitted().ok().map(|admitted| {
            let translated = translate_pod(&admitted, node, &policy);
            if !is_over {
                totals.add(&translated.share);
            }
            translated
        });
        verdicts.push((verdict, translated, notes));
    }
    let levels = levels(&totals, node, &policy);
    let verdicts = verdicts.into_iter();
    let explained = verdicts
        .map(|(verdict, translated, notes)| {
            let wanted = translated.as_ref().map(|tree| (tree, &levels));
            let mut explained = explain::pod(Judged::from(&verdict), wanted, None);
            let notes = notes.into_iter();
            explained
                .warnings
                .extend(notes.map(|note| format!("{} {}", note.field, note.message)));
            explained
        })
        .collect();
    let quotas = room.policies.quotas().map(QuotaExplanation::from).collect();
    (explained, quotas)
}
