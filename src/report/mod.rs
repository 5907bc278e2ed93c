//! State made into what people and machines read. Pure: it is given everything, clock included.

pub mod accounts;
pub mod age;
pub mod check;
pub mod descendants;
pub mod drift;
pub mod eviction;
pub mod explain;
pub mod metrics;
pub mod node;
pub mod oom;
pub mod pod;
pub mod policy;
pub mod resize;
pub mod security;
pub mod stats;
pub mod table;
pub mod top;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use self::descendants::CgroupCounts;
use crate::cgroup::Sample;
use crate::units::Bytes;

/// What one pod uses: the answer of `…/pods/NAME/usage`. A figure that cannot be had is absent, never
/// zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodUsage {
    /// The pod's own cgroup.
    pub pod: CgroupUsage,
    /// Its containers, in the order they start.
    pub containers: Vec<ContainerUsage>,
    /// Its files.
    #[serde(default)]
    pub disk: DiskUsage,
}

/// What a pod's files take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiskUsage {
    /// All files on disk (bytes); absent if a part could not be measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Files and directories on disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inodes: Option<u64>,
    /// What of it is in deleted files that are open, where that is known apart (bytes).
    pub deleted_bytes: u64,
    /// Whether the file system counted, or directories were walked.
    pub exact: bool,
    /// Whether there is more than is ever walked.
    pub hidden: bool,
    /// Whether a part could not be read, or has not been walked to its end yet: a lower bound.
    #[serde(default)]
    pub partial: bool,
    /// The volumes by name, those in memory included (bytes).
    pub volumes: BTreeMap<String, u64>,
}

/// What a cgroup uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CgroupUsage {
    /// Bytes of memory, page cache included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_current: Option<u64>,
    /// The most bytes of memory so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_peak: Option<u64>,
    /// Tasks: processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids_current: Option<u64>,
    /// The most tasks so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids_peak: Option<u64>,
    /// The greatest number of tasks; absent without a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids_max: Option<u64>,
    /// Forks refused at the bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pids_refused: Option<u64>,
    /// CPU time used (µs).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_usage_usec: Option<u64>,
    /// CPU time withheld by `cpu.max` (µs).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_throttled_usec: Option<u64>,
}

impl CgroupUsage {
    /// What a sample of the cgroup shows, beside the bound of tasks in effect.
    pub fn of(sample: &Sample, pids_max: Option<u64>) -> Self {
        let bytes = |bytes: Option<Bytes>| bytes.map(|Bytes(n)| n);
        Self {
            memory_current: bytes(sample.memory.current),
            memory_peak: bytes(sample.memory.peak),
            pids_current: sample.pids.current,
            pids_peak: sample.pids.peak,
            pids_max,
            pids_refused: sample.pids.refused,
            cpu_usage_usec: sample.cpu.usage_usec,
            cpu_throttled_usec: sample.cpu.throttled_usec,
        }
    }
}

/// What a container uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerUsage {
    /// The container's name.
    pub name: String,
    /// Its cgroup.
    #[serde(flatten)]
    pub cgroup: CgroupUsage,
    /// Bytes that its logs take on disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_bytes: Option<u64>,
    /// Bytes that its scratch directory takes on disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scratch_bytes: Option<u64>,
    /// Processes that OOM kills took, over all restarts.
    pub oom_kills: u64,
}

/// What the agent has counted since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tallies {
    /// Pods admitted.
    pub admitted: u64,
    /// Pods refused.
    pub refused: u64,
    /// How often each rule was among the causes of a refusal.
    #[serde(default)]
    pub causes: BTreeMap<String, u64>,
    /// Foreign changes found in files that are ours.
    pub drifts: u64,
    /// Operations that the kernel refused.
    pub failures: u64,
    /// Pods evicted, by what was short or exceeded.
    #[serde(default)]
    pub evictions: BTreeMap<String, u64>,
    /// Processes killed for lack of memory.
    pub oom_kills: u64,
    /// Containers started anew.
    pub restarts: u64,
}

impl Tallies {
    /// So many causes are told apart: resources of any name can be short.
    const CAUSES: usize = 64;

    /// Counts a pod that is refused for these causes.
    pub fn refuse<'a>(&mut self, causes: impl Iterator<Item = &'a str>) {
        self.refused = self.refused.saturating_add(1);
        for cause in causes {
            let is_told = self.causes.contains_key(cause) || self.causes.len() < Self::CAUSES;
            let cause = if is_told { cause } else { "Other" };
            let count = self.causes.entry(cause.to_owned()).or_default();
            *count = count.saturating_add(1);
        }
    }
}

/// Wanted against kernel: the answer of `/apis/allotd.dev/v1/diff`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffReport {
    /// Whether anything differs.
    pub drift: bool,
    /// One row for each file.
    pub rows: Vec<DiffRow>,
}

/// One file, wanted against kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffRow {
    /// The cgroup below the top one, `/` for the top itself.
    pub path: String,
    /// The interface file; empty where the cgroup itself is at issue.
    pub file: String,
    /// The value that shall be there.
    pub wanted: String,
    /// The value that is there.
    pub kernel: String,
    /// `same`, `drift`, `missing`, `unwanted` …
    pub verdict: String,
}

/// The cgroup of a pod that has no record: a row of `/apis/allotd.dev/v1/orphans`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orphan {
    /// The cgroup below the top one.
    pub cgroup: String,
    /// How many processes it has, those in cgroups below it included.
    pub processes: usize,
}

/// The agent's own state: the answer of `/apis/allotd.dev/v1/status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusReport {
    /// The version of allotd.
    pub version: String,
    /// The node's name.
    pub node: String,
    /// The top cgroup.
    pub cgroup_root: String,
    /// The controllers that can be enabled below it.
    pub controllers: Vec<String>,
    /// Those that are missing.
    pub missing_controllers: Vec<String>,
    /// Pods that are not over.
    pub pods: u64,
    /// Containers with a living main process.
    pub running_containers: u64,
    /// The cgroups below the top one; absent where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroups: Option<CgroupCounts>,
    /// Seconds since the agent started.
    pub uptime_seconds: u64,
    /// What it has counted since then.
    pub tallies: Tallies,
    /// What is wrong at present, each in one sentence.
    pub problems: Vec<String>,
    /// What cannot be had on this machine and is not missed otherwise, each in one sentence.
    #[serde(default)]
    pub notes: Vec<String>,
}
