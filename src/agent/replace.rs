//! A pod that is sent again: what may change of one that is kept.
//!
//! Labels and annotations may; what was admitted and is enforced may not, for it would have to be judged
//! anew.

use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;

use super::admit::{default_spec, subject};
use super::entry::PodEntry;
use super::objects::check_version;
use super::refuse::{invalid, unreadable};
use super::request::{Cause, Kept, PodKey, Put, Refusal};
use super::run::Agent;
use super::statics::CONFIG;
use crate::manifest::convert;
use crate::store::Expect;

/// Annotations with these prefixes decide what is enforced, and which pods are static.
const FIXED: [&str; 2] = ["allotd.dev/", CONFIG];

impl Agent {
    /// Keeps a new pod, or changes one that is kept.
    pub(super) fn put_pod(&mut self, object: Box<v1::Pod>, how: Put) -> Result<Kept, Refusal> {
        if how.new {
            self.create_pod(object, how.dry_run)
        } else {
            let object = self.replace_pod(object, how.dry_run)?;
            let warnings = Vec::new();
            Ok(Kept { object, warnings })
        }
    }

    /// The pod that somebody means to change; in no other version and with no other uid than they saw.
    pub(super) fn kept(&self, metadata: &ObjectMeta) -> Result<(PodKey, &PodEntry), Refusal> {
        let key = PodKey::new(
            metadata.namespace.as_deref().unwrap_or("default"),
            metadata.name.as_deref().unwrap_or_default(),
        );
        let Some(entry) = self.pods.get(&key) else {
            return Err(Refusal::not_found("pods", &key.name));
        };
        let version = metadata.resource_version.as_deref();
        check_version(version, entry.revision, &subject(&key))?;
        if let Some(uid) = metadata.uid.as_deref().filter(|uid| !uid.is_empty())
            && uid != entry.uid().as_str()
        {
            let message = format!(
                "pod {key} has uid {}, not {uid}: it is another pod of that name",
                entry.uid()
            );
            return Err(Refusal::conflict(message).about("pods", &key.name));
        }
        Ok((key, entry))
    }

    fn replace_pod(&mut self, mut object: Box<v1::Pod>, dry_run: bool) -> Result<Value, Refusal> {
        let (key, entry) = self.kept(&object.metadata)?;
        let about = subject(&key);
        default_spec(&mut object);
        let read = convert::pod(&object, entry.uid());
        if !read.problems.is_empty() {
            return Err(unreadable(&about, read.problems, &[]));
        }
        let node = self.node.name.as_str();
        let causes = forbidden(&entry.record.object, &object, node);
        if !causes.is_empty() {
            return Err(invalid(&about, causes));
        }
        if dry_run {
            return self.pod_object(&key);
        }
        let mut record = entry.record.clone();
        record.object.metadata.labels = object.metadata.labels;
        record.object.metadata.annotations = object.metadata.annotations;
        let Some(entry) = self.pods.get_mut(&key) else {
            return Err(Refusal::not_found("pods", &key.name));
        };
        if entry.record.object != record.object {
            let revision = self.commit_record(&key, &record, Expect::Any, None)?;
            if let Some(entry) = self.pods.get_mut(&key) {
                entry.record = record;
            }
            self.pods.settled(&key, revision);
            self.publish_pod(&key);
        }
        self.pod_object(&key)
    }
}

/// What differs that must not. Readers see the node's name in every pod.
fn forbidden(kept: &v1::Pod, new: &v1::Pod, node: &str) -> Vec<Cause> {
    let forbidden = |field: String, message: &str| Cause {
        reason: "FieldValueForbidden".to_owned(),
        field,
        message: format!("Forbidden: {message}"),
    };
    let mut causes = Vec::new();
    let fields = |pod: &v1::Pod| {
        let mut spec = pod.spec.clone().unwrap_or_default();
        spec.node_name.get_or_insert_with(|| node.to_owned());
        serde_json::to_value(spec).unwrap_or_default()
    };
    for path in differences(&fields(kept), &fields(new)) {
        let message = if path.contains(".resources") {
            "pod updates may not change the spec; cpu and memory of a pod that runs: allot resize"
        } else {
            "pod updates may not change the spec: delete the pod and create it anew"
        };
        causes.push(forbidden(format!("spec{path}"), message));
    }
    let annotations = |pod: &v1::Pod| pod.metadata.annotations.clone().unwrap_or_default();
    let (kept, new) = (annotations(kept), annotations(new));
    for name in kept
        .keys()
        .chain(new.keys().filter(|name| !kept.contains_key(*name)))
    {
        let is_fixed = FIXED.iter().any(|prefix| name.starts_with(prefix));
        if is_fixed && kept.get(name) != new.get(name) {
            let message = "it decides what the pod is or gets, and may not change";
            causes.push(forbidden(format!("metadata.annotations[{name}]"), message));
        }
    }
    causes
}

/// The paths of what is not the same; nothing is the same as null.
pub(super) fn differences(kept: &Value, new: &Value) -> Vec<String> {
    match (kept, new) {
        (Value::Object(kept), Value::Object(new)) => {
            let names = kept
                .keys()
                .chain(new.keys().filter(|name| !kept.contains_key(*name)));
            names
                .flat_map(|name| {
                    let at = |fields: &serde_json::Map<String, Value>| {
                        fields.get(name).cloned().unwrap_or_default()
                    };
                    let below = differences(&at(kept), &at(new));
                    below.into_iter().map(move |path| format!(".{name}{path}"))
                })
                .collect()
        }
        (Value::Array(kept), Value::Array(new)) if kept.len() == new.len() => kept
            .iter()
            .zip(new)
            .enumerate()
            .flat_map(|(index, (kept, new))| {
                let below = differences(kept, new);
                below
                    .into_iter()
                    .map(move |path| format!("[{index}]{path}"))
            })
            .collect(),
        _ if kept == new => Vec::new(),
        _ => vec![String::new()],
    }
}
