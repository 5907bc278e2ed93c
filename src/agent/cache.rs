//! What readers see: every object as it was last told, and what has changed of late.
//!
//! The owner writes it at each commit; readers take from it what they need without asking the owner, and
//! a list, a single object and a watch always agree. It decides nothing, and it is bounded: a reader that
//! is too slow is told so and begins anew.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde_json::Value;
use tokio::sync::watch;

use super::request::ObjectKey;

/// So many changes are kept for those who watch.
const CHANGES: usize = 4096;

/// So much they may weigh together (bytes, about).
const WEIGHT: usize = 64 << 20;

/// An object as its readers see it, and of which revision.
#[derive(Debug, PartialEq)]
pub struct Seen {
    /// The object, with its `metadata.resourceVersion`.
    pub object: Value,
    /// The revision of the commit that made it so.
    pub revision: u64,
}

/// One object that became different.
#[derive(Clone, Debug)]
pub struct Change {
    /// Which.
    pub key: ObjectKey,
    /// As it was; `None` if it is new.
    pub before: Option<Arc<Seen>>,
    /// As it is; `None` if it is gone.
    pub after: Option<Arc<Seen>>,
    /// The revision of the commit.
    pub revision: u64,
}

/// What was asked for is no longer kept: list again, then watch from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The oldest revision to watch from.
    pub oldest: u64,
}

/// All objects and the latest changes.
#[derive(Debug)]
pub struct Cache {
    state: RwLock<State>,
    /// What is to be seen at once with the rest of its revision.
    staged: Mutex<Vec<(ObjectKey, Option<Value>, u64)>>,
    /// How many changes there have been; closed once no more will come.
    count: watch::Sender<Count>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    changes: u64,
    closed: bool,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<ObjectKey, Arc<Seen>>,
    /// The latest changes; the last one is number `count`.
    changes: VecDeque<(Change, usize)>,
    count: u64,
    weight: usize,
    revision: u64,
    /// Changes up to this revision may be forgotten.
    forgotten: u64,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            state: RwLock::default(),
            staged: Mutex::default(),
            count: watch::Sender::new(Count::default()),
        }
    }
}

impl State {
    fn take(&mut self, key: ObjectKey, object: Option<Value>, revision: u64) {
        self.revision = self.revision.max(revision);
        let before = self.objects.get(&key).cloned();
        if before.as_ref().map(|seen| &seen.object) == object.as_ref() {
            return;
        }
        let after = object.map(|object| Arc::new(Seen { object, revision }));
        match &after {
            Some(seen) => self.objects.insert(key.clone(), Arc::clone(seen)),
            None => self.objects.remove(&key),
        };
        let change = Change {
            key,
            before,
            after,
            revision,
        };
        // What came before is the weight of the change before, unless that is forgotten.
        let weight = change.after.as_ref().map_or(0, |seen| weight(&seen.object));
        self.weight = self.weight.saturating_add(weight);
        self.changes.push_back((change, weight));
        self.count = self.count.saturating_add(1);
        while self.changes.len() > CHANGES || self.weight > WEIGHT {
            let Some((oldest, weight)) = self.changes.pop_front() else {
                break;
            };
            self.weight = self.weight.saturating_sub(weight);
            self.forgotten = self.forgotten.max(oldest.revision);
        }
    }
}

impl Cache {
    /// Begins: changes before this revision are not known.
    pub fn begin(&self, revision: u64) {
        let mut state = self.write();
        state.revision = revision;
        state.forgotten = revision;
    }

    /// Readers see this from the next `flush` on; `None` is an object that is gone. What is no different is no
    /// change.
    pub fn publish(&self, key: ObjectKey, object: Option<Value>, revision: u64) {
        let staged = self.staged.lock();
        let mut staged = staged.unwrap_or_else(PoisonError::into_inner);
        staged.push((key, object, revision));
    }

    /// All that was published, at once. Several changes belong to one revision, and whoever lists between two of
    /// them and watches from there would never be told of the second.
    pub fn flush(&self) {
        let staged = self.staged.lock();
        let staged = std::mem::take(&mut *staged.unwrap_or_else(PoisonError::into_inner));
        if staged.is_empty() {
            return;
        }
        let mut state = self.write();
        for (key, object, revision) in staged {
            state.take(key, object, revision);
        }
        let changes = state.count;
        drop(state);
        self.count.send_if_modified(|count| {
            let is_new = count.changes != changes;
            count.changes = changes;
            is_new
        });
    }

    /// No more changes will come: whoever watches is let go.
    pub fn close(&self) {
        self.count.send_modify(|count| count.closed = true);
    }

    /// One object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Seen>> {
        self.read().objects.get(key).cloned()
    }

    /// The objects of a resource, of one namespace or of all, and the revision of the answer.
    pub fn list(&self, resource: &str, namespace: Option<&str>) -> (Vec<Arc<Seen>>, u64) {
        let state = self.read();
        let first = ObjectKey {
            resource: resource.to_owned(),
            namespace: namespace.unwrap_or_default().to_owned(),
            name: String::new(),
        };
        let objects = state
            .objects
            .range(first..)
            .take_while(|(key, _)| {
                key.resource == resource && namespace.is_none_or(|wanted| key.namespace == wanted)
            })
            .map(|(_, seen)| Arc::clone(seen))
            .collect();
        (objects, state.revision)
    }

    /// The changes after a revision that was read before, and all that will come.
    ///
    /// # Errors
    /// Some of them are forgotten, or the revision is none of ours.
    pub fn watch(self: &Arc<Self>, from: u64) -> Result<Watcher, Expired> {
        let state = self.read();
        if from < state.forgotten || from > state.revision {
            return Err(Expired {
                oldest: state.forgotten,
            });
        }
        let newer = state
            .changes
            .iter()
            .rev()
            .take_while(|(change, _)| change.revision > from)
            .count();
        Ok(Watcher {
            next: state.count.saturating_sub(newer as u64),
            count: self.count.subscribe(),
            cache: Arc::clone(self),
        })
    }

    /// The objects of a resource, and what becomes of them afterwards.
    pub fn list_and_watch(
        self: &Arc<Self>,
        resource: &str,
        namespace: Option<&str>,
    ) -> (Vec<Arc<Seen>>, u64, Watcher) {
        // Counted before the list: a change in between is told once more, never left out.
        let next = self.read().count;
        let (objects, revision) = self.list(resource, namespace);
        let watcher = Watcher {
            next,
            count: self.count.subscribe(),
            cache: Arc::clone(self),
        };
        (objects, revision, watcher)
    }

    /// The revision of the latest commit.
    pub fn revision(&self) -> u64 {
        self.read().revision
    }

    // A writer that panicked left whole entries behind: there is nothing in between.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Somebody who follows the changes, at their own pace.
