//! Namespaces: one begins with its first object, at the latest, and takes all that it holds with it when
//! it ends. It must never be gone while a pod of it is still there.

use serde_json::{Value, json};

use super::super::refuse::Refused;
use super::super::request::{Cause, ObjectKey, PodKey, Refusal};
use super::super::run::Agent;
use super::read::{Policy, complete, metadata, now};
use super::{StoredObject, bytes, store_key};
use crate::admission::Demand;
use crate::model::Namespace;
use crate::model::kind::NAMESPACE;
use crate::store::{Change, Expect};

/// The namespace of those who name none. It is always there.
const DEFAULT: &str = "default";

/// A namespace that nobody has made, but in which there is to be something. It is kept in the same commit
/// (Kubernetes: NamespaceAutoProvision).
pub(in crate::agent) struct NewNamespace {
    key: ObjectKey,
    object: Value,
    bytes: Vec<u8>,
}

impl NewNamespace {
    fn named(name: &str) -> Result<Self, Refusal> {
        let mut object = json!({"metadata": {"name": name}});
        complete(&mut object, NAMESPACE, None);
        Ok(Self {
            key: ObjectKey::of(NAMESPACE, "", name),
            bytes: bytes(&object)?,
            object,
        })
    }

    /// What makes it durable.
    pub fn change(&self) -> Change {
        Change::Put(store_key(&self.key), self.bytes.clone(), Expect::Any)
    }
}

/// `status` of a namespace.
pub(super) fn status(object: &Value) -> Value {
    let phase = if is_ending(object) {
        "Terminating"
    } else {
        "Active"
    };
    json!({"phase": phase})
}

fn is_ending(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
}

impl Agent {
    /// The namespace of an object that is to be kept: nothing if it is there already.
    ///
    /// # Errors
    /// It is about to go; or no more can be kept.
    pub(in crate::agent) fn namespace_for(
        &self,
        name: &str,
        about: &Refused<'_>,
    ) -> Result<Option<NewNamespace>, Refusal> {
        let key = ObjectKey::of(NAMESPACE, "", name);
        let Some(known) = self.objects.get(&key) else {
            self.check_room()?;
            return NewNamespace::named(name).map(Some);
        };
        if !is_ending(&known.object) {
            return Ok(None);
        }
        let cause = Cause {
            reason: "NamespaceTerminating".to_owned(),
            field: "metadata.namespace".to_owned(),
            message: format!("namespace {name} is being terminated"),
        };
        let message = format!(
            "{} {:?} is forbidden: unable to create new content in namespace {name} because it is being terminated",
            about.resource, about.name
        );
        let refusal = Refusal::new(403, "Forbidden", message).about(about.resource, about.name);
        Err(Refusal {
            causes: vec![cause],
            ..refusal
        })
    }

    /// A namespace that is durable now.
    pub(in crate::agent) fn namespace_made(&mut self, new: Option<NewNamespace>, revision: u64) {
        let Some(NewNamespace { key, object, .. }) = new else {
            return;
        };
        let policy = Policy::Namespace(Namespace::named(&key.name));
        let stored = StoredObject {
            object,
            kind: NAMESPACE,
            revision,
        };
        let demand = Demand::of_object(NAMESPACE.plural);
        self.keep(key.clone(), stored, demand, policy);
        self.publish_object(&key);
        self.publish_accounts();
    }

    /// Those that must be there and are not. Where the disk refuses, they are kept in memory: what is in
    /// them counts.
    pub(in crate::agent) fn make_missing_namespaces(&mut self) {
        let of_pods = self.pods.keys().map(|key| key.namespace.clone());
        let of_objects = self.objects.keys().map(|key| key.namespace.clone());
        let mut names: std::collections::BTreeSet<_> = of_pods.chain(of_objects).collect();
        names.remove("");
        names.insert(DEFAULT.to_owned());
        names.retain(|name| {
            let key = ObjectKey::of(NAMESPACE, "", name);
            !self.objects.contains_key(&key)
        });
        let new = names.iter().map(|name| NewNamespace::named(name));
        let new: Vec<_> = new.filter_map(Result::ok).collect();
        if new.is_empty() {
            return;
        }
        let committed = self.commit(new.iter().map(NewNamespace::change).collect());
        let revision = committed.unwrap_or(self.revision);
        for namespace in new {
            self.namespace_made(Some(namespace), revision);
        }
    }

