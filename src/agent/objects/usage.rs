//! What one object uses of quotas, and which bounds of LimitRanges it breaks. Pure; pods are judged
//! elsewhere.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::admission::limit_range::{self, StreamCounts};
use crate::admission::quota::{Service, ServiceType, StorageClaim};
use crate::admission::{Demand, Reason};
use crate::model::kind::{CLAIM, IMAGE_STREAM, SERVICE};
use crate::model::{Kind, LimitRange};
use crate::units::Quantity;

/// The bounds that an object breaks which is new, or was another before.
pub fn out_of_range(
    kind: Kind,
    object: &Value,
    before: Option<&Value>,
    ranges: &[&LimitRange],
) -> Vec<Reason> {
    match kind {
        CLAIM => limit_range::claim(storage(object), ranges),
        IMAGE_STREAM => {
            let before = before.map(stream).unwrap_or_default();
            limit_range::stream(stream(object), before, ranges)
        }
        _ => Vec::new(),
    }
}

/// What an image stream holds: each reference in its spec and each image in its status once, however many
/// tags lead there (OpenShift: `imageutil`, `GetImageStreamUsage`).
fn stream(object: &Value) -> StreamCounts {
    let tags = |field: &str| object.pointer(field).and_then(Value::as_array);
    let references: BTreeSet<_> = tags("/spec/tags")
        .into_iter()
        .flatten()
        .filter_map(|tag| {
            let from = tag.get("from")?;
            let text = |field: &str| from.get(field).and_then(Value::as_str);
            Some((text("kind")?, text("namespace"), text("name")?))
        })
        .collect();
    let events = tags("/status/tags").into_iter().flatten();
    let items = events.filter_map(|tag| tag.get("items")?.as_array());
    let images: BTreeSet<_> = items
        .flatten()
        .filter_map(|item| item.get("image")?.as_str())
        .collect();
    StreamCounts {
        images: images.len() as u64,
        tags: references.len() as u64,
    }
}

/// What an object uses of the quotas of its namespace.
pub fn demand(kind: Kind, object: &Value) -> Demand {
    match kind {
        CLAIM => claim(object).demand(),
        SERVICE => service(object).demand(),
        _ => Demand::of_object(&kind.resource()),
    }
}

fn service(object: &Value) -> Service {
    let ports = object.pointer("/spec/ports").and_then(Value::as_array);
    let kind = match object.pointer("/spec/type").and_then(Value::as_str) {
        Some("NodePort") => ServiceType::NodePort,
        Some("LoadBalancer") => ServiceType::LoadBalancer,
        _ => ServiceType::Other,
    };
    Service {
        kind,
        ports: ports
            .into_iter()
            .flatten()
            .map(|port| {
                port.get("nodePort")
                    .and_then(Value::as_u64)
                    .is_some_and(|port| port > 0)
            })
            .collect(),
        only_named_node_ports: object.pointer("/spec/allocateLoadBalancerNodePorts")
            == Some(&Value::Bool(false)),
    }
}

fn claim(object: &Value) -> StorageClaim {
    let text = |field: &str| {
        object
            .pointer(field)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    StorageClaim {
        request: storage(object),
        allocated: None,
        storage_class: text("/spec/storageClassName"),
        attributes_classes: text("/spec/volumeAttributesClassName")
            .into_iter()
            .collect(),
    }
}

/// How much storage a claim asks for.
pub fn storage(object: &Value) -> Option<Quantity> {
    let storage = object.pointer("/spec/resources/requests/storage")?;
    serde_json::from_value(storage.clone()).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_reference_and_each_image_counts_once() {
        let from =
            |kind: &str, name: &str| json!({"name": "t", "from": {"kind": kind, "name": name}});
        let object = json!({
            "spec": {"tags": [
                from("DockerImage", "a/b:1"),
                from("DockerImage", "a/b:1"),
                from("ImageStreamTag", "a/b:1"),
                {"name": "without"},
            ]},
            "status": {"tags": [
                {"tag": "x", "items": [{"image": "sha256:1"}, {"image": "sha256:2"}]},
                {"tag": "y", "items": [{"image": "sha256:1"}]},
            ]},
        });
        assert_eq!(stream(&object), StreamCounts { images: 2, tags: 2 });
        for odd in [
            json!({}),
            json!({"spec": {"tags": 1}}),
            json!({"status": {"tags": [[]]}}),
        ] {
            assert_eq!(stream(&odd), StreamCounts::default());
        }
    }
}
