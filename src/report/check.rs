//! What would become of the objects of an input, without doing it.
//!
//! Decides nothing: it lays out what admission decided. Its JSON is part of the interface: names stay, new
//! ones may come.
//!
//! ```text
//! {"node": {"name", "source": "input" or "machine", "allocatable"},
//!  "objects": [{"apiVersion", "kind", "namespace", "name", "source", "line", "admitted", "qosClass",
//!               "reasons": [{"code", "field", "message", "container"}],
//!               "warnings": [{"lint", "field", "message", "container"}],
//!               "defaults": [{"container", "list", "resource", "amount", "rule"}],
//!               "effective": {"requests", "limits"},
//!               "quotas": [{"namespace", "name", "hard", "used"}]}],
//!  "quotas": [{"namespace", "name", "hard", "used"}],
//!  "summary": {"objects", "admitted", "refused", "warnings", "kinds": {"pod": 2, …}},
//!  "problems": [{"source", "document", "line", "field", "message"}]}
//! ```

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::explain::{
    AmountMap, Amounts, DefaultRow, NodeExplanation, QuotaExplanation, ReasonRow, amounts,
};
use crate::admission::lint::Owner;
use crate::admission::{Finding, Verdict};
use crate::manifest::Problem;
use crate::model::{ResourceList, ResourceQuota};

/// The answer for a whole input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// The node that was judged for; absent where nothing was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeExplanation>,
    /// Every object of the input, in the order in which they are judged. Empty where there are problems.
    pub objects: Vec<ObjectCheck>,
    /// Every quota of the input, with the admitted objects counted in.
    pub quotas: Vec<QuotaExplanation>,
    /// How many of what.
    pub summary: Summary,
    /// Why the input cannot be judged.
    pub problems: Vec<Problem>,
}

/// How many objects there are, and what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Objects judged.
    pub objects: usize,
    /// Those admitted.
    pub admitted: usize,
    /// Those refused.
    pub refused: usize,
    /// Warnings of all objects.
    pub warnings: usize,
    /// Objects by kind, in small letters.
    pub kinds: BTreeMap<String, usize>,
}

impl Summary {
    /// Counts objects.
    pub fn of(objects: &[ObjectCheck]) -> Self {
        let mut kinds: BTreeMap<_, usize> = BTreeMap::new();
        for object in objects {
            let number = kinds.entry(object.kind.to_ascii_lowercase()).or_default();
            *number = number.saturating_add(1);
        }
        let admitted = objects.iter().filter(|object| object.admitted).count();
        Self {
            objects: objects.len(),
            admitted,
            refused: objects.len().saturating_sub(admitted),
            warnings: objects.iter().map(|object| object.warnings.len()).sum(),
            kinds,
        }
    }
}

/// One object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectCheck {
    /// `v1` or `GROUP/VERSION`.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty if it belongs to none.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The file it is from.
    pub source: String,
    /// The line in which it begins, from 1.
    pub line: usize,
    /// Whether nothing speaks against it.
    pub admitted: bool,
    /// The class of a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos_class: Option<String>,
    /// Everything that speaks against it.
    pub reasons: Vec<ReasonRow>,
    /// What is allowed and yet is hardly meant.
    pub warnings: Vec<WarningRow>,
    /// What was filled in, of a pod.
    pub defaults: Vec<DefaultRow>,
    /// The sums of a pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective: Option<Amounts>,
    /// The quotas that count it, each with the keys it uses and what is used once it is there. Empty if it
    /// is refused.
    pub quotas: Vec<QuotaExplanation>,
}

impl ObjectCheck {
    /// Notes what admission made of a pod, save for its warnings.
    pub fn note(&mut self, verdict: &Verdict) {
        self.admitted = verdict.is_admitted();
        self.qos_class = Some(verdict.qos().to_string());
        self.reasons = verdict.reasons().iter().map(ReasonRow::from).collect();
        self.defaults = DefaultRow::all(verdict);
        self.effective = Some(verdict.effective().into());
    }
}

/// A known surprise in one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarningRow {
    /// Its name: `fraction-of-byte` …
    pub lint: String,
    /// The field; may be empty.
    pub field: String,
    /// What is odd, and what would be right.
    pub message: String,
    /// The container it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
}

impl From<&Finding> for WarningRow {
    fn from(finding: &Finding) -> Self {
        Self {
            lint: finding.lint.to_string(),
            field: finding.field.clone(),
            message: finding.message.clone(),
            container: match &finding.owner {
                Owner::Container(name) => Some(name.clone()),
                _ => None,
            },
        }
    }
}

/// A quota with those of its keys that an object uses.
pub fn share(quota: &ResourceQuota, keys: &ResourceList) -> QuotaExplanation {
    let kept = |all: AmountMap| {
        let names: Vec<_> = keys.iter().map(|(name, _)| name.to_string()).collect();
        all.into_iter()
            .filter(|(name, _)| names.contains(name))
            .collect()
    };
    QuotaExplanation {
        namespace: quota.namespace.clone(),
        name: quota.name.clone(),
        hard: kept(amounts(&quota.hard)),
        used: kept(amounts(&quota.used_of_hard())),
    }
}
