//! What pods use, as far as it decides who goes.

use std::collections::BTreeMap;

use crate::agent::entry::PodEntry;
use crate::agent::run::Agent;
use crate::agent::sampler;
use crate::cgroup::Sample;
use crate::cgroup::sample::Memory;
use crate::model::{ResourceList, ResourceName};
use crate::observation::eviction::facts::Disk as FileSystem;
use crate::observation::eviction::rank::{DiskUse, PodUse, Use};
use crate::report::stats::summary::Disk;
use crate::report::stats::{Census, ContainerPlace, Round};

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
pub(super) fn weigh(pods: &mut [PodUse], census: &Census, disks: Option<&Vec<FileSystem>>) {
    let round = sampler::read(census);
    let walked = disks.map(|disks| (sampler::walk(census), disks.as_slice()));
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
        let mut whole = Some(BTreeMap::new());
        for container in &place.containers {
            let used =
                disk.and_then(|(disk, systems)| on_disk(&place.uid, container, disk, systems));
            // One container that cannot be looked at makes the sum unknown.
            whole = whole.zip(used.as_ref()).map(|(sum, used)| added(sum, used));
            let own = pod.containers.iter_mut();
            let Some((_, own)) = own.into_iter().find(|(name, _)| *name == container.name) else {
                continue;
            };
            enter(own, sample(&container.path));
            own.disk = used.unwrap_or_default();
        }
        pod.whole.disk = whole.unwrap_or_default();
    }
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

/// What a container has on each file system: its files on one, its logs perhaps on another.
fn on_disk(
    uid: &str,
    container: &ContainerPlace,
    disk: &Disk,
    systems: &[FileSystem],
) -> Option<BTreeMap<String, DiskUse>> {
    let files = systems.iter().find(|system| system.has_files)?;
    let logs = systems.iter().find(|system| !system.has_files);
    let [of_logs, of_files] = disk
        .containers
        .get(&(uid.to_owned(), container.name.clone()))?
        .each_ref()
        .map(|used| used.as_ref().map(|used| (used.bytes, used.inodes)));
    let mut used = BTreeMap::new();
    for (place, (bytes, inodes)) in [(logs.unwrap_or(files), of_logs?), (files, of_files?)] {
        let one = BTreeMap::from([(place.place.clone(), DiskUse { bytes, inodes })]);
        used = added(used, &one);
    }
    Some(used)
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
