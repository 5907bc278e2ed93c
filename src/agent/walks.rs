//! What pods' files take, for whoever asks: counted where a file system counts, or as the last walk found it.
//!
//! Walks can use up a disk (kubernetes#23255), so there is one at a time, on a thread of its own with idle I/O
//! priority and at a bounded pace; the same files are left alone for twenty times as long as their walk took, and
//! the thread rests after each as long as it took. Nobody who asks walks, or waits longer than they say: until
//! the first walk of a part has ended they get what it has found so far, marked as partial. Files that nobody
//! asks for are not walked.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::cgroup::{CgroupPath, Reader};
use crate::model::space::{Measured, Place, Space};
use crate::observation::storage::measure::{counted, walked};
use crate::observation::storage::walk::{STEP, Usage};
use crate::sys::ioprio;

/// The most entries of directories that are looked at in a second.
const RATE: u64 = 50_000;
/// A walk that takes longer ends with what it has.
const LONGEST: Duration = Duration::from_secs(60);
/// The least pause between two walks of the same files.
const AGAIN: Duration = Duration::from_secs(5);
/// And so many times as long as the walk took.
const REST: u32 = 20;
/// What nobody asked for in this time is forgotten.
const KEPT: Duration = Duration::from_secs(3600);

/// A pod's uid and a part of its files.
type Key = (String, Space);

/// Where to look.
#[derive(Clone, Debug)]
pub(super) struct Files<'a> {
    /// The pod's uid.
    pub uid: &'a str,
    /// A part of its files.
    pub place: &'a Place,
    /// Its cgroup: whose processes may hold deleted files open.
    pub cgroup: &'a CgroupPath,
    /// Reads that.
    pub reader: &'a Arc<dyn Reader>,
}

/// What is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Figure {
    /// What the files take; `None` where that is not known (yet).
    pub measured: Option<Measured>,
    /// When to ask for a newer one, where files are walked.
    pub due: Option<Instant>,
}

/// The way to the thread, which starts with the first walk and ends when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Walks(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    known: BTreeMap<Key, Known>,
    queue: VecDeque<(Key, Job)>,
    has_thread: bool,
    stops: bool,
}

#[derive(Debug)]
struct Known {
    last: Option<Measured>,
    due: Instant,
    asked: Instant,
    /// A walk waits or is under way.
    busy: bool,
}

#[derive(Debug)]
struct Job {
    place: Place,
    cgroup: CgroupPath,
    reader: Arc<dyn Reader>,
}