#[derive(Debug)]
pub struct Watcher {
    cache: Arc<Cache>,
    /// The number of changes that were taken or passed over.
    next: u64,
    count: watch::Receiver<Count>,
}

impl Watcher {
    /// Waits for changes and takes those there are; none once the cache is closed.
    ///
    /// # Errors
    /// Changes that were not taken yet are forgotten.
    pub async fn next(&mut self) -> Result<Vec<Change>, Expired> {
        loop {
            let changes = self.take()?;
            if !changes.is_empty() || self.count.borrow().closed {
                return Ok(changes);
            }
            let next = self.next;
            let more = self
                .count
                .wait_for(|count| count.closed || count.changes > next);
            if more.await.is_err() {
                return Ok(Vec::new());
            }
        }
    }

    fn take(&mut self) -> Result<Vec<Change>, Expired> {
        let state = self.cache.read();
        let oldest = state.count.saturating_sub(state.changes.len() as u64);
        let Some(passed) = self.next.checked_sub(oldest) else {
            return Err(Expired {
                oldest: state.forgotten,
            });
        };
        let passed = usize::try_from(passed).unwrap_or(usize::MAX);
        let changes: Vec<_> = state
            .changes
            .iter()
            .skip(passed)
            .map(|(change, _)| change.clone())
            .collect();
        self.next = state.count;
        Ok(changes)
    }
}

/// About what a value takes of memory (bytes).
fn weight(value: &Value) -> usize {
    let own = size_of::<Value>();
    let parts: usize = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| name.len().saturating_add(weight(value)).saturating_add(own))
            .sum(),
        _ => 0,
    };
    own.saturating_add(parts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey {
            resource: "pods".to_owned(),
            namespace: "default".to_owned(),
            name: name.to_owned(),
        }
    }

    fn wait<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(future)
    }

    #[test]
    fn changes_are_told_from_a_revision_on() {
        let cache = Arc::new(Cache::default());
        cache.begin(5);
        cache.publish(key("a"), Some(json!({"n": 1})), 6);
        cache.flush();
        cache.publish(key("a"), Some(json!({"n": 1})), 7);
        cache.flush();
        cache.publish(key("a"), Some(json!({"n": 2})), 8);
        cache.flush();
        cache.publish(key("a"), None, 9);
        cache.flush();
        assert_eq!(cache.watch(4).unwrap_err(), Expired { oldest: 5 });
        assert_eq!(cache.watch(10).unwrap_err(), Expired { oldest: 5 });
        let mut watcher = cache.watch(6).unwrap();
        let told = wait(watcher.next()).unwrap();
        let revisions: Vec<_> = told.iter().map(|change| change.revision).collect();
        assert_eq!(revisions, [8, 9], "what is no different is no change");
        assert!(told[1].after.is_none() && told[1].before.is_some());
        cache.close();
        assert!(wait(watcher.next()).unwrap().is_empty());
    }

    /// A pod goes in the same commit as an event is made of it; kubectl waits for it to go by a list and a
    /// watch from there.
    #[test]
    fn what_belongs_to_one_revision_is_seen_at_once() {
        let cache = Arc::new(Cache::default());
        cache.begin(5);
        cache.publish(key("a"), Some(json!({})), 6);
        cache.flush();
        cache.publish(key("event"), Some(json!({})), 7);
        let (objects, revision) = cache.list("pods", None);
        assert_eq!((objects.len(), revision), (1, 6));
        let mut watcher = cache.watch(revision).unwrap();
        cache.publish(key("a"), None, 7);
        cache.flush();
        assert_eq!(cache.revision(), 7);
        assert_eq!(wait(watcher.next()).unwrap().len(), 2);
    }

    #[test]
    fn whoever_is_too_slow_is_told_so() {
        let cache = Arc::new(Cache::default());
        let (_, _, mut slow) = cache.list_and_watch("pods", None);
        for n in 0..=CHANGES as u64 {
            cache.publish(key("a"), Some(json!(n)), n + 1);
            cache.flush();
        }
        assert_eq!(wait(slow.next()).unwrap_err(), Expired { oldest: 1 });
        assert_eq!(cache.watch(0).unwrap_err(), Expired { oldest: 1 });
        assert_eq!(wait(cache.watch(1).unwrap().next()).unwrap().len(), CHANGES);
    }

    #[test]
    fn changes_weigh_no_more_than_they_may() {
        let cache = Arc::new(Cache::default());
        let big = "x".repeat(1 << 20);
        for n in 0..200 {
            cache.publish(key("a"), Some(json!([n, big])), n + 1);
            cache.flush();
        }
        let state = cache.read();
        assert!(state.weight <= WEIGHT, "{}", state.weight);
        assert!((50..64).contains(&state.changes.len()));
    }
}
