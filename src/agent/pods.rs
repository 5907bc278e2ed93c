//! All pods by name. Whoever takes one to change it leaves a mark, so that a turn ends with a look at
//! those alone and not at all.

use std::collections::{BTreeMap, BTreeSet, btree_map};

use super::entry::PodEntry;
use super::request::PodKey;

/// The pods that the agent keeps.
#[derive(Debug, Default)]
pub(super) struct Pods {
    entries: BTreeMap<PodKey, PodEntry>,
    marked: BTreeSet<PodKey>,
}

impl Pods {
    /// A pod to read.
    pub fn get(&self, key: &PodKey) -> Option<&PodEntry> {
        self.entries.get(key)
    }

    /// A pod to change.
    pub fn get_mut(&mut self, key: &PodKey) -> Option<&mut PodEntry> {
        let entry = self.entries.get_mut(key)?;
        if !self.marked.contains(key) {
            self.marked.insert(key.clone());
        }
        Some(entry)
    }

    /// Keeps a pod.
    pub fn insert(&mut self, key: PodKey, entry: PodEntry) {
        self.marked.insert(key.clone());
        self.entries.insert(key, entry);
    }

    /// Forgets a pod.
    pub fn remove(&mut self, key: &PodKey) -> Option<PodEntry> {
        self.marked.insert(key.clone());
        self.entries.remove(key)
    }

    /// Whether there is a pod of this name.
    pub fn contains_key(&self, key: &PodKey) -> bool {
        self.entries.contains_key(key)
    }

    /// The pods of a namespace.
    pub fn of_namespace(&self, namespace: &str) -> impl Iterator<Item = (&PodKey, &PodEntry)> {
        let all = self.entries.range(PodKey::new(namespace, "")..);
        all.take_while(move |(key, _)| key.namespace == namespace)
    }

    /// All names.
    pub fn keys(&self) -> btree_map::Keys<'_, PodKey, PodEntry> {
        self.entries.keys()
    }

    /// All pods with their names.
    pub fn iter(&self) -> btree_map::Iter<'_, PodKey, PodEntry> {
        self.entries.iter()
    }

    /// All pods to read.
    pub fn values(&self) -> btree_map::Values<'_, PodKey, PodEntry> {
        self.entries.values()
    }

    /// All pods, to change what their objects do not show: it leaves no mark.
    pub fn unseen(&mut self) -> btree_map::ValuesMut<'_, PodKey, PodEntry> {
        self.entries.values_mut()
    }

    /// The pods that may have changed since this was asked last; those that are gone too.
    pub fn take_marked(&mut self) -> BTreeSet<PodKey> {
        std::mem::take(&mut self.marked)
    }

    /// The store has a pod as it is now.
    pub fn settled(&mut self, key: &PodKey, revision: u64) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.dirty = false;
            entry.revision = revision;
        }
    }

    /// Looks at a pod again at the end of the next turn.
    pub fn mark(&mut self, key: PodKey) {
        self.marked.insert(key);
    }
}
