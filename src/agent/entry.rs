//! A pod in the owner's memory: its record, its translation, and what its containers do now.

use std::collections::BTreeMap;
use std::time::Instant;

use jiff::Timestamp;

use super::ending::Ending;
use super::lifecycle::{Candidate, Progress};
use super::probes::Probing;
use super::record::{ContainerRecord, PodRecord, Unhealthy};
use super::request::PodKey;
use crate::admission::{AdmittedPod, Demand};
use crate::cgroup::CgroupPath;
use crate::model::lifecycle::{ContainerState, ContainerStatus, PodPhase, Termination};
use crate::model::probe::Health;
use crate::model::{Container, ContainerKind, PodUid};
use crate::report::pod::PodFacts;
use crate::report::resize::InForce;
use crate::runtime::ProcessId;
use crate::translation::{PodTree, container_path, pod_path};

/// A pod.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // each is so by itself, whatever the others are
pub(super) struct PodEntry {
    /// As it stands in the store.
    pub record: PodRecord,
    /// The revision of the record; 0 before the first commit.
    pub revision: u64,
    /// The record has changed since the last commit.
    pub dirty: bool,
    /// The pod as admitted.
    pub admitted: AdmittedPod,
    /// The pod as it shall be, while a resize waits.
    pub desired: Option<AdmittedPod>,
    /// What it took before a resize that is not in effect yet.
    pub before: Option<Demand>,
    /// Its part of the wanted tree.
    pub translated: PodTree,
    /// Whether its part is in the wanted tree now.
    pub placed: bool,
    /// What its containers do, by name.
    pub live: BTreeMap<String, Live>,
    /// Whether the kernel holds what is wanted; if not, why.
    pub enforced: Result<(), String>,
    /// When to look at it again.
    pub wake: Option<Instant>,
    /// Its files are being removed.
    pub clearing: bool,
    /// Its disk use is looked after.
    pub guarded: bool,
    /// Its containers that are looked after.
    pub probing: BTreeMap<String, Probing>,
    /// As what the ledger has it.
    pub accounted: Option<Accounted>,
}

/// What of a pod the ledger counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Accounted {
    /// It takes its requests of the node.
    pub of_node: bool,
    /// To quotas it is an object like any other.
    pub has_ended: bool,
}

/// What a container does now, as far as this run of the agent knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Live {
    /// Nothing.
    #[default]
    Idle,
    /// A start is under way.
    Starting,
    /// Its main process lives.
    Running(Main),
}

/// A container's main process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Main {
    /// The process.
    pub process: ProcessId,
    /// Since when it runs.
    pub since: Timestamp,
    /// How far its end has come that this agent wants.
    pub ending: Option<Ending>,
    /// It may have been the victim of an OOM kill: to be decided then.
    pub suspected: Option<Instant>,
}

impl PodEntry {
    /// A pod that has just been admitted or restored.
    pub fn new(
        record: PodRecord,
        revision: u64,
        admitted: AdmittedPod,
        translated: PodTree,
    ) -> Self {
        Self {
            record,
            revision,
            dirty: false,
            admitted,
            desired: None,
            before: None,
            translated,
            placed: false,
            live: BTreeMap::new(),
            enforced: Err("not applied yet".to_owned()),
            wake: None,
            clearing: false,
            guarded: false,
            probing: BTreeMap::new(),
            accounted: None,
        }
    }

    /// What it uses of quotas: the largest of what it has, shall have, and had.
    pub fn demand(&self) -> Demand {
        let of = |admitted: &AdmittedPod| Demand::of_pod(admitted.pod(), admitted.effective());
        let mut demand = of(&self.admitted);
        if let Some(desired) = &self.desired {
            demand = of(desired).raised_to(&demand);
        }
        match &self.before {
            Some(before) => demand.raised_to(before),
            None => demand,
        }
    }

    /// Namespace and name.
    pub fn key(&self) -> PodKey {
        PodKey::new(&self.admitted.pod().namespace, &self.admitted.pod().name)
    }

