//! Eviction: what was seen of the node becomes conditions, and where it must, the end of a pod.
//!
//! Decides nothing of when and who, which `observation::eviction` does; here its steps are taken. What
//! takes time, reading what pods use and removing files, is done on other threads.

mod admit;
mod free;
mod tell;
mod weigh;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::events::Severity;
use super::input::Input;
use super::request::{PodKey, Refusal};
use super::run::Agent;
use crate::cgroup::{CgroupPath, InterfaceFile, Setting};
use crate::model::PodUid;
use crate::model::eviction::{Eviction, Pressure, Starved};
use crate::model::lifecycle::Condition;
use crate::observation::eviction::decide::{Decider, Need, Step};
use crate::observation::eviction::facts::{Disk, Facts, readings};
use crate::observation::eviction::rank::{PodUse, rank};
use crate::observation::machine::uptime;
use crate::report::node::pressure;
use crate::report::pod::DISRUPTION_TARGET;
use crate::units::Limit;

pub use tell::Parts as EvictionParts;

/// What concerns eviction, on its way to the owner.
#[derive(Debug)]
pub enum News {
    /// What the node has left.
    Seen(Facts),
    /// What pods use, read because of this need.
    Weighed(Need, Vec<PodUse>),
    /// Pods that are over hold nothing more, but for these, for which that could not be done.
    Freed(Vec<(PodUid, String)>),
}

/// What the owner knows of eviction.
#[derive(Debug)]
pub(super) struct Evictor {
    decider: Decider,
    /// The conditions of the node as they are told.
    conditions: Vec<Condition>,
    /// What was told to be unknown.
    faults: Vec<String>,
    /// Why stalls are not told by the kernel, if so.
    slow: Option<String>,
    disks: Vec<Disk>,
    /// Something is under way on another thread.
    busy: bool,
    victim: Option<(PodKey, PodUid)>,
    /// Pods that are over and hold nothing more: of memory, or of disk.
    freed: BTreeSet<(bool, PodUid)>,
    /// That nobody can go is told once for as long as it is so.
    told_nobody: bool,
    /// When a condition ends.
    pub(super) next: Option<Instant>,
}

impl Evictor {
    pub(super) fn new(settings: Eviction) -> Self {
        let now = jiff::Timestamp::now();
        Self {
            decider: Decider::new(settings),
            conditions: Pressure::ALL.map(|it| pressure(it, false, now)).to_vec(),
            faults: Vec::new(),
            slow: None,
            disks: Vec::new(),
            busy: false,
            victim: None,
            freed: BTreeSet::new(),
            told_nobody: false,
            next: None,
        }
    }

    /// Decides by other settings from now on, and by what is seen from now on.
    pub(super) fn set(&mut self, settings: Eviction) {
        self.decider = Decider::new(settings);
    }

    /// The conditions of the node.
    pub(super) fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// What is unknown and should not be.
    pub(super) fn faults(&self) -> Vec<String> {
        self.decider.faults(uptime())
    }

    /// What this machine lacks.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let slow = self.slow.as_ref();
        slow.map(|why| format!("stalls for memory are seen later than they could be: {why}"))
            .into_iter()
    }

    /// Whether a condition is so.
    fn is_pressed(&self, pressure: Pressure) -> bool {
        let kind = pressure.to_string();
        self.conditions
            .iter()
            .any(|it| it.kind == kind && it.status)
    }
}

impl Agent {
    /// Takes what concerns eviction.
    pub(super) fn take_news(&mut self, news: News) {
        match news {
            News::Seen(mut facts) => {
                let limit = self.pods_limit();
                // What somebody else wrote there is put right, and is no shortage of memory.
                facts.pods = facts.pods.filter(|pods| Some(pods.limit) == limit);
                self.evictor.slow.clone_from(&facts.slow);
                self.evictor.decider.see(readings(&facts), facts.at);
                self.evictor.disks = facts.disks;
                self.evictor.told_nobody &= self.evictor.decider.is_met();
                self.tell_of_faults();
            }
            News::Weighed(need, pods) => {
                self.evictor.busy = false;
                self.choose(&need, &pods);
            }
            News::Freed(failed) => {
                self.evictor.busy = false;
                for (uid, why) in failed {
                    tracing::warn!("pod {uid}, which is over, still holds what it held: {why}");
                }
                self.evictor.decider.gone(uptime());
            }
        }
        self.mind_eviction();
    }

    /// The limit of all pods as it shall be (bytes).
    fn pods_limit(&self) -> Option<u64> {
        let top = self.wanted.get(&CgroupPath::top())?;
        match top.get(InterfaceFile::MemoryMax) {
            Some(Setting::MemoryMax(Limit::At(limit))) => {
                Some(self.kernel.page_size().floor(limit).0)
            }
            _ => None,
        }
    }

    /// Does what is due by now.
    pub(super) fn mind_eviction(&mut self) {
        let now = uptime();
        self.look_for_victims_end(now);
        self.tell_conditions(now);
        if self.evictor.busy {
            return;
        }
        match self.evictor.decider.step(now) {
            Step::Rest => {}
            Step::Hurry => self.hurry(),
            Step::Choose(need) => self.weigh(need),
        }
    }

    /// A victim whose last process has ended gives way to the next look.
    fn look_for_victims_end(&mut self, now: Duration) {
        let Some((key, uid)) = &self.evictor.victim else {
            return;
        };
        let entry = self.pods.get(key).filter(|entry| entry.uid() == uid);
        let is_gone = entry.is_none_or(|entry| !entry.is_active() && !entry.placed);
        if is_gone {
            tracing::info!(
                POD = key.name,
                NAMESPACE = key.namespace,
                "evicted pod {key} is gone"
            );
            self.evictor.decider.gone(now);
        }
        if is_gone || !self.evictor.decider.is_waiting(now) {
            self.evictor.victim = None;
        }
    }

