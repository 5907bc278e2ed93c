//! The objects a manifest can hold, and which kind under which apiVersion is which of them.

use k8s_openapi::api::core::v1::{LimitRange, Namespace, Node, Pod, ResourceQuota};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::misfit::{closest, shown};
use super::openshift::{self, ClusterResourceQuota};

/// An object of a manifest.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// `v1 Pod`
    Pod(Box<Pod>),
    /// `v1 Node`
    Node(Box<Node>),
    /// `v1 LimitRange`
    LimitRange(Box<LimitRange>),
    /// `v1 ResourceQuota`
    ResourceQuota(Box<ResourceQuota>),
    /// `quota.openshift.io/v1 ClusterResourceQuota`
    ClusterResourceQuota(Box<ClusterResourceQuota>),
    /// `v1 Namespace`
    Namespace(Box<Namespace>),
    /// An object of any other kind: kept as it is.
    Other(Box<Other>),
}

/// An object that has no type here.
#[derive(Clone, Debug, PartialEq)]
pub struct Other {
    /// `apiVersion`: `v1` or `GROUP/VERSION`.
    pub api_version: String,
    /// `kind`: letters and digits.
    pub kind: String,
    /// `metadata.name`, as it was written; empty only where it is still to be made.
    pub name: String,
    /// `metadata.namespace`, as it was written.
    pub namespace: Option<String>,
    /// All of it.
    pub value: Value,
}

impl Object {
    /// `apiVersion`
    pub fn api_version(&self) -> &str {
        match self {
            Self::Other(other) => &other.api_version,
            Self::ClusterResourceQuota(_) => openshift::API_VERSION,
            _ => "v1",
        }
    }

    /// `kind`
    pub fn kind(&self) -> &str {
        match self {
            Self::Pod(_) => "Pod",
            Self::Node(_) => "Node",
            Self::LimitRange(_) => "LimitRange",
            Self::ResourceQuota(_) => "ResourceQuota",
            Self::ClusterResourceQuota(_) => "ClusterResourceQuota",
            Self::Namespace(_) => "Namespace",
            Self::Other(other) => &other.kind,
        }
    }

    /// The whole object as JSON, with its `apiVersion` and `kind`.
    ///
    /// # Errors
    /// It has no JSON form.
    pub fn to_value(&self) -> serde_json::Result<Value> {
        match self {
            Self::Pod(pod) => serde_json::to_value(pod),
            Self::Node(node) => serde_json::to_value(node),
            Self::LimitRange(range) => serde_json::to_value(range),
            Self::ResourceQuota(quota) => serde_json::to_value(quota),
            Self::ClusterResourceQuota(quota) => serde_json::to_value(quota),
            Self::Namespace(namespace) => serde_json::to_value(namespace),
            Self::Other(other) => Ok(other.value.clone()),
        }
    }

    /// `metadata.name`, as it was written; empty only where it is still to be made.
    pub fn name(&self) -> &str {
        let name = match self {
            Self::Other(other) => Some(&other.name),
            _ => self.metadata().and_then(|metadata| metadata.name.as_ref()),
        };
        name.map_or("", String::as_str)
    }

    /// `metadata.generateName`: what a name begins with that the server makes.
    pub fn generate_name(&self) -> &str {
        let prefix = match self {
            Self::Other(other) => other
                .value
                .pointer("/metadata/generateName")
                .and_then(Value::as_str),
            _ => self
                .metadata()
                .and_then(|metadata| metadata.generate_name.as_deref()),
        };
        prefix.unwrap_or_default()
    }

    /// `metadata.namespace`, as it was written.
    pub fn namespace(&self) -> Option<&str> {
        match self {
            Self::Other(other) => other.namespace.as_deref(),
            _ => self.metadata()?.namespace.as_deref(),
        }
    }

    fn metadata(&self) -> Option<&ObjectMeta> {
        match self {
            Self::Pod(pod) => Some(&pod.metadata),
            Self::Node(node) => Some(&node.metadata),
            Self::LimitRange(range) => Some(&range.metadata),
            Self::ResourceQuota(quota) => Some(&quota.metadata),
            Self::ClusterResourceQuota(quota) => Some(&quota.metadata),
            Self::Namespace(namespace) => Some(&namespace.metadata),
            Self::Other(_) => None,
        }
    }
}

/// Which of the objects a kind is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Pod,
    Node,
    LimitRange,
    ResourceQuota,
    ClusterResourceQuota,
    Namespace,
    List,
    Other,
}

/// All kinds of `v1`, Kubernetes 1.37: the core group takes no others.
const CORE_KINDS: [&str; 18] = [
    "Pod",
    "Node",
    "LimitRange",
    "ResourceQuota",
    "Namespace",
    "List",
    "Binding",
    "ComponentStatus",
    "ConfigMap",
    "Endpoints",
    "Event",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PodTemplate",
    "ReplicationController",
    "Secret",
    "Service",
    "ServiceAccount",
];

/// What is wrong with `apiVersion` or `kind`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WrongKind {
    /// Which of the two.
    pub field: &'static str,
    /// What is wrong and what would be right.
    pub message: String,
}

