//! What must stay free on a node, and what its operator wants done when it does not.
//!
//! Decides how the settings of node-pressure eviction are read and which signals there are, in the
//! kubelet's names. It must never measure anything: `observation::eviction` judges what was measured.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::SignedDuration;

use super::node::EvictionThreshold;

/// Something of which a node can have too little left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Signal {
    /// Memory of the node.
    Memory,
    /// Memory that pods may still use below the limit of all pods. It has the hard threshold of
    /// `memory.available` and no setting of its own.
    AllocatableMemory,
    /// Bytes of the file systems with the pods' files and logs.
    NodeFs,
    /// Their inodes.
    NodeFsInodes,
    /// Bytes of the file system that images would be on, which is that of the pods' files.
    ImageFs,
    /// Its inodes.
    ImageFsInodes,
    /// Bytes of the file system that containers write to: also that of the pods' files.
    ContainerFs,
    /// Its inodes.
    ContainerFsInodes,
    /// Process ids, one for each task.
    Pids,
}

/// What a signal counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Starved {
    /// Bytes of memory.
    Memory,
    /// Bytes of disk.
    Disk,
    /// Inodes.
    Inodes,
    /// Tasks.
    Pids,
}

/// A condition of the node that says that it has too little of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pressure {
    /// `MemoryPressure`
    Memory,
    /// `DiskPressure`
    Disk,
    /// `PIDPressure`
    Pids,
}

impl Signal {
    /// All signals; those of memory are acted on first.
    pub const ALL: [Self; 9] = [
        Self::Memory,
        Self::AllocatableMemory,
        Self::NodeFs,
        Self::NodeFsInodes,
        Self::ImageFs,
        Self::ImageFsInodes,
        Self::ContainerFs,
        Self::ContainerFsInodes,
        Self::Pids,
    ];

    /// The name that the kubelet has for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory.available",
            Self::AllocatableMemory => "allocatableMemory.available",
            Self::NodeFs => "nodefs.available",
            Self::NodeFsInodes => "nodefs.inodesFree",
            Self::ImageFs => "imagefs.available",
            Self::ImageFsInodes => "imagefs.inodesFree",
            Self::ContainerFs => "containerfs.available",
            Self::ContainerFsInodes => "containerfs.inodesFree",
            Self::Pids => "pid.available",
        }
    }

    /// The signal that a setting names.
    pub fn of_setting(name: &str) -> Option<Self> {
        let settable = |signal: &Self| *signal != Self::AllocatableMemory;
        let mut all = Self::ALL.into_iter().filter(settable);
        all.find(|signal| signal.name() == name)
    }

    /// The names of all signals that have settings.
    pub fn settable_names() -> String {
        let names = Self::ALL.iter().map(|signal| signal.name());
        let names: Vec<_> = names
            .filter(|name| Self::of_setting(name).is_some())
            .collect();
        names.join(", ")
    }

    /// What it counts.
    pub fn starved(self) -> Starved {
        match self {
            Self::Memory | Self::AllocatableMemory => Starved::Memory,
            Self::NodeFs | Self::ImageFs | Self::ContainerFs => Starved::Disk,
            Self::NodeFsInodes | Self::ImageFsInodes | Self::ContainerFsInodes => Starved::Inodes,
            Self::Pids => Starved::Pids,
        }
    }

    /// The condition that its lack is told as.
    pub fn pressure(self) -> Pressure {
        match self.starved() {
            Starved::Memory => Pressure::Memory,
            Starved::Disk | Starved::Inodes => Pressure::Disk,
            Starved::Pids => Pressure::Pids,
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Starved {
    /// Whether it is counted in bytes.
    pub fn is_bytes(self) -> bool {
        matches!(self, Self::Memory | Self::Disk)
    }
}

impl fmt::Display for Starved {
    /// As the kubelet names it in messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "memory",
            Self::Disk => "ephemeral-storage",
            Self::Inodes => "inodes",
            Self::Pids => "pids",
        })
    }
}

impl Pressure {
    /// All conditions of this kind.
    pub const ALL: [Self; 3] = [Self::Memory, Self::Disk, Self::Pids];
}

impl fmt::Display for Pressure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "MemoryPressure",
            Self::Disk => "DiskPressure",
            Self::Pids => "PIDPressure",
        })
    }
}

/// When a pod is to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// Of what there is too little.
    pub signal: Signal,
    /// It is met when less than this is left.
    pub least: EvictionThreshold,
    /// How long it must have been met (soft); `None`: it is acted on at once (hard).
    pub grace: Option<Duration>,
    /// Once met, it stays met until this much more than `least` is left.
    pub reclaim: EvictionThreshold,
}

