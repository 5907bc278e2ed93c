//! What the agent promises to remember of a pod, as it stands in the store.
//!
//! One entry holds the object and its record, so that both change in one commit. What the kernel or
//! the runtime's own files already say is not repeated here.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use serde::{Deserialize, Serialize};

use super::resize::Amounts;
use crate::admission::Assigned;
use crate::model::lifecycle::{Condition, Termination};
use crate::model::probe::Health;
use crate::model::space::Space;
use crate::observation::oom::OomSeen;
use crate::report::explain::DefaultRow;
use crate::runtime::ProcessId;
use crate::store::Step;

/// How what older versions have left in the store becomes what this one reads: none, for a field that may be absent
/// needs no step. A version that reads old records otherwise adds one at the end, and a fixture of what it replaces
/// to its tests.
pub const FORMATS: &[Step] = &[];

/// A pod in the store, under `pods/NAMESPACE/NAME`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodRecord {
    /// The object as admitted, defaults included, without status.
    pub object: v1::Pod,
    /// What defaulting added: the rules that the object no longer shows.
    pub defaults: Vec<DefaultRow>,
    /// What was said of the pod at admission.
    pub warnings: Vec<String>,
    /// When it was admitted.
    pub started_at: Timestamp,
    /// Counts the time of a pod that has a deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<Active>,
    /// Set once the pod is over by the agent's own decision: reason and message.
    pub ended: Option<(String, String)>,
    /// Seconds that decision leaves its processes between SIGTERM and SIGKILL; the pod's own unless set.
    #[serde(default)]
    pub ended_grace: Option<u64>,
    /// The projects that its files belong to; none where the file system does not count by project.
    #[serde(default)]
    pub projects: BTreeMap<Space, u32>,
    /// The name of the file that holds it, if it is static.
    #[serde(default)]
    pub manifest: Option<String>,
    /// Set once its deletion has begun.
    pub deletion: Option<Deletion>,
    /// The pod cgroup's OOM counters as told.
    pub oom_seen: OomSeen,
    /// Refused forks of the pod cgroup as told.
    #[serde(default)]
    pub pids_refused: u64,
    /// A resize that waits: the object says what it shall have, this what it has.
    #[serde(default)]
    pub pending: Option<Pending>,
    /// What it had before a resize that is not in effect yet: the larger counts until then.
    #[serde(default)]
    pub resizing: Option<Amounts>,
    /// Values that somebody set and that are wanted since, by container (empty: the pod's own cgroup) and
    /// file.
    #[serde(default)]
    pub adopted: BTreeMap<String, BTreeMap<String, String>>,
    /// What is so or not so of it, each since when.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// The CPUs that containers have to themselves, by name.
    #[serde(default, skip_serializing_if = "Assigned::is_empty")]
    pub cpus: Assigned,
    /// Its containers by name.
    pub containers: BTreeMap<String, ContainerRecord>,
}

impl PodRecord {
    /// The object with the amounts that are allocated to it.
    pub fn allocated(&self) -> Cow<'_, v1::Pod> {
        match &self.pending {
            None => Cow::Borrowed(&self.object),
            Some(pending) => Cow::Owned(pending.allocated.put_into(&self.object)),
        }
    }
}

/// A resize that is not allocated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pending {
    /// What is allocated instead.
    pub allocated: Amounts,
    /// Not even the whole node would do.
    pub infeasible: bool,
    /// What stands in the way, with the numbers.
    pub message: String,
}

/// A deletion under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Deletion {
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// Seconds between SIGTERM and SIGKILL.
    pub grace_seconds: u64,
    /// When that was on the clock that nobody sets (milliseconds since the machine was started): the grace
    /// period is counted by it. After a reboot nothing of the pod runs, so it need not say of which boot.
    #[serde(default)]
    pub uptime_millis: Option<u64>,
}

/// For how long a pod has been active, by the clock that nobody sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Active {
    /// The boot.
    pub boot_id: String,
    /// A moment in it (milliseconds since the machine was started),
    pub uptime_millis: u64,
    /// and how long the pod had been active by then (milliseconds).
    pub before_millis: u64,
}

/// A container in the store.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRecord {
    /// Which run this is: 0 for the first, then counted as restarts.
    pub attempt: u32,
    /// The run shall not begin before this time.
    pub not_before: Option<Timestamp>,
    /// Ends in a row after a short run; the pause before the next run grows with them.
    #[serde(default)]
    pub quick_ends: u32,
    /// The present run shall end and another begin, whatever the pod's restart policy is.
    #[serde(default)]
    pub restart: bool,
    /// The present run shall end for what its probes or hooks said.
    #[serde(default)]
    pub unhealthy: Option<Unhealthy>,
    /// How far the present run has come.
    #[serde(default)]
    pub health: Health,
    /// The process that was attached in place of a run.
    pub attached: Option<Attached>,
    /// How the present run ended, once it has.
    pub end: Option<Termination>,
    /// How the run before ended.
    pub last: Option<Termination>,
    /// Its cgroup's OOM counters as told.
    pub oom_seen: OomSeen,
    /// Processes that OOM kills took, over all runs.
    pub oom_kills: u64,
    /// How many of them the main process of the present run outlived: what is more may have been its
    /// end.
    pub oom_kills_before: u64,
}

/// Why a run shall end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unhealthy {
    /// What is told of it.
    pub why: String,
    /// Seconds between SIGTERM and SIGKILL; the pod's own unless given.
    pub grace_seconds: Option<u64>,
}

/// A process that was attached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attached {
    /// Its id.
    pub pid: i32,
    /// Its start time in clock ticks since boot (field 22 of `/proc/PID/stat`): together with the
    /// boot, the process's identity.
    pub start_ticks: u64,
    /// `/proc/sys/kernel/random/boot_id`
    pub boot_id: String,
    /// When it was attached.
    pub since: Timestamp,
}

impl Attached {
    /// The process.
    pub fn process(&self) -> ProcessId {
        ProcessId {
            pid: self.pid,
            start_ticks: self.start_ticks,
            boot_id: self.boot_id.clone(),
        }
    }
}
