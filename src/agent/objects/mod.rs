//! Objects of other kinds: namespaces, LimitRanges and quotas, which are obeyed, and those that are only
//! counted.
//!
//! An object is kept as it was written. It is judged like a pod: its own rules, the policies of its
//! namespace, then one commit, and only then does it count.

mod definitions;
mod namespaces;
mod read;
pub mod usage;

use serde_json::{Value, json};

pub(super) use self::namespaces::NewNamespace;
pub(super) use self::read::check_version;
use self::read::{Policy, complete, key_of, metadata, read, speak};
use self::usage::{demand, out_of_range};
use super::refuse::{Refused, refused};
use super::request::{Kept, ObjectKey, Put, Refusal};
use super::run::Agent;
use crate::admission::lint;
use crate::admission::{Demand, Holder, limit_range};
use crate::model::Kind;
use crate::model::kind::{
    CLAIM, CLUSTER_QUOTA, DEFINITION, LIMIT_RANGE, NAMESPACE, RESOURCE_QUOTA,
};
use crate::report::policy;
use crate::store::{Change, Entry, Expect};

/// An object longer than this is refused (bytes), as etcd's default has it.
const MAX_LENGTH: usize = 1 << 20;

/// So many objects are kept; more are refused, so that nobody can fill the agent's memory.
const MAX_OBJECTS: usize = 20_000;

/// So many ResourceQuotas or LimitRanges has a namespace, and so many ClusterResourceQuotas are there.
pub(super) const MAX_POLICIES: usize = 1000;

/// An object as the store has it.
#[derive(Clone, Debug)]
pub(super) struct StoredObject {
    object: Value,
    kind: Kind,
    /// Of the commit that made it so, or that changed what is used of a quota.
    pub(super) revision: u64,
}

impl Agent {
    /// Judges an object and, unless it is a dry run, keeps it.
    pub(super) fn put_object(
        &mut self,
        kind: Kind,
        mut object: Value,
        how: Put,
    ) -> Result<Kept, Refusal> {
        let key = key_of(kind, &object);
        let resource = kind.resource();
        let about = Refused {
            kind: kind.kind,
            resource: &resource,
            name: &key.name,
        };
        // The kind may have gone since it was asked for.
        let kept = self.handle.kinds().kept(kind);
        let kind = kept.ok_or_else(|| Refusal::not_found(&resource, &key.name))?;
        let known = self.objects.get(&key);
        match known {
            Some(_) if how.new => {
                let message = format!("{resource} {:?} already exists", key.name);
                return Err(Refusal::new(409, "AlreadyExists", message).about(&resource, &key.name));
            }
            None if !how.new => return Err(Refusal::not_found(&resource, &key.name)),
            None => {
                self.check_room()?;
                self.check_policies(&key, &about)?;
            }
            Some(_) => {}
        }
        if let Some(known) = known {
            let given = object.pointer("/metadata/resourceVersion");
            check_version(given.and_then(Value::as_str), known.revision, &about)?;
        }
        complete(&mut object, kind, known.map(|known| &known.object));
        let new_namespace = match known {
            None if kind.namespaced => self.namespace_for(&key.namespace, &about)?,
            _ => None,
        };
        let (policy, demand) = self.judge_object(&key, kind, &object, &about)?;
        let value = bytes(&object)?;
        let warnings = self.odd(kind, &object, &policy);
        if how.dry_run {
            let object = self.shown(&key, kind, &object);
            return Ok(Kept { object, warnings });
        }
        self.make_room(&policy)?;
        let mut changes = vec![Change::Put(store_key(&key), value, Expect::Any)];
        changes.extend(new_namespace.as_ref().map(NewNamespace::change));
        let revision = self
            .commit(changes)
            .map_err(|error| Refusal::not_durable(format!("{resource} {:?}: {error}", key.name)))?;
        self.namespace_made(new_namespace, revision);
        let stored = StoredObject {
            object,
            kind,
            revision,
        };
        self.keep(key.clone(), stored, demand, policy);
        self.publish_object(&key);
        self.publish_accounts();
        let object = self.object(&key)?;
        Ok(Kept { object, warnings })
    }

    /// What an object means and what it uses; or every rule that it breaks, its own rules first.
    fn judge_object(
        &self,
        key: &ObjectKey,
        kind: Kind,
        object: &Value,
        about: &Refused<'_>,
    ) -> Result<(Policy, Demand), Refusal> {
        let before = self.objects.get(key).map(|known| &known.object);
        let (policy, reasons) = read(kind, object, about)?;
        if !reasons.is_empty() {
            return Err(refused(about, &reasons));
        }
        if let Policy::Definition(definition) = &policy {
            self.check_definition(definition, before, about)?;
        }
        let ranges = self.ledger.limit_ranges(&key.namespace);
        let ranges = limit_range::in_force(ranges, &key.namespace);
        let mut reasons = out_of_range(kind, object, before, &ranges);
        let demand = demand(kind, object);
        if let Err(more) = self.ledger.judge(&holder(key), &demand, &self.limited) {
            reasons.extend(more);
        }
        if reasons.is_empty() {
            return Ok((policy, demand));
        }
        Err(refused(about, &reasons))
    }

