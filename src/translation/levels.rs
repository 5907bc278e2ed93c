//! The cgroups above the pods: the top, `burstable` and `besteffort`.
//!
//! Their values hang on all pods, but only through sums, so a pod that comes or goes costs one
//! addition. A sum must never be kept in step by hand: what was added is what is taken away.

use super::cpu;
use super::layout::{Level, qos_path};
use super::memory::{self, Protection};
use super::note::Draft;
use super::{CgroupPlan, enabled, hugetlb, pids};
use crate::cgroup::{CgroupPath, Tree};
use crate::model::{Node, Policy, QosClass};
use crate::units::{Bytes, MilliCpu};

/// What a pod adds to the levels above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The pod's class.
    pub qos: QosClass,
    /// The CPU it asks for.
    pub cpu: MilliCpu,
    /// The memory it protects.
    pub protection: Protection,
}

/// Sums over pods. Adding a share and removing it again leaves no trace, in whatever order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    burstable_cpu: u128,
    burstable: Sum,
    all: Sum,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    min: u128,
    low: u128,
}

impl Totals {
    /// Adds a pod.
    pub fn add(&mut self, share: &Share) {
        self.update(share, u128::saturating_add);
    }

    /// Takes away a pod that was added with this very share.
    pub fn remove(&mut self, share: &Share) {
        self.update(share, u128::saturating_sub);
    }

    fn update(&mut self, share: &Share, step: impl Fn(u128, u128) -> u128) {
        let both = |sum: Sum| Sum {
            min: step(sum.min, share.protection.min.0.into()),
            low: step(sum.low, share.protection.low.0.into()),
        };
        self.all = both(self.all);
        if share.qos == QosClass::Burstable {
            self.burstable = both(self.burstable);
            self.burstable_cpu = step(self.burstable_cpu, share.cpu.0.into());
        }
    }
}

impl<'a> FromIterator<&'a Share> for Totals {
    fn from_iter<I: IntoIterator<Item = &'a Share>>(shares: I) -> Self {
        let mut totals = Self::default();
        for share in shares {
            totals.add(share);
        }
        totals
    }
}

impl From<Sum> for Protection {
    fn from(sum: Sum) -> Self {
        Self {
            min: Bytes(within_u64(sum.min)),
            low: Bytes(within_u64(sum.low)),
        }
    }
}

fn within_u64(sum: u128) -> u64 {
    u64::try_from(sum).unwrap_or(u64::MAX)
}

/// The cgroups above the pods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LevelTree {
    /// Their values.
    pub tree: Tree,
    /// What there is to say about each.
    pub cgroups: Vec<CgroupPlan>,
}

/// The wanted top, `burstable` and `besteffort`. They are there without pods too.
pub fn levels(totals: &Totals, node: &Node, policy: &Policy) -> LevelTree {
    let sizes = node.huge_page_sizes();
    let mut levels = LevelTree::default();

    let mut top = Draft::above(enabled(policy, &sizes));
    cpu::top(&mut top, node);
    memory::top(&mut top, totals.all.into(), node);
    hugetlb::top(&mut top, node, &sizes);
    pids::top(&mut top, node);
    levels.put(CgroupPath::top(), Level::Top, top, node);

    let burstable = (
        MilliCpu(within_u64(totals.burstable_cpu)),
        totals.burstable.into(),
    );
    // BestEffort pods ask for nothing; their overhead counts nowhere above them.
    let best_effort = (MilliCpu::ZERO, Protection::default());
    for (qos, (requests, protection)) in [
        (QosClass::Burstable, burstable),
        (QosClass::BestEffort, best_effort),
    ] {
        let mut draft = Draft::above(enabled(policy, &sizes));
        cpu::qos(&mut draft, requests, policy);
        memory::qos(&mut draft, protection);
        hugetlb::qos(&mut draft, &sizes);
        pids::qos(&mut draft);
        levels.put(qos_path(qos), Level::Qos, draft, node);
    }
    levels
}

impl LevelTree {
    fn put(&mut self, path: CgroupPath, level: Level, draft: Draft, node: &Node) {
        let (values, notes) = draft.finish(node.page_size);
        self.tree.insert(path.clone(), values);
        self.cgroups.push(CgroupPlan {
            path,
            level,
            container: None,
            notes,
        });
    }
}
