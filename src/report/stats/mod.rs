//! The node's use in figures: what is known of each cgroup, and the forms in which others ask for it.
//!
//! `Census` says which cgroups there are and what they may use, `Round` what they showed at one
//! moment. Both come from elsewhere; a figure that cannot be had is absent, never zero.

pub mod rate;
pub mod summary;
pub mod throttle;
pub mod top;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::Tallies;
use crate::cgroup::sample::Device;
use crate::cgroup::{CgroupPath, Descendants, Reader, Sample};
use crate::model::ResourceList;
use crate::model::space::Place;
use crate::units::{Bytes, CpuMax};

/// All that the owner tells of: which cgroups there are, and a way to read them.
#[derive(Clone, Debug)]
pub struct Census {
    /// The node's name.
    pub node: String,
    /// Its memory.
    pub memory: Bytes,
    /// All it has.
    pub capacity: ResourceList,
    /// What pods may ask for.
    pub allocatable: ResourceList,
    /// What the pods that are not over ask for.
    pub requested: ResourceList,
    /// Its swap space.
    pub swap: Bytes,
    /// The lesser of `pid_max` and `threads-max`.
    pub max_pids: Option<u64>,
    /// A directory on the file system of the pods' files.
    pub disk: PathBuf,
    /// The directory of their logs.
    pub logs: PathBuf,
    /// The directory of the top cgroup.
    pub cgroups: PathBuf,
    /// The cgroups above the pods: that of all pods and those of QoS classes.
    pub levels: Vec<Level>,
    /// The pods by namespace and name.
    pub pods: Vec<PodPlace>,
    /// Counts of the agent.
    pub tallies: Tallies,
    /// Reads the cgroups.
    pub reader: Arc<dyn Reader>,
}

/// A cgroup above the pods.
#[derive(Clone, Debug)]
pub struct Level {
    /// `pods`, `burstable`, `besteffort`.
    pub name: &'static str,
    /// The cgroup.
    pub path: CgroupPath,
    /// What it may use.
    pub bounds: Bounds,
}

/// A pod and its cgroup.
#[derive(Clone, Debug)]
pub struct PodPlace {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// When it was admitted.
    pub started: Timestamp,
    /// Its cgroup.
    pub path: CgroupPath,
    /// What it may use.
    pub bounds: Bounds,
    /// Where its files are.
    pub files: Vec<Place>,
    /// Its containers as they start.
    pub containers: Vec<ContainerPlace>,
}

/// A container and its cgroup.
#[derive(Clone, Debug)]
pub struct ContainerPlace {
    /// Its name.
    pub name: String,
    /// Since when its main process runs; absent while none does.
    pub started: Option<Timestamp>,
    /// Its cgroup.
    pub path: CgroupPath,
    /// What it may use.
    pub bounds: Bounds,
    /// Processes that OOM kills took, over all restarts.
    pub oom_kills: u64,
    /// The directory of its logs.
    pub logs: Option<PathBuf>,
}

/// What a cgroup may use, as it was put into effect. Absent is no bound, or not ours to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    /// `cpu.max`
    pub cpu: Option<CpuMax>,
    /// The CPU request (thousandths of a CPU): `cpu.weight` would not give it back exactly.
    pub cpu_request: Option<u64>,
    /// `memory.min`
    pub memory_min: Option<Bytes>,
    /// `memory.max`
    pub memory: Option<Bytes>,
    /// `memory.swap.max`
    pub swap: Option<Bytes>,
    /// `pids.max`
    pub tasks: Option<u64>,
}

/// A sample and when it was read.
#[derive(Clone, Debug, Default)]
pub struct Timed {
    /// On a clock that is never set; where it begins means nothing.
    pub at: Duration,
    /// On the wall's clock.
    pub time: Timestamp,
    /// The figures.
    pub sample: Sample,
}

/// Everything that was read at one time.
#[derive(Clone, Debug, Default)]
pub struct Round {
    /// The node as a whole.
    pub node: Timed,
    /// The signals of eviction that are known.
    pub signals: Vec<SignalFigure>,
    /// The names of block devices that are known.
    pub devices: BTreeMap<Device, String>,
    /// How many cgroups are below each level of pods.
    pub descendants: BTreeMap<CgroupPath, Descendants>,
    /// The cgroups of pods and containers that were there.
    pub cgroups: BTreeMap<CgroupPath, Timed>,
}

/// A signal of eviction: bytes, inodes or tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalFigure {
    /// Its name.
    pub signal: String,
    /// The file system, by a directory on it; empty for what is of the whole node.
    pub path: String,
    /// What is left.
    pub available: u64,
    /// Of how much.
    pub capacity: u64,
}

/// The latest round, and the one before it from which rates come.
#[derive(Clone, Debug)]
pub struct Readings {
    /// Which cgroups there are.
    pub census: Census,
    /// What was read last.
    pub later: Arc<Round>,
    /// What was read before; without it there are no rates.
    pub earlier: Option<Arc<Round>>,
}

/// The figures of one cgroup, with its rates.
#[derive(Clone, Copy, Debug)]
pub struct Figures<'a> {
    /// The latest.
    pub now: &'a Timed,
    /// Those of the same cgroup before.
    pub before: Option<&'a Timed>,
}

impl Figures<'_> {
    /// Billionths of a CPU in use since the sample before.
    pub fn cpu_rate(&self) -> Option<rate::Rate> {
        rate::cpu(self.before?, self.now)
    }

    /// What the cgroup's own `cpu.max` did since the sample before.
    pub fn throttling(&self, bounds: &Bounds) -> Option<throttle::Throttling> {
        throttle::throttling(self, bounds)
    }

    /// CPU time that `cpu.max` withheld in each second since the sample before (µs).
    pub fn throttled_rate(&self) -> Option<u64> {
        rate::throttled(self.before?, self.now)
    }
}

impl Readings {
    /// The node as a whole.
    pub fn node(&self) -> Figures<'_> {
        Figures {
            now: &self.later.node,
            before: self.earlier.as_ref().map(|round| &round.node),
        }
    }

    /// A cgroup; `None` if it was not there.
    pub fn of(&self, path: &CgroupPath) -> Option<Figures<'_>> {
        Some(Figures {
            now: self.later.cgroups.get(path)?,
            before: self
                .earlier
                .as_ref()
                .and_then(|round| round.cgroups.get(path)),
        })
    }

    /// The pods whose cgroups were there.
    pub fn pods(&self) -> impl Iterator<Item = (&PodPlace, Figures<'_>)> {
        let pods = self.census.pods.iter();
        pods.filter_map(|pod| Some((pod, self.of(&pod.path)?)))
    }

    /// The containers of a pod whose cgroups were there and in which something runs.
    pub fn containers<'a>(
        &'a self,
        pod: &'a PodPlace,
    ) -> impl Iterator<Item = (&'a ContainerPlace, Figures<'a>)> {
        let running = pod.containers.iter().filter(|c| c.started.is_some());
        running.filter_map(|container| Some((container, self.of(&container.path)?)))
    }
}