    /// The uid.
    pub fn uid(&self) -> &PodUid {
        &self.admitted.pod().uid
    }

    /// The pod's cgroup.
    pub fn path(&self) -> CgroupPath {
        pod_path(self.admitted.qos(), self.uid())
    }

    /// A container's cgroup.
    pub fn container_path(&self, container: &str) -> Option<CgroupPath> {
        container_path(&self.path(), container)
    }

    /// A container of the pod.
    pub fn container(&self, name: &str) -> Option<&Container> {
        self.admitted
            .pod()
            .all_containers()
            .map(|(_, _, container)| container)
            .find(|container| container.name == name)
    }

    /// The names of its containers in the order they start.
    pub fn container_names(&self) -> impl Iterator<Item = &str> {
        self.admitted
            .pod()
            .all_containers()
            .map(|(_, _, container)| container.name.as_str())
    }

    /// Which run of a container is the present one.
    pub fn attempt(&self, name: &str) -> u32 {
        self.container_record(name).map_or(0, |r| r.attempt)
    }

    /// Whether the present run of a container is a process that was attached.
    pub fn is_attached(&self, name: &str) -> bool {
        self.container_record(name)
            .is_some_and(|record| record.attached.is_some())
    }

    /// A container's record.
    pub fn container_record(&self, name: &str) -> Option<&ContainerRecord> {
        self.record.containers.get(name)
    }

    /// How far the present run of a container has come, as its probes and hooks say.
    pub fn health(&self, name: &str) -> Health {
        let record = self.container_record(name);
        record.map_or_else(Health::default, |record| record.health)
    }

    /// Why the present run of a container shall end, if so for its probes or hooks.
    pub fn unhealthy(&self, name: &str) -> Option<&Unhealthy> {
        self.container_record(name)?.unhealthy.as_ref()
    }

    /// How far the end of a container has come.
    pub fn ending(&mut self, name: &str) -> Option<&mut Ending> {
        match self.live.get_mut(name) {
            Some(Live::Running(main)) => main.ending.as_mut(),
            _ => None,
        }
    }

    /// A container's record, to change it.
    pub fn change(&mut self, name: &str) -> &mut ContainerRecord {
        self.dirty = true;
        self.record.containers.entry(name.to_owned()).or_default()
    }

    /// What a container does.
    pub fn live(&self, name: &str) -> &Live {
        self.live.get(name).unwrap_or(&Live::Idle)
    }

    /// Whether any container runs or is about to.
    pub fn is_active(&self) -> bool {
        self.live.values().any(|live| *live != Live::Idle)
    }

    /// The main processes that run now, by container.
    pub fn mains(&mut self) -> impl Iterator<Item = (&str, &mut Main)> {
        self.live.iter_mut().filter_map(|(name, live)| match live {
            Live::Running(main) => Some((name.as_str(), main)),
            _ => None,
        })
    }

