//! The node's choices in translating pods: what an operator sets in the configuration.

use serde::{Deserialize, Serialize};

use crate::units::{CpuMax, Limit, Micros};

/// How pods become cgroup values on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Which curve leads from CPU requests to `cpu.weight`.
    pub cpu_weight_formula: CpuWeightFormula,
    /// Whether CPU limits are enforced (`cpuCFSQuota`).
    pub cpu_cfs_quota: bool,
    /// The period of `cpu.max` (`cpuCFSQuotaPeriod`), 1000 to 1,000,000 µs.
    pub cpu_cfs_quota_period: Micros,
    /// Whether containers get CPUs to themselves.
    pub cpu_manager: CpuManagerPolicy,
    /// What a memory request protects.
    pub memory_reservation: MemoryReservationPolicy,
    /// Who may swap.
    pub swap_behavior: SwapBehavior,
    /// Tasks per pod (`podPidsLimit`); a pod's annotation can only lower it.
    pub pod_pids_limit: Limit<u64>,
    /// What an OOM kill takes where the pod does not say.
    pub oom_policy: OomPolicy,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            cpu_weight_formula: CpuWeightFormula::Quadratic,
            cpu_cfs_quota: true,
            cpu_cfs_quota_period: CpuMax::DEFAULT_PERIOD,
            cpu_manager: CpuManagerPolicy::None,
            memory_reservation: MemoryReservationPolicy::Hard,
            swap_behavior: SwapBehavior::NoSwap,
            pod_pids_limit: Limit::Max,
            oom_policy: OomPolicy::Group,
        }
    }
}

/// The curve from CPU shares to `cpu.weight`; the same at every level of the tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CpuWeightFormula {
    /// 1 CPU = 100, as runc 1.3.2 and crun 1.23 and later.
    #[default]
    Quadratic,
    /// 1 CPU = 39, as KEP-2254 and older runtimes.
    Linear,
}

/// Whether containers get CPUs to themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CpuManagerPolicy {
    /// All share all CPUs, by weight.
    #[default]
    None,
    /// Containers of Guaranteed pods that ask for whole CPUs get them, for as long as the pod lives.
    Static,
}

/// What a memory request protects from reclaim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemoryReservationPolicy {
    /// `memory.min` for every request.
    #[default]
    Hard,
    /// `memory.min` for Guaranteed pods, `memory.low` for Burstable ones.
    Tiered,
    /// Nothing.
    None,
}

/// Who may swap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SwapBehavior {
    /// No container.
    #[default]
    NoSwap,
    /// Burstable containers, in proportion to their memory request (KEP-2400).
    LimitedSwap,
}

/// What becomes of a value that somebody else wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DriftPolicy {
    /// It is written again as wanted.
    #[default]
    Repair,
    /// It is left, and told.
    Report,
    /// It is wanted from now on, for as long as the pod lives or until its amounts change.
    Adopt,
}

impl DriftPolicy {
    /// The controllers whose files it is chosen for.
    pub const CONTROLLERS: [&str; 5] = ["cpu", "memory", "pids", "hugetlb", "cpuset"];
}

/// What happens where a pod's files take more disk than their limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoragePolicy {
    /// The pod is evicted, as by the kubelet.
    #[default]
    Evict,
    /// The writer gets an error; the pod goes on. Needs project quotas on the file system.
    Enforce,
}

/// What an OOM kill in a container takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OomPolicy {
    /// All processes of the container.
    #[default]
    Group,
    /// The process that the kernel picks.
    Process,
}
