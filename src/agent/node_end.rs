//! The end of all pods because the node ends them: at a shutdown, while no agent runs.
//!
//! Decides when the end of each pod begins and by when all is over; the end itself is that of any pod. Nothing is
//! kept of it but events: the pods stay in the store as they are, and from what their shims have recorded the next
//! agent goes on. So whoever is killed meanwhile leaves what this begins with. It must never admit, start, enforce or
//! forget anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::entry::{Live, PodEntry};
use super::input::Input;
use super::request::PodKey;
use super::run::{Agent, Parts, RETRY, StartupError};
use crate::runtime::AttemptState;

/// How long what got SIGKILL may take to be gone.
const DYING: Duration = Duration::from_secs(5);
/// How long others that are being killed hold critical pods back.
const HELD_BACK: Duration = Duration::from_secs(1);

/// How far the end of all pods has come.
#[derive(Debug)]
pub(super) struct NodeEnd {
    began: Instant,
    most: Duration,
    /// How long pods have that are not critical, if others wait for them.
    first: Duration,
    /// Critical pods have their turn.
    is_second: bool,
    /// The pods of which something may still run; whether they are critical.
    left: BTreeMap<PodKey, bool>,
    begun: usize,
    killed: BTreeSet<(PodKey, String)>,
}

impl NodeEnd {
    /// One that begins now.
    pub fn new(most: Duration) -> Self {
        Self {
            began: Instant::now(),
            most,
            first: most,
            is_second: false,
            left: BTreeMap::new(),
            begun: 0,
            killed: BTreeSet::new(),
        }
    }

    /// When the containers of a pod get SIGKILL at the latest.
    pub fn until(&self, entry: &PodEntry) -> Instant {
        self.after(if entry.admitted.pod().is_critical() {
            self.most
        } else {
            self.first
        })
    }

    fn after(&self, time: Duration) -> Instant {
        self.began.checked_add(time).unwrap_or(self.began)
    }

    /// So many containers of a pod began to end, and these get SIGKILL.
    pub fn note(&mut self, key: &PodKey, begun: usize, killed: &[String]) {
        self.begun = self.begun.saturating_add(begun);
        let killed = killed.iter().map(|name| (key.clone(), name.clone()));
        self.killed.extend(killed);
    }

    /// Critical pods end last, in the third of the time that is kept for them. If there are no others they have all
    /// of it, and so have others without them.
    fn share(&mut self) {
        self.is_second = self.left.values().all(|is_critical| *is_critical);
        if !self.is_second && self.left.values().any(|is_critical| *is_critical) {
            self.first = self.most.saturating_sub(self.most / 3);
        }
    }

    /// Whether the turn of critical pods has just come.
    fn turns(&mut self, now: Instant) -> bool {
        if self.is_second {
            return false;
        }
        let is_late = now >= self.after(self.first.saturating_add(HELD_BACK));
        self.is_second = is_late || self.left.values().all(|is_critical| *is_critical);
        self.is_second
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Containers that have ended.
    pub containers: usize,
    /// How many containers got SIGKILL.
    pub killed: usize,
    /// Pods of which something still runs: `NAMESPACE/NAME`, and the containers.
    pub left: Vec<String>,
    /// What it took.
    pub took: Duration,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (containers, took) = (self.containers, self.took.as_secs_f64());
        write!(f, "{containers} containers have ended in {took:.1} s; ")?;
        write!(f, "{} had to be killed", self.killed)?;
        match self.left.as_slice() {
            [] => Ok(()),
            left => write!(f, "; not ended, not even by SIGKILL: {}", left.join(", ")),
        }
    }
}

/// Ends all containers that run, within `most` and the moment that it takes a killed process to go. Nothing else
/// may have the store. `begins` is told how many containers of how many pods these are.
///
/// # Errors
/// The stored state or the configuration cannot be used.
pub fn end_pods(
    parts: Parts,
    inputs: &Receiver<Input>,
    most: Duration,
    begins: impl FnOnce(usize, usize),
) -> Result<Ended, StartupError> {
    let mut agent = Agent::restore_to_end(parts, most)?;
    let running: Vec<_> = agent.pods.values().map(running).collect();
    let pods = running.iter().filter(|count| **count > 0).count();
    begins(running.iter().sum(), pods);
    while !agent.has_ended_all() && agent.turn(inputs, Duration::MAX) {}
    Ok(agent.ended())
}

fn running(entry: &PodEntry) -> usize {
    let runs = |live: &&Live| matches!(live, Live::Running(_));
    entry.live.values().filter(runs).count()
}

impl Agent {
    /// Begins the end of all pods.
    pub(super) fn begin_node_end(&mut self) {
        let keys: Vec<_> = self.pods.keys().cloned().collect();
        let pods = self.pods.iter();
        let left = pods
            .filter(|(_, entry)| entry.is_active())
            .map(|(key, entry)| (key.clone(), entry.admitted.pod().is_critical()));
        if let Some(end) = &mut self.node_end {
            end.left = left.collect();
            end.share();
        }
        // What runs of other pods is found on the way.
        for key in keys {
            self.end_with_node(&key);
        }
    }