    /// The containers as the decision on the next steps sees them.
    pub fn candidates(&self) -> Vec<Candidate<'_>> {
        self.admitted
            .pod()
            .all_containers()
            .map(|(_, _, container)| Candidate {
                name: &container.name,
                kind: container.kind,
                progress: self.progress(container),
            })
            .collect()
    }

    fn progress(&self, container: &Container) -> Progress {
        let record = self.record.containers.get(&container.name);
        match self.live(&container.name) {
            Live::Running(_) if !self.health(&container.name).has_started(&container.probes) => {
                Progress::StartingUp
            }
            Live::Running(_) => Progress::Running,
            Live::Starting => Progress::Starting,
            Live::Idle => match record {
                Some(ContainerRecord {
                    end: Some(_),
                    restart: true,
                    ..
                }) => Progress::Restarting,
                Some(ContainerRecord { end: Some(end), .. }) => Progress::Ended(end.clone()),
                _ if !container.has_command() => Progress::AwaitingAttach,
                record => Progress::Due(record.and_then(|record| record.not_before)),
            },
        }
    }

    /// Whether a container still needs its cgroup: init containers that did their work do not.
    pub fn needs_cgroup(&self, container: &Container) -> bool {
        container.kind != ContainerKind::Init
            || !matches!(self.progress(container), Progress::Ended(end) if end.is_success())
    }

    /// The containers and their past.
    pub fn statuses(&self) -> Vec<ContainerStatus> {
        let over = self.record.ended.is_some();
        self.admitted
            .pod()
            .all_containers()
            .map(|(_, _, container)| {
                let record = self
                    .container_record(&container.name)
                    .cloned()
                    .unwrap_or_default();
                ContainerStatus {
                    started: record.health.has_started(&container.probes),
                    ready: record.health.is_ready(&container.probes),
                    name: container.name.clone(),
                    kind: container.kind,
                    image: container.image.clone(),
                    state: self.state(container, over),
                    last: record.last,
                    restart_count: record.attempt,
                    oom_kills: record.oom_kills,
                }
            })
            .collect()
    }

    fn state(&self, container: &Container, over: bool) -> ContainerState {
        if let Live::Running(main) = self.live(&container.name) {
            return ContainerState::Running {
                pid: main.process.pid,
                since: main.since,
            };
        }
        let waiting = |reason, message: &str| ContainerState::Waiting {
            reason,
            message: message.to_owned(),
        };
        match self.progress(container) {
            Progress::Ended(end) => ContainerState::Terminated(end),
            Progress::AwaitingAttach => waiting(
                "AwaitingAttach",
                "has no command: waits for a process from allot attach",
            ),
            _ if over => waiting("PodEnded", ""),
            Progress::Due(Some(at)) => {
                let record = self.container_record(&container.name);
                match record.filter(|record| record.last.is_some()) {
                    Some(ContainerRecord { attempt, .. }) => waiting(
                        "CrashLoopBackOff",
                        &format!("starts again at {at}, {attempt} restarts so far"),
                    ),
                    None => waiting("RunContainerError", &format!("tried again at {at}")),
                }
            }
            Progress::Due(None)
                if container.kind == ContainerKind::App && !self.is_initialized() =>
            {
                waiting("PodInitializing", "")
            }
            _ => waiting("ContainerCreating", ""),
        }
    }

    fn is_initialized(&self) -> bool {
        self.candidates().iter().all(|candidate| {
            candidate.kind != ContainerKind::Init
                || matches!(&candidate.progress, Progress::Ended(end) if end.is_success())
        })
    }

    /// Whether nothing of it shall run any more: it only has to be wound up.
    pub fn is_over(&self) -> bool {
        self.outcome().is_terminal()
    }

    /// The phase told. A pod that is over has not ended before its last process has.
    pub fn phase(&self) -> PodPhase {
        match self.outcome() {
            phase if phase.is_terminal() && self.is_active() => PodPhase::Running,
            phase => phase,
        }
    }

    fn outcome(&self) -> PodPhase {
        if self.record.ended.is_some() {
            return PodPhase::Failed;
        }
        PodPhase::of(&self.statuses(), self.admitted.pod().restart_policy)
    }

    /// What is so of the pod now.
    pub fn facts(&self, node: &str) -> PodFacts {
        PodFacts {
            phase: self.phase(),
            qos: self.admitted.qos(),
            ended: self.record.ended.clone(),
            started_at: self.record.started_at,
            deletion: self
                .record
                .deletion
                .map(|deletion| (deletion.requested_at, deletion.grace_seconds)),
            conditions: self.record.conditions.clone(),
            containers: self.statuses(),
            revision: self.revision,
            node: node.to_owned(),
            in_force: InForce::default(),
        }
    }

    /// Notes how the present run of a container ended.
    pub fn end(&mut self, container: &str, end: Termination) {
        self.live.insert(container.to_owned(), Live::Idle);
        self.probing.remove(container);
        self.change(container).end = Some(end);
    }
}
