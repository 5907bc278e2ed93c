//! What `allot top` shows: node, pods and containers in use, against what they asked for and may have.
//!
//! Puts figures, bounds, objects and events of one moment together and decides nothing. A figure that
//! cannot be had is absent, never zero. Its JSON is part of the interface: names stay, new ones may come.

mod make;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::ResourceList;
use crate::report::stats::throttle::Throttling;

pub use make::{Objects, report};

/// The answer of `/apis/allotd.dev/v1/top`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TopReport {
    /// When the node's figures were read.
    pub time: Timestamp,
    /// The node as a whole.
    pub node: NodeTop,
    /// Its pods by namespace and name, those that are over too.
    pub pods: Vec<PodTop>,
}

/// CPU in thousandths, memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Amounts {
    /// Thousandths of a CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_milli: Option<u64>,
    /// Bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

impl From<&ResourceList> for Amounts {
    fn from(list: &ResourceList) -> Self {
        Self {
            cpu_milli: list.cpu().map(|cpu| cpu.0),
            memory_bytes: list.memory().map(|memory| memory.0),
        }
    }
}

/// What is used, and the bounds in effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Use {
    /// Billionths of a CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_nano: Option<u64>,
    /// `cpu.max` in thousandths of a CPU; absent without a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_max_milli: Option<u64>,
    /// CPU time that `cpu.max` withholds in each second (µs), summed over CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled_usec: Option<u64>,
    /// Memory in use without inactive page cache (bytes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_set_bytes: Option<u64>,
    /// Memory in use, page cache included (bytes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// `memory.min` (bytes)
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_min_bytes: Option<u64>,
    /// `memory.high` (bytes); absent without a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_high_bytes: Option<u64>,
    /// `memory.max` (bytes); absent without a bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_max_bytes: Option<u64>,
    /// Tasks: processes and threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<u64>,
    /// The bound of tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks_max: Option<u64>,
    /// Forks refused at that bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forks_refused: Option<u64>,
    /// Share of the latest ten seconds in which some task waited for a CPU (hundredths of a percent).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_pressure: Option<u32>,
    /// The same for memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_pressure: Option<u32>,
    /// The same for I/O.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_pressure: Option<u32>,
    /// Disk in use (bytes): logs and scratch files; of the node the file system that holds them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
}

/// The node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeTop {
    /// Its name.
    pub name: String,
    /// What is used, by whomever.
    #[serde(flatten)]
    pub used: Use,
    /// All it has.
    pub capacity: Amounts,
    /// What pods may ask for.
    pub allocatable: Amounts,
    /// What the pods that are not over ask for.
    pub requested: Amounts,
    /// The size of the file system of the pods' files (bytes).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_capacity_bytes: Option<u64>,
    /// Conditions of the node that are not as they should be, such as `MemoryPressure`.
    pub conditions: Vec<String>,
    /// Processes that OOM kills took since the agent started.
    pub oom_kills: u64,
    /// Foreign changes found since then in files that are ours.
    pub drifts: u64,
}

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodTop {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The word that `get pods` has for it.
    pub status: String,
    /// Its class.
    pub qos_class: String,
    /// What its own cgroup shows; throttling is that of its containers too, because each bound
    /// withholds on its own.
    #[serde(flatten)]
    pub used: Use,
    /// What it asks for in all.
    pub requests: Amounts,
    /// The sum of the limits that are given.
    pub limits: Amounts,
    /// What its own CPU limit withholds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttling: Option<Throttling>,
    /// Why not all values are in effect; absent if they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unenforced: Option<String>,
    /// Foreign changes of its cgroups' files that were undone, as far as events are kept.
    pub drifts: u64,
    /// The latest of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_drift: Option<Timestamp>,
    /// Its containers as they start.
    pub containers: Vec<ContainerTop>,
}

/// A container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerTop {
    /// Its name.
    pub name: String,
    /// `Running`, or why it does not.
    pub state: String,
    /// What its cgroup shows while its main process runs.
    #[serde(flatten)]
    pub used: Use,
    /// What its own CPU limit withholds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttling: Option<Throttling>,
    /// What it asks for.
    pub requests: Amounts,
    /// What it may have at the most.
    pub limits: Amounts,
    /// Restarts so far.
    pub restarts: u64,
    /// Processes that OOM kills took, over all restarts.
    pub oom_kills: u64,
    /// Foreign changes of its cgroup's files that were undone.
    pub drifts: u64,
}
