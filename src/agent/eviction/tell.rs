//! Eviction as it is told: what would become of whom, without anything coming of it.

use super::weigh;
use crate::agent::input::Handle;
use crate::agent::request::{Refusal, Request};
use crate::agent::run::Agent;
use crate::agent::sampler;
use crate::model::eviction::Threshold;
use crate::observation::eviction::decide::Decider;
use crate::observation::eviction::facts::readings;
use crate::observation::eviction::rank::{PodUse, rank};
use crate::observation::eviction::{Reading, State, amount};
use crate::observation::pressure::{Places, facts};
use crate::report::eviction::{
    EvictionReport, Order, SignalRow, SparedRow, ThresholdRow, VictimRow,
};
use crate::report::stats::Readings;
use crate::report::stats::summary::Disk as Walked;

/// What the owner tells of eviction; the figures are read by the asker.
#[derive(Debug)]
pub struct Parts {
    decider: Decider,
    pods: Vec<PodUse>,
    ending: Option<String>,
    notes: Vec<String>,
    places: Places,
    limit: Option<u64>,
}

impl Agent {
    /// What an asker needs to tell who would go.
    pub(in crate::agent) fn eviction(&self) -> Parts {
        let evictor = &self.evictor;
        Parts {
            decider: evictor.decider.clone(),
            pods: self.standing(),
            ending: evictor.victim.as_ref().map(|(key, _)| key.to_string()),
            notes: evictor.notes().chain(evictor.faults()).collect(),
            places: self.signal_places(),
            limit: self.pods_limit(),
        }
    }

    /// Where the figures of signals are.
    pub(in crate::agent) fn signal_places(&self) -> Places {
        Places {
            pods: self.config.cgroup_root.clone(),
            files: self.config.state_dir.clone(),
            logs: self.config.pod_logs_dir.clone(),
        }
    }
}

impl Handle {
    /// What the node has left now, and which pods would go.
    ///
    /// # Errors
    /// The owner is stopping.
    pub async fn eviction(&self) -> Result<EvictionReport, Refusal> {
        let parts = self.ask(Request::Eviction).await?;
        let readings = self.readings(false).await?;
        let disk = self.disk(&readings).await?;
        sampler::apart(move || report(*parts, &readings, &disk)).await
    }
}

fn report(parts: Parts, figures: &Readings, walked: &Walked) -> EvictionReport {
    let Parts {
        mut decider,
        mut pods,
        ending,
        mut notes,
        places,
        limit,
    } = parts;
    let mut facts = facts(&places);
    facts.pods = facts.pods.filter(|pods| Some(pods.limit) == limit);
    let (at, disks) = (facts.at, facts.disks.clone());
    decider.see(readings(&facts), at);
    for fault in decider.faults(at) {
        if !notes.contains(&fault) {
            notes.push(fault);
        }
    }
    weigh::fill(
        &mut pods,
        &figures.census,
        &figures.later,
        Some((walked, &disks)),
    );
    EvictionReport {
        time: jiff::Timestamp::now(),
        conditions: decider
            .conditions(at)
            .iter()
            .map(ToString::to_string)
            .collect(),
        ending,
        notes,
        signals: signals(&decider, at),
        orders: orders(&decider, &pods),
    }
}

fn signals(decider: &Decider, now: std::time::Duration) -> Vec<SignalRow> {
    let rows = decider.readings().iter().map(|reading| {
        let (state, why) = match &reading.state {
            State::Known(_) => ("known", None),
            State::Unknown(why) => ("unknown", Some(why.clone())),
            State::Absent(why) => ("absent", Some(why.clone())),
        };
        let figures = reading.figures();
        let thresholds = decider.settings().thresholds.iter();
        let thresholds = thresholds.filter(|it| it.signal == reading.signal);
        SignalRow {
            signal: reading.signal.to_string(),
            path: reading.place.clone(),
            state: state.to_owned(),
            why,
            available: figures.map(|figures| figures.available),
            capacity: figures.map(|figures| figures.capacity),
            decided_by: figures.map(|figures| figures.decides.clone()),
            others: figures
                .map(|figures| figures.others.iter().cloned().collect())
                .unwrap_or_default(),
            thresholds: thresholds
                .map(|it| threshold(it, reading, decider, now))
                .collect(),
        }
    });
    rows.collect()
}

fn threshold(
    it: &Threshold,
    reading: &Reading,
    decider: &Decider,
    now: std::time::Duration,
) -> ThresholdRow {
    let since = decider.met(it, &reading.place);
    let reclaim = reading
        .figures()
        .map(|figures| amount(it.reclaim, figures.capacity));
    ThresholdRow {
        kind: if it.grace.is_some() { "soft" } else { "hard" }.to_owned(),
        setting: it.least.to_string(),
        amount: reading.least(it),
        minimum_reclaim: reclaim.filter(|more| *more > 0),
        grace_seconds: it.grace.map(|grace| grace.as_secs()),
        met: since.is_some(),
        met_seconds: since.map(|since| now.saturating_sub(since).as_secs()),
    }
}

/// One order for all signals that count the same on the same file system.
fn orders(decider: &Decider, pods: &[PodUse]) -> Vec<Order> {
    let mut orders: Vec<Order> = Vec::new();
    for reading in decider.readings() {
        let mut thresholds = decider.settings().thresholds.iter();
        if reading.figures().is_none() || !thresholds.any(|it| it.signal == reading.signal) {
            continue;
        }
        let resource = reading.signal.starved().to_string();
        let name = reading.signal.to_string();
        let same = |order: &&mut Order| order.resource == resource && order.path == reading.place;
        if let Some(order) = orders.iter_mut().find(same) {
            order.signals.push(name);
            continue;
        }
        let missing = decider.missing(reading);
        let ranking = rank(reading.signal, &reading.place, pods, missing);
        let victims = ranking.order.iter().map(|ranked| VictimRow {
            namespace: ranked.pod.namespace.clone(),
            name: ranked.pod.name.clone(),
            uid: ranked.pod.uid.clone(),
            qos: ranked.pod.qos.to_string(),
            priority: ranked.pod.priority,
            frees: ranked.used,
            request: ranked.request,
            why: ranked.why(reading.signal),
        });
        let spared = ranking.spared.iter().map(|(pod, why)| SparedRow {
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            why: why.clone(),
        });
        orders.push(Order {
            signals: vec![name],
            resource,
            path: reading.place.clone(),
            pods: victims.collect(),
            spared: spared.collect(),
        });
    }
    orders
}
