//! From the figures of the machine to what each signal shows.
//!
//! Decides which figure a signal goes by, and which figures cannot be true.

use std::time::Duration;

use super::{Figures, Reading, State};
use crate::model::eviction::Signal;

/// Everything that signals are made from, read at one moment. Bytes, inodes, tasks; absent is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// When it was read, on a clock that is never set.
    pub at: Duration,
    /// The memory of the node.
    pub memory: Memory,
    /// That of all pods; `None` where there is no such cgroup or no limit.
    pub pods: Option<PodsMemory>,
    /// The file systems of the pods' files and logs, each once.
    pub disks: Vec<Disk>,
    /// Tasks and their bounds.
    pub tasks: Tasks,
    /// What stands in the way of being told of stalls at once; `None`: nothing.
    pub slow: Option<String>,
}

/// `/proc/meminfo`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// `MemTotal`
    pub total: Option<u64>,
    /// `MemAvailable`: what programs could still get without swapping, page cache that can go included.
    /// Where it is low, with the free pages that processors keep for themselves: the kernel gives them
    /// out, but `MemAvailable` lacks them. Since Linux 6.7 they are up to an eighth of a zone (60 MiB of a
    /// process that ended were seen to stay there for seconds), for which a second pod must not go.
    pub available: Option<u64>,
    /// In use as the kubelet counts it: anonymous memory and page cache.
    pub in_use: Option<u64>,
    /// Page cache that goes first.
    pub inactive_file: Option<u64>,
}

/// The cgroup of all pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodsMemory {
    /// `memory.max`
    pub limit: u64,
    /// `memory.current`
    pub current: u64,
    /// Page cache and kernel memory that can be taken back, whatever its age.
    pub reclaimable: u64,
    /// Page cache that goes first.
    pub inactive_file: u64,
}

/// A file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// A directory on it.
    pub place: String,
    /// Whether the pods' files are on it; else only their logs are.
    pub has_files: bool,
    /// Its figures, or why they cannot be had.
    pub space: Result<Space, String>,
}

/// `statvfs`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes in all.
    pub bytes: u64,
    /// Bytes that processes without privilege could still write.
    pub bytes_available: u64,
    /// Inodes in all; 0 where the file system has no bound.
    pub inodes: u64,
    /// Inodes left.
    pub inodes_free: u64,
}

/// Tasks: threads count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tasks {
    /// Tasks of the node.
    pub in_use: Option<u64>,
    /// `kernel.pid_max`
    pub pid_max: Option<u64>,
    /// `kernel.threads-max`
    pub threads_max: Option<u64>,
    /// Tasks of all pods, and `pids.max` of their cgroup.
    pub pods: Option<(u64, u64)>,
}

/// What each signal shows.
pub fn readings(facts: &Facts) -> Vec<Reading> {
    let mut readings = vec![Reading {
        signal: Signal::Memory,
        place: String::new(),
        state: memory(&facts.memory),
    }];
    let of_pods = facts.pods.map(|pods| Reading {
        signal: Signal::AllocatableMemory,
        place: String::new(),
        state: allocatable(&pods, facts.memory.total),
    });
    readings.extend(of_pods);
    for disk in &facts.disks {
        let of_node = [(Signal::NodeFs, Signal::NodeFsInodes)];
        let of_files = [
            (Signal::ImageFs, Signal::ImageFsInodes),
            (Signal::ContainerFs, Signal::ContainerFsInodes),
        ];
        let of_files = of_files.into_iter().filter(|_| disk.has_files);
        for (bytes, inodes) in of_node.into_iter().chain(of_files) {
            for (signal, state) in [(bytes, space(disk)), (inodes, inodes_of(disk))] {
                readings.push(Reading {
                    signal,
                    place: disk.place.clone(),
                    state,
                });
            }
        }
    }
    readings.push(Reading {
        signal: Signal::Pids,
        place: String::new(),
        state: tasks(&facts.tasks),
    });
    readings
}

