//! The parts of a pod's files that count by themselves.
//!
//! Every file below a pod's directories belongs to exactly one of them, so that their sum is all that the
//! pod keeps on disk, be it a kind of file that nobody thought of (kubernetes#93032).

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A part of a pod's files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// What is in the pod's directories and in no other part.
    Pod,
    /// Scratch files and logs of a container.
    Container(String),
    /// A volume.
    Volume(String),
}

/// Where a part of a pod's files is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which part.
    pub space: Space,
    /// Its directories.
    pub directories: Vec<PathBuf>,
    /// Directories in these that belong to other parts.
    pub others: Vec<PathBuf>,
    /// Other names by which processes of the pod may have opened files in it: mount paths.
    pub aliases: Vec<PathBuf>,
    /// Whether it is a file system of its own, in memory.
    pub in_memory: bool,
    /// The project that all of its files belong to.
    pub project: Option<u32>,
}

/// What a part of a pod's files takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Allocated bytes.
    pub bytes: u64,
    /// Files, directories and all others.
    pub inodes: u64,
    /// How much of `bytes` is held by files that have no name any more, where that is known apart.
    pub deleted: u64,
    /// Whether the file system itself counted.
    pub exact: bool,
    /// Whether it holds more than is ever walked, so that `bytes` is a lower bound. Nothing but a wish to
    /// hide builds such a tree.
    pub hidden: bool,
    /// Whether a part could not be read or has not been walked yet, so that `bytes` is a lower bound.
    pub partial: bool,
}

impl Measured {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            inodes: self.inodes.saturating_add(other.inodes),
            deleted: self.deleted.saturating_add(other.deleted),
            exact: self.exact && other.exact,
            hidden: self.hidden || other.hidden,
            partial: self.partial || other.partial,
        }
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pod => f.write_str("pod"),
            Self::Container(name) => write!(f, "container/{name}"),
            Self::Volume(name) => write!(f, "volume/{name}"),
        }
    }
}

impl FromStr for Space {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            None if text == "pod" => Ok(Self::Pod),
            Some(("container", name)) => Ok(Self::Container(name.to_owned())),
            Some(("volume", name)) => Ok(Self::Volume(name.to_owned())),
            _ => Err(format!("{text:?} is no part of a pod's files")),
        }
    }
}

impl Serialize for Space {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Space {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}