    /// What is odd about an object that may be kept, by itself or beside the others.
    fn odd(&self, kind: Kind, object: &Value, policy: &Policy) -> Vec<String> {
        let findings = match policy {
            Policy::LimitRange(range) => {
                let others = self.ledger.limit_ranges(&range.namespace).iter();
                let mut ranges: Vec<_> = others.filter(|other| other.name != range.name).collect();
                let known = lint::limit_ranges(&ranges);
                ranges.push(range);
                ranges.sort_by(|a, b| a.name.cmp(&b.name));
                let mut findings = lint::limit_ranges(&ranges);
                // Two that contradict each other are the newer one's news, whosever it is.
                findings.retain(|finding| !known.contains(finding));
                findings
            }
            Policy::Quota(quota) => lint::quota(quota, None),
            Policy::ClusterQuota(cluster) => lint::quota(&cluster.quota, None),
            Policy::None if kind == CLAIM => {
                Vec::from_iter(usage::storage(object).and_then(lint::claim))
            }
            Policy::Namespace(_) | Policy::Definition(_) | Policy::None => Vec::new(),
        };
        let told = findings
            .iter()
            .filter(|finding| finding.lint.is_always_told());
        told.map(|finding| format!("{}: {}", finding.field, finding.message))
            .collect()
    }

    /// There is a bound on what is kept.
    fn check_room(&self) -> Result<(), Refusal> {
        if self.objects.len() < MAX_OBJECTS {
            return Ok(());
        }
        let message = format!("{MAX_OBJECTS} objects are kept already: delete some");
        Err(Refusal::new(507, "InsufficientStorage", message))
    }

    /// Every admission asks all policies of its namespace, so there is a bound on them.
    fn check_policies(&self, key: &ObjectKey, about: &Refused<'_>) -> Result<(), Refusal> {
        let policies = [RESOURCE_QUOTA, LIMIT_RANGE, CLUSTER_QUOTA];
        if policies.iter().all(|kind| kind.resource() != key.resource) {
            return Ok(());
        }
        let first = ObjectKey {
            name: String::new(),
            ..key.clone()
        };
        let same = |(other, _): &(&ObjectKey, &StoredObject)| {
            other.resource == key.resource && other.namespace == key.namespace
        };
        let count = self.objects.range(first..).take_while(same).count();
        if count < MAX_POLICIES {
            return Ok(());
        }
        let place = match key.namespace.as_str() {
            "" => "there are".to_owned(),
            namespace => format!("namespace {namespace:?} has"),
        };
        let message = format!(
            "{place} {count} {} already, and {MAX_POLICIES} is the most: put several into one",
            about.resource
        );
        Err(Refusal::new(403, "Forbidden", message).about(about.resource, about.name))
    }

    /// Forgets an object; what it used is free at once.
    pub(super) fn delete_object(
        &mut self,
        key: &ObjectKey,
        uid: Option<&str>,
        dry_run: bool,
    ) -> Result<Value, Refusal> {
        let last = self.object(key)?;
        let own = last.pointer("/metadata/uid").and_then(Value::as_str);
        if uid.is_some() && uid != own {
            let message = format!(
                "{} {:?} has the uid {}, not the one that was asked for",
                key.resource,
                key.name,
                own.unwrap_or_default()
            );
            return Err(Refusal::conflict(message).about(&key.resource, &key.name));
        }
        if key.resource == NAMESPACE.plural {
            return self.delete_namespace(&key.name, dry_run);
        }
        if dry_run {
            return Ok(last);
        }
        if key.resource == DEFINITION.resource() {
            return self.delete_definition(key, last);
        }
        self.commit(vec![Change::Delete(store_key(key), Expect::Any)])
            .map_err(|error| {
                Refusal::not_durable(format!("{} {:?}: {error}", key.resource, key.name))
            })?;
        self.forget(key);
        self.publish_accounts();
        Ok(last)
    }

