//! Other amounts of cpu and memory for a pod that runs: judged, made durable, enforced, or kept waiting.
//!
//! Decides when a resize is allocated and when it is done. That values are written in a safe order, and
//! memory is never taken below what is in use, is the business of `enforcement`. What the object says is
//! what the pod shall have; `record.pending` says what it has instead, `record.resizing` what it had.

mod amounts;
mod judge;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1;

use super::admit::{holder, subject};
use super::entry::{Live, PodEntry};
use super::events::Severity;
use super::record::{Pending, PodRecord};
use super::recover::readmit;
use super::refuse::{invalid, refused, unreadable};
use super::request::{Kept, PodKey, Refusal};
use super::run::Agent;
use crate::admission::resize::{Asker, Resized, infeasible, resize, restarts, shortages};
use crate::admission::{AdmittedPod, Demand, Reason};
use crate::cgroup::{InterfaceFile, Setting};
use crate::manifest::convert;
use crate::model::QosClass;
use crate::report::resize::{InForce, Resize};
use crate::store::Expect;
use crate::units::Limit;

pub use amounts::Amounts;

/// How long until a value that cannot be written yet is tried again: a quarter of the time since it was
/// wanted, within these. Each try costs the kernel a search for memory that can be reclaimed.
const TRY_AGAIN: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

impl Agent {
    /// Gives a pod other amounts, at once or as soon as there is room.
    ///
    /// # Errors
    /// Every reason against it; nothing has changed then.
    pub(super) fn resize_pod(&mut self, object: &v1::Pod, dry_run: bool) -> Result<Kept, Refusal> {
        let (key, entry) = self.kept(&object.metadata)?;
        let about = subject(&key);
        if entry.record.deletion.is_some() || entry.is_over() {
            let message = format!("pod {key} is over: its amounts do not matter any more");
            return Err(Refusal::conflict(message).about("pods", &key.name));
        }
        let mut causes = judge::unresizable(&entry.record.object, object, &self.node.name);
        let mut record = entry.record.clone();
        let new = Amounts::of(object);
        let wanted = new.put_into(&entry.record.object);
        let read = convert::pod(&wanted, entry.uid());
        if !read.problems.is_empty() {
            return Err(unreadable(&about, read.problems, &[]));
        }
        let kept = entry.desired.as_ref().unwrap_or(&entry.admitted).pod();
        let holder = holder(&key);
        let asker = Asker {
            ledger: &self.ledger,
            holder: &holder,
            exclusive: &entry.record.cpus,
            situation: self
                .ledger
                .situation(&self.node, &key.namespace, &self.limited),
        };
        let judged = resize(kept, read.object, entry.admitted.effective(), &asker);
        let Resized {
            admitted,
            shortages,
        } = match judged {
            Ok(resized) if causes.is_empty() => resized,
            judged => {
                let reasons = judged.err().unwrap_or_default();
                if causes.is_empty() {
                    return Err(refused(&about, &reasons));
                }
                causes.extend(reasons.iter().map(super::refuse::cause));
                return Err(invalid(&about, causes));
            }
        };
        let had = Amounts::of(&entry.record.allocated());
        if wanted == entry.record.object {
            let object = self.pod_object(&key)?;
            return Ok(Kept {
                object,
                warnings: Vec::new(),
            });
        }
        let warnings = shortages.iter().map(waits).collect();
        record.object = wanted;
        let generation = record.object.metadata.generation.unwrap_or(1);
        record.object.metadata.generation = Some(generation.saturating_add(1));
        if shortages.is_empty() {
            record.pending = None;
            self.note_resizing(&key, &mut record, &had, &admitted);
        } else {
            record.pending = Some(Pending {
                allocated: had.clone(),
                infeasible: false,
                message: together(&shortages),
            });
        }
        if dry_run {
            let mut object = self.pod_object(&key)?;
            if let (Some(shown), Ok(spec)) = (
                object.get_mut("spec"),
                serde_json::to_value(&record.object.spec),
            ) {
                *shown = spec;
            }
            return Ok(Kept { object, warnings });
        }
        let change = had.difference(&new);
        let revision = self.commit_record(&key, &record, Expect::Any, None)?;
        let Some(entry) = self.pods.get_mut(&key) else {
            return Err(Refusal::not_found("pods", &key.name));
        };
        entry.record = record;
        entry.revision = revision;
        if shortages.is_empty() {
            self.allocate(&key, admitted, &change);
        } else {
            entry.desired = Some(admitted);
            entry.accounted = None;
            self.waiting.insert(key.clone());
            let message = format!("{change} waits: {}", together(&shortages));
            self.event(&key, "", Severity::Warning, "ResizeDeferred", &message);
        }
        self.drive(&key);
        self.settle_all();
        let object = self.pod_object(&key)?;
        Ok(Kept { object, warnings })
    }

