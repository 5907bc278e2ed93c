//! The policies of an input: the LimitRanges and the quotas that its pods are held to, and the namespaces
//! by whose labels some are chosen.
//!
//! It must never pass over one that is not sound: no verdict could be trusted then.

use std::collections::BTreeSet;

use crate::admission::{Charge, Demand, Finding, Reason, limit_range, lint, quota};
use crate::manifest::convert::{self, Remark};
use crate::manifest::{Located, Object, Problem};
use crate::model::{
    ClusterResourceQuota, Kinds, LimitRange, LimitedResource, Namespace, ResourceList,
    ResourceQuota,
};

/// LimitRanges and quotas, in the order of the input.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// LimitRanges.
    pub limit_ranges: Vec<LimitRange>,
    /// Quotas; what their status says is used counts.
    pub quotas: Vec<ResourceQuota>,
    /// Quotas of several namespaces; what their status says of each namespace counts.
    pub cluster_quotas: Vec<ClusterResourceQuota>,
    /// Namespaces. Another one has no labels but its name.
    pub namespaces: Vec<Namespace>,
    /// What was charged so far, by namespace: a quota counts what was there before it.
    charged: Vec<(String, Demand)>,
}

/// One policy.
#[derive(Clone, Debug)]
pub enum Policy {
    /// A LimitRange.
    LimitRange(LimitRange),
    /// A quota.
    Quota(ResourceQuota),
    /// A quota of several namespaces.
    ClusterQuota(ClusterResourceQuota),
    /// A namespace.
    Namespace(Namespace),
}

/// A policy as it could be read.
#[derive(Clone, Debug)]
pub struct ReadPolicy {
    /// The policy. It may be used only if nothing is wrong with it.
    pub policy: Policy,
    /// What cannot be read.
    pub unreadable: Vec<Remark>,
    /// Every rule that it breaks.
    pub reasons: Vec<Reason>,
}

/// Reads an object, if it is a policy. One without a namespace of its own belongs to `namespace`.
pub fn read(object: &Object, namespace: &str) -> Option<ReadPolicy> {
    let namespace = namespace_of(object, namespace, &Kinds::default());
    let (policy, unreadable, reasons) = match object {
        Object::LimitRange(written) => {
            let mut read = convert::limit_range(written);
            namespace.clone_into(&mut read.object.namespace);
            let reasons = limit_range::validate(&read.object);
            (Policy::LimitRange(read.object), read.problems, reasons)
        }
        Object::ResourceQuota(written) => {
            let mut read = convert::resource_quota(written);
            namespace.clone_into(&mut read.object.namespace);
            let reasons = quota::validate(&read.object);
            (Policy::Quota(read.object), read.problems, reasons)
        }
        Object::ClusterResourceQuota(written) => {
            let read = convert::cluster_resource_quota(written);
            let reasons = quota::validate_cluster(&read.object);
            (Policy::ClusterQuota(read.object), read.problems, reasons)
        }
        Object::Namespace(written) => {
            let namespace = convert::namespace(written);
            (Policy::Namespace(namespace), Vec::new(), Vec::new())
        }
        _ => return None,
    };
    Some(ReadPolicy {
        policy,
        unreadable,
        reasons,
    })
}

/// The namespace that an object belongs to: its own, else `namespace`; none for one that has none.
pub fn namespace_of<'a>(object: &'a Object, namespace: &'a str, kinds: &Kinds) -> &'a str {
    let kind = kinds.of_object(object.api_version(), object.kind());
    if kind.is_some_and(|kind| !kind.namespaced) {
        return "";
    }
    let own = object.namespace().filter(|own| !own.is_empty());
    own.unwrap_or(namespace)
}

impl Policies {
    /// Those of an input.
    ///
    /// # Errors
    /// Everything that is wrong with one of them.
    pub fn read(objects: &[Located<Object>], namespace: &str) -> Result<Self, Vec<Problem>> {
        let mut policies = Self::default();
        let mut problems = Vec::new();
        let mut seen = BTreeSet::new();
        for located in objects {
            let Some(read) = read(&located.object, namespace) else {
                continue;
            };
            let remarks = read.unreadable.into_iter();
            problems.extend(remarks.map(|it| located.problem(&it.field, it.message)));
            let reasons = read.reasons.into_iter();
            problems.extend(reasons.map(|it| located.problem(&it.field, it.message)));
            problems.extend(twice(located, namespace, &Kinds::default(), &mut seen));
            policies.add(read.policy);
        }
        if problems.is_empty() {
            Ok(policies)
        } else {
            Err(problems)
        }
    }

    /// One more. A quota counts what was charged before it as well.
    pub fn add(&mut self, policy: Policy) {
        match policy {
            Policy::LimitRange(range) => self.limit_ranges.push(range),
            Policy::Namespace(namespace) => self.namespaces.push(namespace),
            Policy::Quota(mut new) => {
                for (namespace, demand) in &self.charged {
                    if *namespace == new.namespace {
                        let share = quota::share(&new, demand);
                        new.charge(&share);
                    }
                }
                self.quotas.push(new);
            }
            Policy::ClusterQuota(mut new) => {
                for (namespace, demand) in &self.charged {
                    if self.selects(&new, namespace) {
                        let share = quota::share(&new.quota, demand);
                        new.charge(namespace, &share);
                    }
                }
                self.cluster_quotas.push(new);
            }
        }
    }