    /// Finds out what pods use. What pods that are over still hold goes first.
    fn weigh(&mut self, need: Need) {
        let handle = self.handle.clone();
        let of_disk = matches!(need.signal.starved(), Starved::Disk | Starved::Inodes);
        self.evictor.busy = true;
        if self.free(need.signal.starved()) {
            return;
        }
        let (mut pods, census, disks) =
            (self.standing(), self.census(), self.evictor.disks.clone());
        self.tokio.spawn_blocking(move || {
            weigh::weigh(
                &mut pods,
                &census,
                handle.walks(),
                of_disk.then_some(&disks),
            );
            handle.tell(Input::Eviction(Box::new(News::Weighed(need, pods))))
        });
    }

    /// Ends the first pod of the order, if that is still needed.
    fn choose(&mut self, need: &Need, pods: &[PodUse]) {
        let now = uptime();
        let Some(need) = self.evictor.decider.still(need, now) else {
            return;
        };
        let starved = need.signal.starved();
        let attempt = format!("Attempting to reclaim {starved}");
        let ranking = rank(need.signal, &need.place, pods, need.missing);
        for ranked in &ranking.order {
            let key = PodKey::new(&ranked.pod.namespace, &ranked.pod.name);
            let message = ranked.message(need.signal, &need.place, need.least, need.available);
            // It may have ended, or be another one of that name, since it was looked at.
            let Some(uid) = self.target(&key, &ranked.pod.uid, &message) else {
                continue;
            };
            self.node_event(Severity::Warning, "EvictionThresholdMet", &attempt);
            if self.evict(&key, &message, need.grace_seconds) {
                let count = self.tallies.evictions.entry(need.signal.to_string());
                let count = count.or_default();
                *count = count.saturating_add(1);
                self.evictor.decider.chosen(need.soft, now);
                self.evictor.victim = Some((key, uid));
                return;
            }
        }
        self.evictor.decider.nobody(now);
        if !std::mem::replace(&mut self.evictor.told_nobody, true) {
            self.node_event(Severity::Warning, "EvictionThresholdMet", &attempt);
            tracing::warn!("{} is met and no pod can be evicted for it", need.signal);
        }
    }

    /// Ends a pod because somebody says so, critical or not.
    pub(super) fn evict_by_hand(
        &mut self,
        key: &PodKey,
        grace_seconds: Option<u64>,
    ) -> Result<(), Refusal> {
        let entry = self.pods.get(key);
        let entry = entry.ok_or_else(|| Refusal::not_found("pods", &key.name))?;
        let own = entry.admitted.pod().termination_grace_seconds;
        self.refuse_if_static(key)?;
        if self.evict(
            key,
            "The pod was evicted by hand. ",
            grace_seconds.unwrap_or(own),
        ) {
            return Ok(());
        }
        let message = format!("pod {key} is over or being deleted already");
        Err(Refusal::conflict(message).about("pods", &key.name))
    }

    /// Marks a pod as about to be ended, in the kubelet's words, unless it is over or another one.
    fn target(&mut self, key: &PodKey, uid: &str, message: &str) -> Option<PodUid> {
        let entry = self.pods.get_mut(key)?;
        let uid = Some(entry.uid().clone()).filter(|own| own.as_str() == uid)?;
        if entry.record.deletion.is_some() || entry.is_over() {
            return None;
        }
        let conditions = &mut entry.record.conditions;
        conditions.retain(|condition| condition.kind != DISRUPTION_TARGET);
        conditions.push(Condition {
            kind: DISRUPTION_TARGET.to_owned(),
            status: true,
            reason: "TerminationByKubelet".to_owned(),
            message: message.to_owned(),
            since: jiff::Timestamp::now(),
        });
        Some(uid)
    }

    /// The pod that is ending has had its time.
    fn hurry(&mut self) {
        let Some((key, _)) = self.evictor.victim.clone() else {
            return;
        };
        if let Some(entry) = self.pods.get_mut(&key) {
            entry.record.ended_grace = entry.record.ended_grace.map(|grace| grace.min(1));
            entry.dirty = true;
        }
        tracing::info!(
            POD = key.name,
            NAMESPACE = key.namespace,
            "a hard threshold is met while evicted pod {key} is ending: it is hurried"
        );
        self.drive(&key);
    }

    fn tell_of_faults(&mut self) {
        let faults = self.evictor.faults();
        let before = std::mem::replace(&mut self.evictor.faults, faults.clone());
        for fault in faults.iter().filter(|fault| !before.contains(fault)) {
            self.node_event(Severity::Warning, "EvictionSignalUnknown", fault);
        }
    }

    /// Makes the node's conditions what they are now.
    fn tell_conditions(&mut self, now: Duration) {
        let held = self.evictor.decider.conditions(now);
        let ends_in = self
            .evictor
            .decider
            .next_end(now)
            .map(|end| end.saturating_sub(now));
        self.evictor.next = ends_in.and_then(|wait| Instant::now().checked_add(wait));
        let mut changed = false;
        for (place, kind) in Pressure::ALL.into_iter().enumerate() {
            let status = held.contains(&kind);
            let Some(told) = self.evictor.conditions.get_mut(place) else {
                continue;
            };
            if told.status == status {
                continue;
            }
            *told = pressure(kind, status, jiff::Timestamp::now());
            changed = true;
            let reason = told.reason.replacen("Kubelet", "Node", 1);
            let message = format!("Node {} status is now: {reason}", self.node.name);
            self.node_event(Severity::Normal, &reason, &message);
        }
        if changed {
            // To its readers it is another node, of the revision in which the event is durable.
            self.node_told.0 = 0;
            self.settle_all();
        }
    }
}
