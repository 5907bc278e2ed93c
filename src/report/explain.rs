//! From a pod's spec to the bytes in the kernel: what was asked for, what was filled in by which rule,
//! what follows for each file of each cgroup and why, and what the kernel holds.
//!
//! Decides nothing: it lays out what admission and translation decided. The same form serves for a
//! manifest that nobody has sent yet and for a pod that runs. Its JSON is part of the interface: names
//! stay, new ones may come.
//!
//! ```text
//! {"node": {"name", "source": "input" or "machine", "allocatable"},
//!  "pods": [{"namespace", "name", "uid", "qosClass", "admitted",
//!            "reasons": [{"code", "field", "message", "container"}], "warnings": [text],
//!            "defaults": [{"container", "list", "resource", "amount", "rule"}],
//!            "effective": {"requests", "limits"},
//!            "containers": [{"name", "requests", "limits", "oomScoreAdj", "security": {"user", "group", "groups",
//!                            "noNewPrivileges", "capabilities", "dropped", "readOnlyRootFilesystem"}}],
//!            "cgroups": [{"path", "level": "node", "qos", "pod" or "container", "container",
//!                         "files": {"cpu.max": "50000 100000", …}, "notes": [text],
//!                         "kernel": {"cpu.max": "50000 100000", …},
//!                         "tightest": [{"file", "value", "path"}]}]}],
//!  "quotas": [{"namespace", "name", "hard", "used"}],
//!  "problems": [{"source", "document", "line", "field", "message"}]}
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::security::SecurityRow;
use crate::admission::{Defaulted, Reason, Verdict};
use crate::cgroup::{CgroupPath, Node as CgroupNode, Tree};
use crate::manifest::Problem;
use crate::model::{EffectivePod, Pod, QosClass, ResourceList, ResourceQuota, Resources};
use crate::translation::{CgroupPlan, LevelTree, PodTree, Tightest, tightest};

/// Amounts by resource, in canonical notation.
pub type AmountMap = BTreeMap<String, String>;
/// Values by interface file, as they are written.
pub type FileMap = BTreeMap<String, String>;

/// The answer for a whole input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The node that the pods were judged for; absent where nothing was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeExplanation>,
    /// Every pod of the input, in order. Empty where there are problems.
    pub pods: Vec<PodExplanation>,
    /// Every quota of the input, with the admitted pods counted in.
    pub quotas: Vec<QuotaExplanation>,
    /// Why the input cannot be judged.
    pub problems: Vec<Problem>,
}

/// The node that pods were judged for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeExplanation {
    /// Its name.
    pub name: String,
    /// Where its figures are from: `input` or `machine`.
    pub source: String,
    /// What pods may ask for in all.
    pub allocatable: AmountMap,
}

/// A quota and what of it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaExplanation {
    /// Its namespace; empty if it counts several.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The bounds.
    pub hard: AmountMap,
    /// What is used of them.
    pub used: AmountMap,
}

impl From<&ResourceQuota> for QuotaExplanation {
    fn from(quota: &ResourceQuota) -> Self {
        Self {
            namespace: quota.namespace.clone(),
            name: quota.name.clone(),
            hard: amounts(&quota.hard),
            used: amounts(&quota.used_of_hard()),
        }
    }
}

/// One pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodExplanation {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its class.
    pub qos_class: String,
    /// Whether it may run.
    pub admitted: bool,
    /// Everything that speaks against it.
    pub reasons: Vec<ReasonRow>,
    /// What is allowed and yet is hardly meant.
    pub warnings: Vec<String>,
    /// What was filled in.
    pub defaults: Vec<DefaultRow>,
    /// The sums of the whole pod.
    pub effective: Amounts,
    /// Its containers in the order they start.
    pub containers: Vec<ContainerExplanation>,
    /// The cgroups that hold it: those above the pod, the pod's, its containers'. Empty for a pod that
    /// is refused.
    pub cgroups: Vec<CgroupExplanation>,
}

