//! One object: where it belongs, what every object gets, and which rules it breaks. Pure but for the uid
//! and the time that a new one is given.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::super::refuse::{Refused, invalid, unreadable};
use super::super::request::{Cause, ObjectKey, Refusal};
use crate::admission::{Reason, limit_range, quota};
use crate::manifest::convert::{self, Converted};
use crate::model::kind::{
    CLUSTER_QUOTA, DEFINITION, IMAGE_STREAM, LIMIT_RANGE, NAMESPACE, RESOURCE_QUOTA,
};
use crate::model::namespace::NAME_LABEL;
use crate::model::{
    ClusterResourceQuota, Definition, Kind, LimitRange, Namespace, ResourceQuota, name,
};

/// The part of an object that is obeyed.
pub(super) enum Policy {
    LimitRange(LimitRange),
    Quota(ResourceQuota),
    ClusterQuota(ClusterResourceQuota),
    Namespace(Namespace),
    Definition(Definition),
    None,
}

/// Where an object belongs.
pub(super) fn key_of(kind: Kind, object: &Value) -> ObjectKey {
    let text = |field: &str| {
        let text = object.pointer(field).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    ObjectKey {
        resource: kind.resource(),
        namespace: if kind.namespaced {
            text("/metadata/namespace")
        } else {
            String::new()
        },
        name: text("/metadata/name"),
    }
}

/// The metadata of an object.
pub(super) fn metadata(object: &mut Value) -> Option<&mut Map<String, Value>> {
    object.get_mut("metadata")?.as_object_mut()
}

/// A change may say which version it means to change.
pub fn check_version(
    given: Option<&str>,
    revision: u64,
    about: &Refused<'_>,
) -> Result<(), Refusal> {
    let Some(given) = given.filter(|given| !given.is_empty()) else {
        return Ok(());
    };
    if given == revision.to_string() {
        return Ok(());
    }
    let message = format!(
        "Operation cannot be fulfilled on {} {:?}: the object has been modified; please apply your changes to the latest version and try again (it is at {revision}, not {given})",
        about.resource, about.name
    );
    Err(Refusal::conflict(message).about(about.resource, about.name))
}

/// Makes an object say that it is of this kind in this version.
pub(super) fn speak(object: &mut Value, kind: Kind) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), json!(kind.api_version()));
        fields.insert("kind".to_owned(), json!(kind.kind));
    }
}

/// What every object gets that is kept.
pub(super) fn complete(object: &mut Value, kind: Kind, before: Option<&Value>) {
    let kept = |field: &str| before.and_then(|before| before.pointer(field)).cloned();
    let (uid, created) = (kept("/metadata/uid"), kept("/metadata/creationTimestamp"));
    let ending = kept("/metadata/deletionTimestamp");
    let generation = kept("/metadata/generation").and_then(|value| value.as_u64());
    speak(object, kind);
    if let Some(fields) = object.as_object_mut() {
        // What images a stream holds is for whoever fills it to say, and so is the state of what somebody
        // defined; all other status would be ours.
        if kind != IMAGE_STREAM && kind.defined.is_none() {
            fields.remove("status");
        }
        fields.entry("metadata").or_insert_with(|| json!({}));
    }
    let changed = before.is_none_or(|before| before.get("spec") != object.get("spec"));
    let Some(metadata) = metadata(object) else {
        return;
    };
    metadata.remove("resourceVersion");
    metadata.remove("managedFields");
    metadata.insert(
        "uid".to_owned(),
        uid.unwrap_or_else(|| json!(uuid::Uuid::new_v4().to_string())),
    );
    metadata.insert(
        "creationTimestamp".to_owned(),
        created.unwrap_or_else(|| json!(now())),
    );
    match ending {
        Some(since) => metadata.insert("deletionTimestamp".to_owned(), since),
        None => metadata.remove("deletionTimestamp"),
    };
    let generation = generation.unwrap_or(0).saturating_add(u64::from(changed));
    metadata.insert("generation".to_owned(), json!(generation.max(1)));
    if !kind.namespaced {
        metadata.remove("namespace");
    }
    if kind == NAMESPACE {
        let name = metadata.get("name").cloned().unwrap_or_default();
        let labels = metadata.entry("labels").or_insert_with(|| json!({}));
        if let Some(labels) = labels.as_object_mut() {
            labels.insert(NAME_LABEL.to_owned(), name);
        }
    }
}

/// The present second, as Kubernetes writes it.
pub(super) fn now() -> String {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second())
        .unwrap_or(now)
        .to_string()
}

/// The part that is obeyed, and every rule that the object breaks.
pub(super) fn read(
    kind: Kind,
    object: &Value,
    about: &Refused<'_>,
) -> Result<(Policy, Vec<Reason>), Refusal> {
    check_names(kind, object, about)?;
    match kind {
        LIMIT_RANGE => {
            let read = convert::limit_range(&typed(object, about)?);
            let reasons = limit_range::validate(&read.object);
            policy(read, reasons, Policy::LimitRange, about)
        }
        RESOURCE_QUOTA => {
            let read = convert::resource_quota(&typed(object, about)?);
            let reasons = quota::validate(&read.object);
            policy(read, reasons, Policy::Quota, about)
        }
        CLUSTER_QUOTA => {
            let read = convert::cluster_resource_quota(&typed(object, about)?);
            let reasons = quota::validate_cluster(&read.object);
            policy(read, reasons, Policy::ClusterQuota, about)
        }
        NAMESPACE => {
            let read = convert::namespace(&typed(object, about)?);
            Ok((Policy::Namespace(read), Vec::new()))
        }
        DEFINITION => policy(
            convert::definition(object),
            Vec::new(),
            Policy::Definition,
            about,
        ),
        _ => Ok((Policy::None, Vec::new())),
    }
}

/// A policy that could be read, with the rules it breaks; otherwise all that is wrong with it at once.
fn policy<T>(
    read: Converted<T>,
    reasons: Vec<Reason>,
    policy: impl FnOnce(T) -> Policy,
    about: &Refused<'_>,
) -> Result<(Policy, Vec<Reason>), Refusal> {
    if read.problems.is_empty() {
        return Ok((policy(read.object), reasons));
    }
    Err(unreadable(about, read.problems, &reasons))
}

fn check_names(kind: Kind, object: &Value, about: &Refused<'_>) -> Result<(), Refusal> {
    let key = key_of(kind, object);
    let of_name = kind.name_problems(&key.name);
    let of_namespace = if kind.namespaced {
        name::dns_label(&key.namespace)
    } else {
        Vec::new()
    };
    let named = of_name
        .into_iter()
        .map(|text| ("metadata.name", &key.name, text));
    let spaced = of_namespace
        .into_iter()
        .map(|text| ("metadata.namespace", &key.namespace, text));
    let causes: Vec<_> = named
        .chain(spaced)
        .map(|(field, value, text)| Cause {
            reason: "FieldValueInvalid".to_owned(),
            field: field.to_owned(),
            message: format!("Invalid value: {value:?}: {text}"),
        })
        .collect();
    if causes.is_empty() {
        Ok(())
    } else {
        Err(invalid(about, causes))
    }
}

fn typed<T: serde::de::DeserializeOwned>(
    object: &Value,
    about: &Refused<'_>,
) -> Result<T, Refusal> {
    T::deserialize(object)
        .map_err(|error| Refusal::bad_request(format!("{} {:?}: {error}", about.kind, about.name)))
}