    /// Begins the end of a namespace: nothing can be put there any more, and all that is there goes; pods
    /// in their own time, and the namespace with the last of them.
    pub(in crate::agent) fn delete_namespace(
        &mut self,
        name: &str,
        dry_run: bool,
    ) -> Result<Value, Refusal> {
        let key = ObjectKey::of(NAMESPACE, "", name);
        let Some(stored) = self.objects.get(&key) else {
            return Err(Refusal::not_found(&key.resource, name));
        };
        if name == DEFAULT {
            let message =
                format!("namespaces {name:?} is forbidden: this namespace may not be deleted");
            return Err(Refusal::new(403, "Forbidden", message).about(&key.resource, name));
        }
        let mut object = stored.object.clone();
        if let Some(metadata) = metadata(&mut object) {
            let since = metadata.entry("deletionTimestamp");
            since.or_insert_with(|| json!(now()));
        }
        if dry_run {
            return Ok(self.shown(&key, NAMESPACE, &object));
        }
        let value = bytes(&object)?;
        let within: Vec<_> = self
            .objects
            .keys()
            .filter(|key| key.namespace == name)
            .cloned()
            .collect();
        let gone = within.iter();
        let mut changes: Vec<_> = gone
            .map(|key| Change::Delete(store_key(key), Expect::Any))
            .collect();
        changes.push(Change::Put(store_key(&key), value, Expect::Any));
        let revision = self
            .commit(changes)
            .map_err(|error| Refusal::not_durable(format!("namespaces {name:?}: {error}")))?;
        for key in &within {
            self.forget(key);
        }
        if let Some(stored) = self.objects.get_mut(&key) {
            stored.object = object;
            stored.revision = revision;
        }
        self.publish_object(&key);
        self.publish_accounts();
        let answer = self.object(&key);
        self.end_namespace(name);
        answer
    }

    /// Ends those that are about to end, as far as they have not got there: the disk may have refused, or
    /// the agent was killed in between.
    pub(in crate::agent) fn end_namespaces(&mut self) {
        let first = ObjectKey::of(NAMESPACE, "", "");
        let all = self.objects.range(first..);
        let all = all.take_while(|(key, _)| key.resource == NAMESPACE.plural);
        let ending = all.filter(|(_, stored)| is_ending(&stored.object));
        let ending: Vec<_> = ending.map(|(key, _)| key.name.clone()).collect();
        for name in ending {
            self.end_namespace(&name);
        }
    }

    /// The next step towards the end of a namespace, if it is about to end.
    pub(in crate::agent) fn end_namespace(&mut self, name: &str) {
        let key = ObjectKey::of(NAMESPACE, "", name);
        let known = self.objects.get(&key);
        if !known.is_some_and(|known| is_ending(&known.object)) {
            return;
        }
        let mut is_empty = true;
        let mut left = Vec::new();
        for (pod, entry) in self.pods.of_namespace(name) {
            is_empty = false;
            if entry.record.deletion.is_none() {
                left.push(pod.clone());
            }
        }
        for pod in left {
            self.end_pod(&pod);
        }
        if !is_empty {
            return;
        }
        self.events.forget(name);
        if self
            .commit(vec![Change::Delete(store_key(&key), Expect::Any)])
            .is_ok()
        {
            self.forget(&key);
            self.publish_accounts();
        }
    }

    fn end_pod(&mut self, key: &PodKey) {
        if let Err(refusal) = self.begin_deletion(key, None) {
            tracing::warn!(
                POD = key.name,
                NAMESPACE = key.namespace,
                "pod {key} of a namespace that ends: {}",
                refusal.message
            );
        }
    }
}