    /// What is allowed and yet is hardly meant, by namespace; an empty one for cluster quotas.
    pub fn findings(&self) -> Vec<(&str, Finding)> {
        let mut findings = Vec::new();
        let of_ranges = self.limit_ranges.iter().map(|range| &range.namespace);
        let of_quotas = self.quotas.iter().map(|quota| &quota.namespace);
        let namespaces: BTreeSet<_> = of_ranges.chain(of_quotas).collect();
        for namespace in namespaces {
            let ranges = limit_range::in_force(&self.limit_ranges, namespace);
            let of_ranges = lint::limit_ranges(&ranges);
            let quotas = self.quotas.iter().filter(|it| it.namespace == *namespace);
            let of_quotas = quotas.flat_map(|quota| lint::quota(quota, Some(&ranges)));
            let found = of_ranges.into_iter().chain(of_quotas);
            findings.extend(found.map(|finding| (namespace.as_str(), finding)));
        }
        for cluster in &self.cluster_quotas {
            let found = lint::quota(&cluster.quota, None).into_iter();
            findings.extend(found.map(|finding| ("", finding)));
        }
        findings
    }

    /// All quotas: those of one namespace, then those of several.
    pub fn quotas(&self) -> impl Iterator<Item = &ResourceQuota> {
        let cluster = self.cluster_quotas.iter().map(|cluster| &cluster.quota);
        self.quotas.iter().chain(cluster)
    }

    /// The cluster quotas that select a namespace, by name.
    pub fn of_cluster(&self, namespace: &str) -> Vec<&ClusterResourceQuota> {
        let all = self.cluster_quotas.iter();
        let mut chosen: Vec<_> = all.filter(|quota| self.selects(quota, namespace)).collect();
        chosen.sort_by(|a, b| a.quota.name.cmp(&b.quota.name));
        chosen
    }

    fn selects(&self, quota: &ClusterResourceQuota, namespace: &str) -> bool {
        match self.namespace(namespace) {
            Some(known) => quota.selector.selects(known),
            None => quota.selector.selects(&Namespace::named(namespace)),
        }
    }

    /// The namespace of this name, if it is in the input.
    pub fn namespace(&self, name: &str) -> Option<&Namespace> {
        self.namespaces.iter().find(|known| known.name == name)
    }

    /// The quotas that count the objects of a namespace, by name, with what is used of them.
    fn counting(&self, namespace: &str) -> Vec<&ResourceQuota> {
        let mut quotas = quota::in_force(&self.quotas, namespace);
        let cluster = self.of_cluster(namespace).into_iter();
        quotas.extend(cluster.map(|cluster| &cluster.quota));
        quotas
    }

    /// Whether quotas have room for an object of a namespace.
    ///
    /// # Errors
    /// Every reason against it.
    pub fn judge(
        &self,
        namespace: &str,
        demand: &Demand,
        limited: &[LimitedResource],
    ) -> Result<Vec<Charge>, Vec<Reason>> {
        quota::judge(demand, None, &self.counting(namespace), limited)
    }

    /// The quotas that count an object, each with the keys that it uses.
    pub fn shares(&self, namespace: &str, demand: &Demand) -> Vec<(&ResourceQuota, ResourceList)> {
        let counting = self.counting(namespace).into_iter();
        counting
            .map(|quota| (quota, quota::share(quota, demand)))
            .filter(|(_, share)| !share.is_empty())
            .collect()
    }

    /// Counts an object of a namespace.
    pub fn charge(&mut self, namespace: &str, demand: &Demand) {
        for quota in &mut self.quotas {
            if quota.namespace == namespace {
                let share = quota::share(quota, demand);
                quota.charge(&share);
            }
        }
        let chosen = self.of_cluster(namespace).into_iter();
        let chosen: Vec<_> = chosen.map(|quota| quota.quota.name.clone()).collect();
        for quota in &mut self.cluster_quotas {
            if chosen.contains(&quota.quota.name) {
                let share = quota::share(&quota.quota, demand);
                quota.charge(namespace, &share);
            }
        }
        self.charged.push((namespace.to_owned(), demand.clone()));
    }
}

/// What tells one object from another: group, kind, namespace and name.
pub type Identity<'a> = (&'a str, &'a str, &'a str, &'a str);

/// A second object of one kind, namespace and name; `seen` are those before it.
pub fn twice<'a>(
    located: &'a Located<Object>,
    namespace: &'a str,
    kinds: &Kinds,
    seen: &mut BTreeSet<Identity<'a>>,
) -> Option<Problem> {
    let (kind, name) = (located.object.kind(), located.object.name());
    let group = located.object.api_version().split('/').next();
    let namespace = namespace_of(&located.object, namespace, kinds);
    let identity = (group.unwrap_or_default(), kind, namespace, name);
    (!seen.insert(identity)).then(|| {
        let message = format!("{kind} {name} is given twice");
        located.problem("metadata.name", message)
    })
}
