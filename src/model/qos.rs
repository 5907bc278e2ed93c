//! The quality-of-service class of a pod: Kubernetes' name for how it gives way under pressure.
//!
//! Decides the class from cpu and memory alone, and must never look at anything else: a pod that
//! asks only for disk or for devices is BestEffort.

use std::fmt;

use super::{List, Pod, ResourceName, Resources};
use crate::units::Quantity;

/// Kubernetes' three classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QosClass {
    /// Every container has limits of cpu and memory, and requests equal to them.
    Guaranteed,
    /// Neither of the other two.
    Burstable,
    /// Nothing asked for.
    BestEffort,
}

impl QosClass {
    /// The class of a pod (Kubernetes 1.36 `ComputePodQOS`).
    ///
    /// Resources at pod level decide alone where there are any; otherwise all containers do, init
    /// containers included. An empty `spec.resources` counts as none: upstream lets it turn every
    /// pod into BestEffort (kubernetes#135082).
    pub fn of(pod: &Pod) -> Self {
        match &pod.resources {
            Some(resources) if !resources.is_empty() => Self::of_all(&[resources]),
            _ => {
                let all: Vec<_> = pod.all_containers().map(|(_, _, c)| &c.resources).collect();
                Self::of_all(&all)
            }
        }
    }

    fn of_all(all: &[&Resources]) -> Self {
        const DECISIVE: [ResourceName; 2] = [ResourceName::Cpu, ResourceName::Memory];
        let amount = |resources: &Resources, list, name| {
            let amount = resources.list(list).get(name);
            amount.filter(|amount| !amount.is_zero())
        };
        // Sums, as upstream: differences that cancel out between containers do not matter.
        let sum = |list, name| {
            all.iter()
                .filter_map(|resources| amount(resources, list, name))
                .fold(Quantity::ZERO, Quantity::saturating_add)
        };
        let nothing = |name| {
            [List::Requests, List::Limits]
                .into_iter()
                .all(|list| all.iter().all(|r| amount(r, list, name).is_none()))
        };
        let guaranteed = |name| {
            all.iter().all(|r| amount(r, List::Limits, name).is_some())
                && sum(List::Requests, name) == sum(List::Limits, name)
        };
        if DECISIVE.iter().all(nothing) {
            Self::BestEffort
        } else if DECISIVE.iter().all(guaranteed) {
            Self::Guaranteed
        } else {
            Self::Burstable
        }
    }
}

impl fmt::Display for QosClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Guaranteed => "Guaranteed",
            Self::Burstable => "Burstable",
            Self::BestEffort => "BestEffort",
        })
    }
}