    /// An object is gone from the store: nobody obeys, counts or sees it any more.
    fn forget(&mut self, key: &ObjectKey) {
        let Some(stored) = self.objects.remove(key) else {
            return;
        };
        self.ledger.release(&holder(key));
        let ObjectKey {
            namespace, name, ..
        } = key;
        match stored.kind {
            LIMIT_RANGE => self.ledger.remove_limit_range(namespace, name),
            RESOURCE_QUOTA => self.ledger.remove_quota(namespace, name),
            CLUSTER_QUOTA => self.ledger.remove_cluster_quota(name),
            NAMESPACE => self.ledger.remove_namespace(name),
            DEFINITION => self.undefine(name),
            _ => {}
        }
        self.publish_object(key);
    }

    /// One object as its readers see it.
    pub(super) fn object(&self, key: &ObjectKey) -> Result<Value, Refusal> {
        let stored = self
            .objects
            .get(key)
            .ok_or_else(|| Refusal::not_found(&key.resource, &key.name))?;
        Ok(self.shown_stored(key, stored))
    }

    /// An object from the store. One that cannot be used is told and left where it is.
    fn restore_object(&mut self, stored: &Entry) {
        let restored = serde_json::from_slice::<Value>(&stored.value)
            .map_err(|error| error.to_string())
            .and_then(|mut object| {
                let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or("");
                let known = self.handle.kinds();
                let kind = known
                    .of_record(text("apiVersion"), text("kind"))
                    .ok_or_else(|| format!("kind {} is not known", text("kind")))?;
                speak(&mut object, kind);
                let key = key_of(kind, &object);
                let resource = kind.resource();
                let about = Refused {
                    kind: kind.kind,
                    resource: &resource,
                    name: &key.name,
                };
                let (policy, _) = read(kind, &object, &about).map_err(|refusal| refusal.message)?;
                Ok((key, kind, object, policy))
            });
        match restored {
            Ok((key, kind, object, policy)) => {
                let demand = demand(kind, &object);
                let stored = StoredObject {
                    object,
                    kind,
                    revision: stored.revision,
                };
                self.keep(key, stored, demand, policy);
            }
            Err(why) => {
                let problem = format!("record {} cannot be used: {why}", stored.key);
                tracing::error!("{problem}");
                self.problems.insert(stored.key.clone(), problem);
            }
        }
    }

    fn keep(&mut self, key: ObjectKey, stored: StoredObject, demand: Demand, policy: Policy) {
        self.ledger.hold(holder(&key), demand, None);
        match policy {
            Policy::LimitRange(range) => self.ledger.put_limit_range(range),
            Policy::Quota(quota) => self.ledger.put_quota(quota),
            Policy::ClusterQuota(quota) => self.ledger.put_cluster_quota(quota),
            Policy::Namespace(namespace) => self.ledger.put_namespace(namespace),
            Policy::Definition(definition) => self.define(&definition),
            Policy::None => {}
        }
        self.objects.insert(key, stored);
    }

    /// An object of the store with its version.
    pub(super) fn shown_stored(&self, key: &ObjectKey, stored: &StoredObject) -> Value {
        let mut object = self.shown(key, stored.kind, &stored.object);
        if let Some(metadata) = metadata(&mut object) {
            let revision = stored.revision.to_string();
            metadata.insert("resourceVersion".to_owned(), json!(revision));
        }
        object
    }

    /// The object with what is not stored in it: its status.
    fn shown(&self, key: &ObjectKey, kind: Kind, object: &Value) -> Value {
        let status = match kind {
            RESOURCE_QUOTA => self
                .ledger
                .quota(&key.namespace, &key.name)
                .map(policy::quota_status),
            CLUSTER_QUOTA => self
                .ledger
                .cluster_quota(&key.name)
                .map(policy::cluster_quota_status),
            NAMESPACE => Some(namespaces::status(object)),
            DEFINITION => Some(definitions::status(object)),
            _ => None,
        };
        let mut object = object.clone();
        if let (Some(status), Some(fields)) = (status, object.as_object_mut()) {
            fields.insert("status".to_owned(), status);
        }
        object
    }
}

/// An object as the store has it; there is a bound on its length.
fn bytes(object: &Value) -> Result<Vec<u8>, Refusal> {
    let bytes = serde_json::to_vec(object);
    let bytes = bytes.map_err(|error| Refusal::internal(error.to_string()))?;
    if bytes.len() <= MAX_LENGTH {
        return Ok(bytes);
    }
    let message = format!(
        "the object has {} bytes: {MAX_LENGTH} is the most",
        bytes.len()
    );
    Err(Refusal::new(413, "RequestEntityTooLarge", message))
}

fn store_key(key: &ObjectKey) -> String {
    format!("objects/{}/{}/{}", key.resource, key.namespace, key.name)
}

fn holder(key: &ObjectKey) -> Holder {
    Holder {
        namespace: key.namespace.clone(),
        resource: key.resource.clone(),
        name: key.name.clone(),
    }
}
