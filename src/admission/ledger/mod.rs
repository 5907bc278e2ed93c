//! What is in use: of the node by its pods, of each quota by the objects of its namespace or namespaces.
//!
//! Usage is a function of the objects that are held. It is kept as they come, change and go, in work that
//! follows the object and the quotas that count it, not how many objects or namespaces there are; `recount`
//! counts everything anew and proves it. Pure: who is held is decided elsewhere, after it is durable.

mod cluster;

use std::collections::{BTreeMap, BTreeSet};

use super::{Charge, Demand, Reason, Situation, quota};
use crate::model::{
    ClusterResourceQuota, LimitRange, LimitedResource, Namespace, Node, ResourceList, ResourceQuota,
};
use crate::units::{Format, Quantity};

/// An object that uses something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// Its namespace.
    pub namespace: String,
    /// `pods`, `services`, `jobs.batch` …
    pub resource: String,
    /// Its name.
    pub name: String,
}

/// What a holder uses.
#[derive(Clone, Debug)]
struct Held {
    demand: Demand,
    /// What it takes of the node; only pods that are not over do.
    of_node: Option<ResourceList>,
}

/// The policies of one namespace, the quotas with their accounts.
#[derive(Clone, Debug, Default)]
struct Policies {
    limit_ranges: Vec<LimitRange>,
    quotas: Vec<ResourceQuota>,
    /// The cluster quotas that select the namespace.
    cluster_quotas: BTreeSet<String>,
}

/// All accounts.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    held: BTreeMap<Holder, Held>,
    policies: BTreeMap<String, Policies>,
    namespaces: BTreeMap<String, Namespace>,
    cluster_quotas: BTreeMap<String, ClusterResourceQuota>,
    node: ResourceList,
    pods: u64,
    /// Quotas whose accounts have moved, by namespace and name; a cluster quota has no namespace.
    touched: BTreeSet<(String, String)>,
}

/// An account that is not the sum of what is held: there is no such thing, unless the ledger is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// `NAMESPACE/QUOTA`, `QUOTA` over several namespaces or `QUOTA of NAMESPACE`, or `node`.
    pub account: String,
    /// As kept.
    pub kept: ResourceList,
    /// As counted anew.
    pub counted: ResourceList,
}

