//! A process that was killed for lack of memory, as it is told and kept.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One process that an OOM kill took: a row of `/apis/allotd.dev/v1/oomkills`. That it was killed, and
/// for whose limit, is the kernel's count; what only its log tells is absent where the log does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OomKill {
    /// Counts the kills of this node.
    pub id: u64,
    /// When it was killed by the log; else when the count was seen.
    pub time: Timestamp,
    /// `/proc/sys/kernel/random/boot_id`
    pub boot_id: String,
    /// The pod's namespace.
    pub namespace: String,
    /// The pod.
    pub pod: String,
    /// Its uid.
    pub uid: String,
    /// The container.
    pub container: String,
    /// How often the container had been started anew.
    pub restart_count: u32,
    /// Whether the container's processes were killed as a group.
    pub group: bool,
    /// Whether it was the container's main process; absent where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main: Option<bool>,
    /// The container's main process at that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main_pid: Option<i32>,
    /// Whose limit it was.
    pub limit: OomLimit,
    /// When the container's main process had started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main_started: Option<Timestamp>,
    /// The part of the last ten seconds in which tasks of the container waited for memory, some of them and
    /// all of them, when the kill was seen (hundredths of a percent).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure_avg10: Option<[u32; 2]>,
    /// What the kernel's log says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<OomLog>,
}

/// The limit that led to a kill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OomLimit {
    /// `inner` (of a cgroup that the container made itself), `container`, `pod`, `pods` (of a QoS level or of
    /// all pods) or `node` (no limit of ours).
    pub level: String,
    /// The cgroup whose limit it was, below the top one; `/` for the top itself. An inner one is known only
    /// where the log names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
    /// `memory.max` there (bytes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u64>,
    /// What was used there when it was hit (bytes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage_bytes: Option<u64>,
    /// The most the container had used so far (bytes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_peak_bytes: Option<u64>,
}

/// What the kernel's log says of a kill.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OomLog {
    /// The number of its record since boot.
    pub sequence: u64,
    /// When, in µs since boot, suspension not counted.
    pub monotonic_usec: u64,
    /// The id of the process.
    pub pid: i32,
    /// The name of the process, at the most 15 bytes.
    pub name: String,
    /// Its owner, as the first user namespace knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Its address space (bytes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_vm_bytes: Option<u64>,
    /// Memory of its own (bytes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anon_rss_bytes: Option<u64>,
    /// Memory that files back (bytes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_rss_bytes: Option<u64>,
    /// Shared memory and tmpfs (bytes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shmem_rss_bytes: Option<u64>,
    /// Its page tables (bytes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_table_bytes: Option<u64>,
    /// `oom_score_adj`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oom_score_adj: Option<i32>,
    /// `CONSTRAINT_MEMCG`, `CONSTRAINT_NONE`, `CONSTRAINT_CPUSET` or `CONSTRAINT_MEMORY_POLICY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint: Option<String>,
    /// The cgroup whose limit was hit, from the kernel's root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oom_memcg: Option<String>,
    /// The victim's cgroup, from the kernel's root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_memcg: Option<String>,
    /// What the cgroup whose limit was hit used its memory for: figures of `memory.stat` by their names
    /// there (bytes).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stat: BTreeMap<String, u64>,
    /// The name of the process that asked for memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<String>,
    /// What kind of memory it asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gfp_mask: Option<String>,
    /// It asked for 2 to this power pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<i32>,
    /// The log did not say whose process it was (the kernel leaves that out of what it reports beyond ten
    /// kills in five seconds): this container was the only one that had lost processes without a name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub inferred: bool,
}

impl OomLog {
    /// Resident memory, as far as it is known (bytes).
    pub fn rss_bytes(&self) -> Option<u64> {
        let parts = [
            self.anon_rss_bytes,
            self.file_rss_bytes,
            self.shmem_rss_bytes,
        ];
        parts.into_iter().flatten().reduce(u64::saturating_add)
    }
}
