//! Objects as the rows of a table, with the columns that kubectl's users know.
//!
//! Both `allot get` and kubectl print what this decides. Text of others is passed on as it is.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::age::duration;
use crate::model::Kind;
use crate::model::kind::{
    APPLIED_QUOTA, CLUSTER_QUOTA, CONFIG_MAP, DEFINITION, EVENT, LIMIT_RANGE, NAMESPACE, NODE, POD,
    RESOURCE_QUOTA, SECRET,
};

mod pods;
mod policies;

pub use pods::{app_statuses, init_statuses, pod_status, why_not_running};
use policies::of_quota;
pub use policies::{figures, label_selector};

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its head; printed in capitals.
    pub name: &'static str,
    /// Shown only where all is asked for (`-o wide`).
    pub wide: bool,
}

const fn shown(name: &'static str) -> Column {
    Column { name, wide: false }
}

const fn wide(name: &'static str) -> Column {
    Column { name, wide: true }
}

const PODS: &[Column] = &[
    shown("Name"),
    shown("Ready"),
    shown("Status"),
    shown("Restarts"),
    shown("Age"),
    wide("QoS"),
    wide("Node"),
];

const NODES: &[Column] = &[
    shown("Name"),
    shown("Status"),
    shown("Roles"),
    shown("Age"),
    shown("Version"),
    wide("OS-Image"),
    wide("Kernel-Version"),
    wide("Container-Runtime"),
];

const EVENTS: &[Column] = &[
    shown("Last Seen"),
    shown("Type"),
    shown("Reason"),
    shown("Object"),
    shown("Message"),
    wide("First Seen"),
    wide("Count"),
    wide("Name"),
];

/// As of Kubernetes 1.31.
const QUOTAS: &[Column] = &[
    shown("Name"),
    shown("Request"),
    shown("Limit"),
    shown("Age"),
];

const CLUSTER_QUOTAS: &[Column] = &[
    shown("Name"),
    shown("Labels Selector"),
    shown("Annotations Selector"),
    shown("Request"),
    shown("Limit"),
    shown("Age"),
];

const DATED: &[Column] = &[shown("Name"), shown("Created At")];

const NAMESPACES: &[Column] = &[shown("Name"), shown("Status"), shown("Age")];

const SECRETS: &[Column] = &[shown("Name"), shown("Type"), shown("Data"), shown("Age")];

const CONFIG_MAPS: &[Column] = &[shown("Name"), shown("Data"), shown("Age")];

const OTHERS: &[Column] = &[shown("Name"), shown("Age")];

/// The columns of a kind.
pub fn columns(kind: Kind) -> &'static [Column] {
    match kind {
        POD => PODS,
        NODE => NODES,
        EVENT => EVENTS,
        RESOURCE_QUOTA => QUOTAS,
        CLUSTER_QUOTA | APPLIED_QUOTA => CLUSTER_QUOTAS,
        LIMIT_RANGE | DEFINITION => DATED,
        NAMESPACE => NAMESPACES,
        SECRET => SECRETS,
        CONFIG_MAP => CONFIG_MAPS,
        _ => OTHERS,
    }
}

/// The cells of an object, one for each column.
pub fn cells(kind: Kind, object: &Value, now: Timestamp) -> Vec<String> {
    let name = text(object, "/metadata/name");
    let age = since(object, "/metadata/creationTimestamp", now);
    match kind {
        POD => read(object).map(|pod| of_pod(&pod, name, age, now)),
        NODE => read(object).map(|node| of_node(&node, name, age)),
        EVENT => read(object).map(|event| of_event(&event, name, now)),
        RESOURCE_QUOTA => read(object).map(|quota| of_quota(&quota, name, age)),
        CLUSTER_QUOTA | APPLIED_QUOTA => {
            read(object).map(|quota| policies::of_cluster_quota(&quota, name, age))
        }
        LIMIT_RANGE | DEFINITION => Some(vec![name, text(object, "/metadata/creationTimestamp")]),
        NAMESPACE => Some(vec![name, text(object, "/status/phase"), age]),
        SECRET => Some(vec![name, text(object, "/type"), count(object), age]),
        CONFIG_MAP => Some(vec![name, count(object), age]),
        _ => Some(vec![name, age]),
    }
    .unwrap_or_default()
}

fn read<T: DeserializeOwned>(object: &Value) -> Option<T> {
    T::deserialize(object).ok()
}

fn text(object: &Value, field: &str) -> String {
    let text = object.pointer(field).and_then(Value::as_str);
    given(text)
}

fn given(text: Option<&str>) -> String {
    let text = text.filter(|text| !text.is_empty());
    text.unwrap_or("<none>").to_owned()
}

/// How long ago a field says that something was.
fn since(object: &Value, field: &str, now: Timestamp) -> String {
    let time = object.pointer(field).and_then(Value::as_str);
    match time.and_then(|time| time.parse::<Timestamp>().ok()) {
        Some(time) => duration(now.duration_since(time).as_secs()),
        None => "<unknown>".to_owned(),
    }
}

fn ago(time: Option<&Time>, now: Timestamp) -> String {
    match time {
        Some(Time(time)) => duration(now.duration_since(*time).as_secs()),
        None => "<unknown>".to_owned(),
    }
}

/// How many entries a Secret or a ConfigMap has.
fn count(object: &Value) -> String {
    let fields = ["data", "binaryData"].into_iter();
    let entries = fields.filter_map(|field| object.get(field)?.as_object());
    entries.map(serde_json::Map::len).sum::<usize>().to_string()
}

fn of_pod(pod: &Pod, name: String, age: String, now: Timestamp) -> Vec<String> {
    let (ready, all) = pods::readiness(pod);
    let qos = pod
        .status
        .as_ref()
        .and_then(|status| status.qos_class.as_deref());
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    vec![
        name,
        format!("{ready}/{all}"),
        pod_status(pod),
        pods::restarts(pod, now),
        age,
        given(qos),
        given(node),
    ]
}

fn of_node(node: &Node, name: String, age: String) -> Vec<String> {
    let status = node.status.as_ref();
    let info = status.and_then(|status| status.node_info.as_ref());
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let ready = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition.type_ == "Ready");
    let state = match ready.map(|condition| condition.status.as_str()) {
        Some("True") => "Ready",
        Some("False") => "NotReady",
        _ => "Unknown",
    };
    vec![
        name,
        state.to_owned(),
        "<none>".to_owned(),
        age,
        given(info.map(|info| info.kubelet_version.as_str())),
        given(info.map(|info| info.os_image.as_str())),
        given(info.map(|info| info.kernel_version.as_str())),
        given(info.map(|info| info.container_runtime_version.as_str())),
    ]
}

fn of_event(event: &Event, name: String, now: Timestamp) -> Vec<String> {
    let about = &event.involved_object;
    let kind = given(about.kind.as_deref()).to_ascii_lowercase();
    vec![
        last_seen(event, now),
        given(event.type_.as_deref()),
        given(event.reason.as_deref()),
        format!("{kind}/{}", given(about.name.as_deref())),
        given(event.message.as_deref()),
        ago(event.first_timestamp.as_ref(), now),
        event.count.unwrap_or(1).to_string(),
        name,
    ]
}

/// How long ago an event happened last.
pub fn last_seen(event: &Event, now: Timestamp) -> String {
    let time = event.last_timestamp.as_ref();
    ago(time.or(event.first_timestamp.as_ref()), now)
}
