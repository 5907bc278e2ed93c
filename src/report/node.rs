//! The node as Kubernetes' clients know it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::model::eviction::Pressure;
use crate::model::lifecycle::Condition;
use crate::model::{Node, ResourceList};
use crate::units::CpuSet;

/// Facts of the running system that the model does not need.
#[derive(Clone, Debug, Default)]
pub struct SystemInfo {
    /// `/etc/machine-id`
    pub machine_id: String,
    /// `/proc/sys/kernel/random/boot_id`
    pub boot_id: String,
    /// `uname -r`
    pub kernel_version: String,
    /// `PRETTY_NAME` of `/etc/os-release`
    pub os_image: String,
    /// The CPUs that are there and off.
    pub offline_cpus: CpuSet,
}

/// The annotation that names the CPUs that are off.
const OFFLINE_CPUS: &str = "allotd.dev/offline-cpus";

/// The node object.
pub fn object(
    node: &Node,
    system: &SystemInfo,
    problems: &[String],
    pressures: &[Condition],
    since: jiff::Timestamp,
    revision: u64,
) -> v1::Node {
    let labels = [
        ("kubernetes.io/hostname", node.name.as_str()),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", architecture()),
    ];
    v1::Node {
        metadata: ObjectMeta {
            name: Some(node.name.clone()),
            labels: Some(
                labels
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .collect(),
            ),
            annotations: (!system.offline_cpus.is_empty())
                .then(|| [(OFFLINE_CPUS.to_owned(), system.offline_cpus.to_string())].into()),
            creation_timestamp: Some(Time(since)),
            resource_version: Some(revision.to_string()),
            ..ObjectMeta::default()
        },
        spec: Some(v1::NodeSpec::default()),
        status: Some(v1::NodeStatus {
            capacity: Some(api_list(&node.capacity)),
            allocatable: Some(api_list(&node.allocatable)),
            conditions: Some(
                pressures
                    .iter()
                    .map(condition)
                    .chain([ready(problems, since)])
                    .collect(),
            ),
            node_info: Some(v1::NodeSystemInfo {
                architecture: architecture().to_owned(),
                boot_id: system.boot_id.clone(),
                container_runtime_version: format!("process://{}", env!("CARGO_PKG_VERSION")),
                kernel_version: system.kernel_version.clone(),
                kubelet_version: format!("allotd-{}", env!("CARGO_PKG_VERSION")),
                machine_id: system.machine_id.clone(),
                operating_system: "linux".to_owned(),
                os_image: system.os_image.clone(),
                ..v1::NodeSystemInfo::default()
            }),
            ..v1::NodeStatus::default()
        }),
    }
}

/// What is so of a node that has too little of something, or enough, in the kubelet's words.
pub fn pressure(kind: Pressure, status: bool, since: jiff::Timestamp) -> Condition {
    let (reason, message) = match (kind, status) {
        (Pressure::Memory, true) => ("InsufficientMemory", "insufficient memory available"),
        (Pressure::Memory, false) => ("SufficientMemory", "sufficient memory available"),
        (Pressure::Disk, true) => ("DiskPressure", "disk pressure"),
        (Pressure::Disk, false) => ("NoDiskPressure", "no disk pressure"),
        (Pressure::Pids, true) => ("InsufficientPID", "insufficient PID available"),
        (Pressure::Pids, false) => ("SufficientPID", "sufficient PID available"),
    };
    Condition {
        kind: kind.to_string(),
        status,
        reason: format!("KubeletHas{reason}"),
        message: format!("kubelet has {message}"),
        since,
    }
}

fn condition(condition: &Condition) -> v1::NodeCondition {
    v1::NodeCondition {
        type_: condition.kind.clone(),
        status: if condition.status { "True" } else { "False" }.to_owned(),
        reason: Some(condition.reason.clone()),
        message: Some(condition.message.clone()),
        last_transition_time: Some(Time(condition.since)),
        ..v1::NodeCondition::default()
    }
}

fn ready(problems: &[String], since: jiff::Timestamp) -> v1::NodeCondition {
    let (status, reason, message) = if problems.is_empty() {
        ("True", "AgentReady", "allotd keeps pods".to_owned())
    } else {
        ("False", "AgentNotReady", problems.join("; "))
    };
    v1::NodeCondition {
        type_: "Ready".to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message),
        last_transition_time: Some(Time(since)),
        ..v1::NodeCondition::default()
    }
}

/// Kubernetes' names of architectures are Go's.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Amounts as the API spells them.
pub fn api_list(list: &ResourceList) -> BTreeMap<String, ApiQuantity> {
    list.iter()
        .map(|(name, amount)| (name.to_string(), ApiQuantity(amount.to_string())))
        .collect()
}