/// Requests and limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amounts {
    /// What is asked for.
    pub requests: AmountMap,
    /// What may be used at the most.
    pub limits: AmountMap,
}

impl Amounts {
    /// The amount at a place such as `limits`, `cpu`.
    pub fn get(&self, list: &str, resource: &str) -> Option<&str> {
        let list = match list {
            "limits" => &self.limits,
            _ => &self.requests,
        };
        list.get(resource).map(String::as_str)
    }
}

impl From<&Resources> for Amounts {
    fn from(resources: &Resources) -> Self {
        Self {
            requests: amounts(&resources.requests),
            limits: amounts(&resources.limits),
        }
    }
}

impl From<&EffectivePod> for Amounts {
    fn from(pod: &EffectivePod) -> Self {
        Self {
            requests: amounts(&pod.requests),
            limits: amounts(&pod.limits),
        }
    }
}

/// Amounts in the form they are told in.
pub fn amounts(list: &ResourceList) -> AmountMap {
    list.iter()
        .map(|(name, amount)| (name.to_string(), amount.to_string()))
        .collect()
}

/// One reason against a pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReasonRow {
    /// The kind of rule: `Invalid`, `OutOfcpu` …
    pub code: String,
    /// The field at fault; may be empty.
    pub field: String,
    /// What is wrong.
    pub message: String,
    /// The container it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
}

impl From<&Reason> for ReasonRow {
    fn from(reason: &Reason) -> Self {
        Self {
            code: reason.code.to_string(),
            field: reason.field.clone(),
            message: reason.message.clone(),
            container: reason.container.clone(),
        }
    }
}

/// One amount, or who a container is, that was filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefaultRow {
    /// The container; absent for the pod as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// `requests`, `limits` or `securityContext`.
    pub list: String,
    /// The resource, or the field.
    pub resource: String,
    /// The amount, or what the field holds.
    pub amount: String,
    /// The rule, in words.
    pub rule: String,
}

impl From<&Defaulted> for DefaultRow {
    fn from(defaulted: &Defaulted) -> Self {
        Self {
            container: defaulted.container.clone(),
            list: defaulted.list.to_string(),
            resource: defaulted.resource.to_string(),
            amount: defaulted.amount.to_string(),
            rule: defaulted.rule.to_string(),
        }
    }
}

/// One container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerExplanation {
    /// Its name.
    pub name: String,
    /// What its cgroup is made from: its own amounts and those it has by default or from the pod.
    #[serde(flatten)]
    pub amounts: Amounts,
    /// `oom_score_adj` of its processes; null for a pod that is refused.
    pub oom_score_adj: Option<i32>,
    /// Who its program is; absent where the node starts none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security: Option<SecurityRow>,
}

/// One cgroup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupExplanation {
    /// Its path below the top cgroup, `/` for the top itself.
    pub path: String,
    /// `node`, `qos`, `pod` or `container`.
    pub level: String,
    /// The container it belongs to.
    pub container: Option<String>,
    /// What shall be in each file.
    pub files: FileMap,
    /// Roundings, clamps, floors and defaults, each with its file in front.
    pub notes: Vec<String>,
    /// What is in each file; absent for a pod that does not run. A file that is not there is not in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<FileMap>,
    /// Where a cgroup above allows less.
    pub tightest: Vec<TighterAbove>,
}

/// A cgroup above that allows less than the one in question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TighterAbove {
    /// The file.
    pub file: String,
    /// Its value there.
    pub value: String,
    /// The cgroup.
    pub path: String,
}

/// What admission made of a pod, now or when it was sent.
#[derive(Clone, Debug)]
pub struct Judged<'a> {
    /// The pod after defaulting.
    pub pod: &'a Pod,
    /// Its class.
    pub qos: QosClass,
    /// Its amounts.
    pub effective: &'a EffectivePod,
    /// What was filled in.
    pub defaults: Vec<DefaultRow>,
    /// What speaks against it.
    pub reasons: &'a [Reason],
    /// What is odd about it.
    pub warnings: Vec<String>,
}

