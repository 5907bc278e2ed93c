//! What the quotas of a namespace still allow.
//!
//! Decides what part of an object's use each quota counts, and whether there is room for it: in all of
//! them together, or in none. Texts are those of Kubernetes 1.36 (`apiserver/plugin/pkg/admission/
//! resourcequota`). It keeps no account: what is used is given, and what is to be added is returned.
//! Unlike upstream a quota holds from its first moment: what its account does not name is not used.

mod demand;
mod limited;
mod scope;
mod selector;
mod service;
mod storage;
mod validate;

use std::fmt;

use super::reason::{Code, Reason};
use crate::model::{LimitedResource, ResourceList, ResourceName, ResourceQuota};
use crate::units::Quantity;

pub use demand::Demand;
pub(super) use scope::Traits;
pub use service::{Service, ServiceType};
pub(super) use storage::STORAGE_CLASS;
pub use storage::StorageClaim;
pub use validate::{validate, validate_cluster};

/// What an admitted object adds to the account of one quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The quota's namespace; empty if it counts several.
    pub namespace: String,
    /// The quota's name.
    pub quota: String,
    /// What is added. Only what grew is in it: what shrank is credited when it is seen to be free.
    pub amounts: ResourceList,
}

impl Charge {
    /// Adds it to the account it is for; the others stay as they are.
    pub fn apply(&self, quotas: &mut [ResourceQuota]) {
        let own = |quota: &&mut ResourceQuota| {
            quota.namespace == self.namespace && quota.name == self.quota
        };
        quotas
            .iter_mut()
            .filter(own)
            .for_each(|quota| quota.charge(&self.amounts));
    }
}

/// The quotas of a namespace, by name.
pub fn in_force<'a>(quotas: &'a [ResourceQuota], namespace: &str) -> Vec<&'a ResourceQuota> {
    let mut own: Vec<_> = quotas
        .iter()
        .filter(|quota| quota.namespace == namespace)
        .collect();
    own.sort_by(|a, b| a.name.cmp(&b.name));
    own
}

/// The part of an object's use that a quota counts: nothing unless all its scopes match.
pub fn share(quota: &ResourceQuota, demand: &Demand) -> ResourceList {
    if !demand.matches(quota) {
        return ResourceList::default();
    }
    let counted = demand.usage().iter();
    counted
        .filter(|(name, _)| quota.hard.contains(name))
        .map(|(name, amount)| (name.clone(), amount))
        .collect()
}

/// What all these objects use of a quota together: its account, counted anew. Every key that the quota
/// bounds is in it.
pub fn recount<'a>(
    quota: &ResourceQuota,
    demands: impl IntoIterator<Item = &'a Demand>,
) -> ResourceList {
    let mut sum: ResourceList = quota
        .hard
        .iter()
        .map(|(name, _)| (name.clone(), Quantity::ZERO))
        .collect();
    for demand in demands {
        sum.add(&share(quota, demand));
    }
    sum
}

/// Judges an object that is new, or that was `before` and shall change: what to charge, or every reason
/// against it. Only what grows is looked at, so that a quota that is exceeded already keeps nobody from
/// using less, or from using something else.
///
/// `quotas` are those of the object's namespace; `limited` is what may be used only where a quota counts
/// it.
pub fn judge(
    demand: &Demand,
    before: Option<&Demand>,
    quotas: &[&ResourceQuota],
    limited: &[LimitedResource],
) -> Result<Vec<Charge>, Vec<Reason>> {
    let mut charges = Vec::new();
    let mut reasons = Vec::new();
    let negative: ResourceList = demand
        .usage()
        .iter()
        .filter(|(_, amount)| amount.is_negative())
        .map(|(name, amount)| (name.clone(), amount))
        .collect();
    if !negative.is_empty() && quotas.iter().any(|quota| demand.matches(quota)) {
        let names = Keys(&negative);
        let message = format!("quota usage is negative for resource(s): {names}");
        reasons.push(Reason::policy(Code::FailedQuota, "", &message));
    }
    reasons.extend(limited::uncovered(demand, before, quotas, limited));
    for quota in quotas {
        let old = before.map(|before| share(quota, before));
        let growth = growth(&share(quota, demand), old.as_ref());
        if before.is_none() || !growth.is_empty() {
            reasons.extend(unspecified(quota, demand));
        }
        if growth.is_empty() {
            continue;
        }
        reasons.extend(exceeded(quota, &growth));
        charges.push(Charge {
            namespace: quota.namespace.clone(),
            quota: quota.name.clone(),
            amounts: growth,
        });
    }
    if reasons.is_empty() {
        Ok(charges)
    } else {
        Err(reasons)
    }
}

/// What is more than before, and by how much.
fn growth(now: &ResourceList, before: Option<&ResourceList>) -> ResourceList {
    let old = |name| before.and_then(|before| before.get(name));
    now.iter()
        .filter_map(|(name, amount)| {
            let old = old(name).unwrap_or(Quantity::ZERO);
            let more = amount.saturating_add(-old);
            (more > Quantity::ZERO).then(|| (name.clone(), more.with_format(amount.format())))
        })
        .collect()
}

/// A quota that counts an amount asks of each container to give it: it could not be counted otherwise.
fn unspecified(quota: &ResourceQuota, demand: &Demand) -> Option<Reason> {
    if !demand.matches(quota) {
        return None;
    }
    let missing = demand
        .unspecified()
        .iter()
        .filter(|(key, _)| quota.hard.contains(key));
    let mut texts: Vec<_> = missing
        .map(|(key, containers)| format!("{key} for: {}", containers.join(",")))
        .collect();
    texts.sort();
    (!texts.is_empty()).then(|| {
        let name = &quota.name;
        let message = format!("failed quota: {name}: must specify {}", texts.join("; "));
        Reason::policy(Code::FailedQuota, "", &message)
    })
}

/// The keys of a quota in which there is no room for this.
fn exceeded(quota: &ResourceQuota, growth: &ResourceList) -> Option<Reason> {
    let [mut requested, mut used, mut limited, mut left] = [const { Vec::new() }; 4];
    for (name, more) in sorted(growth) {
        let Some(hard) = quota.hard.get(name) else {
            continue;
        };
        let taken = quota.used.get(name).unwrap_or(Quantity::ZERO);
        if taken.checked_add(more).is_some_and(|sum| sum <= hard) {
            continue;
        }
        let free = hard.checked_sub(taken).unwrap_or(Quantity::ZERO);
        for (list, amount) in [
            (&mut requested, more),
            (&mut used, taken),
            (&mut limited, hard),
            (&mut left, free.max(Quantity::ZERO)),
        ] {
            list.push(format!("{name}={amount}"));
        }
    }
    (!requested.is_empty()).then(|| {
        let message = format!(
            "exceeded quota: {}, requested: {}, used: {}, limited: {}; left: {}",
            quota.name,
            requested.join(","),
            used.join(","),
            limited.join(","),
            left.join(",")
        );
        Reason::policy(Code::ExceededQuota, "", &message)
    })
}

/// Names and amounts in the order of their text, as upstream prints them.
fn sorted(list: &ResourceList) -> Vec<(&ResourceName, Quantity)> {
    let mut all: Vec<_> = list.iter().collect();
    all.sort_by_cached_key(|(name, _)| name.to_string());
    all
}

/// The names of a list, separated by commas.
struct Keys<'a>(&'a ResourceList);

impl fmt::Display for Keys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = sorted(self.0)
            .iter()
            .map(|(name, _)| name.to_string())
            .collect();
        f.write_str(&names.join(","))
    }
}
