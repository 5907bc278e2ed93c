//! What the node has left and which pods would go, as it is told: the answer of
//! `/apis/allotd.dev/v1/eviction`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The signals, and for each that has a threshold the order in which pods would go now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EvictionReport {
    /// When it was read.
    pub time: Timestamp,
    /// The conditions of the node that are so: `MemoryPressure`, `DiskPressure`, `PIDPressure`.
    pub conditions: Vec<String>,
    /// The pod whose end is awaited, as `NAMESPACE/NAME`, before another one may go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<String>,
    /// What is wrong or slower than it could be, each in one sentence.
    pub notes: Vec<String>,
    /// What each signal shows.
    pub signals: Vec<SignalRow>,
    /// Who would go.
    pub orders: Vec<Order>,
}

/// What a signal shows. Amounts are bytes, inodes or tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignalRow {
    /// Its name, as the kubelet has it.
    pub signal: String,
    /// The file system, by a directory on it; empty for what is of the whole node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// `known`, `unknown` or `absent`.
    pub state: String,
    /// Why it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available: Option<u64>,
    /// Of how much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// The figure that decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// Figures that somebody may expect in its place, and that decide nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, u64>,
    /// Its thresholds.
    pub thresholds: Vec<ThresholdRow>,
}

/// A threshold of a signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ThresholdRow {
    /// `hard` or `soft`.
    pub kind: String,
    /// As it is configured.
    pub setting: String,
    /// How much must be left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<u64>,
    /// How much more must be left once it was met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_reclaim: Option<u64>,
    /// How long a soft one must have been met (s).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_seconds: Option<u64>,
    /// Whether it is met.
    pub met: bool,
    /// How long it has been (s).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub met_seconds: Option<u64>,
}

/// The pods in the order in which they would go for a signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    /// The signals that this is the order of.
    pub signals: Vec<String>,
    /// What is in short supply then: `memory`, `ephemeral-storage`, `inodes` or `pids`.
    pub resource: String,
    /// The file system; empty for what is of the whole node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The first goes first.
    pub pods: Vec<VictimRow>,
    /// Those that would not go.
    pub spared: Vec<SparedRow>,
}

/// A pod that would go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VictimRow {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its class.
    pub qos: String,
    /// Its priority.
    pub priority: i32,
    /// What it uses of what is in short supply: what its end would give back.
    pub frees: u64,
    /// What it asked for, where that can be asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<u64>,
    /// Why it has its place.
    pub why: String,
}

/// A pod that would not go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SparedRow {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
}
