//! What readers shall see now: the owner's state as objects of the API, put into the cache.
//!
//! Decides when an object has become another one. It changes nothing that is promised or enforced.

use k8s_openapi::api::core::v1;
use serde::Serialize;
use serde_json::Value;

use super::entry::PodEntry;
use super::request::{ObjectKey, PodKey, Refusal};
use super::run::Agent;
use crate::model::kind::{CLUSTER_QUOTA, EVENT, NODE, POD, RESOURCE_QUOTA};
use crate::report::pod::with_status;

impl Agent {
    /// Everything, as an agent has it that has just begun.
    pub(super) fn publish_all(&mut self) {
        let handle = self.handle.clone();
        handle.cache().begin(self.revision);
        for key in self.objects.keys().cloned().collect::<Vec<_>>() {
            self.publish_object(&key);
        }
        for key in self.pods.take_marked() {
            self.publish_pod(&key);
        }
        for (namespace, name, event) in self.events.all() {
            self.publish_event(namespace, name, Some(event));
        }
        self.node_told.0 = 0;
        self.publish_node();
        handle.cache().flush();
    }

    /// A pod, or that it is gone.
    pub(super) fn publish_pod(&self, key: &PodKey) {
        let revision = self
            .pods
            .get(key)
            .map_or(self.revision, |entry| entry.revision);
        let pod = self.pod_object(key).ok();
        let key = ObjectKey::of(POD, &key.namespace, &key.name);
        self.handle.cache().publish(key, pod, revision);
    }

    /// A pod with its status.
    pub(super) fn pod_object(&self, key: &PodKey) -> Result<Value, Refusal> {
        let entry = self.pods.get(key);
        let entry = entry.ok_or_else(|| Refusal::not_found("pods", &key.name))?;
        self.shown_pod(entry)
    }

    /// A pod, be it kept or not, with its status.
    pub(super) fn shown_pod(&self, entry: &PodEntry) -> Result<Value, Refusal> {
        let mut facts = entry.facts(&self.node.name);
        facts.in_force = self.in_force(entry);
        serde_json::to_value(with_status(&entry.record.object, &facts))
            .map_err(|error| Refusal::internal(format!("the pod has no JSON form: {error}")))
    }

    /// An object of another kind, or that it is gone.
    pub(super) fn publish_object(&self, key: &ObjectKey) {
        let stored = self.objects.get(key);
        let revision = stored.map_or(self.revision, |stored| stored.revision);
        let shown = stored.map(|stored| self.shown_stored(key, stored));
        self.handle.cache().publish(key.clone(), shown, revision);
    }

    /// The quotas whose accounts have changed: to their readers they are other objects.
    pub(super) fn publish_accounts(&mut self) {
        for (namespace, name) in self.ledger.take_touched() {
            let kind = match namespace.as_str() {
                "" => CLUSTER_QUOTA,
                _ => RESOURCE_QUOTA,
            };
            let key = ObjectKey::of(kind, &namespace, &name);
            let told = self.handle.cache().get(&key);
            let status = |object: &Value| object.get("status").cloned();
            let told = told.as_ref().and_then(|seen| status(&seen.object));
            let (Some(told), Some(stored)) = (told, self.objects.get(&key)) else {
                continue;
            };
            if Some(told) == status(&self.shown_stored(&key, stored)) {
                continue;
            }
            if let Some(stored) = self.objects.get_mut(&key) {
                stored.revision = self.revision;
            }
            self.publish_object(&key);
        }
    }

    /// The node, where it has other problems or resources than it had.
    pub(super) fn publish_node(&mut self) {
        let problems: Vec<_> = self.problems.values().cloned().collect();
        let (revision, told) = &self.node_told;
        if *revision > 0 && *told == problems {
            return;
        }
        self.node_told = (self.revision, problems);
        let node = self.node_object();
        self.publish(
            ObjectKey::of(NODE, "", &self.node.name),
            Some(&*node),
            self.revision,
        );
    }

    /// The events that the store did not have yet.
    pub(super) fn publish_events(&self) {
        for (namespace, name, event) in self.events.news() {
            self.publish_event(namespace, name, event);
        }
    }

    fn publish_event(&self, namespace: &str, name: &str, event: Option<&v1::Event>) {
        let key = ObjectKey::of(EVENT, namespace, name);
        let event = event.map(|event| {
            let mut event = event.clone();
            event.metadata.resource_version = Some(self.revision.to_string());
            event
        });
        self.publish(key, event.as_ref(), self.revision);
    }

    fn publish<T: Serialize>(&self, key: ObjectKey, object: Option<&T>, revision: u64) {
        match object.map(serde_json::to_value).transpose() {
            Ok(object) => self.handle.cache().publish(key, object, revision),
            Err(error) => tracing::error!("{key:?} has no JSON form: {error}"),
        }
    }
}
