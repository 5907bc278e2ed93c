//! A resize as Kubernetes' clients know it: the conditions `PodResizePending` and `PodResizeInProgress`
//! (KEP-1287), and what each container has meanwhile.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;

use crate::units::Bytes;

/// How far a resize has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resize {
    /// The pod keeps what it has.
    Pending {
        /// Not even the whole node would do: it is not tried again before something changes.
        infeasible: bool,
        /// What stands in the way.
        message: String,
    },
    /// The kernel does not hold all of it yet, or a container has still to run anew.
    InProgress {
        /// What stands in the way.
        error: Option<String>,
    },
}

impl Resize {
    /// The condition of a resize that is not allocated.
    pub const PENDING: &str = "PodResizePending";
    /// The condition of one that is not done.
    pub const IN_PROGRESS: &str = "PodResizeInProgress";

    /// Its condition: type, reason and message.
    pub fn condition(&self) -> (&'static str, &'static str, &str) {
        match self {
            Self::Pending {
                infeasible: true,
                message,
            } => (Self::PENDING, "Infeasible", message),
            Self::Pending { message, .. } => (Self::PENDING, "Deferred", message),
            Self::InProgress { error: Some(error) } => (Self::IN_PROGRESS, "Error", error),
            Self::InProgress { error: None } => (Self::IN_PROGRESS, "", ""),
        }
    }
}

/// What the containers of a pod have.
#[derive(Clone, Debug, Default)]
pub struct InForce {
    /// The object with what is allocated, where that is something else than it says.
    pub allocated: Option<Box<v1::Pod>>,
    /// `memory.max` of the containers where it is still another than allocated (bytes).
    pub memory: BTreeMap<String, Bytes>,
}

impl InForce {
    /// Fills in what a container has of the pod.
    pub fn fill(&self, object: &v1::Pod, status: &mut v1::ContainerStatus) {
        let pod = self.allocated.as_deref().unwrap_or(object);
        let Some(spec) = &pod.spec else {
            return;
        };
        let mut containers = spec
            .init_containers
            .iter()
            .flatten()
            .chain(&spec.containers);
        let own = containers.find(|container| container.name == status.name);
        let Some(resources) = own.and_then(|container| container.resources.clone()) else {
            return;
        };
        status.allocated_resources.clone_from(&resources.requests);
        let mut resources = v1::ResourceRequirements {
            claims: None,
            ..resources
        };
        if let Some(bytes) = self.memory.get(&status.name) {
            let limits = resources.limits.get_or_insert_default();
            limits.insert("memory".to_owned(), Text(bytes.0.to_string()));
        }
        status.resources = Some(resources);
    }
}