/// Which object an apiVersion and a kind name.
pub(super) fn kind(api_version: &str, kind: &str) -> Result<Kind, WrongKind> {
    let wrong = |field, message| Err(WrongKind { field, message });
    let is_word = |text: &str| {
        (1..=63).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    if !is_word(kind) {
        let message = format!(
            "{:?} is not a kind: letters and digits, such as Pod",
            shown(kind)
        );
        return wrong("kind", message);
    }
    let core_kind = CORE_KINDS.iter().find(|core| **core == kind);
    let Some((group, version)) = api_version.split_once('/') else {
        if api_version == "v1" {
            return match core_kind {
                Some(kind) => Ok(core(kind)),
                None if kind.strip_suffix("List").is_some_and(is_core) => Ok(Kind::List),
                None => wrong("kind", unknown_core_kind(kind)),
            };
        }
        let right = match core_kind {
            Some(_) => "v1 is right".to_owned(),
            None => "it is v1, or GROUP/VERSION such as apps/v1".to_owned(),
        };
        let message = format!("{:?} is wrong for {kind}: {right}", shown(api_version));
        return wrong("apiVersion", message);
    };
    let is_group = |group: &str| {
        (1..=253).contains(&group.len())
            && group.split('.').all(|label| !label.is_empty())
            && group
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-.".contains(&b))
    };
    if !is_group(group) || !is_word(version) {
        let message = format!(
            "{:?} is not v1 or GROUP/VERSION such as apps/v1",
            shown(api_version)
        );
        return wrong("apiVersion", message);
    }
    // Groups with a domain of their own may have kinds of the same name; Kubernetes' own have not,
    // save for Event.
    let is_kubernetes_own = !group.contains('.') || group.ends_with(".k8s.io");
    if core_kind.is_some() && is_kubernetes_own && kind != "Event" {
        let message = format!("{:?} is wrong for {kind}: v1 is right", shown(api_version));
        return wrong("apiVersion", message);
    }
    if (api_version, kind) == (openshift::API_VERSION, "ClusterResourceQuota") {
        return Ok(Kind::ClusterResourceQuota);
    }
    Ok(Kind::Other)
}

fn is_core(kind: &str) -> bool {
    kind != "List" && CORE_KINDS.contains(&kind)
}

fn core(kind: &str) -> Kind {
    match kind {
        "Pod" => Kind::Pod,
        "Node" => Kind::Node,
        "LimitRange" => Kind::LimitRange,
        "ResourceQuota" => Kind::ResourceQuota,
        "Namespace" => Kind::Namespace,
        "List" => Kind::List,
        _ => Kind::Other,
    }
}

fn unknown_core_kind(kind: &str) -> String {
    let singular = kind.strip_suffix('s').unwrap_or(kind);
    let meant = closest(singular, &CORE_KINDS).or_else(|| closest(kind, &CORE_KINDS));
    match meant {
        Some(meant) => format!("{kind:?} is not a kind of v1; did you mean {meant}?"),
        None => format!(
            "{kind:?} is not a kind of v1; kinds of other groups have an apiVersion such as apps/v1"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::kind;

    fn told(api_version: &str, name: &str) -> String {
        match kind(api_version, name) {
            Ok(kind) => format!("{kind:?}"),
            Err(wrong) => format!("{}: {}", wrong.field, wrong.message),
        }
    }

    #[test]
    fn kinds_are_known_by_group_and_name() {
        for (api_version, name, expected) in [
            ("v1", "Pod", "Pod"),
            ("v1", "ConfigMap", "Other"),
            ("v1", "PodList", "List"),
            ("v1", "List", "List"),
            ("apps/v1", "Deployment", "Other"),
            (
                "quota.openshift.io/v1",
                "ClusterResourceQuota",
                "ClusterResourceQuota",
            ),
            ("events.k8s.io/v1", "Event", "Other"),
            ("longhorn.io/v1beta2", "Node", "Other"),
            (
                "v1",
                "Pods",
                "kind: \"Pods\" is not a kind of v1; did you mean Pod?",
            ),
            (
                "v1",
                "pod",
                "kind: \"pod\" is not a kind of v1; did you mean Pod?",
            ),
            (
                "v1",
                "Limitrange",
                "kind: \"Limitrange\" is not a kind of v1; did you mean LimitRange?",
            ),
            (
                "v1",
                "ListList",
                "kind: \"ListList\" is not a kind of v1; kinds of other groups have an apiVersion such as apps/v1",
            ),
            (
                "v1",
                "Deployment",
                "kind: \"Deployment\" is not a kind of v1; kinds of other groups have an apiVersion such as apps/v1",
            ),
            (
                "v1",
                "../x",
                "kind: \"../x\" is not a kind: letters and digits, such as Pod",
            ),
            (
                "v1beta1",
                "Pod",
                "apiVersion: \"v1beta1\" is wrong for Pod: v1 is right",
            ),
            (
                "apps/v1",
                "Pod",
                "apiVersion: \"apps/v1\" is wrong for Pod: v1 is right",
            ),
            (
                "apps",
                "Deployment",
                "apiVersion: \"apps\" is wrong for Deployment: it is v1, or GROUP/VERSION such as apps/v1",
            ),
            (
                "a/b/c",
                "Thing",
                "apiVersion: \"a/b/c\" is not v1 or GROUP/VERSION such as apps/v1",
            ),
            (
                "../v1",
                "Thing",
                "apiVersion: \"../v1\" is not v1 or GROUP/VERSION such as apps/v1",
            ),
        ] {
            assert_eq!(told(api_version, name), expected);
        }
    }
}
