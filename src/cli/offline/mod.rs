//! What is judged without a daemon: the node, the policies and the pods of an input.
//!
//! Shared by `explain -f` and `check`, so that both say the same. Pure but for one thing: without a Node in
//! the input it reads what this machine has.

pub mod policies;
mod node;

use std::collections::BTreeSet;
use std::path::Path;

use k8s_openapi::api::core::v1;

use super::error::CliError;
use super::input::InputPod;
use crate::admission::{self, Demand, Situation, Verdict};
use crate::config::Config;
use crate::manifest::{Located, Object, Problem};
use crate::model::security::NonRoot;
use crate::model::{LimitedResource, Node, Pod, ResourceList};

pub use node::node;
pub use policies::Policies;

/// How an input is to be judged.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Policy and reservations.
    pub config: &'a Config,
    /// The namespace of objects that do not say theirs.
    pub namespace: &'a str,
}

/// The configuration of a file; without one the defaults, whatever the daemon of this machine has.
///
/// # Errors
/// A file that cannot be read, or that holds what is no valid setting.
pub fn config(path: Option<&Path>) -> Result<Config, CliError> {
    let Some(path) = path else {
        return Ok(Config::default());
    };
    Config::load(Some(path)).map_err(|error| CliError::Usage(error.to_string()))
}

/// The node with what the pods of an input have taken of it, and their policies with their accounts.
#[derive(Clone, Debug)]
pub struct Room<'a> {
    node: &'a Node,
    limited: Vec<LimitedResource>,
    non_root: Option<NonRoot>,
    used: ResourceList,
    pods: u64,
    /// LimitRanges and quotas, with what is used of them.
    pub policies: Policies,
}

impl<'a> Room<'a> {
    /// An empty node.
    pub fn new(node: &'a Node, config: &Config, policies: Policies) -> Self {
        Self {
            node,
            limited: config.limited_resources(),
            non_root: config.non_root(),
            used: ResourceList::default(),
            pods: 0,
            policies,
        }
    }

    /// What may be used only where a quota counts it.
    pub fn limited(&self) -> &[LimitedResource] {
        &self.limited
    }

    /// Judges a pod; one that is admitted takes its part of the node and of the quotas. One that is over
    /// is stored already and takes no more.
    pub fn admit(&mut self, pod: Pod, is_over: bool) -> Verdict {
        let policies = &self.policies;
        let situation = Situation {
            limit_ranges: &policies.limit_ranges,
            quotas: if is_over { &[] } else { &policies.quotas },
            cluster_quotas: if is_over {
                Vec::new()
            } else {
                policies.of_cluster(&pod.namespace)
            },
            limited: if is_over { &[] } else { &self.limited },
            non_root: self.non_root.as_ref().filter(|_| !is_over),
            ..Situation::new(self.node, &self.used, self.pods)
        };
        let verdict = admission::admit(pod, &situation);
        if verdict.is_admitted() {
            let demand = demand(&verdict, is_over);
            self.policies.charge(&verdict.pod().namespace, &demand);
            if !is_over {
                self.used.add(&verdict.effective().requests);
                self.pods = self.pods.saturating_add(1);
            }
        }
        verdict
    }
}

/// What a pod uses of quotas. One that is over is still stored, and that is counted.
pub fn demand(verdict: &Verdict, is_over: bool) -> Demand {
    if is_over {
        Demand::of_ended_pod(verdict.pod())
    } else {
        Demand::of_pod(verdict.pod(), verdict.effective())
    }
}

/// A pod that is over holds nothing.
pub fn is_over(pod: &v1::Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Pods of one name, or of one uid: on a node there can be no two. Those that are named when they are made
/// have neither yet.
pub fn twins(pods: &[(&Located<Object>, InputPod<'_>)]) -> Vec<Problem> {
    let mut names = BTreeSet::new();
    let mut uids = BTreeSet::new();
    let mut problems = Vec::new();
    for (located, InputPod { pod, written, .. }) in pods {
        if written.metadata.name.as_deref().is_none_or(str::is_empty) {
            continue;
        }
        if !names.insert(pod.full_name()) {
            let message = format!("pod {} is given twice", pod.full_name());
            problems.push(located.problem("metadata.name", message));
        } else if !uids.insert(&pod.uid) {
            let message = format!("another pod of the input has the uid {} too", pod.uid);
            problems.push(located.problem("metadata.uid", message));
        }
    }
    problems
}

/// What is not known of the namespaces that cluster quotas choose from, by namespace.
pub fn unlabelled<'a>(
    policies: &Policies,
    namespaces: impl IntoIterator<Item = &'a str>,
) -> Vec<(&'a str, String)> {
    let names: BTreeSet<_> = match policies.cluster_quotas.as_slice() {
        [] => BTreeSet::new(),
        _ => namespaces.into_iter().collect(),
    };
    names
        .into_iter()
        .filter(|name| policies.namespace(name).is_none())
        .map(|name| {
            let told = format!(
                "Namespace {name} is not in the input: it is taken to have no annotation, and no label but its name"
            );
            (name, told)
        })
        .collect()
}

/// A problem of the input as a whole.
pub fn of_input(message: String) -> Problem {
    Problem {
        source: String::new(),
        document: 1,
        line: None,
        field: String::new(),
        message,
    }
}