impl Ledger {
    /// What a new pod of this namespace is judged against.
    pub fn situation<'a>(
        &'a self,
        node: &'a Node,
        namespace: &str,
        limited: &'a [LimitedResource],
    ) -> Situation<'a> {
        let policies = self.policies.get(namespace);
        Situation {
            node,
            used: &self.node,
            pods: self.pods,
            limit_ranges: policies.map_or(&[], |policies| &policies.limit_ranges),
            quotas: policies.map_or(&[], |policies| &policies.quotas),
            cluster_quotas: self.cluster_quotas(namespace).collect(),
            limited,
            cpus: None,
            non_root: None,
        }
    }

    /// What all pods that are not over take of the node.
    pub fn of_node(&self) -> &ResourceList {
        &self.node
    }

    /// How many those are.
    pub fn pods(&self) -> u64 {
        self.pods
    }

    /// The LimitRanges of a namespace.
    pub fn limit_ranges(&self, namespace: &str) -> &[LimitRange] {
        self.policies
            .get(namespace)
            .map_or(&[], |policies| &policies.limit_ranges)
    }

    /// The quotas of a namespace with what is used of them.
    pub fn quotas(&self, namespace: &str) -> &[ResourceQuota] {
        self.policies
            .get(namespace)
            .map_or(&[], |policies| &policies.quotas)
    }

    /// One quota with what is used of it.
    pub fn quota(&self, namespace: &str, name: &str) -> Option<&ResourceQuota> {
        self.quotas(namespace)
            .iter()
            .find(|quota| quota.name == name)
    }

    /// Whether there is room for an object, new or changed.
    ///
    /// # Errors
    /// Every reason against it.
    pub fn judge(
        &self,
        holder: &Holder,
        demand: &Demand,
        limited: &[LimitedResource],
    ) -> Result<Vec<Charge>, Vec<Reason>> {
        let before = self.held.get(holder).map(|held| &held.demand);
        let mut quotas = quota::in_force(self.quotas(&holder.namespace), &holder.namespace);
        let cluster = self.cluster_quotas(&holder.namespace);
        quotas.extend(cluster.map(|cluster| &cluster.quota));
        quota::judge(demand, before, &quotas, limited)
    }

    /// From now on this is what a holder uses, whatever it used before. It must be durable.
    pub fn hold(&mut self, holder: Holder, demand: Demand, of_node: Option<ResourceList>) {
        self.release(&holder);
        let policies = self.policies.get_mut(&holder.namespace);
        for quota in policies
            .into_iter()
            .flat_map(|policies| &mut policies.quotas)
        {
            let share = quota::share(quota, &demand);
            if !share.is_empty() {
                quota.charge(&share);
                self.touched
                    .insert((quota.namespace.clone(), quota.name.clone()));
            }
        }
        self.charge_cluster(&holder.namespace, &demand);
        if let Some(requests) = &of_node {
            self.node.add(requests);
            self.pods = self.pods.saturating_add(1);
        }
        self.held.insert(holder, Held { demand, of_node });
    }

    /// A holder uses nothing any more.
    pub fn release(&mut self, holder: &Holder) {
        let Some(held) = self.held.remove(holder) else {
            return;
        };
        let mut full = Vec::new();
        let policies = self.policies.get_mut(&holder.namespace);
        for quota in policies
            .into_iter()
            .flat_map(|policies| &mut policies.quotas)
        {
            let share = quota::share(quota, &held.demand);
            if share.is_empty() {
                continue;
            }
            if is_full(&quota.used, &share) {
                full.push(quota.name.clone());
            }
            quota.release(&share);
            self.touched
                .insert((quota.namespace.clone(), quota.name.clone()));
        }
        for name in full {
            self.recount_quota(&holder.namespace, &name);
        }
        self.release_cluster(&holder.namespace, &held.demand);
        if let Some(requests) = held.of_node {
            self.pods = self.pods.saturating_sub(1);
            if is_full(&self.node, &requests) {
                self.node = self.count_node().0;
            } else {
                self.node.subtract(&requests);
            }
        }
    }

    /// The quotas whose accounts may have changed since this was asked last, by namespace and name; a
    /// cluster quota has no namespace. Some may be gone.
    pub fn take_touched(&mut self) -> BTreeSet<(String, String)> {
        std::mem::take(&mut self.touched)
    }

    /// Sets a quota, new or changed: it counts from its first moment, whatever its status said.
    pub fn put_quota(&mut self, quota: ResourceQuota) {
        let (namespace, name) = (quota.namespace.clone(), quota.name.clone());
        let quotas = &mut self.policies.entry(namespace.clone()).or_default().quotas;
        quotas.retain(|known| known.name != name);
        quotas.push(quota);
        quotas.sort_by(|a, b| a.name.cmp(&b.name));
        self.recount_quota(&namespace, &name);
    }

    /// Forgets a quota.
    pub fn remove_quota(&mut self, namespace: &str, name: &str) {
        if let Some(policies) = self.policies.get_mut(namespace) {
            policies.quotas.retain(|quota| quota.name != name);
        }
    }

    /// Sets a LimitRange, new or changed.
    pub fn put_limit_range(&mut self, range: LimitRange) {
        let ranges = &mut self
            .policies
            .entry(range.namespace.clone())
            .or_default()
            .limit_ranges;
        ranges.retain(|known| known.name != range.name);
        ranges.push(range);
        ranges.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// Forgets a LimitRange.
    pub fn remove_limit_range(&mut self, namespace: &str, name: &str) {
        if let Some(policies) = self.policies.get_mut(namespace) {
            policies.limit_ranges.retain(|range| range.name != name);
        }
    }

    /// How many objects are held.
    pub fn objects(&self) -> usize {
        self.held.len()
    }

    /// How many accounts there are: the node, each quota, each namespace of a cluster quota.
    pub fn accounts(&self) -> usize {
        let policies = self.policies.values();
        let own: usize = policies.map(|policies| policies.quotas.len()).sum();
        let cluster = self.cluster_quotas.values();
        let cluster: usize = cluster.map(|quota| 1 + quota.namespaces.len()).sum();
        1 + own + cluster
    }

    /// What each object of a namespace is charged by a quota that counts it; those that are charged
    /// nothing are left out.
    pub fn shares(&self, quota: &ResourceQuota, namespace: &str) -> Vec<(&Holder, ResourceList)> {
        self.of_namespace(namespace)
            .map(|(holder, held)| (holder, quota::share(quota, &held.demand)))
            .filter(|(_, share)| !share.is_empty())
            .collect()
    }

    /// Counts everything anew; whatever differs from what was kept is a fault of this module.
    pub fn recount(&self) -> Vec<Mismatch> {
        let mut wrong = Vec::new();
        for quota in self.policies.values().flat_map(|policies| &policies.quotas) {
            let counted = self.count_quota(quota);
            compare(
                format!("{}/{}", quota.namespace, quota.name),
                &quota.used,
                counted,
                &mut wrong,
            );
        }
        self.recount_cluster(&mut wrong);
        let (counted, pods) = self.count_node();
        compare("node".to_owned(), &self.node, counted, &mut wrong);
        if pods != self.pods {
            let account = format!("node: {} pods, {pods} counted", self.pods);
            wrong.push(Mismatch {
                account,
                kept: ResourceList::default(),
                counted: ResourceList::default(),
            });
        }
        wrong
    }

    fn quotas_mut(&mut self, namespace: &str) -> impl Iterator<Item = &mut ResourceQuota> {
        self.policies
            .get_mut(namespace)
            .into_iter()
            .flat_map(|policies| &mut policies.quotas)
    }

    fn of_namespace(&self, namespace: &str) -> impl Iterator<Item = (&Holder, &Held)> {
        let first = Holder {
            namespace: namespace.to_owned(),
            resource: String::new(),
            name: String::new(),
        };
        self.held
            .range(first..)
            .take_while(move |(holder, _)| holder.namespace == namespace)
    }

    fn count_quota(&self, quota: &ResourceQuota) -> ResourceList {
        let demands = self.of_namespace(&quota.namespace);
        quota::recount(quota, demands.map(|(_, held)| &held.demand))
    }

    fn recount_quota(&mut self, namespace: &str, name: &str) {
        let Some(counted) = self
            .quota(namespace, name)
            .map(|quota| self.count_quota(quota))
        else {
            return;
        };
        if let Some(quota) = self.quotas_mut(namespace).find(|quota| quota.name == name) {
            quota.used = counted;
        }
    }

    fn count_node(&self) -> (ResourceList, u64) {
        let mut sum = ResourceList::default();
        let mut pods: u64 = 0;
        for requests in self.held.values().filter_map(|held| held.of_node.as_ref()) {
            sum.add(requests);
            pods = pods.saturating_add(1);
        }
        (sum, pods)
    }
}

/// Whether one of these amounts has met the end of the range of quantities: what was added then cannot be
/// taken off again, only counted anew.
fn is_full(sum: &ResourceList, parts: &ResourceList) -> bool {
    let least = Quantity::from_nano(1, Format::DecimalSi);
    parts.iter().any(|(name, _)| {
        let (Some(amount), Some(least)) = (sum.get(name), least) else {
            return false;
        };
        amount.checked_add(least).is_none()
    })
}

/// Notes two accounts that differ; nothing is as good as zero.
fn compare(account: String, kept: &ResourceList, counted: ResourceList, wrong: &mut Vec<Mismatch>) {
    let covers = |one: &ResourceList, other: &ResourceList| {
        one.iter()
            .all(|(name, amount)| amount == other.get(name).unwrap_or(Quantity::ZERO))
    };
    if !covers(kept, &counted) || !covers(&counted, kept) {
        wrong.push(Mismatch {
            account,
            kept: kept.clone(),
            counted,
        });
    }
}
