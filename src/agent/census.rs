//! Which cgroups there are to read, for whoever reads them: the owner itself reads none for this.

use super::entry::{Live, PodEntry};
use super::run::Agent;
use crate::cgroup::{CgroupPath, InterfaceFile, Setting};
use crate::model::{Container, QosClass};
use crate::report::stats::{Bounds, Census, ContainerPlace, Level, PodPlace};
use crate::translation::layout::qos_path;
use crate::units::{Bytes, Limit};

impl Agent {
    /// The pods with their cgroups and bounds, and a reader.
    pub(super) fn census(&mut self) -> Census {
        let reader = self.kernel.reader();
        Census {
            node: self.node.name.clone(),
            memory: self.facts.capacity.memory().unwrap_or(Bytes::ZERO),
            capacity: self.node.capacity.clone(),
            allocatable: self.node.allocatable.clone(),
            requested: self.ledger.of_node().clone(),
            swap: self.facts.swap,
            max_pids: self.facts.max_pids,
            disk: self.config.state_dir.clone(),
            logs: self.config.pod_logs_dir.clone(),
            cgroups: self.config.cgroup_root.clone(),
            levels: self.levels_of_pods(),
            pods: self
                .pods
                .values()
                .map(|entry| self.pod_place(entry))
                .collect(),
            tallies: self.tallies.clone(),
            reader,
        }
    }

    fn levels_of_pods(&self) -> Vec<Level> {
        let levels = [
            ("pods", CgroupPath::top()),
            ("burstable", qos_path(QosClass::Burstable)),
            ("besteffort", qos_path(QosClass::BestEffort)),
        ];
        let level = |(name, path)| Level {
            name,
            bounds: self.bounds(&path),
            path,
        };
        levels.map(level).into()
    }

    /// A pod with its cgroups, bounds and files.
    pub(super) fn pod_place(&self, entry: &PodEntry) -> PodPlace {
        let pod = entry.admitted.pod();
        let key = entry.key();
        let containers = pod.all_containers().filter_map(|(_, _, container)| {
            let path = entry.container_path(&container.name)?;
            let id = self.container_id(&key, &container.name);
            Some(ContainerPlace {
                started: match entry.live(&container.name) {
                    Live::Running(main) => Some(main.since),
                    Live::Idle | Live::Starting => None,
                },
                bounds: Bounds {
                    cpu_request: request(container),
                    ..self.bounds(&path)
                },
                oom_kills: entry
                    .container_record(&container.name)
                    .map_or(0, |record| record.oom_kills),
                logs: id.map(|id| self.runtime.log_dir(&id)),
                name: container.name.clone(),
                path,
            })
        });
        let path = entry.path();
        PodPlace {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: entry.uid().to_string(),
            started: entry.record.started_at,
            bounds: self.bounds(&path),
            files: self.places(entry),
            containers: containers.collect(),
            path,
        }
    }

    /// What is in effect.
    fn bounds(&self, path: &CgroupPath) -> Bounds {
        let Some(node) = self.applied.get(path) else {
            return Bounds::default();
        };
        Bounds {
            cpu: match node.get(InterfaceFile::CpuMax) {
                Some(Setting::CpuMax(max)) => Some(max),
                _ => None,
            },
            cpu_request: None,
            memory_min: match node.get(InterfaceFile::MemoryMin) {
                Some(Setting::MemoryMin(Limit::At(bytes))) => Some(bytes),
                _ => None,
            },
            memory: match node.get(InterfaceFile::MemoryMax) {
                Some(Setting::MemoryMax(Limit::At(bytes))) => Some(bytes),
                _ => None,
            },
            swap: match node.get(InterfaceFile::MemorySwapMax) {
                Some(Setting::MemorySwapMax(Limit::At(bytes))) => Some(bytes),
                _ => None,
            },
            tasks: match node.get(InterfaceFile::PidsMax) {
                Some(Setting::PidsMax(Limit::At(tasks))) => Some(tasks),
                _ => None,
            },
        }
    }
}

fn request(container: &Container) -> Option<u64> {
    container.resources.requests.cpu().map(|milli| milli.0)
}