/// The kernel's own estimate decides: it knows what can be taken back. The kubelet's figure is told
/// beside it; one that is above all memory there is makes both suspect.
fn memory(memory: &Memory) -> State {
    let (Some(total), Some(available)) = (memory.total, memory.available) else {
        return State::Unknown("/proc/meminfo shows no MemTotal or no MemAvailable".to_owned());
    };
    if total == 0 || available > total {
        return State::Unknown(format!(
            "MemAvailable ({available} bytes) is above MemTotal ({total} bytes)"
        ));
    }
    let mut others = Vec::new();
    if let (Some(in_use), Some(inactive)) = (memory.in_use, memory.inactive_file) {
        let working_set = in_use.saturating_sub(inactive);
        if working_set > total {
            return State::Unknown(format!(
                "memory in use ({working_set} bytes) is above MemTotal ({total} bytes), while MemAvailable is {available} bytes"
            ));
        }
        others.push((
            "MemTotal less working set".to_owned(),
            total.saturating_sub(working_set),
        ));
    }
    State::Known(Figures {
        available,
        capacity: total,
        decides: "MemAvailable".to_owned(),
        others,
    })
}

fn allocatable(pods: &PodsMemory, total: Option<u64>) -> State {
    let PodsMemory { limit, current, .. } = *pods;
    if let Some(total) = total
        && current > total
    {
        return State::Unknown(format!(
            "memory.current of all pods ({current} bytes) is above MemTotal ({total} bytes)"
        ));
    }
    let held = current.saturating_sub(pods.reclaimable);
    let working_set = current.saturating_sub(pods.inactive_file);
    State::Known(Figures {
        // A limit that was lowered may be below what is in use.
        available: limit.saturating_sub(held),
        capacity: limit,
        decides: "memory.max".to_owned(),
        others: vec![(
            "memory.max less working set".to_owned(),
            limit.saturating_sub(working_set),
        )],
    })
}

fn space(disk: &Disk) -> State {
    match &disk.space {
        Err(why) => State::Unknown(why.clone()),
        Ok(space) if space.bytes == 0 => State::Absent("the file system has no size".to_owned()),
        Ok(space) if space.bytes_available > space.bytes => State::Unknown(format!(
            "{} bytes are available of {} on {}",
            space.bytes_available, space.bytes, disk.place
        )),
        Ok(space) => State::Known(Figures {
            available: space.bytes_available,
            capacity: space.bytes,
            decides: "statvfs".to_owned(),
            others: Vec::new(),
        }),
    }
}

fn inodes_of(disk: &Disk) -> State {
    match &disk.space {
        Err(why) => State::Unknown(why.clone()),
        Ok(space) if space.inodes == 0 => {
            State::Absent("the file system has no bound of inodes".to_owned())
        }
        Ok(space) if space.inodes_free > space.inodes => State::Unknown(format!(
            "{} inodes are free of {} on {}",
            space.inodes_free, space.inodes, disk.place
        )),
        Ok(space) => State::Known(Figures {
            available: space.inodes_free,
            capacity: space.inodes,
            decides: "statvfs".to_owned(),
            others: Vec::new(),
        }),
    }
}

/// The bound that is nearest decides: the kernel's two count every task of the node, that of the pods'
/// cgroup only theirs.
fn tasks(tasks: &Tasks) -> State {
    let bounds = [
        ("pid_max", tasks.pid_max, tasks.in_use),
        ("threads-max", tasks.threads_max, tasks.in_use),
        (
            "pids.max of pods",
            tasks.pods.map(|(_, max)| max),
            tasks.pods.map(|(current, _)| current),
        ),
    ];
    if tasks.in_use.is_none() {
        return State::Unknown("/proc/loadavg shows no number of tasks".to_owned());
    }
    let mut left = Vec::new();
    for (name, bound, in_use) in bounds {
        let (Some(bound), Some(in_use)) = (bound, in_use) else {
            continue;
        };
        // Moving a process into a cgroup may bring it above its bound; nothing else may.
        if in_use > bound && name != "pids.max of pods" {
            return State::Unknown(format!("{in_use} tasks are above {name} ({bound})"));
        }
        left.push((bound.saturating_sub(in_use), bound, name));
    }
    let Some((available, capacity, name)) = left.iter().min().copied() else {
        return State::Unknown("neither pid_max nor threads-max can be read".to_owned());
    };
    let others = left.into_iter().filter(|(_, _, other)| *other != name);
    State::Known(Figures {
        available,
        capacity,
        decides: name.to_owned(),
        others: others
            .map(|(left, _, name)| (name.to_owned(), left))
            .collect(),
    })
}

#[cfg(test)]
mod tests;
