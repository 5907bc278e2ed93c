//! Values that somebody else changed: repaired, left or adopted, and told in each case.
//!
//! Decides what becomes of a drift, by the node's policy and by how often it comes back. It writes nothing
//! itself: what is to be repaired stays in the plan.

mod contest;

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use jiff::Timestamp;

use self::contest::Contest;
use crate::agent::entry::PodEntry;
use crate::agent::events::Severity;
use crate::agent::request::PodKey;
use crate::agent::run::Agent;
use crate::cgroup::{CgroupPath, InterfaceFile, Op, Setting};
use crate::enforcement::{Cause, Outcome, Plan, Repaired, Step};
use crate::model::policy::DriftPolicy;
use crate::report::drift::{Drift, DriftOutcome};
use crate::translation::{Note, Place, PodTree};

/// So many drifts are kept to be told.
const KEPT: usize = 1000;

/// A value: its cgroup and its file; `cgroup.subtree_control` for controllers.
type Spot = (CgroupPath, String);

/// What is known of drifts.
#[derive(Debug, Default)]
pub(super) struct Drifts {
    told: VecDeque<Drift>,
    last: u64,
    contests: BTreeMap<Spot, Contest>,
    /// What was left and told, so that it is told once.
    left: BTreeMap<Spot, Setting>,
}

impl Drifts {
    /// Those after one of this number, the oldest first.
    pub fn after(&self, id: u64) -> Vec<Drift> {
        let told = self.told.iter();
        told.filter(|drift| drift.id > id).cloned().collect()
    }

    /// Nothing of a cgroup that goes is contested any more.
    pub fn forget(&mut self, path: &CgroupPath) {
        self.contests.retain(|(at, _), _| !at.is_within(path));
        self.left.retain(|(at, _), _| !at.is_within(path));
    }

    fn is_left_alone(&self, spot: &Spot, now: Instant) -> bool {
        let contest = self.contests.get(spot);
        contest.is_some_and(|contest| contest.is_left_alone(now))
    }
}

impl Agent {
    /// Takes out of a plan what is not to be repaired, and tells why by cgroup.
    pub(super) fn heed_drifts(
        &mut self,
        scope: &CgroupPath,
        plan: &mut Plan,
    ) -> Vec<(CgroupPath, String)> {
        let now = Instant::now();
        let (drifts, config) = (&self.drifts, &self.config);
        let steps = plan.leave_out(|step| {
            // A file that was missing comes with its cgroup, which is made anew in any case.
            step.cause == Cause::Drift
                && match &step.op {
                    Op::Write(_, wanted) => {
                        let policy = config.drift_policy_of(wanted.file().controller().name());
                        let is_free = policy != DriftPolicy::Repair;
                        let is_left = is_free || drifts.is_left_alone(&spot(&step.op), now);
                        step.before.is_some() && is_left
                    }
                    Op::Enable(..) => drifts.is_left_alone(&spot(&step.op), now),
                    _ => false,
                }
        });
        let there: Vec<_> = steps.iter().map(|step| spot(&step.op)).collect();
        let is_over = |(at, file): &Spot| {
            let spot = (at.clone(), file.clone());
            (at.is_within(scope) || scope.is_within(at)) && !there.contains(&spot)
        };
        self.drifts.left.retain(|spot, _| !is_over(spot));
        steps
            .iter()
            .filter_map(|step| {
                let why = self.leave(step, now)?;
                Some((step.op.path().clone(), why))
            })
            .collect()
    }