impl Walks {
    /// What these files take. Where they have to be walked anew the answer is what that finds until `until`, or
    /// else what is known from before.
    pub fn measure(&self, files: &Files<'_>, until: Instant) -> Figure {
        match counted(files.place) {
            Ok(Some(measured)) => {
                return Figure {
                    measured: Some(measured),
                    due: None,
                };
            }
            Ok(None) => {}
            Err(error) => {
                tell(files.place, &error);
                return Figure {
                    measured: None,
                    due: Instant::now().checked_add(AGAIN),
                };
            }
        }
        let key = (files.uid.to_owned(), files.place.space.clone());
        let now = Instant::now();
        let mut state = self.0.lock();
        let known = state.known.entry(key.clone()).or_insert(Known {
            last: None,
            due: now,
            asked: now,
            busy: false,
        });
        known.asked = now;
        if !known.busy && known.due <= now {
            known.busy = true;
            let job = Job {
                place: files.place.clone(),
                cgroup: files.cgroup.clone(),
                reader: Arc::clone(files.reader),
            };
            state.queue.push_back((key.clone(), job));
            self.start(&mut state);
            self.0.changed.notify_all();
        }
        loop {
            let Some(known) = state.known.get(&key) else {
                // The pod is gone.
                return Figure::default();
            };
            let now = Instant::now();
            if !known.busy || until <= now {
                return Figure {
                    measured: known.last,
                    due: Some(known.due),
                };
            }
            let waited = self.0.changed.wait_timeout(state, until - now);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The files of this pod go: a walk of them ends, and nothing of them is known any more.
    pub fn forget(&self, uid: &str) {
        let mut state = self.0.lock();
        state.known.retain(|(own, _), _| own != uid);
        state.queue.retain(|((own, _), _)| own != uid);
        drop(state);
        self.0.changed.notify_all();
    }

    /// Without a thread nothing is known, which is told with the first walk that cannot be.
    fn start(&self, state: &mut State) {
        if state.has_thread {
            return;
        }
        let shared = Arc::clone(&self.0);
        let started = std::thread::Builder::new()
            .name("walks".to_owned())
            .spawn(move || run(&shared));
        match started {
            Ok(_) => state.has_thread = true,
            Err(error) => tracing::error!("no directory is walked: there is no thread: {error}"),
        }
    }
}

impl Drop for Walks {
    fn drop(&mut self) {
        self.0.lock().stops = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a walk to do, but not before `rested`; `None` at the end.
    fn next(&self, rested: Instant) -> Option<(Key, Job)> {
        let mut state = self.lock();
        while !state.stops {
            let left = rested.saturating_duration_since(Instant::now());
            if left.is_zero()
                && let Some(next) = state.queue.pop_front()
            {
                return Some(next);
            }
            state = if left.is_zero() {
                let waited = self.changed.wait(state);
                waited.unwrap_or_else(PoisonError::into_inner)
            } else {
                let waited = self.changed.wait_timeout(state, left);
                waited.unwrap_or_else(PoisonError::into_inner).0
            };
        }
        None
    }

    /// Notes what a walk has found so far. Whether it goes on.
    fn goes_on(&self, key: &Key, found: Usage) -> bool {
        let mut state = self.lock();
        let stops = state.stops;
        let Some(known) = state.known.get_mut(key) else {
            return false;
        };
        if known.last.is_none_or(|last| last.partial) {
            known.last = Some(Measured {
                bytes: found.bytes,
                inodes: found.inodes,
                partial: true,
                ..Measured::default()
            });
        }
        !stops
    }

    fn note(&self, key: &Key, found: Option<Measured>, pause: Duration) {
        let mut state = self.lock();
        let now = Instant::now();
        if let Some(known) = state.known.get_mut(key) {
            known.last = found;
            known.busy = false;
            known.due = now.checked_add(pause).unwrap_or(now);
        }
        state
            .known
            .retain(|_, known| known.busy || now.saturating_duration_since(known.asked) < KEPT);
        drop(state);
        self.changed.notify_all();
    }
}

fn run(shared: &Shared) {
    if let Err(error) = ioprio::idle_thread() {
        tracing::debug!("disk is walked with the usual priority: {error}");
    }
    let mut rested = Instant::now();
    while let Some((key, job)) = shared.next(rested) {
        let began = Instant::now();
        let processes = || {
            let pids = job.reader.processes(&job.cgroup).into_iter();
            pids.map(|pid| pid.0).collect()
        };
        let mut steps = 0;
        let mut goes_on = |found| {
            steps += 1;
            std::thread::sleep(ahead(steps, began.elapsed()));
            shared.goes_on(&key, found) && began.elapsed() < LONGEST
        };
        let found = walked(&job.place, processes, &mut goes_on);
        let found = found.inspect_err(|error| tell(&job.place, error)).ok();
        let took = began.elapsed();
        shared.note(&key, found, pause_after(took));
        rested = Instant::now() + took;
    }
}

/// How far a walk is ahead of its pace after so many steps.
fn ahead(steps: u64, elapsed: Duration) -> Duration {
    let micros = steps.saturating_mul(STEP).saturating_mul(1_000_000) / RATE;
    Duration::from_micros(micros).saturating_sub(elapsed)
}

/// How long the same files are left alone after a walk that took so long.
fn pause_after(took: Duration) -> Duration {
    AGAIN.max(took.saturating_mul(REST))
}

fn tell(place: &Place, error: &io::Error) {
    tracing::warn!("cannot measure {} of a pod: {error}", place.space);
}

#[cfg(test)]
mod tests;
