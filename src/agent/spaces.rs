//! Where a pod's files are, to which projects they belong, and what they may take.
//!
//! A pod's projects are in its record before its first directory is made, so that a crash leaves neither
//! an id that nobody knows of nor one that two pods share. They end with the record, after the files.

use std::collections::{BTreeMap, BTreeSet};

use super::entry::PodEntry;
use super::events::Severity;
use super::guard::{Guarded, Verdict};
use super::request::PodKey;
use super::run::Agent;
use crate::admission::AdmittedPod;
use crate::model::policy::StoragePolicy;
use crate::model::space::{Place, Space};
use crate::model::volume::Medium;
use crate::model::{Pod, PodUid, ResourceName, annotation};
use crate::observation::storage::limits::{Finding, Limits};
use crate::observation::storage::projects::{COUNT, FIRST, FileSystems};
use crate::runtime::record::LogBounds;
use crate::runtime::{Held, MountSpec, ProjectSpec, VolumeSpec};
use crate::units::Bytes;

/// A pod that is evicted for its disk use has so long to end (seconds), as with the kubelet.
const GRACE: u64 = 1;

/// The project ids that pods have.
#[derive(Debug, Default)]
pub(super) struct Projects {
    /// `None` where the file systems do not count by project.
    pub file_systems: Option<FileSystems>,
    taken: BTreeSet<u32>,
    /// Where the search for a free one begins.
    next: u32,
}

impl Projects {
    /// These are taken.
    pub fn take(&mut self, projects: impl Iterator<Item = u32>) {
        self.taken.extend(projects);
    }

    /// These are free again, as far as the file systems do not know them.
    pub fn free(&mut self, projects: impl Iterator<Item = u32>) {
        for project in projects {
            self.taken.remove(&project);
        }
    }

    /// An id that nobody has; `None` if there is none.
    fn assign(&mut self) -> Option<u32> {
        let file_systems = self.file_systems.as_ref()?;
        let offset = (0..COUNT).map(|step| self.next.wrapping_add(step) % COUNT);
        let project = offset
            .map(|offset| FIRST + offset)
            .find(|id| !self.taken.contains(id) && file_systems.is_free(*id))?;
        self.next = project - FIRST + 1;
        self.taken.insert(project);
        Some(project)
    }
}

/// The parts of a pod's files.
fn spaces(pod: &Pod) -> impl Iterator<Item = Space> {
    let containers = pod.all_containers();
    let containers = containers.map(|(_, _, container)| Space::Container(container.name.clone()));
    let volumes = pod.volumes.iter();
    let volumes = volumes.map(|volume| Space::Volume(volume.name.clone()));
    std::iter::once(Space::Pod).chain(containers).chain(volumes)
}

fn is_in_memory(pod: &Pod, space: &Space) -> bool {
    let own = |name: &String| pod.volumes.iter().find(|volume| volume.name == *name);
    matches!(space, Space::Volume(name) if own(name).is_some_and(|v| v.medium == Medium::Memory))
}

impl Agent {
    /// Project ids for a pod that is about to be kept; none where nothing counts by project.
    pub(super) fn assign_projects(&mut self, pod: &Pod) -> BTreeMap<Space, u32> {
        let on_disk = spaces(pod).filter(|space| !is_in_memory(pod, space));
        let mut assigned = BTreeMap::new();
        for space in on_disk {
            let Some(project) = self.projects.assign() else {
                self.projects.free(assigned.into_values());
                return BTreeMap::new();
            };
            assigned.insert(space, project);
        }
        assigned
    }

    /// The policy of a pod: its own, or the node's.
    fn storage_policy(&self, pod: &Pod) -> StoragePolicy {
        let own = annotation::storage_policy(pod).ok().flatten();
        own.unwrap_or(self.config.ephemeral_storage_policy)
    }

    /// What a pod's files may take.
    fn storage_limits(&self, entry: &PodEntry) -> Limits {
        let pod = entry.admitted.pod();
        let file_systems = self.projects.file_systems.as_ref();
        let mut limits = Limits {
            refusal: file_systems.map_or_else(Default::default, |all| all.refusal),
            ..Limits::default()
        };
        for (_, _, container) in pod.all_containers() {
            let limit = container
                .resources
                .limits
                .get(&ResourceName::EphemeralStorage);
            if let Some(limit) = limit.filter(|limit| !limit.is_zero()) {
                let space = Space::Container(container.name.clone());
                limits.parts.insert(space, Bytes(limit.bytes()));
            }
        }
        for volume in &pod.volumes {
            if let Some(size) = volume.size_limit {
                let space = Space::Volume(volume.name.clone());
                limits.parts.insert(space, size);
            }
        }
        let effective = entry.admitted.effective();
        let of_pod = effective.limits.get(&ResourceName::EphemeralStorage);
        limits.pod = of_pod
            .filter(|_| effective.is_bounded(&ResourceName::EphemeralStorage))
            .map(|limit| Bytes(limit.bytes()));
        let enforces = self.storage_policy(pod) == StoragePolicy::Enforce;
        for space in spaces(pod) {
            let in_memory = is_in_memory(pod, &space);
            let is_counted = entry.record.projects.contains_key(&space);
            let is_bounded = limits.parts.contains_key(&space);
            if is_bounded && (in_memory || (enforces && is_counted)) {
                limits.enforced.push(space.clone());
            }
            if in_memory {
                limits.in_memory.push(space);
            }
        }
        limits
    }