    /// One turn: only ends are heard of.
    pub(super) fn ending_turn(&mut self, inputs: &Receiver<Input>, most: Duration) -> bool {
        if self.events.has_pending() {
            // Where the disk refuses them the end goes on.
            drop(self.commit(Vec::new()));
        }
        let next = self.wakes.first().map(|(at, _)| *at);
        let wait = next.map_or(RETRY, |at| at.saturating_duration_since(Instant::now()));
        let first = match inputs.recv_timeout(wait.min(RETRY).min(most)) {
            Ok(input) => Some(input),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return false,
        };
        for input in first.into_iter().chain(inputs.try_iter()) {
            match input {
                Input::Exited { uid, container } => self.exited(&uid, &container),
                Input::Probes(news) => self.take_probe_news(*news),
                _ => {}
            }
        }
        let now = Instant::now();
        while let Some((at, key)) = self.wakes.first().cloned()
            && at <= now
        {
            self.wakes.pop_first();
            if let Some(entry) = self.pods.get_mut(&key) {
                entry.wake = None;
            }
            self.end_with_node(&key);
        }
        if self.node_end.as_mut().is_some_and(|end| end.turns(now)) {
            for key in self.pods.keys().cloned().collect::<Vec<_>>() {
                self.end_with_node(&key);
            }
        }
        true
    }

    /// Takes the next step towards the end of what runs of a pod.
    pub(super) fn end_with_node(&mut self, key: &PodKey) {
        let (Some(end), Some(entry)) = (&self.node_end, self.pods.get(key)) else {
            return;
        };
        let is_critical = entry.admitted.pod().is_critical();
        if is_critical && !end.is_second {
            return;
        }
        let is_in_time = Instant::now() < end.until(entry);
        let (path, deletion) = (entry.path(), entry.record.deletion);
        let is_starting = self.note_what_began(key);
        let is_active = self.pods.get(key).is_some_and(PodEntry::is_active);
        if is_active {
            self.stop_containers(key, deletion, |_| true);
        } else if is_starting && is_in_time {
            self.wake_pod(key, RETRY);
        } else if !self.is_empty(&path) {
            self.kill(&path);
            self.wake_pod(key, RETRY);
        } else {
            if let Some(end) = &mut self.node_end {
                end.left.remove(key);
            }
            return;
        }
        if let Some(end) = &mut self.node_end {
            end.left.insert(key.clone(), is_critical);
        }
    }

    /// Containers whose start was under way when the agent ended may run by now. Whether one is still under way.
    fn note_what_began(&mut self, key: &PodKey) -> bool {
        let Some(entry) = self.pods.get(key) else {
            return false;
        };
        let idle: Vec<_> = entry
            .container_names()
            .filter(|name| *entry.live(name) == Live::Idle && !entry.is_attached(name))
            .filter(|name| {
                entry
                    .container_record(name)
                    .is_none_or(|it| it.end.is_none())
            })
            .map(|name| (name.to_owned(), entry.attempt(name)))
            .collect();
        let mut is_starting = false;
        for (name, attempt) in idle {
            let Some(id) = self.container_id(key, &name) else {
                continue;
            };
            match self.runtime.inspect(&id.attempt(attempt)) {
                Ok(AttemptState::Running(running)) => self.note_running(key, &name, running),
                Ok(AttemptState::Starting) => is_starting = true,
                _ => {}
            }
        }
        is_starting
    }

    /// A container's run is over. How it ended is the next agent's to note, who has the same records.
    pub(super) fn note_last_end(&mut self, key: &PodKey, container: &str) {
        let Some(entry) = self.pods.get_mut(key) else {
            return;
        };
        entry.live.insert(container.to_owned(), Live::Idle);
        let (path, is_attached) = (
            entry.container_path(container),
            entry.is_attached(container),
        );
        if let Some(path) = path
            && !is_attached
            && !self.is_empty(&path)
        {
            self.kill(&path);
        }
    }

    /// Whether nothing runs any more, or what does so outlives SIGKILL.
    pub(super) fn has_ended_all(&self) -> bool {
        self.node_end.as_ref().is_none_or(|end| {
            end.left.is_empty() || Instant::now() >= end.after(end.most.saturating_add(DYING))
        })
    }

    /// What came of it so far.
    pub(super) fn ended(&mut self) -> Ended {
        if self.events.has_pending() {
            drop(self.commit(Vec::new()));
        }
        let Some(end) = &self.node_end else {
            return Ended {
                containers: 0,
                killed: 0,
                left: Vec::new(),
                took: Duration::ZERO,
            };
        };
        let mut still = 0usize;
        let told = |key: &PodKey| {
            let live = self.pods.get(key).into_iter().flat_map(|it| &it.live);
            let live = live.filter(|(_, live)| **live != Live::Idle);
            let names: Vec<_> = live.map(|(name, _)| name.as_str()).collect();
            still = still.saturating_add(names.len());
            format!("{key} ({})", names.join(" "))
        };
        let left = end.left.keys().map(told).collect();
        Ended {
            containers: end.begun.saturating_sub(still),
            killed: end.killed.len(),
            left,
            took: end.began.elapsed(),
        }
    }
}
