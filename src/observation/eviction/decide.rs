//! When a pod has to go: thresholds over time.
//!
//! Decides which threshold is acted on and when the next pod may be chosen; which pod that is, `rank`
//! does. One pod goes, then nothing happens until it is gone, and then only a newer look counts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Reading, State};
use crate::model::eviction::{Eviction, Pressure, Signal, Starved, Threshold};

/// Signals that are older than this are unknown: three times the longest pause between two looks.
pub const STALE: Duration = Duration::from_secs(30);
/// No pod goes for what was seen longer ago than this.
const FRESH: Duration = Duration::from_millis(2500);
/// After this time a victim that is still there does not hold up the next one.
pub const WAIT: Duration = Duration::from_secs(30);
/// Where nobody can go, this is how long until it is looked at again.
const REST: Duration = Duration::from_secs(5);

/// What has been seen, and what is under way. All times are on one clock that is never set.
#[derive(Clone, Debug)]
pub struct Decider {
    settings: Eviction,
    readings: Vec<Reading>,
    /// When they were read.
    at: Option<Duration>,
    /// Why the last look counts for nothing, if so.
    fault: Option<String>,
    /// Since when each threshold, by its index, has been met on each file system.
    met: BTreeMap<(usize, String), Duration>,
    /// When each condition was last so.
    pressed: BTreeMap<Pressure, Duration>,
    victim: Option<Victim>,
    /// What was seen before this is not acted on.
    not_before: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Victim {
    since: Duration,
    /// It was left time by a soft threshold.
    soft: bool,
}

/// A threshold to act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Of what there is too little.
    pub signal: Signal,
    /// On which file system.
    pub place: String,
    /// How much must be left.
    pub least: u64,
    /// How much is left.
    pub available: u64,
    /// How much must come back, the minimum reclaim included.
    pub missing: u64,
    /// The most seconds that the pod has to end.
    pub grace_seconds: u64,
    /// Whether it is a soft threshold.
    pub soft: bool,
}

/// What is to be done now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing.
    Rest,
    /// Find out who goes.
    Choose(Need),
    /// The pod that is ending has had its time: a hard threshold is met by now.
    Hurry,
}

impl Decider {
    /// Nothing has been seen yet.
    pub fn new(settings: Eviction) -> Self {
        Self {
            settings,
            readings: Vec::new(),
            at: None,
            fault: None,
            met: BTreeMap::new(),
            pressed: BTreeMap::new(),
            victim: None,
            not_before: Duration::ZERO,
        }
    }

    /// The settings.
    pub fn settings(&self) -> &Eviction {
        &self.settings
    }

    /// What was seen last.
    pub fn readings(&self) -> &[Reading] {
        &self.readings
    }

    /// Takes what was seen at a time.
    pub fn see(&mut self, readings: Vec<Reading>, at: Duration) {
        if let Some(before) = self.at
            && at <= before
        {
            self.fault = Some(format!(
                "signals of {} ms before those seen last came after them",
                before.saturating_sub(at).as_millis()
            ));
            return;
        }
        self.fault = None;
        let mut met = BTreeMap::new();
        for (index, threshold) in self.settings.thresholds.iter().enumerate() {
            for reading in &readings {
                let key = (index, reading.place.clone());
                let since = self.met.get(&key);
                if reading.signal == threshold.signal
                    && reading.meets(threshold, since.is_some()) == Some(true)
                {
                    met.insert(key, since.copied().unwrap_or(at));
                    self.pressed.insert(threshold.signal.pressure(), at);
                }
            }
        }
        self.met = met;
        self.readings = readings;
        self.at = Some(at);
    }

    /// Whether any threshold is met.
    pub fn is_met(&self) -> bool {
        !self.met.is_empty()
    }

    /// Since when a threshold has been met on a file system, if it is.
    pub fn met(&self, threshold: &Threshold, place: &str) -> Option<Duration> {
        let index = self
            .settings
            .thresholds
            .iter()
            .position(|it| it == threshold)?;
        self.met.get(&(index, place.to_owned())).copied()
    }

    /// The conditions that are so now, those included whose cause has not been away for long enough.
    pub fn conditions(&self, now: Duration) -> BTreeSet<Pressure> {
        let held = self.pressed.iter().filter(|(pressure, at)| {
            now.saturating_sub(**at) < self.settings.transition
                || self.causes().any(|cause| cause == **pressure)
        });
        held.map(|(pressure, _)| *pressure).collect()
    }

    /// When the next condition ends, unless it is met again before.
    pub fn next_end(&self, now: Duration) -> Option<Duration> {
        let held = self.conditions(now);
        let ended = |pressure: &Pressure| self.causes().all(|cause| cause != *pressure);
        let ends = self
            .pressed
            .iter()
            .filter(|(pressure, _)| held.contains(pressure) && ended(pressure));
        ends.map(|(_, at)| at.saturating_add(self.settings.transition))
            .min()
    }

    fn causes(&self) -> impl Iterator<Item = Pressure> {
        let thresholds = self
            .met
            .keys()
            .filter_map(|(index, _)| self.settings.thresholds.get(*index));
        thresholds.map(|threshold| threshold.signal.pressure())
    }