impl<'a> From<&'a Verdict> for Judged<'a> {
    fn from(verdict: &'a Verdict) -> Self {
        Self {
            pod: verdict.pod(),
            qos: verdict.qos(),
            effective: verdict.effective(),
            defaults: DefaultRow::all(verdict),
            reasons: verdict.reasons(),
            warnings: verdict.warnings(),
        }
    }
}

/// Lays out a pod. `wanted` is its part of the tree and the levels above, unless it is refused; `found`
/// is what the kernel has, for a pod that runs.
pub fn pod(
    judged: Judged<'_>,
    wanted: Option<(&PodTree, &LevelTree)>,
    found: Option<&Tree>,
) -> PodExplanation {
    let scores = wanted.map_or(&[][..], |(tree, _)| &tree.oom_scores);
    let score = |name: &str| {
        let own = scores.iter().find(|(container, _)| container == name);
        own.map(|(_, score)| *score)
    };
    let containers = judged.effective.containers.iter();
    let containers = judged.pod.all_containers().zip(containers);
    PodExplanation {
        namespace: judged.pod.namespace.clone(),
        name: judged.pod.name.clone(),
        uid: judged.pod.uid.to_string(),
        qos_class: judged.qos.to_string(),
        admitted: judged.reasons.is_empty(),
        reasons: judged.reasons.iter().map(ReasonRow::from).collect(),
        warnings: judged.warnings,
        defaults: judged.defaults,
        effective: judged.effective.into(),
        containers: containers
            .map(|((.., own), container)| ContainerExplanation {
                name: container.name.clone(),
                amounts: (&container.resources).into(),
                oom_score_adj: score(&container.name),
                security: own.has_command().then(|| (&own.security).into()),
            })
            .collect(),
        cgroups: wanted.map_or_else(Vec::new, |(pod, levels)| cgroups(pod, levels, found)),
    }
}

/// The cgroups on the way down to the pod, then its own.
fn cgroups(pod: &PodTree, levels: &LevelTree, found: Option<&Tree>) -> Vec<CgroupExplanation> {
    let Some(own) = pod.cgroups.first() else {
        return Vec::new();
    };
    let above = levels
        .cgroups
        .iter()
        .filter(|plan| own.path.is_within(&plan.path));
    let mut wanted = levels.tree.clone();
    wanted.extend(pod.tree.clone());
    above
        .chain(&pod.cgroups)
        .map(|plan| cgroup(plan, &wanted, found))
        .collect()
}

fn cgroup(plan: &CgroupPlan, wanted: &Tree, found: Option<&Tree>) -> CgroupExplanation {
    let files = wanted.get(&plan.path).map(files).unwrap_or_default();
    let kernel = found.map(|found| {
        let mut there = found.get(&plan.path).map(self::files);
        if let Some(there) = &mut there {
            there.retain(|file, _| files.contains_key(file));
        }
        there.unwrap_or_default()
    });
    CgroupExplanation {
        path: plan.path.to_string(),
        level: plan.level.name().to_owned(),
        container: plan.container.clone(),
        files,
        notes: plan.notes.iter().map(ToString::to_string).collect(),
        kernel,
        tightest: tighter_above(&plan.path, found.unwrap_or(wanted)),
    }
}

fn files(node: &CgroupNode) -> FileMap {
    node.settings
        .values()
        .map(|setting| (setting.file().to_string(), setting.value()))
        .collect()
}

fn tighter_above(path: &CgroupPath, tree: &Tree) -> Vec<TighterAbove> {
    tightest(path, tree)
        .into_iter()
        .filter(Tightest::is_above)
        .map(|bound| TighterAbove {
            file: bound.file.to_string(),
            value: bound.value.value(),
            path: bound.at.to_string(),
        })
        .collect()
}
