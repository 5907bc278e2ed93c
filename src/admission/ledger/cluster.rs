//! Quotas of several namespaces: whose objects each counts, and what those use.
//!
//! A namespace joins and leaves with all that it uses, when its labels or the quota's choice change; an
//! object only moves the accounts of the quotas that select its namespace.

use std::collections::BTreeMap;

use super::{Ledger, Mismatch, compare, is_full};
use crate::admission::{Demand, quota};
use crate::model::{ClusterResourceQuota, Namespace, ResourceList};

impl Ledger {
    /// The cluster quotas that select a namespace, by name, with what is used of them. One that is not
    /// known yet is as one that nobody has said anything of.
    pub fn cluster_quotas(&self, namespace: &str) -> impl Iterator<Item = &ClusterResourceQuota> {
        // What has no namespace is counted by none.
        let is_known = namespace.is_empty() || self.namespaces.contains_key(namespace);
        let unknown = (!is_known).then(|| Namespace::named(namespace));
        let of_unknown = unknown.into_iter().flat_map(|namespace| {
            let all = self.cluster_quotas.values();
            all.filter(move |quota| quota.selector.selects(&namespace))
        });
        let names = self.policies.get(namespace).into_iter();
        let names = names.flat_map(|policies| &policies.cluster_quotas);
        let of_known = names.filter_map(|name| self.cluster_quotas.get(name));
        of_known.chain(of_unknown)
    }

    /// One cluster quota with what is used of it.
    pub fn cluster_quota(&self, name: &str) -> Option<&ClusterResourceQuota> {
        self.cluster_quotas.get(name)
    }

    /// Sets a namespace, new or with other labels or annotations. What it uses moves with it.
    pub fn put_namespace(&mut self, namespace: Namespace) {
        let name = namespace.name.clone();
        let (chosen, others): (Vec<_>, Vec<_>) = self
            .cluster_quotas
            .iter()
            .partition(|(_, quota)| quota.selector.selects(&namespace));
        let names = |quotas: Vec<(&String, _)>| -> Vec<String> {
            quotas.into_iter().map(|(name, _)| name.clone()).collect()
        };
        let (chosen, others) = (names(chosen), names(others));
        self.namespaces.insert(name.clone(), namespace);
        for quota in chosen {
            self.join(&quota, &name);
        }
        for quota in others {
            self.leave(&quota, &name);
        }
    }

    /// Forgets a namespace: no cluster quota counts its objects any more.
    pub fn remove_namespace(&mut self, name: &str) {
        self.namespaces.remove(name);
        for quota in self.names(name) {
            self.leave(&quota, name);
        }
    }

    /// Sets a cluster quota, new or changed: it counts from its first moment, whatever its status said.
    pub fn put_cluster_quota(&mut self, mut quota: ClusterResourceQuota) {
        let name = quota.quota.name.clone();
        self.remove_cluster_quota(&name);
        quota.namespaces.clear();
        quota.quota.used = quota.sum();
        let namespaces = self.namespaces.values();
        let chosen: Vec<_> = namespaces
            .filter(|namespace| quota.selector.selects(namespace))
            .map(|namespace| namespace.name.clone())
            .collect();
        self.cluster_quotas.insert(name.clone(), quota);
        for namespace in chosen {
            self.join(&name, &namespace);
        }
    }

    /// Forgets a cluster quota.
    pub fn remove_cluster_quota(&mut self, name: &str) {
        let Some(quota) = self.cluster_quotas.remove(name) else {
            return;
        };
        for namespace in quota.namespaces.keys() {
            if let Some(policies) = self.policies.get_mut(namespace) {
                policies.cluster_quotas.remove(name);
            }
        }
    }

    /// Charges the cluster quotas of a namespace what one of its objects uses.
    pub(super) fn charge_cluster(&mut self, namespace: &str, demand: &Demand) {
        for name in self.names(namespace) {
            if let Some(quota) = self.cluster_quotas.get_mut(&name) {
                let share = quota::share(&quota.quota, demand);
                quota.charge(namespace, &share);
                self.touched.insert((String::new(), name));
            }
        }
    }