    /// One drift that is not repaired: why, unless it is adopted and so is none any more.
    fn leave(&mut self, step: &Step, now: Instant) -> Option<String> {
        let spot = spot(&step.op);
        let Op::Write(path, wanted) = &step.op else {
            return Some(format!("{}: somebody undoes it again and again", step.op));
        };
        let found = step.before?;
        if self.drifts.is_left_alone(&spot, now) {
            return Some(format!(
                "{} of {path} is {}, {} is wanted: somebody changes it again and again, so it is left \
                 for a while",
                found.file(),
                found.value(),
                wanted.value()
            ));
        }
        let adopts = self
            .config
            .drift_policy_of(found.file().controller().name())
            == DriftPolicy::Adopt;
        if adopts && self.adopt_value(path, found) {
            self.tell_drift(path, *wanted, Some(found), DriftOutcome::Adopted);
            return None;
        }
        if self.drifts.left.insert(spot, found) != Some(found) {
            self.tell_drift(path, *wanted, Some(found), DriftOutcome::Left);
        }
        Some(format!(
            "{} of {path} is {}, {} is wanted: somebody changed it, and driftPolicy leaves it",
            found.file(),
            found.value(),
            wanted.value()
        ))
    }

    /// A value that somebody set is wanted from now on; false above pods, whose values are sums.
    fn adopt_value(&mut self, path: &CgroupPath, found: Setting) -> bool {
        let place = Place::of(path);
        let key = place.as_ref().and_then(Place::uid);
        let Some(key) = key.and_then(|uid| self.by_uid.get(uid).cloned()) else {
            return false;
        };
        let container = place.as_ref().and_then(Place::container).unwrap_or("");
        let Some(entry) = self.pods.get_mut(&key) else {
            return false;
        };
        let own = entry
            .record
            .adopted
            .entry(container.to_owned())
            .or_default();
        own.insert(found.file().to_string(), found.value());
        entry.dirty = true;
        entry.overlay_adopted();
        if let Some(mut node) = self.wanted.remove(path) {
            node.set(found);
            self.wanted.insert(path.clone(), node);
        }
        true
    }

    /// Somebody else wrote into our files: told as events, with both values.
    pub(super) fn tell_of_repairs(&mut self, outcome: &Outcome) {
        let made_anew = |path: &CgroupPath| {
            outcome
                .repaired
                .iter()
                .any(|repaired| matches!(&repaired.op, Op::Create(made) if made == path))
        };
        for repaired in &outcome.repaired {
            // That a cgroup was removed says all about its files.
            if !matches!(repaired.op, Op::Create(_)) && made_anew(repaired.op.path()) {
                continue;
            }
            self.tell_of_repair(repaired, DriftOutcome::Repaired, &repaired.to_string());
        }
        for undone in &outcome.undone {
            let what = format!("{}: somebody changed it once more at once", undone.op);
            self.tell_of_repair(undone, DriftOutcome::Undone, &what);
        }
    }

    fn tell_of_repair(&mut self, repaired: &Repaired, outcome: DriftOutcome, what: &str) {
        let (op, path) = (&repaired.op, repaired.op.path());
        self.tell(path, Severity::Warning, "Drift", what);
        self.keep_repair(repaired, outcome);
        let now = Instant::now();
        let contest = self.drifts.contests.entry(spot(op)).or_default();
        let Some(pause) = contest.repaired(now) else {
            return;
        };
        let end = now.checked_add(pause).unwrap_or(self.next_sync);
        self.next_sync = self.next_sync.min(end);
        let message = format!(
            "{op}: somebody changes it again and again; from now on it is left for {} s",
            pause.as_secs()
        );
        self.tell(path, Severity::Warning, "DriftContested", &message);
        self.keep_repair(repaired, DriftOutcome::Contested);
    }

    fn keep_repair(&mut self, repaired: &Repaired, outcome: DriftOutcome) {
        let path = repaired.op.path();
        match &repaired.op {
            Op::Write(_, wanted) => self.keep_drift(path, *wanted, repaired.found, outcome),
            op => self.keep_told(
                path,
                (String::new(), String::new(), op.to_string()),
                outcome,
            ),
        }
    }

