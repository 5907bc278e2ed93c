//! What pods use, as far as it decides who goes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::agent::entry::PodEntry;
use crate::agent::run::Agent;
use crate::agent::sampler;
use crate::agent::walks::Walks;
use crate::cgroup::Sample;
use crate::cgroup::sample::Memory;
use crate::model::space::Space;
use crate::model::{ResourceList, ResourceName};
use crate::observation::eviction::facts::Disk as FileSystem;
use crate::observation::eviction::rank::{DiskUse, PodUse, Use};
use crate::report::stats::summary::Disk;
use crate::report::stats::{Census, PodPlace, Round};

/// A node that is short of disk waits so long for walks: what they have found by then decides.
const PATIENCE: Duration = Duration::from_secs(10);

impl Agent {
    /// The pods that could go, with what they asked for; what they use is not known yet.
    pub(super) fn standing(&self) -> Vec<PodUse> {
        let goes_on = |entry: &&PodEntry| {
            entry.record.deletion.is_none() && !entry.is_over() && entry.is_active()
        };
        self.pods.values().filter(goes_on).map(standing).collect()
    }
}

fn standing(entry: &PodEntry) -> PodUse {
    let (pod, effective) = (entry.admitted.pod(), entry.admitted.effective());
    let spared = if pod.is_static {
        Some("static".to_owned())
    } else {
        let critical = pod.is_critical();
        critical.then(|| format!("critical: priority {}", pod.priority))
    };
    let containers = effective.containers.iter();
    let containers = containers.map(|container| {
        let asked = asked(&container.resources.requests);
        (container.name.clone(), asked)
    });
    PodUse {
        namespace: pod.namespace.clone(),
        name: pod.name.clone(),
        uid: entry.uid().to_string(),
        qos: entry.admitted.qos(),
        priority: pod.priority,
        spared,
        whole: asked(&effective.requests),
        containers: containers.collect(),
    }
}

fn asked(requests: &ResourceList) -> Use {
    let bytes = |name| requests.bytes(&name).map_or(0, |bytes| bytes.0);
    Use {
        memory_request: bytes(ResourceName::Memory),
        disk_request: bytes(ResourceName::EphemeralStorage),
        ..Use::default()
    }
}

/// Reads what the pods use now; of the disk only where file systems are named. It takes time.
pub(super) fn weigh(
    pods: &mut [PodUse],
    census: &Census,
    walks: &Walks,
    disks: Option<&Vec<FileSystem>>,
) {
    let round = sampler::read(census);
    let until = Instant::now() + PATIENCE;
    let walked = disks.map(|disks| (sampler::disk(census, walks, until), disks.as_slice()));
    fill(
        pods,
        census,
        &round,
        walked.as_ref().map(|(disk, disks)| (disk, *disks)),
    );
}

/// Enters what was read.
pub(super) fn fill(
    pods: &mut [PodUse],
    census: &Census,
    round: &Round,
    disk: Option<(&Disk, &[FileSystem])>,
) {
    for pod in pods {
        let Some(place) = census.pods.iter().find(|place| place.uid == pod.uid) else {
            continue;
        };
        let sample = |path| round.cgroups.get(path).map(|timed| &timed.sample);
        enter(&mut pod.whole, sample(&place.path));
        for container in &place.containers {
            let own = pod.containers.iter_mut();
            let mut own = own.filter(|(name, _)| *name == container.name);
            if let Some((_, own)) = own.next() {
                enter(own, sample(&container.path));
            }
        }
        if let Some((disk, systems)) = disk {
            enter_disk(pod, place, disk, systems);
        }
    }
}

/// What each part of a pod's files takes of which file system. One part that cannot be measured makes the
/// sum unknown.
fn enter_disk(pod: &mut PodUse, place: &PodPlace, disk: &Disk, systems: &[FileSystem]) {
    let mut whole = Some(BTreeMap::new());
    for part in place.files.iter().filter(|part| !part.in_memory) {
        let used = disk.spaces.get(&(place.uid.clone(), part.space.clone()));
        let used = used.and_then(|used| {
            let logs = match &part.space {
                Space::Container(name) => disk.logs.get(&(place.uid.clone(), name.clone())),
                Space::Pod | Space::Volume(_) => None,
            };
            let logs = logs.map_or((0, 0), |logs| (logs.bytes, logs.inodes));
            split((used.bytes, used.inodes), logs, systems)
        });
        whole = whole.zip(used.as_ref()).map(|(sum, used)| added(sum, used));
        if let (Space::Container(name), Some(used)) = (&part.space, used)
            && let Some((_, own)) = pod.containers.iter_mut().find(|(own, _)| own == name)
        {
            own.disk = used;
        }
    }
    pod.whole.disk = whole.unwrap_or_default();
}

fn enter(into: &mut Use, sample: Option<&Sample>) {
    into.memory = sample.and_then(|sample| held(&sample.memory));
    into.tasks = sample.and_then(|sample| sample.pids.current);
}

/// What would come back: page cache and kernel memory that can go at any time are there already.
fn held(memory: &Memory) -> Option<u64> {
    let Some(file) = memory.file else {
        return memory.working_set().map(|bytes| bytes.0);
    };
    let cache = file.saturating_sub(memory.shmem.unwrap_or_default());
    let kernel = memory.slab_reclaimable.unwrap_or_default();
    Some(
        memory
            .current?
            .saturating_sub(cache)
            .saturating_sub(kernel)
            .0,
    )
}

/// Bytes and inodes by file system: logs may be on another one than all else.
fn split(
    all: (u64, u64),
    logs: (u64, u64),
    systems: &[FileSystem],
) -> Option<BTreeMap<String, DiskUse>> {
    let files = systems.iter().find(|system| system.has_files)?;
    let of = |(bytes, inodes)| DiskUse { bytes, inodes };
    let Some(apart) = systems.iter().find(|system| !system.has_files) else {
        return Some(BTreeMap::from([(files.place.clone(), of(all))]));
    };
    let rest = (all.0.saturating_sub(logs.0), all.1.saturating_sub(logs.1));
    Some(BTreeMap::from([
        (files.place.clone(), of(rest)),
        (apart.place.clone(), of(logs)),
    ]))
}

fn added(
    mut sum: BTreeMap<String, DiskUse>,
    more: &BTreeMap<String, DiskUse>,
) -> BTreeMap<String, DiskUse> {
    for (place, used) in more {
        let at = sum.entry(place.clone()).or_default();
        at.bytes = at.bytes.saturating_add(used.bytes);
        at.inodes = at.inodes.saturating_add(used.inodes);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_count_where_they_are() {
        let system = |place: &str, has_files| FileSystem {
            place: place.to_owned(),
            has_files,
            space: Err(String::new()),
        };
        let one = [system("/state", true)];
        let two = [system("/state", true), system("/logs", false)];
        let use_of = |bytes, inodes| DiskUse { bytes, inodes };
        let (all, logs) = ((100, 10), (30, 4));
        assert_eq!(
            split(all, logs, &one),
            Some(BTreeMap::from([("/state".to_owned(), use_of(100, 10))]))
        );
        assert_eq!(
            split(all, logs, &two),
            Some(BTreeMap::from([
                ("/state".to_owned(), use_of(70, 6)),
                ("/logs".to_owned(), use_of(30, 4))
            ]))
        );
        assert_eq!(split(all, logs, &[]), None);
    }
}
