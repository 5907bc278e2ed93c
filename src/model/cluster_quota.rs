//! What the objects of several namespaces may use together (OpenShift's `ClusterResourceQuota`,
//! `quota.openshift.io/v1`), and what they use.
//!
//! Plain data. Its bounds, scopes and total are those of a `ResourceQuota`, so whatever judges one judges
//! the other.

use std::collections::BTreeMap;

use super::namespace::{LabelSelector, Namespace, has_all};
use super::{ResourceList, ResourceQuota};
use crate::units::Quantity;

/// A ClusterResourceQuota and its accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterResourceQuota {
    /// `spec.selector`: whose objects it counts.
    pub selector: NamespaceSelector,
    /// `metadata.name`, `spec.quota` and `status.total`; it has no namespace.
    pub quota: ResourceQuota,
    /// `status.namespaces`: what each selected namespace uses of it. The total is their sum.
    pub namespaces: BTreeMap<String, ResourceList>,
}

impl ClusterResourceQuota {
    /// Adds to the accounts what an object of a namespace uses.
    pub fn charge(&mut self, namespace: &str, amounts: &ResourceList) {
        self.quota.charge(amounts);
        let part = self.namespaces.entry(namespace.to_owned()).or_default();
        part.add(amounts);
    }

    /// What its namespaces use together, with a figure for every key that is bounded.
    pub fn sum(&self) -> ResourceList {
        let zero = self.quota.hard.iter();
        let mut sum: ResourceList = zero
            .map(|(name, _)| (name.clone(), Quantity::ZERO))
            .collect();
        for part in self.namespaces.values() {
            sum.add(part);
        }
        sum
    }

    /// The share of one namespace, in the form of a quota.
    pub fn share_of(&self, namespace: &str) -> ResourceQuota {
        ResourceQuota {
            used: self.namespaces.get(namespace).cloned().unwrap_or_default(),
            ..self.quota.clone()
        }
    }
}

/// A choice of namespaces: all of it must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceSelector {
    /// `labels`; one that is given must ask for something.
    pub labels: Option<LabelSelector>,
    /// `annotations`: those with exactly these values.
    pub annotations: BTreeMap<String, String>,
}

impl NamespaceSelector {
    /// Whether a namespace is chosen.
    pub fn selects(&self, namespace: &Namespace) -> bool {
        let labels = self.labels.as_ref();
        labels.is_none_or(|labels| labels.matches(&namespace.labels))
            && has_all(&namespace.annotations, &self.annotations)
    }
}