    /// Tells of a pod whose limits cannot be kept by the kernel though it asks for that.
    pub(super) fn tell_of_storage(&mut self, key: &PodKey) {
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        let wished = self.storage_policy(entry.admitted.pod()) == StoragePolicy::Enforce;
        if wished && entry.record.projects.is_empty() && !self.storage_limits(entry).is_empty() {
            let message = format!(
                "{} has no project quotas: a pod that exceeds a disk limit is evicted, its writes are not refused",
                self.config.state_dir.display()
            );
            self.event(key, "", Severity::Warning, "StorageNotEnforced", &message);
        }
    }

    /// What the runtime makes of a pod's volumes. One in memory is no larger than its own limit, that of
    /// the pod's memory, and the node's (Kubernetes 1.32, `SizeMemoryBackedVolumes`).
    pub(super) fn volume_specs(&self, admitted: &AdmittedPod) -> Vec<VolumeSpec> {
        let effective = admitted.effective();
        let of_pod = effective.limits.memory();
        let of_pod = of_pod.filter(|_| effective.is_bounded(&ResourceName::Memory));
        let bounds = [of_pod, self.node.allocatable.memory()];
        let volumes = admitted.pod().volumes.iter();
        volumes
            .map(|volume| {
                let bounds = bounds.into_iter().chain([volume.size_limit]);
                let size = bounds.flatten().map(|Bytes(bytes)| bytes).min();
                VolumeSpec {
                    name: volume.name.clone(),
                    held: match volume.medium {
                        Medium::Memory => Held::InMemory(size),
                        Medium::Disk | Medium::Other(_) => Held::OnDisk,
                    },
                    group: admitted.pod().fs_group,
                }
            })
            .collect()
    }

    /// Where a container sees the pod's volumes.
    pub(super) fn mount_specs(entry: &PodEntry, container: &str) -> Vec<MountSpec> {
        let volumes = &entry.admitted.pod().volumes;
        let is_own = |name: &str| volumes.iter().any(|volume| volume.name == name);
        let container = entry.container(container);
        let mounts = container.iter().flat_map(|container| &container.mounts);
        mounts
            .filter(|mount| is_own(&mount.volume))
            .map(|mount| MountSpec {
                volume: mount.volume.clone(),
                path: (&mount.path).into(),
                read_only: mount.read_only,
            })
            .collect()
    }

    /// The projects of a pod's files with the limits that the kernel keeps.
    pub(super) fn project_specs(&self, entry: &PodEntry) -> Vec<ProjectSpec> {
        let limits = self.storage_limits(entry);
        let projects = entry.record.projects.iter();
        projects
            .map(|(space, project)| ProjectSpec {
                space: space.clone(),
                project: *project,
                limit: limits
                    .parts
                    .get(space)
                    .filter(|_| limits.enforced.contains(space))
                    .map(|Bytes(bytes)| *bytes),
            })
            .collect()
    }

    /// How much of a container's log is kept.
    pub(super) fn log_bounds(&self) -> LogBounds {
        LogBounds {
            size: self.config.container_log_max_size.bytes(),
            files: self.config.container_log_max_files,
        }
    }

    /// Where a pod's files are.
    pub(super) fn places(&self, entry: &PodEntry) -> Vec<Place> {
        let pod = entry.admitted.pod();
        let key = entry.key();
        let first = entry.container_names().next();
        let Some(id) = first.and_then(|name| self.container_id(&key, name)) else {
            return Vec::new();
        };
        let directories = |space: &Space| self.runtime.directories(&id, space);
        let own: Vec<_> = spaces(pod).collect();
        let place = |space: &Space| Place {
            directories: directories(space),
            others: match space {
                Space::Pod => own
                    .iter()
                    .filter(|it| **it != Space::Pod)
                    .flat_map(directories)
                    .collect(),
                Space::Container(_) | Space::Volume(_) => Vec::new(),
            },
            aliases: match space {
                Space::Volume(name) => pod
                    .all_containers()
                    .flat_map(|(_, _, container)| &container.mounts)
                    .filter(|mount| mount.volume == *name)
                    .map(|mount| mount.path.clone().into())
                    .collect(),
                Space::Pod | Space::Container(_) => Vec::new(),
            },
            in_memory: is_in_memory(pod, space),
            project: entry.record.projects.get(space).copied(),
            space: space.clone(),
        };
        own.iter().map(place).collect()
    }

    /// Has a pod with disk limits looked after as long as it goes on.
    pub(super) fn guard_storage(&mut self, key: &PodKey) {
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        let goes_on = entry.record.deletion.is_none() && !entry.is_over();
        if goes_on == entry.guarded {
            return;
        }
        let uid = entry.uid().clone();
        let limits = self.storage_limits(entry);
        if !goes_on {
            self.guard.leave(&uid);
        } else if !limits.is_empty() {
            let guarded = Guarded {
                places: self.places(entry),
                limits,
                cgroup: entry.path(),
                reader: self.kernel.reader(),
            };
            self.guard.look_after(uid, guarded);
        }
        if let Some(entry) = self.pods.get_mut(key) {
            entry.guarded = goes_on;
        }
    }

    /// A pod's files were found to take too much.
    pub(super) fn storage_found(&mut self, uid: &PodUid, verdict: Verdict) {
        let Some(key) = self.by_uid.get(uid).cloned() else {
            return;
        };
        match verdict.0 {
            Finding::Excess { signal, message } => {
                if self.evict(&key, &message, GRACE) {
                    let count = self.tallies.evictions.entry(signal.to_owned()).or_default();
                    *count = count.saturating_add(1);
                }
            }
            Finding::Full { space, message } => {
                let container = match &space {
                    Space::Container(name) => name.as_str(),
                    Space::Pod | Space::Volume(_) => "",
                };
                let reason = "EphemeralStorageFull";
                self.event(&key, container, Severity::Warning, reason, &message);
            }
        }
    }
}