    fn tell_drift(
        &mut self,
        path: &CgroupPath,
        wanted: Setting,
        found: Option<Setting>,
        outcome: DriftOutcome,
    ) {
        let (reason, done) = match outcome {
            DriftOutcome::Adopted => ("DriftAdopted", "and is wanted from now on"),
            _ => ("Drift", "and is left, as driftPolicy says"),
        };
        let message = format!(
            "{} of {path} was {}, is {} {done}",
            wanted.file(),
            wanted.value(),
            found.map_or_else(String::new, |found| found.value()),
        );
        self.tell(path, Severity::Warning, reason, &message);
        self.keep_drift(path, wanted, found, outcome);
    }

    fn keep_drift(
        &mut self,
        path: &CgroupPath,
        wanted: Setting,
        found: Option<Setting>,
        outcome: DriftOutcome,
    ) {
        let found = found.map_or_else(String::new, |found| found.value());
        let drift = (wanted.file().to_string(), found, wanted.value());
        self.keep_told(path, drift, outcome);
    }

    fn keep_told(
        &mut self,
        path: &CgroupPath,
        (file, found, wanted): (String, String, String),
        outcome: DriftOutcome,
    ) {
        if outcome != DriftOutcome::Contested {
            self.tallies.drifts = self.tallies.drifts.saturating_add(1);
        }
        let (key, container) = self.owner_of(path);
        let (namespace, pod) = key.map_or_else(Default::default, |key| (key.namespace, key.name));
        self.drifts.last = self.drifts.last.saturating_add(1);
        if self.drifts.told.len() == KEPT {
            self.drifts.told.pop_front();
        }
        self.drifts.told.push_back(Drift {
            id: self.drifts.last,
            time: Timestamp::now(),
            cgroup: path.to_string(),
            namespace,
            pod,
            container,
            file,
            found,
            wanted,
            outcome,
        });
    }

    /// The pod and the container of a cgroup.
    fn owner_of(&self, path: &CgroupPath) -> (Option<PodKey>, String) {
        let place = Place::of(path);
        let uid = place.as_ref().and_then(Place::uid);
        let key = uid.and_then(|uid| self.by_uid.get(uid).cloned());
        let container = place.as_ref().and_then(Place::container).unwrap_or("");
        (key, container.to_owned())
    }

    pub(in crate::agent) fn tell(
        &mut self,
        path: &CgroupPath,
        severity: Severity,
        reason: &str,
        message: &str,
    ) {
        match self.owner_of(path) {
            (Some(key), container) => self.event(&key, &container, severity, reason, message),
            (None, _) => self.node_event(severity, reason, message),
        }
    }
}

impl PodEntry {
    /// Puts what was adopted in the place of what translation gives.
    pub(super) fn overlay_adopted(&mut self) {
        let adopted = self.record.adopted.clone();
        for (container, values) in adopted {
            let path = match container.as_str() {
                "" => Some(self.path()),
                name => self.container_path(name),
            };
            let Some(path) = path else { continue };
            let settings = values.iter().filter_map(|(file, value)| {
                let file: InterfaceFile = file.parse().ok()?;
                Setting::parse(file, value)
            });
            for setting in settings {
                overlay(&mut self.translated, &path, setting);
            }
        }
    }
}

fn overlay(translated: &mut PodTree, path: &CgroupPath, setting: Setting) {
    let Some(mut node) = translated.tree.remove(path) else {
        return;
    };
    let gives = node.get(setting.file()).filter(|gives| *gives != setting);
    node.set(setting);
    translated.tree.insert(path.clone(), node);
    let plan = translated
        .cgroups
        .iter_mut()
        .find(|plan| plan.path == *path);
    if let (Some(plan), Some(gives)) = (plan, gives) {
        plan.notes.push(Note {
            file: Some(setting.file()),
            text: format!(
                "adopted from somebody who set it, in place of {}",
                gives.value()
            ),
        });
    }
}

fn spot(op: &Op) -> Spot {
    let file = match op {
        Op::Write(_, setting) => setting.file().to_string(),
        Op::Enable(..) => "cgroup.subtree_control".to_owned(),
        _ => String::new(),
    };
    (op.path().clone(), file)
}