    /// Credits them what an object no longer uses; it is no longer among those that are held.
    pub(super) fn release_cluster(&mut self, namespace: &str, demand: &Demand) {
        for name in self.names(namespace) {
            let Some(quota) = self.cluster_quotas.get_mut(&name) else {
                continue;
            };
            let share = quota::share(&quota.quota, demand);
            let Some(part) = quota.namespaces.get_mut(namespace) else {
                continue;
            };
            if is_full(part, &share) {
                self.leave(&name, namespace);
                self.join(&name, namespace);
            } else {
                part.subtract(&share);
                credit(quota, &share);
                self.touched.insert((String::new(), name));
            }
        }
    }

    /// Counts the cluster quotas anew, and which of them select whom.
    pub(super) fn recount_cluster(&self, wrong: &mut Vec<Mismatch>) {
        for (name, quota) in &self.cluster_quotas {
            let mut counted = ClusterResourceQuota {
                namespaces: self.count_parts(quota),
                ..quota.clone()
            };
            let chosen: Vec<_> = counted.namespaces.keys().collect();
            let kept: Vec<_> = quota.namespaces.keys().collect();
            let index = self.policies.iter();
            let index = index.filter(|(_, policies)| policies.cluster_quotas.contains(name));
            if kept != chosen || !index.map(|(namespace, _)| namespace).eq(chosen.clone()) {
                wrong.push(Mismatch {
                    account: format!("{name}: of {kept:?}, {chosen:?} are selected"),
                    kept: ResourceList::default(),
                    counted: ResourceList::default(),
                });
            }
            counted.quota.used = counted.sum();
            compare(name.clone(), &quota.quota.used, counted.quota.used, wrong);
            for (namespace, counted) in counted.namespaces {
                let kept = quota
                    .namespaces
                    .get(&namespace)
                    .cloned()
                    .unwrap_or_default();
                compare(format!("{name} of {namespace}"), &kept, counted, wrong);
            }
        }
    }

    /// The names of the cluster quotas that select a namespace.
    fn names(&self, namespace: &str) -> Vec<String> {
        let policies = self.policies.get(namespace);
        policies.map_or_else(Vec::new, |policies| {
            policies.cluster_quotas.iter().cloned().collect()
        })
    }

    /// A cluster quota counts a namespace from now on, with all that it uses.
    fn join(&mut self, name: &str, namespace: &str) {
        let Some(quota) = self.cluster_quotas.get(name) else {
            return;
        };
        if quota.namespaces.contains_key(namespace) {
            return;
        }
        let part = self.count_part(quota, namespace);
        if let Some(quota) = self.cluster_quotas.get_mut(name) {
            quota.charge(namespace, &part);
            self.touched.insert((String::new(), name.to_owned()));
        }
        let policies = self.policies.entry(namespace.to_owned()).or_default();
        policies.cluster_quotas.insert(name.to_owned());
    }

    /// A cluster quota counts a namespace no more.
    fn leave(&mut self, name: &str, namespace: &str) {
        if let Some(policies) = self.policies.get_mut(namespace) {
            policies.cluster_quotas.remove(name);
        }
        if let Some(quota) = self.cluster_quotas.get_mut(name)
            && let Some(part) = quota.namespaces.remove(namespace)
        {
            credit(quota, &part);
            self.touched.insert((String::new(), name.to_owned()));
        }
    }

    fn count_part(&self, quota: &ClusterResourceQuota, namespace: &str) -> ResourceList {
        let demands = self.of_namespace(namespace);
        quota::recount(&quota.quota, demands.map(|(_, held)| &held.demand))
    }

    fn count_parts(&self, quota: &ClusterResourceQuota) -> BTreeMap<String, ResourceList> {
        let namespaces = self.namespaces.values();
        namespaces
            .filter(|namespace| quota.selector.selects(namespace))
            .map(|namespace| {
                (
                    namespace.name.clone(),
                    self.count_part(quota, &namespace.name),
                )
            })
            .collect()
    }
}

/// Takes from the total what was already taken from the part of a namespace.
fn credit(quota: &mut ClusterResourceQuota, amounts: &ResourceList) {
    if is_full(&quota.quota.used, amounts) {
        quota.quota.used = quota.sum();
    } else {
        quota.quota.release(amounts);
    }
}
