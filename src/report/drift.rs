//! A value that somebody else changed, as it is told.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What became of a drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriftOutcome {
    /// It is again as wanted.
    Repaired,
    /// It was written again, and somebody changed it once more before it could be read back.
    Undone,
    /// It was left (`driftPolicy`).
    Left,
    /// It is wanted from now on (`driftPolicy`).
    Adopted,
    /// It was left for a while: it is changed again and again.
    Contested,
}

impl DriftOutcome {
    /// The outcome in one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Repaired => "repaired",
            Self::Undone => "undone",
            Self::Left => "left",
            Self::Adopted => "adopted",
            Self::Contested => "contested",
        }
    }
}

/// One drift: a row of `/apis/allotd.dev/v1/drifts`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Drift {
    /// Counts the drifts that this run of the daemon saw, from 1.
    pub id: u64,
    /// When it was seen.
    pub time: Timestamp,
    /// The cgroup, below the top one; `/` for the top itself.
    pub cgroup: String,
    /// The pod it belongs to; empty above pods.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pod: String,
    /// The container; empty for the pod's own cgroup.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub container: String,
    /// The file; empty where the whole cgroup was removed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// What it held; empty where it was missing.
    pub found: String,
    /// What is wanted.
    pub wanted: String,
    /// What became of it.
    pub outcome: DriftOutcome,
}
