//! In which order pods would go, and what each would give back.
//!
//! The order is Kubernetes', with one unit for each signal: pods above their request first, then by
//! priority, then by how much they are above it. What differs: critical pods and pods that would give
//! nothing back never go, and those that would give back next to nothing go last.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

use super::quantity;
use crate::model::QosClass;
use crate::model::eviction::{Signal, Starved};

/// A pod that gives back less than one part in so many of what is missing ends for nothing.
const WORTH: u64 = 16;

/// What a pod uses and asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodUse {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its class.
    pub qos: QosClass,
    /// Its priority.
    pub priority: i32,
    /// Why it never goes, if so.
    pub spared: Option<String>,
    /// The whole pod.
    pub whole: Use,
    /// Its containers by name.
    pub containers: Vec<(String, Use)>,
}

/// What a pod or a container uses. What is not known is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Use {
    /// Bytes of memory that would come back with its end: page cache that can go anyway is left out.
    pub memory: Option<u64>,
    /// Bytes of memory asked for.
    pub memory_request: u64,
    /// Tasks.
    pub tasks: Option<u64>,
    /// Disk by file system; one that is not in here could not be looked at.
    pub disk: BTreeMap<String, DiskUse>,
    /// Bytes of disk asked for.
    pub disk_request: u64,
}

/// Disk in use on one file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskUse {
    /// Bytes.
    pub bytes: u64,
    /// Inodes.
    pub inodes: u64,
}

impl Use {
    /// What it uses of what a signal counts.
    pub fn of(&self, signal: Signal, place: &str) -> Option<u64> {
        match signal.starved() {
            Starved::Memory => self.memory,
            Starved::Disk => self.disk.get(place).map(|disk| disk.bytes),
            Starved::Inodes => self.disk.get(place).map(|disk| disk.inodes),
            Starved::Pids => self.tasks,
        }
    }

    /// What it asked for of that; nobody can ask for inodes or tasks.
    pub fn request(&self, signal: Signal) -> Option<u64> {
        match signal.starved() {
            Starved::Memory => Some(self.memory_request),
            Starved::Disk => Some(self.disk_request),
            Starved::Inodes | Starved::Pids => None,
        }
    }
}

/// A pod in its place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranked<'a> {
    /// The pod.
    pub pod: &'a PodUse,
    /// What it uses, all of which would come back.
    pub used: u64,
    /// What it asked for, where that can be asked for.
    pub request: Option<u64>,
    /// Whether its end would help.
    pub is_worth_it: bool,
}

/// Who would go in which order, and who would not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranking<'a> {
    /// The first goes first.
    pub order: Vec<Ranked<'a>>,
    /// The others, each with the reason.
    pub spared: Vec<(&'a PodUse, String)>,
}

/// The order for a signal of which `missing` must come back; 0 where nothing is missing.
pub fn rank<'a>(signal: Signal, place: &str, pods: &'a [PodUse], missing: u64) -> Ranking<'a> {
    let mut ranking = Ranking::default();
    for pod in pods {
        let spare = |why: &str| (pod, why.to_owned());
        if let Some(why) = &pod.spared {
            ranking.spared.push(spare(why));
            continue;
        }
        match pod.whole.of(signal, place) {
            None => ranking.spared.push(spare("what it uses is not known")),
            Some(0) => ranking.spared.push(spare("would give nothing back")),
            Some(used) => ranking.order.push(Ranked {
                pod,
                used,
                request: pod.whole.request(signal),
                is_worth_it: used >= least_worth(signal) && used.saturating_mul(WORTH) >= missing,
            }),
        }
    }
    ranking.order.sort_by_key(|ranked| {
        let exceeds = ranked.request.is_none_or(|request| ranked.used > request);
        (
            !ranked.is_worth_it,
            !exceeds,
            ranked.pod.priority,
            Reverse(ranked.above()),
            // Equal ones in an order that is the same every time.
            (&ranked.pod.namespace, &ranked.pod.name),
        )
    });
    ranking
}

/// Less than this helps nobody, whatever is missing.
fn least_worth(signal: Signal) -> u64 {
    match signal.starved() {
        Starved::Memory | Starved::Disk => 1 << 20,
        Starved::Inodes => 16,
        Starved::Pids => 1,
    }
}

impl Ranked<'_> {
    /// How much it is above its request; below it, less than nothing.
    fn above(&self) -> i128 {
        i128::from(self.used).saturating_sub(self.request.unwrap_or(0).into())
    }

    /// Why it has its place, in a few words.
    pub fn why(&self, signal: Signal) -> String {
        let above = |amount: i128| quantity(signal, u64::try_from(amount).unwrap_or(0));
        let place = match (signal.starved(), self.request) {
            (Starved::Pids, _) | (_, None) => "by priority, then by use".to_owned(),
            (_, Some(0)) => "asked for nothing".to_owned(),
            (_, Some(_)) if self.above() > 0 => {
                format!("{} above its request", above(self.above()))
            }
            (_, Some(_)) => "within its request".to_owned(),
        };
        if self.is_worth_it {
            place
        } else {
            format!("{place}; gives back too little")
        }
    }

    /// What an evicted pod is told, in the kubelet's words: what there is too little of, how much must be
    /// and how much was left, and which containers used more than they asked for.
    pub fn message(&self, signal: Signal, place: &str, least: u64, available: u64) -> String {
        let starved = signal.starved();
        let shown = |amount| quantity(signal, amount);
        let mut message = format!(
            "The node was low on resource: {starved}. Threshold quantity: {}, available: {}. ",
            shown(least),
            shown(available)
        );
        for (name, container) in &self.pod.containers {
            if let (Some(used), Some(request)) =
                (container.of(signal, place), container.request(signal))
                && used > request
            {
                let _ = write!(
                    message,
                    "Container {name} was using {}, request is {}, has larger consumption of {starved}. ",
                    shown(used),
                    shown(request)
                );
            }
        }
        if self.request.is_none() {
            let _ = write!(
                message,
                "The pod was using {} {starved}. ",
                shown(self.used)
            );
        }
        message
    }
}

#[cfg(test)]
mod tests;