    /// Notes in a record what its pod had, and which containers need another run.
    fn note_resizing(
        &self,
        key: &PodKey,
        record: &mut PodRecord,
        had: &Amounts,
        admitted: &AdmittedPod,
    ) {
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        // What somebody set for the old amounts is of no use for the new ones.
        record.adopted.clear();
        match &mut record.resizing {
            // The kernel may still hold something of what was before.
            Some(before) => before.raise_to(had),
            None => record.resizing = Some(had.clone()),
        }
        for (_, _, new) in admitted.pod().all_containers() {
            let runs = *entry.live(&new.name) != Live::Idle;
            if runs
                && entry
                    .container(&new.name)
                    .is_some_and(|old| restarts(old, new))
            {
                record
                    .containers
                    .entry(new.name.clone())
                    .or_default()
                    .restart = true;
            }
        }
    }

    /// The pod takes its new amounts from now on; that is durable.
    fn allocate(&mut self, key: &PodKey, admitted: AdmittedPod, change: &str) {
        let own = self.pods.get(key).map(|entry| entry.record.cpus.clone());
        let translated = self.translate(&admitted, &own.unwrap_or_default());
        self.displace(key);
        let Some(entry) = self.pods.get_mut(key) else {
            return;
        };
        entry.admitted = admitted;
        entry.translated = translated;
        entry.restore_resize();
        entry.accounted = None;
        entry.enforced = Err("the new amounts are not applied yet".to_owned());
        self.waiting.remove(key);
        self.account(key);
        self.event(key, "", Severity::Normal, "ResizeStarted", change);
    }

    /// A resize is done once the kernel holds all of it and every container that needs another run has
    /// begun it.
    pub(super) fn mind_resize(&mut self, key: &PodKey) {
        let restart = |entry: &PodEntry| {
            let names = entry.record.containers.iter();
            names
                .filter(|(_, record)| record.restart)
                .map(|(name, _)| name.clone())
                .collect::<Vec<_>>()
        };
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        if entry.record.resizing.is_none() {
            return;
        }
        let again = restart(entry);
        if !again.is_empty() {
            self.stop_containers(key, None, |name| again.iter().any(|again| again == name));
        }
        let Some(entry) = self.pods.get_mut(key) else {
            return;
        };
        if entry.enforced.is_err() {
            let wait = entry.resizing_since().map_or(TRY_AGAIN.0, |since| {
                let passed = Timestamp::now().duration_since(since);
                let passed = Duration::try_from(passed.max(SignedDuration::ZERO));
                passed.unwrap_or_default() / 4
            });
            self.wake_pod(key, wait.clamp(TRY_AGAIN.0, TRY_AGAIN.1));
            return;
        }
        if !again.is_empty() {
            return;
        }
        let had = entry.record.resizing.take().unwrap_or_default();
        entry.before = None;
        entry.dirty = true;
        entry.accounted = None;
        let change = had.difference(&Amounts::of(&entry.record.allocated()));
        self.account(key);
        self.event(key, "", Severity::Normal, "ResizeCompleted", &change);
    }

    /// Resizes that wait, once there may be room: the most important pod first, then Guaranteed ones, then
    /// the oldest (Kubernetes 1.35).
    pub(super) fn retry_resizes(&mut self) {
        if !std::mem::take(&mut self.room) || self.waiting.is_empty() {
            return;
        }
        let mut keys: Vec<_> = self.waiting.iter().cloned().collect();
        keys.sort_by_key(|key| {
            self.pods.get(key).map(|entry| {
                let pod = entry.admitted.pod();
                let class = entry.admitted.qos() != QosClass::Guaranteed;
                (-i64::from(pod.priority), class, entry.record.started_at)
            })
        });
        for key in keys {
            self.retry_resize(&key);
        }
    }

