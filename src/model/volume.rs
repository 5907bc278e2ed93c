//! Volumes of a pod that the node itself makes: `emptyDir`, on disk or in memory.
//!
//! Plain data. Volumes of other kinds are not in here: they have no effect, which is told where a
//! manifest is read.

use std::fmt;

use crate::units::{Bytes, Quantity};

/// A directory that lives as long as its pod (`emptyDir`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// A DNS label, unique in the pod.
    pub name: String,
    /// Where it stands in `spec.volumes`.
    pub index: usize,
    /// What holds it.
    pub medium: Medium,
    /// `sizeLimit`: what it may hold; none where it is not given or 0.
    pub size_limit: Option<Bytes>,
    /// A `sizeLimit` below 0, which is refused.
    pub negative_size: Option<Quantity>,
}

/// What holds a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Medium {
    /// The node's disk.
    Disk,
    /// A file system in memory, charged to the container that writes.
    Memory,
    /// Something else; it is refused.
    Other(String),
}

impl fmt::Display for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disk => "",
            Self::Memory => "Memory",
            Self::Other(name) => name,
        })
    }
}

/// Where a container sees a volume (`volumeMounts`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The volume's name.
    pub volume: String,
    /// `mountPath`, absolute.
    pub path: String,
    /// `readOnly`
    pub read_only: bool,
    /// Whether only a part of the volume is meant (`subPath`, `subPathExpr`), which is refused.
    pub is_part: bool,
}
