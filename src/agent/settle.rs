//! One commit for all that became different in a turn.
//!
//! Decides what must be durable together, and what becomes of changes that the disk refuses. It must
//! never tell readers of anything that is not durable, while the disk takes it.

use std::collections::BTreeSet;
use std::time::Instant;

use super::events::Severity;
use super::request::PodKey;
use super::run::{Agent, LEVELS_KEY, STORE_RETRY, put, store_key};
use crate::store::{Change, StoreError};

/// The subject of problems with the store.
const STORE: &str = "store";

impl Agent {
    /// One commit for all that has changed; then readers see it. What the disk refuses stays due and is
    /// tried again.
    pub(super) fn settle_all(&mut self) {
        let marked = self.pods.take_marked();
        let dirty: Vec<_> = marked
            .iter()
            .filter(|key| self.pods.get(key).is_some_and(|entry| entry.dirty))
            .collect();
        let pending = self.events.has_pending() || self.kills.has_pending();
        if !dirty.is_empty() || pending || self.levels_dirty {
            self.settle(&dirty);
        }
        for key in marked {
            self.publish_pod(&key);
        }
        self.publish_node();
        self.handle.cache().flush();
    }

    fn settle(&mut self, dirty: &[&PodKey]) {
        let mut changes = Vec::new();
        for key in dirty {
            if let Some(entry) = self.pods.get(key)
                && let Some(change) = put(&store_key(key), &entry.record)
            {
                changes.push(change);
            }
        }
        if self.levels_dirty
            && let Some(change) = put(LEVELS_KEY, &self.levels_seen)
        {
            changes.push(change);
        }
        let Ok(revision) = self.commit(changes) else {
            for key in dirty {
                self.pods.mark((*key).clone());
            }
            return;
        };
        self.levels_dirty = false;
        for key in dirty {
            self.pods.settled(key, revision);
        }
    }

    /// Commits changes together with the events and OOM kills that wait. A failure is told here; what
    /// was to be changed stays the caller's.
    pub(super) fn commit(&mut self, mut changes: Vec<Change>) -> Result<u64, StoreError> {
        self.add_kills(&mut changes);
        changes.extend(self.events.pending());
        let committed = self.store.commit(&changes);
        match &committed {
            Ok(revision) => {
                self.revision = *revision;
                self.publish_events();
                self.events.committed();
                self.kills.committed();
                self.problems.remove(STORE);
            }
            Err(error) => {
                self.store_failed(error);
                self.publish_events();
            }
        }
        committed
    }

    /// A kill and the count that it was taken from are durable at once, or neither is: its pod's record
    /// goes with it.
    fn add_kills(&self, changes: &mut Vec<Change>) {
        let mut there: BTreeSet<_> = changes
            .iter()
            .map(|change| match change {
                Change::Put(key, ..) | Change::Delete(key, _) => key.clone(),
            })
            .collect();
        for (change, pod) in self.kills.pending() {
            changes.push(change.clone());
            let Some((namespace, name)) = pod else {
                continue;
            };
            let key = PodKey::new(namespace, name);
            let entry = self.pods.get(&key).filter(|entry| entry.dirty);
            if let Some(entry) = entry
                && there.insert(store_key(&key))
            {
                changes.extend(put(&store_key(&key), &entry.record));
            }
        }
    }

    /// The disk refuses: enforcement goes on, and the node says so.
    fn store_failed(&mut self, error: &StoreError) {
        let problem = error.to_string();
        if self.problems.get(STORE) != Some(&problem) {
            tracing::error!("{problem}");
            self.problems.insert(STORE.to_owned(), problem.clone());
            self.node_event(Severity::Warning, "StoreFailed", &problem);
        }
        // A failed commit left changes behind: try again with the next sync at the latest.
        self.next_sync = self.next_sync.min(Instant::now() + STORE_RETRY);
    }
}
