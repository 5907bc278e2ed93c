//! Definitions of kinds: from its definition on a kind's objects can be kept, and they go with it. It must
//! never be that an object is kept of a kind that nobody knows.

use serde_json::{Value, json};

use super::super::refuse::{Refused, refused};
use super::super::request::{ObjectKey, Refusal};
use super::super::run::Agent;
use super::read::Policy;
use super::store_key;
use crate::admission::definition::{changed, taken, validate};
use crate::manifest::convert;
use crate::model::kind::DEFINITION;
use crate::model::{Definition, Kinds};
use crate::store::{Change, Entry, Expect};

/// `status` of a definition that is kept: all that can be done for it is done with the commit.
pub(super) fn status(object: &Value) -> Value {
    let definition = convert::definition(object).object;
    let since = object.pointer("/metadata/creationTimestamp");
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({"type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": since})
    };
    let mut conditions = vec![
        condition("NamesAccepted", "True", "NoConflicts", "no conflicts found"),
        condition(
            "Established",
            "True",
            "InitialNamesAccepted",
            "the initial names have been accepted",
        ),
    ];
    let storage = definition.storage().unwrap_or_default();
    let is_left_out = |version: &crate::model::DefinedVersion| version.served && !version.storage;
    if definition.converts() && definition.versions.iter().any(is_left_out) {
        let message = format!(
            "spec.conversion.strategy is Webhook, which is not asked: only {storage}, the version in which objects are kept, is served"
        );
        let kind = "allotd.dev/AllVersionsServed";
        conditions.push(condition(kind, "False", "NoConversion", &message));
    }
    let mut names = json!({
        "plural": definition.plural,
        "singular": definition.singular,
        "kind": definition.kind,
        "listKind": definition.list,
    });
    for (field, words) in [
        ("shortNames", &definition.short),
        ("categories", &definition.categories),
    ] {
        if let Some(names) = names.as_object_mut().filter(|_| !words.is_empty()) {
            names.insert(field.to_owned(), json!(words));
        }
    }
    json!({"conditions": conditions, "acceptedNames": names, "storedVersions": [storage]})
}

impl Agent {
    /// Judges a definition; `before` is what it was.
    ///
    /// # Errors
    /// Every rule it breaks.
    pub(super) fn check_definition(
        &self,
        definition: &Definition,
        before: Option<&Value>,
        about: &Refused<'_>,
    ) -> Result<(), Refusal> {
        let mut reasons = validate(definition);
        reasons.extend(taken(definition, &self.handle.kinds()));
        if let Some(before) = before {
            reasons.extend(changed(&convert::definition(before).object, definition));
        }
        if reasons.is_empty() {
            return Ok(());
        }
        Err(refused(about, &reasons))
    }

    /// Makes sure that a kind can be made known once its definition is kept.
    ///
    /// # Errors
    /// There is no room for it.
    pub(super) fn make_room(&mut self, policy: &Policy) -> Result<(), Refusal> {
        let Policy::Definition(definition) = policy else {
            return Ok(());
        };
        self.with(definition)
            .map(|_| ())
            .map_err(|why| Refusal::not_durable(format!("{:?}: {why}", definition.name)))
    }

    /// The kinds that are known with this one.
    fn with(&mut self, definition: &Definition) -> Result<Kinds, crate::model::kinds::Full> {
        let mut kinds = Kinds::clone(&self.handle.kinds());
        kinds.define(definition, &mut self.words)?;
        Ok(kinds)
    }

    /// A definition that is durable: from now on its kind is known. What is kept of it already is of the
    /// version in which it is kept now.
    pub(super) fn define(&mut self, definition: &Definition) {
        match self.with(definition) {
            Ok(kinds) => self.handle.know(kinds),
            Err(why) => {
                tracing::error!("{}: {why}", definition.name);
                self.problems.insert(
                    definition.name.clone(),
                    format!("{}: {why}", definition.name),
                );
                return;
            }
        }
        let kinds = self.handle.kinds();
        for key in self.objects_of(&definition.name) {
            let Some(stored) = self.objects.get_mut(&key) else {
                continue;
            };
            let version = stored.kind.api_version();
            let Some(kind) = kinds.of_record(&version, stored.kind.kind) else {
                continue;
            };
            stored.kind = kind;
            if kind.api_version() != version {
                super::read::speak(&mut stored.object, kind);
                stored.revision = self.revision;
                self.publish_object(&key);
            }
        }
    }

    /// A definition is gone: so is its kind.
    pub(super) fn undefine(&mut self, name: &str) {
        let mut kinds = Kinds::clone(&self.handle.kinds());
        kinds.forget(name);
        self.handle.know(kinds);
    }

    fn objects_of(&self, resource: &str) -> Vec<ObjectKey> {
        let first = ObjectKey {
            resource: resource.to_owned(),
            namespace: String::new(),
            name: String::new(),
        };
        let all = self.objects.range(first..);
        let all = all.take_while(|(key, _)| key.resource == resource);
        all.map(|(key, _)| key.clone()).collect()
    }

    /// Forgets a definition and all objects of its kind, those too that could not be used.
    pub(super) fn delete_definition(
        &mut self,
        key: &ObjectKey,
        last: Value,
    ) -> Result<Value, Refusal> {
        let not_durable =
            |why: String| Refusal::not_durable(format!("{} {:?}: {why}", key.resource, key.name));
        let within = format!("objects/{}/", key.name);
        let records = self.store.keys(&within);
        let records = records.map_err(|error| not_durable(error.to_string()))?;
        let gone = |key: String| Change::Delete(key, Expect::Any);
        let mut changes: Vec<_> = records.into_iter().map(gone).collect();
        changes.push(gone(store_key(key)));
        self.commit(changes)
            .map_err(|error| not_durable(error.to_string()))?;
        self.problems.retain(|about, _| !about.starts_with(&within));
        let objects = self.objects_of(&key.name);
        for key in &objects {
            self.forget(key);
        }
        self.forget(key);
        self.publish_accounts();
        Ok(last)
    }

    /// The objects of the store: first those that say what the others are.
    pub(in crate::agent) fn restore_objects(&mut self, entries: &[Entry]) {
        let first = format!("objects/{}/", DEFINITION.resource());
        let is_first = |entry: &&Entry| entry.key.starts_with(&first);
        for entry in entries.iter().filter(is_first) {
            self.restore_object(entry);
        }
        for entry in entries.iter().filter(|entry| !is_first(entry)) {
            self.restore_object(entry);
        }
    }
}
