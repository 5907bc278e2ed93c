//! What one pod uses, read for whoever asks: the owner only says where to look.

use std::sync::Arc;
use std::time::Instant;

use super::input::Handle;
use super::request::{PodKey, Refusal, Request, UsageParts};
use super::sampler::{PATIENCE, apart};
use super::walks::{Files, Walks};
use crate::cgroup::CgroupPath;
use crate::model::space::{Measured, Space};
use crate::observation::storage;
use crate::report::descendants::CgroupCounts;
use crate::report::stats::{Bounds, ContainerPlace};
use crate::report::{CgroupUsage, ContainerUsage, DiskUsage, PodUsage, StatusReport};

impl Handle {
    /// What a pod uses now. Reading files and walking directories takes time: it is done apart.
    ///
    /// # Errors
    /// There is no such pod, or the owner is stopping.
    pub async fn usage(&self, key: PodKey) -> Result<PodUsage, Refusal> {
        let parts = self.ask(|reply| Request::Usage(key, reply)).await?;
        let walks = Arc::clone(self.walks());
        apart(move || read(parts, &walks)).await
    }

    /// The agent's own state, with the cgroups that the kernel counts.
    ///
    /// # Errors
    /// The owner is stopping.
    pub async fn status(&self) -> Result<StatusReport, Refusal> {
        let (mut report, reader) = self.ask(Request::Status).await?;
        let counted = apart(move || reader.descendants(&CgroupPath::top())).await?;
        let counted = counted.unwrap_or_else(|error| {
            tracing::warn!("{error}");
            None
        });
        report.cgroups = Some(CgroupCounts::of(counted));
        Ok(*report)
    }
}

fn read(UsageParts { pod, reader }: UsageParts, walks: &Walks) -> PodUsage {
    let cgroup = |path: &CgroupPath, bounds: &Bounds| match reader.sample(path) {
        Ok(Some(sample)) => CgroupUsage::of(&sample, bounds.tasks),
        _ => CgroupUsage::default(),
    };
    let containers = pod.containers.iter().map(|container| ContainerUsage {
        name: container.name.clone(),
        cgroup: cgroup(&container.path, &container.bounds),
        log_bytes: None,
        scratch_bytes: None,
        oom_kills: container.oom_kills,
    });
    let mut usage = PodUsage {
        pod: cgroup(&pod.path, &pod.bounds),
        containers: containers.collect(),
        disk: DiskUsage::default(),
    };
    let until = Instant::now() + PATIENCE;
    let mut sum = Some(Measured {
        exact: true,
        ..Measured::default()
    });
    for place in &pod.files {
        let files = Files {
            uid: &pod.uid,
            place,
            cgroup: &pod.path,
            reader: &reader,
        };
        let used = walks.measure(&files, until).measured;
        if !place.in_memory {
            sum = sum.zip(used).map(|(sum, used)| sum.plus(used));
        }
        let Some(used) = used else { continue };
        match &place.space {
            Space::Volume(name) => drop(usage.disk.volumes.insert(name.clone(), used.bytes)),
            Space::Container(name) => {
                let containers = usage.containers.iter_mut().zip(&pod.containers);
                let own = containers.into_iter().find(|(it, _)| it.name == *name);
                let Some((container, ContainerPlace { logs, .. })) = own else {
                    continue;
                };
                let logs = logs.as_deref().map(|logs| storage::usage(&[logs]));
                container.log_bytes = logs.and_then(Result::ok).map(|used| used.bytes);
                let scratch = container
                    .log_bytes
                    .map(|logs| used.bytes.saturating_sub(logs));
                container.scratch_bytes = scratch;
            }
            Space::Pod => {}
        }
    }
    if let Some(sum) = sum {
        usage.disk.bytes = Some(sum.bytes);
        usage.disk.inodes = Some(sum.inodes);
        usage.disk.deleted_bytes = sum.deleted;
        usage.disk.exact = sum.exact;
        usage.disk.hidden = sum.hidden;
        usage.disk.partial = sum.partial;
    }
    usage
}
