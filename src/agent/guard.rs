//! Looks after the disk use of pods that have limits, on a thread of its own.
//!
//! It measures and tells the owner; it ends nothing. Where the file system counts, a look costs a call
//! and comes every second; where directories are walked, it comes when a walk has ended (`walks`).
//! Without a pod to look after it sleeps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::input::{Handle, Input};
use super::walks::{Files, Walks};
use crate::cgroup::{CgroupPath, Reader};
use crate::model::PodUid;
use crate::model::space::{Place, Space};
use crate::observation::storage::limits::{Finding, Limits};

/// How often is looked where the file system counts.
const EVERY: Duration = Duration::from_secs(1);

/// A pod to look after.
#[derive(Clone, Debug)]
pub(super) struct Guarded {
    /// Where its files are.
    pub places: Vec<Place>,
    /// What they may take.
    pub limits: Limits,
    /// Its cgroup.
    pub cgroup: CgroupPath,
    /// Reads it.
    pub reader: Arc<dyn Reader>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict(pub(super) Finding);

/// The way to the thread; when it is dropped the thread ends.
#[derive(Debug, Default)]
pub(super) struct Guard(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    pods: BTreeMap<PodUid, Watched>,
    stops: bool,
}

#[derive(Debug)]
struct Watched {
    guarded: Guarded,
    due: Instant,
    /// Parts that were told to be full.
    full: BTreeSet<Space>,
}

impl Guard {
    /// Starts the thread. Where there can be none disk limits are only told, which is said.
    pub fn start(handle: Handle) -> Self {
        let guard = Self::default();
        let shared = Arc::clone(&guard.0);
        let started = std::thread::Builder::new()
            .name("storage".to_owned())
            .spawn(move || run(&shared, &handle));
        if let Err(error) = started {
            tracing::error!("disk limits are not kept: there is no thread for it: {error}");
        }
        guard
    }

    /// From now on this pod is looked after.
    pub fn look_after(&self, uid: PodUid, guarded: Guarded) {
        let watched = Watched {
            guarded,
            due: Instant::now() + EVERY,
            full: BTreeSet::new(),
        };
        self.0.lock().pods.insert(uid, watched);
        self.0.changed.notify_one();
    }

    /// No longer.
    pub fn leave(&self, uid: &PodUid) {
        self.0.lock().pods.remove(uid);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.lock().stops = true;
        self.0.changed.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a pod is due; `None` at the end.
    fn next(&self) -> Option<(PodUid, Guarded)> {
        let mut state = self.lock();
        loop {
            if state.stops {
                return None;
            }
            let first = state.pods.iter().min_by_key(|(_, watched)| watched.due);
            let first = first.map(|(uid, watched)| (uid.clone(), watched.due));
            let now = Instant::now();
            match first {
                Some((uid, due)) if due <= now => {
                    let guarded = state.pods.get(&uid)?.guarded.clone();
                    return Some((uid, guarded));
                }
                Some((_, due)) => {
                    let waited = self.changed.wait_timeout(state, due - now);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                None => {
                    let waited = self.changed.wait(state);
                    state = waited.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Notes what was found and when to look again. What is new is returned; nothing if the pod has left.
    fn note(&self, uid: &PodUid, found: Vec<Finding>, pause: Duration) -> Vec<Finding> {
        let mut state = self.lock();
        let Some(watched) = state.pods.get_mut(uid) else {
            return Vec::new();
        };
        watched.due = Instant::now() + pause;
        let before = std::mem::take(&mut watched.full);
        let mut new = Vec::new();
        for finding in found {
            if let Finding::Full { space, .. } = &finding {
                watched.full.insert(space.clone());
                if before.contains(space) {
                    continue;
                }
            }
            new.push(finding);
        }
        new
    }
}

fn run(shared: &Shared, handle: &Handle) {
    while let Some((uid, guarded)) = shared.next() {
        let (found, pause) = look(&uid, &guarded, handle.walks());
        for finding in shared.note(&uid, found, pause) {
            let uid = uid.clone();
            let verdict = Verdict(finding);
            if !handle.tell(Input::Storage { uid, verdict }) {
                return;
            }
        }
    }
}

/// Judges what is known of a pod's files, and when there can be more to know.
fn look(uid: &PodUid, guarded: &Guarded, walks: &Walks) -> (Vec<Finding>, Duration) {
    let now = Instant::now();
    let mut measured = BTreeMap::new();
    let mut next = None;
    for place in &guarded.places {
        let files = Files {
            uid: uid.as_str(),
            place,
            cgroup: &guarded.cgroup,
            reader: &guarded.reader,
        };
        let figure = walks.measure(&files, now);
        if let Some(found) = figure.measured {
            measured.insert(place.space.clone(), found);
        }
        // In memory is next to nothing to ask for, so what is walked beside it says when.
        if !place.in_memory {
            let due = figure.due.unwrap_or(now);
            next = Some(next.map_or(due, |next: Instant| next.min(due)));
        }
    }
    let pause = next.map_or(EVERY, |next| EVERY.max(next.saturating_duration_since(now)));
    (guarded.limits.judge(&measured), pause)
}