/// All settings of node-pressure eviction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Eviction {
    /// Memory first, and of one signal the hard threshold first.
    pub thresholds: Vec<Threshold>,
    /// The most seconds that a pod has between SIGTERM and SIGKILL when a soft threshold ends it.
    pub max_pod_grace_seconds: u64,
    /// How long a condition stays true after its last threshold was met.
    pub transition: Duration,
}

/// The settings as they are written, each by signal.
#[derive(Clone, Copy, Debug)]
pub struct Written<'a> {
    /// `evictionHard`
    pub hard: &'a BTreeMap<String, String>,
    /// `evictionSoft`
    pub soft: &'a BTreeMap<String, String>,
    /// `evictionSoftGracePeriod`
    pub soft_grace: &'a BTreeMap<String, String>,
    /// `evictionMinimumReclaim`
    pub reclaim: &'a BTreeMap<String, String>,
}

impl Eviction {
    /// Reads the thresholds. One of zero is none.
    ///
    /// # Errors
    /// Everything that is wrong, each with its setting and what would be right.
    pub fn read(written: &Written<'_>) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let hard = amounts("evictionHard", written.hard, &mut problems);
        let soft = amounts("evictionSoft", written.soft, &mut problems);
        let reclaim = amounts("evictionMinimumReclaim", written.reclaim, &mut problems);
        let graces = by_signal(
            "evictionSoftGracePeriod",
            written.soft_grace,
            &mut problems,
            duration,
        );
        for signal in soft.keys().filter(|signal| !graces.contains_key(signal)) {
            if !written.soft_grace.contains_key(signal.name()) {
                problems.push(format!(
                    "evictionSoftGracePeriod.{signal} is missing: evictionSoft.{signal} needs one, 1m30s is right"
                ));
            }
        }
        for signal in graces.keys() {
            if !written.soft.contains_key(signal.name()) {
                problems.push(format!(
                    "evictionSoftGracePeriod.{signal} has no evictionSoft.{signal}, as 300Mi or 10%"
                ));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let threshold = |signal, least, grace, settings: Signal| Threshold {
            signal,
            least,
            grace,
            reclaim: reclaim
                .get(&settings)
                .copied()
                .unwrap_or(EvictionThreshold::NONE),
        };
        let mut thresholds = Vec::new();
        for signal in Signal::ALL {
            let settings = match signal {
                Signal::AllocatableMemory => Signal::Memory,
                other => other,
            };
            if let Some(least) = hard.get(&settings) {
                thresholds.push(threshold(signal, *least, None, settings));
            }
            if let (Some(least), Some(grace)) = (soft.get(&signal), graces.get(&signal)) {
                thresholds.push(threshold(signal, *least, Some(*grace), settings));
            }
        }
        thresholds.retain(|threshold| threshold.least != EvictionThreshold::NONE);
        Ok(Self {
            thresholds,
            ..Self::default()
        })
    }
}

fn amounts(
    setting: &str,
    written: &BTreeMap<String, String>,
    problems: &mut Vec<String>,
) -> BTreeMap<Signal, EvictionThreshold> {
    by_signal(setting, written, problems, |text| {
        let threshold: EvictionThreshold = text.parse()?;
        match threshold {
            EvictionThreshold::Amount(amount) if !amount.is_integer() => Err(format!(
                "{text} is no whole amount: 100Mi, 1000 or 10% are right"
            )),
            // However it is spelt, nothing is nothing.
            EvictionThreshold::Percent { thousandths: 0 } => Ok(EvictionThreshold::NONE),
            EvictionThreshold::Amount(amount) if amount.is_zero() => Ok(EvictionThreshold::NONE),
            other => Ok(other),
        }
    })
}

fn by_signal<T>(
    setting: &str,
    written: &BTreeMap<String, String>,
    problems: &mut Vec<String>,
    read: impl Fn(&str) -> Result<T, String>,
) -> BTreeMap<Signal, T> {
    let mut all = BTreeMap::new();
    for (name, text) in written {
        let Some(signal) = Signal::of_setting(name) else {
            problems.push(format!(
                "{setting}.{name} is not known: {} are",
                Signal::settable_names()
            ));
            continue;
        };
        match read(text) {
            Ok(value) => drop(all.insert(signal, value)),
            Err(problem) => problems.push(format!("{setting}.{name}: {problem}")),
        }
    }
    all
}

fn duration(text: &str) -> Result<Duration, String> {
    let read = || Duration::try_from(text.parse::<SignedDuration>().ok()?).ok();
    read().ok_or_else(|| format!("{text:?} is no duration: 30s or 1m30s are right"))
}

#[cfg(test)]
mod tests;
