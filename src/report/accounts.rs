//! What quotas are charged and for whom, and whether their accounts are true.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::admission::Ledger;
use crate::model::{ResourceList, ResourceQuota};

/// Amounts by resource, as they are written.
type Amounts = BTreeMap<String, String>;

/// Whether every account is what the objects add up to: the answer of `…/accounts`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountsReport {
    /// How many objects were counted.
    pub objects: u64,
    /// How many accounts there are: the node, each quota, each namespace of a cluster quota.
    pub accounts: u64,
    /// The accounts that are wrong; none, unless allotd is.
    pub mismatches: Vec<MismatchRow>,
}

/// An account that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MismatchRow {
    /// Which.
    pub account: String,
    /// What was kept.
    pub kept: Amounts,
    /// What the objects add up to.
    pub counted: Amounts,
}

/// Who is charged what by a quota: one of the answers of `…/namespaces/NAMESPACE/charges`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotaCharges {
    /// Its name.
    pub quota: String,
    /// Whether it counts several namespaces.
    pub is_cluster: bool,
    /// What may be used.
    pub hard: Amounts,
    /// What is used, by all that it counts.
    pub used: Amounts,
    /// The objects of the namespace that are charged anything.
    pub charges: Vec<ChargeRow>,
    /// What other namespaces use of a cluster quota.
    pub elsewhere: Amounts,
}

/// What one object is charged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChargeRow {
    /// `pods/web`
    pub object: String,
    /// How much of what.
    pub amounts: Amounts,
}

/// The accounts as they were at one moment. Adding them up takes time, which is not the owner's.
#[derive(Clone, Debug)]
pub struct Accounts(Ledger);

impl Accounts {
    /// As they are now.
    pub fn of(ledger: &Ledger) -> Self {
        Self(ledger.clone())
    }

    /// Counts everything anew.
    pub fn recount(&self) -> AccountsReport {
        let mismatches = self.0.recount().into_iter().map(|wrong| MismatchRow {
            account: wrong.account,
            kept: amounts(&wrong.kept),
            counted: amounts(&wrong.counted),
        });
        AccountsReport {
            objects: self.0.objects() as u64,
            accounts: self.0.accounts() as u64,
            mismatches: mismatches.collect(),
        }
    }

    /// The quotas that count a namespace, its own first, each by name.
    pub fn charges(&self, namespace: &str) -> Vec<QuotaCharges> {
        let Self(ledger) = self;
        let own = ledger.quotas(namespace).iter();
        let own = own.map(|quota| of_quota(ledger, quota, namespace));
        let cluster = ledger.cluster_quotas(namespace).map(|cluster| {
            let mut elsewhere = ResourceList::default();
            for (other, used) in &cluster.namespaces {
                if other != namespace {
                    elsewhere.add(used);
                }
            }
            QuotaCharges {
                is_cluster: true,
                elsewhere: amounts(&elsewhere),
                ..of_quota(ledger, &cluster.quota, namespace)
            }
        });
        own.chain(cluster).collect()
    }
}

fn of_quota(ledger: &Ledger, quota: &ResourceQuota, namespace: &str) -> QuotaCharges {
    let charges = ledger.shares(quota, namespace).into_iter();
    QuotaCharges {
        quota: quota.name.clone(),
        is_cluster: false,
        hard: amounts(&quota.hard),
        used: amounts(&quota.used_of_hard()),
        charges: charges
            .map(|(holder, share)| ChargeRow {
                object: format!("{}/{}", holder.resource, holder.name),
                amounts: amounts(&share),
            })
            .collect(),
        elsewhere: Amounts::new(),
    }
}

fn amounts(list: &ResourceList) -> Amounts {
    list.iter()
        .map(|(name, amount)| (name.to_string(), amount.to_string()))
        .collect()
}