    /// What is wrong with the signals that have a threshold, each in one sentence.
    pub fn faults(&self, now: Duration) -> Vec<String> {
        let Some(at) = self.at else {
            return Vec::new();
        };
        let age = now.saturating_sub(at);
        if age > STALE {
            return vec![format!(
                "all signals of eviction are unknown: the last look was {} s ago",
                age.as_secs()
            )];
        }
        if let Some(fault) = &self.fault {
            return vec![format!("all signals of eviction are unknown: {fault}")];
        }
        let watched = |signal| {
            self.settings
                .thresholds
                .iter()
                .any(|it| it.signal == signal)
        };
        let faults = self
            .readings
            .iter()
            .filter_map(|reading| match &reading.state {
                State::Unknown(why) if watched(reading.signal) => Some(format!(
                    "{} is unknown, so no pod is evicted for it: {why}",
                    reading.signal
                )),
                _ => None,
            });
        faults.collect()
    }

    /// What is to be done now.
    pub fn step(&mut self, now: Duration) -> Step {
        if let Some(victim) = self.victim {
            if now.saturating_sub(victim.since) < WAIT {
                let is_hard = |need: Need| !need.soft;
                if victim.soft && self.need(now).is_some_and(is_hard) {
                    self.victim = Some(Victim {
                        soft: false,
                        ..victim
                    });
                    return Step::Hurry;
                }
                return Step::Rest;
            }
            self.victim = None;
        }
        self.need(now).map_or(Step::Rest, Step::Choose)
    }

    /// The first threshold that is to be acted on by what was just seen.
    fn need(&self, now: Duration) -> Option<Need> {
        let at = self
            .at
            .filter(|at| self.fault.is_none() && *at >= self.not_before)?;
        if now.saturating_sub(at) > FRESH {
            return None;
        }
        let due = self.met.iter().filter_map(|((index, place), since)| {
            let threshold = self.settings.thresholds.get(*index)?;
            let grace = threshold.grace.unwrap_or_default();
            let is_due = at.saturating_sub(*since) >= grace;
            is_due.then_some((threshold, place.as_str()))
        });
        // In the order of the thresholds: memory first, and hard before soft.
        let mut due = due.filter_map(|(threshold, place)| self.need_of(threshold, place));
        let first = due.next()?;
        // A soft one does not go before a hard one, unless memory is at stake: that is what kills.
        let ours = first.signal.starved();
        let goes_before = |need: &Need| {
            first.soft && !need.soft && (ours != Starved::Memory || need.signal.starved() == ours)
        };
        let hard = due.find(goes_before);
        Some(hard.unwrap_or(first))
    }

    fn need_of(&self, threshold: &Threshold, place: &str) -> Option<Need> {
        let mut readings = self.readings.iter();
        let reading = readings.find(|it| it.signal == threshold.signal && it.place == place)?;
        let (figures, least) = (reading.figures()?, reading.least(threshold)?);
        let enough = least.saturating_add(super::amount(threshold.reclaim, figures.capacity));
        let soft = threshold.grace.is_some();
        Some(Need {
            signal: threshold.signal,
            place: place.to_owned(),
            least,
            available: figures.available,
            missing: enough.saturating_sub(figures.available),
            // The kubelet's: enough for a program that ends at once.
            grace_seconds: if soft {
                self.settings.max_pod_grace_seconds
            } else {
                1
            },
            soft,
        })
    }

    /// How much of what a reading counts must come back by the threshold that asks for most; 0 where none
    /// is met.
    pub fn missing(&self, reading: &Reading) -> u64 {
        let met = self.met.keys().filter(|(_, place)| *place == reading.place);
        let met = met.filter_map(|(index, _)| self.settings.thresholds.get(*index));
        let needs = met
            .filter(|it| it.signal == reading.signal)
            .filter_map(|it| self.need_of(it, &reading.place));
        needs.map(|need| need.missing).max().unwrap_or(0)
    }

    /// The need as it is now, if it is still one after its order was found out.
    pub fn still(&mut self, need: &Need, now: Duration) -> Option<Need> {
        match self.step(now) {
            Step::Choose(again) if (again.signal, &again.place) == (need.signal, &need.place) => {
                Some(again)
            }
            _ => None,
        }
    }

    /// A pod is being ended.
    pub fn chosen(&mut self, soft: bool, now: Duration) {
        self.victim = Some(Victim { since: now, soft });
    }

    /// The pod is gone: only what is seen from now on counts.
    pub fn gone(&mut self, now: Duration) {
        self.victim = None;
        self.not_before = now;
    }

    /// Nobody can go.
    pub fn nobody(&mut self, now: Duration) {
        self.not_before = now.saturating_add(REST);
    }

    /// Whether the end of a pod is awaited.
    pub fn is_waiting(&self, now: Duration) -> bool {
        self.victim
            .is_some_and(|victim| now.saturating_sub(victim.since) < WAIT)
    }
}

#[cfg(test)]
mod tests;
