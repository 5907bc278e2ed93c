//! What a resize may not touch: everything but the amounts of cpu and memory.

use k8s_openapi::api::core::v1;
use serde_json::Value;

use super::Amounts;
use crate::agent::replace::differences;
use crate::agent::request::Cause;

/// What differs that must not. Readers see the node's name in every pod.
pub(super) fn unresizable(kept: &v1::Pod, new: &v1::Pod, node: &str) -> Vec<Cause> {
    let forbidden = |field: String, message: &str| Cause {
        reason: "FieldValueForbidden".to_owned(),
        field,
        message: format!("Forbidden: {message}"),
    };
    let empty = v1::PodSpec::default();
    let (old, asked) = (
        kept.spec.as_ref().unwrap_or(&empty),
        new.spec.as_ref().unwrap_or(&empty),
    );
    let mut causes = Vec::new();
    let init = |spec: &v1::PodSpec| spec.init_containers.clone().unwrap_or_default();
    for (list, old, asked) in [
        ("initContainers", init(old), init(asked)),
        (
            "containers",
            old.containers.clone(),
            asked.containers.clone(),
        ),
    ] {
        if old.len() != asked.len() {
            let message = "containers may not be added or removed on resize";
            causes.push(forbidden(format!("spec.{list}"), message));
            continue;
        }
        let names = old.iter().zip(&asked).enumerate();
        for (index, _) in names.filter(|(_, (old, asked))| old.name != asked.name) {
            let message = "containers may not be renamed or reordered on resize";
            causes.push(forbidden(format!("spec.{list}[{index}].name"), message));
        }
    }
    if !causes.is_empty() {
        return causes;
    }
    // The same amounts in both: what differs then is something else.
    let same = Amounts::of(new).put_into(kept);
    let fields = |pod: &v1::Pod| {
        let mut spec = pod.spec.clone().unwrap_or_default();
        spec.node_name.get_or_insert_with(|| node.to_owned());
        without_empty(serde_json::to_value(spec).unwrap_or_default())
    };
    for path in differences(&fields(&same), &fields(new)) {
        let message = "only cpu and memory resources are mutable";
        causes.push(forbidden(format!("spec{path}"), message));
    }
    causes
}

/// Nothing is the same as an empty object: a container without amounts has no `resources`, or empty ones.
fn without_empty(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .map(|(name, value)| (name, without_empty(value)));
            let fields: serde_json::Map<_, _> = fields
                .filter(|(_, value)| !value.as_object().is_some_and(serde_json::Map::is_empty))
                .collect();
            Value::Object(fields)
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_empty).collect()),
        other => other,
    }
}