    /// What the containers of a pod have, where that is not what the pod says.
    pub(super) fn in_force(&self, entry: &PodEntry) -> InForce {
        let mut in_force = InForce::default();
        if entry.record.pending.is_some() {
            in_force.allocated = Some(Box::new(entry.record.allocated().into_owned()));
        }
        if entry.record.resizing.is_none() {
            return in_force;
        }
        for container in &entry.admitted.effective().containers {
            let path = entry.container_path(&container.name);
            let Some(node) = path.and_then(|path| self.applied.get(&path)) else {
                continue;
            };
            let limit = container.resources.limits.memory();
            if let Some(Setting::MemoryMax(Limit::At(bytes))) = node.get(InterfaceFile::MemoryMax)
                && limit.is_some_and(|limit| self.node.page_size.floor(limit) != bytes)
            {
                in_force.memory.insert(container.name.clone(), bytes);
            }
        }
        in_force
    }

    fn retry_resize(&mut self, key: &PodKey) {
        let Some(entry) = self.pods.get(key) else {
            self.waiting.remove(key);
            return;
        };
        let Some(desired) = entry.desired.clone() else {
            self.waiting.remove(key);
            return;
        };
        if entry.record.deletion.is_some() || entry.is_over() {
            self.waiting.remove(key);
            return;
        }
        let situation = self
            .ledger
            .situation(&self.node, &key.namespace, &self.limited);
        let (wanted, has) = (desired.effective(), entry.admitted.effective());
        let short = shortages(wanted, has, &situation);
        let never = infeasible(wanted, has, &self.node);
        let mut record = entry.record.clone();
        let had = Amounts::of(&record.allocated());
        if !short.is_empty() {
            let pending = Pending {
                allocated: had,
                infeasible: !never.is_empty(),
                message: together(if never.is_empty() { &short } else { &never }),
            };
            if record.pending.as_ref() == Some(&pending) {
                return;
            }
            let turned = record
                .pending
                .as_ref()
                .is_none_or(|before| before.infeasible != pending.infeasible);
            let (infeasible, message) = (pending.infeasible, pending.message.clone());
            if let Some(entry) = self.pods.get_mut(key) {
                entry.record.pending = Some(pending);
                entry.dirty = true;
            }
            if turned && infeasible {
                self.event(key, "", Severity::Warning, "ResizeInfeasible", &message);
            }
            self.refresh_conditions(key);
            return;
        }
        record.pending = None;
        self.note_resizing(key, &mut record, &had, &desired);
        let change = had.difference(&Amounts::of(&record.object));
        // Durable before anything is written: a disk that refuses keeps it waiting.
        let Ok(revision) = self.commit_record(key, &record, Expect::Any, None) else {
            self.room = true;
            return;
        };
        if let Some(entry) = self.pods.get_mut(key) {
            entry.record = record;
            entry.revision = revision;
        }
        self.allocate(key, desired, &change);
        self.drive(key);
    }
}

impl PodEntry {
    /// What follows from the record of a resize.
    pub(super) fn restore_resize(&mut self) {
        let readmitted = |object: &v1::Pod| match readmit(object, self.uid()) {
            Ok(admitted) => Some(admitted),
            Err(why) => {
                tracing::error!("the resize of {} is not valid any more: {why}", self.key());
                None
            }
        };
        let desired = self.record.pending.is_some();
        let desired = desired.then(|| readmitted(&self.record.object)).flatten();
        let before = self.record.resizing.as_ref();
        let before = before.and_then(|before| readmitted(&before.put_into(&self.record.object)));
        self.desired = desired;
        self.before = before.map(|had| Demand::of_pod(had.pod(), had.effective()));
    }

    /// Since when a resize is in progress.
    fn resizing_since(&self) -> Option<Timestamp> {
        let mut conditions = self.record.conditions.iter();
        let found = conditions.find(|condition| condition.kind == Resize::IN_PROGRESS);
        found.map(|condition| condition.since)
    }

    /// How far a resize has come, for those who read the pod.
    pub(super) fn resize(&self) -> Option<Resize> {
        if let Some(pending) = &self.record.pending {
            return Some(Resize::Pending {
                infeasible: pending.infeasible,
                message: pending.message.clone(),
            });
        }
        self.record.resizing.as_ref()?;
        Some(Resize::InProgress {
            error: self.enforced.clone().err(),
        })
    }
}

fn waits(reason: &Reason) -> String {
    format!("the resize waits for room: {reason}")
}

fn together(reasons: &[Reason]) -> String {
    let texts: Vec<_> = reasons.iter().map(ToString::to_string).collect();
    texts.join("; ")
}
