//! A pod, as far as a node agent cares.
//!
//! Plain data: what the manifest says, before or after defaulting. Whether it is allowed is
//! decided in `admission`.

use std::collections::BTreeMap;
use std::fmt;

use super::probe::Probes;
use super::security::Security;
use super::volume::{Mount, Volume};
use super::{ResourceList, Resources};

/// The identity of one pod, for all time: a new pod of the same name has another. It becomes part
/// of a cgroup's and a directory's name, so it holds only letters, digits and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodUid(String);

impl PodUid {
    /// A uid of 1 to 64 letters, digits and dashes, as RFC 4122 ones are; `None` for any other.
    pub fn new(uid: &str) -> Option<Self> {
        let fits = (1..=64).contains(&uid.len())
            && uid.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        fits.then(|| Self(uid.to_owned()))
    }

    /// The uid as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PodUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// `metadata.namespace`
    pub namespace: String,
    /// `metadata.name`
    pub name: String,
    /// `metadata.uid`
    pub uid: PodUid,
    /// `metadata.labels`
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`
    pub annotations: BTreeMap<String, String>,
    /// `spec.initContainers`: in order, sidecars among them.
    pub init_containers: Vec<Container>,
    /// `spec.containers`
    pub containers: Vec<Container>,
    /// `spec.volumes`, as far as the node makes them itself.
    pub volumes: Vec<Volume>,
    /// The names of all others: they may be mounted, to no effect.
    pub foreign_volumes: Vec<String>,
    /// `spec.securityContext.fsGroup`: the group of its volumes.
    pub fs_group: Option<u32>,
    /// `spec.resources`: resources of the pod as a whole (Kubernetes 1.34, PodLevelResources).
    pub resources: Option<Resources>,
    /// `spec.overhead`
    pub overhead: ResourceList,
    /// `spec.restartPolicy`
    pub restart_policy: RestartPolicy,
    /// `spec.terminationGracePeriodSeconds`: 30 unless given.
    pub termination_grace_seconds: u64,
    /// `spec.activeDeadlineSeconds`
    pub active_deadline_seconds: Option<u64>,
    /// `spec.priority`
    pub priority: i32,
    /// `spec.priorityClassName`
    pub priority_class: String,
    /// Whether a term of `spec.affinity` speaks of pods of other namespaces.
    pub has_cross_namespace_affinity: bool,
    /// Whether the pod comes from a file of the node (`kubernetes.io/config.source`).
    pub is_static: bool,
}

impl Pod {
    /// Kubernetes' bound for system pods: `SystemCriticalPriority`.
    pub const CRITICAL_PRIORITY: i32 = 2_000_000_000;

    /// All containers with the field they stand in (`initContainers`, `containers`) and their
    /// index there, in the order they start.
    pub fn all_containers(&self) -> impl Iterator<Item = (&'static str, usize, &Container)> {
        let init = self.init_containers.iter().enumerate();
        let main = self.containers.iter().enumerate();
        init.map(|(index, container)| ("initContainers", index, container))
            .chain(main.map(|(index, container)| ("containers", index, container)))
    }

    /// Critical: static, or of a system priority (`IsCriticalPod`).
    pub fn is_critical(&self) -> bool {
        self.is_static || self.priority >= Self::CRITICAL_PRIORITY
    }

    /// `NAMESPACE/NAME`
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

/// When an ended container starts anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RestartPolicy {
    /// Always; Kubernetes' default.
    #[default]
    Always,
    /// When it ended with an error.
    OnFailure,
    /// Never.
    Never,
}

/// Which part a container plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerKind {
    /// Runs for the life of the pod.
    App,
    /// Runs to its end before the next one starts.
    Init,
    /// An init container with `restartPolicy: Always`: runs beside those after it.
    Sidecar,
}

/// A container: a process in a cgroup of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// A DNS label, unique in the pod.
    pub name: String,
    /// The part it plays.
    pub kind: ContainerKind,
    /// Shown, not pulled: the process runtime starts programs of the host.
    pub image: String,
    /// The program and its first arguments; empty: wait for `allot attach`.
    pub command: Vec<String>,
    /// Further arguments.
    pub args: Vec<String>,
    /// Environment, in order.
    pub env: Vec<(String, String)>,
    /// Where the program starts; the scratch directory unless given.
    pub working_dir: Option<String>,
    /// `volumeMounts`, in order.
    pub mounts: Vec<Mount>,
    /// What it asks for and may use at the most.
    pub resources: Resources,
    /// `resizePolicy`: which changes of these need another run of it.
    pub resize_policy: ResizePolicy,
    /// `securityContext`, together with the pod's.
    pub security: Security,
    /// Its probes and hooks.
    pub probes: Probes,
}

/// Whether a container runs on when its amounts change (Kubernetes 1.27). `false`, Kubernetes'
/// `NotRequired`, is the default; `true` is `RestartContainer`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResizePolicy {
    /// Other amounts of cpu need another run.
    pub restarts_for_cpu: bool,
    /// Other amounts of memory need another run.
    pub restarts_for_memory: bool,
}

impl Container {
    /// Whether it has a program to start.
    pub fn has_command(&self) -> bool {
        !self.command.is_empty()
    }
}
