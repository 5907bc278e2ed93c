//! The end of a pod: SIGTERM, its grace period, SIGKILL, last counters, cgroups, files, record.
//!
//! Each step is taken from what is so, never from what was done before, so a crash at any instant only
//! repeats a step.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use super::admit::holder;
use super::crash::Point;
use super::ending::Terms;
use super::events::Severity;
use super::input::Input;
use super::record::{Active, Deletion};
use super::request::{PodKey, Refusal};
use super::run::{Agent, RETRY, STORE_RETRY, store_key};
use super::since::uptime_millis;
use crate::cgroup::{CgroupPath, ErrorKind, Op};
use crate::model::PodUid;
use crate::store::{Change, Expect};

/// No grace period is longer (seconds): a day.
pub(super) const MAX_GRACE: u64 = 86_400;

impl Agent {
    /// Begins the end of a pod; a second call can only shorten the grace period.
    pub(super) fn delete_pod(
        &mut self,
        key: &PodKey,
        grace_seconds: Option<u64>,
        uid: Option<&str>,
        dry_run: bool,
    ) -> Result<Value, Refusal> {
        let Some(entry) = self.pods.get(key) else {
            return Err(Refusal::not_found("pods", &key.name));
        };
        if let Some(uid) = uid
            && uid != entry.uid().as_str()
        {
            let message = format!(
                "pod {key} has uid {}, not {uid}: it is another pod of that name",
                entry.uid()
            );
            return Err(Refusal::conflict(message).about("pods", &key.name));
        }
        self.refuse_if_static(key)?;
        if dry_run {
            return self.pod_object(key);
        }
        self.begin_deletion(key, grace_seconds)
    }

    /// The same, whatever the pod is.
    pub(super) fn begin_deletion(
        &mut self,
        key: &PodKey,
        grace_seconds: Option<u64>,
    ) -> Result<Value, Refusal> {
        let Some(entry) = self.pods.get_mut(key) else {
            return Err(Refusal::not_found("pods", &key.name));
        };
        let grace = grace_seconds
            .unwrap_or(entry.admitted.pod().termination_grace_seconds)
            .min(MAX_GRACE);
        let deletion = &mut entry.record.deletion;
        let deletion = deletion.get_or_insert_with(|| Deletion::now(grace));
        if grace < deletion.grace_seconds {
            deletion.grace_seconds = grace;
        }
        entry.dirty = true;
        self.settle_all();
        let answer = self.pod_object(key);
        self.drive(key);
        answer
    }

    /// A pod that has had the time it was given is over.
    pub(super) fn check_deadline(&mut self, key: &PodKey) {
        let Some(entry) = self.pods.get_mut(key) else {
            return;
        };
        let Some(seconds) = entry.admitted.pod().active_deadline_seconds else {
            return;
        };
        if entry.record.deletion.is_some() || entry.is_over() {
            return;
        }
        let uptime = uptime_millis();
        let record = &mut entry.record;
        let active = record.active.take();
        let active = active.filter(|active| active.boot_id == self.system.boot_id);
        let active = active.unwrap_or_else(|| {
            entry.dirty = true;
            Active::begin(record.started_at, &self.system.boot_id, uptime)
        });
        let left = active.left(seconds, uptime);
        record.active = Some(active);
        if !left.is_zero() {
            self.wake_pod(key, left);
            return;
        }
        // The kubelet's words.
        let (reason, message) = (
            "DeadlineExceeded",
            "Pod was active on the node longer than the specified deadline",
        );
        entry.record.ended = Some((reason.to_owned(), message.to_owned()));
        entry.dirty = true;
        self.event(key, "", Severity::Normal, reason, message);
    }

    /// Ends a pod because the node can no longer bear it; `grace_seconds` are at most what its processes
    /// have between SIGTERM and SIGKILL. The pod stays, as failed, until somebody deletes it. Whether it
    /// was not over already.
    pub(super) fn evict(&mut self, key: &PodKey, message: &str, grace_seconds: u64) -> bool {
        let Some(entry) = self.pods.get_mut(key) else {
            return false;
        };
        if entry.record.deletion.is_some() || entry.is_over() {
            return false;
        }
        // The kubelet's word.
        let reason = "Evicted";
        entry.record.ended = Some((reason.to_owned(), message.to_owned()));
        entry.record.ended_grace = Some(grace_seconds);
        entry.dirty = true;
        self.event(key, "", Severity::Warning, reason, message);
        // Durable before the first process ends: otherwise a crash in between would start it again.
        self.settle_all();
        self.drive(key);
        true
    }

    /// Takes the next step towards the end of a pod that is being deleted.
    pub(super) fn drive_deletion(&mut self, key: &PodKey, deletion: Deletion) {
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        if entry.clearing {
            return;
        }
        let path = entry.path();
        if entry.is_active() {
            self.stop_containers(key, Some(deletion), |_| true);
            return;
        }
        if !self.is_empty(&path) {
            self.kill(&path);
            self.wake_pod(key, RETRY);
            return;
        }
        if self.clear_cgroups(key) {
            Self::crash_point(Point::CgroupsRemoved);
            self.clear_files(key);
        }
    }

    /// A pod that is over keeps its record and its logs, and nothing in the kernel.
    pub(super) fn wind_up(&mut self, key: &PodKey) {
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        if entry.is_active() {
            self.stop_containers(key, None, |_| true);
        } else {
            self.clear_cgroups(key);
        }
    }

    /// Removes the cgroups of a pod. Whether they are gone; if not, the pod is looked at again.
    fn clear_cgroups(&mut self, key: &PodKey) -> bool {
        let Some(entry) = self.pods.get(key) else {
            return false;
        };
        let (path, placed) = (entry.path(), entry.placed);
        if placed {
            self.look_for_oom(key);
            self.displace(key);
        }
        if placed || !self.is_gone(&path) {
            self.enforce(&path);
        }
        let gone = self.is_gone(&path);
        if !gone {
            self.wake_pod(key, RETRY);
        }
        gone
    }

    /// Takes the next step towards the end of the containers that are meant: `preStop`, then SIGTERM, then
    /// SIGKILL to the container when its time is over: that of the deletion, or since the beginning the
    /// pod's own or its probe's, shortened by an eviction. A container that is just being started has its
    /// turn when it runs.
    pub(super) fn stop_containers(
        &mut self,
        key: &PodKey,
        deletion: Option<Deletion>,
        which: impl Fn(&str) -> bool,
    ) {
        let Some(entry) = self.pods.get_mut(key) else {
            return;
        };
        let end = self.node_end.as_mut();
        let until = end.as_ref().map(|end| end.until(entry));
        let terms: BTreeMap<_, _> = entry
            .container_names()
            .map(|name| (name.to_owned(), Terms::of(entry, name, deletion, until)))
            .collect();
        let now = Instant::now();
        let (mut begun, mut told, mut late) = (Vec::new(), Vec::new(), Vec::new());
        let mut next = None::<Duration>;
        for (name, main) in entry.mains().filter(|(name, _)| which(name)) {
            let Some(terms) = terms.get(name) else {
                continue;
            };
            let step = terms.step(&mut main.ending, now);
            if step.begins {
                begun.push((name.to_owned(), step.hook));
            }
            if step.tells {
                told.push((name.to_owned(), main.process.clone()));
            }
            if step.kills {
                late.push(name.to_owned());
            }
            let wait = step.wait.max(RETRY);
            next = Some(next.map_or(wait, |next| next.min(wait)));
        }
        if let Some(end) = end {
            end.note(key, begun.len(), &late);
        }
        for (container, hook) in begun {
            let why = self.pods.get_mut(key).and_then(|entry| {
                entry.probing.remove(&container);
                entry.unhealthy(&container).map(|own| own.why.clone())
            });
            let message = why.unwrap_or_else(|| format!("Stopping container {container}"));
            self.event(key, &container, Severity::Normal, "Killing", &message);
            if let Some(time) = hook {
                self.begin_pre_stop(key, &container, time);
            }
        }
        for (container, process) in told {
            if let Err(error) = process.signal(Signal::TERM) {
                tracing::warn!(
                    POD = key.name,
                    NAMESPACE = key.namespace,
                    CONTAINER = container,
                    "cannot stop container {container} of {key}: {error}"
                );
            }
        }
        for container in late {
            let path = self
                .pods
                .get(key)
                .and_then(|e| e.container_path(&container));
            if let Some(path) = path {
                tracing::info!(
                    POD = key.name,
                    NAMESPACE = key.namespace,
                    CONTAINER = container,
                    "container {container} of {key} gets SIGKILL"
                );
                self.kill(&path);
            }
        }
        if let Some(next) = next {
            self.wake_pod(key, next);
        }
    }

    /// Whether no process lives in the cgroup or below.
    pub(super) fn is_empty(&mut self, path: &CgroupPath) -> bool {
        match self.kernel.counters(path) {
            Ok(counters) => counters.populated != Some(true),
            Err(error) => error.kind == ErrorKind::Gone,
        }
    }

    /// Whether there is no such cgroup.
    fn is_gone(&mut self, path: &CgroupPath) -> bool {
        matches!(self.kernel.look(path), Ok(None))
    }

    pub(super) fn kill(&mut self, path: &CgroupPath) {
        if let Err(error) = self.kernel.perform(&Op::Kill(path.clone()))
            && error.kind != ErrorKind::Gone
        {
            self.tallies.failures = self.tallies.failures.saturating_add(1);
            tracing::error!("{error}");
        }
    }

    /// Removes the pod's files on a thread of their own: a large scratch directory takes time.
    fn clear_files(&mut self, key: &PodKey) {
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        let uid = entry.uid().clone();
        // Any container's name leads to the pod's directories.
        let first = entry.container_names().next();
        let Some(id) = first.and_then(|name| self.container_id(key, name)) else {
            return;
        };
        if let Some(entry) = self.pods.get_mut(key) {
            entry.clearing = true;
        }
        self.handle.walks().forget(uid.as_str());
        let (runtime, handle) = (self.runtime.clone(), self.handle.clone());
        let projects: Vec<_> = self
            .pods
            .get(key)
            .into_iter()
            .flat_map(|entry| entry.record.projects.values().copied())
            .collect();
        self.tokio.spawn_blocking(move || {
            let result = runtime
                .remove_pod(&id)
                .and_then(|()| runtime.remove_logs(&id))
                .map(|()| runtime.forget_projects(projects.into_iter()))
                .map_err(|error| error.to_string());
            handle.tell(Input::Cleared { uid, result })
        });
    }

    /// The pod's files are gone: nothing is left of it but its record, which goes last.
    pub(super) fn cleared(&mut self, uid: &PodUid, result: Result<(), String>) {
        let Some(key) = self.by_uid.get(uid).cloned() else {
            return;
        };
        if let Err(why) = result {
            self.event(&key, "", Severity::Warning, "CleanupFailed", &why);
            if let Some(entry) = self.pods.get_mut(&key) {
                entry.clearing = false;
            }
            self.wake_pod(&key, Duration::from_secs(5));
            return;
        }
        let change = Change::Delete(store_key(&key), Expect::Any);
        if self.commit(vec![change]).is_err() {
            if let Some(entry) = self.pods.get_mut(&key) {
                entry.clearing = false;
            }
            self.wake_pod(&key, STORE_RETRY);
            return;
        }
        if let Some(entry) = self.pods.remove(&key) {
            self.projects.free(entry.record.projects.into_values());
            if let Some(at) = entry.wake {
                self.wakes.remove(&(at, key.clone()));
            }
        }
        self.by_uid.remove(uid);
        self.ledger.release(&holder(&key));
        self.waiting.remove(&key);
        self.room = true;
        self.count_cpus();
        self.publish_accounts();
        tracing::info!(
            POD = key.name,
            NAMESPACE = key.namespace,
            "pod {key} is gone"
        );
        self.end_namespace(&key.namespace);
    }
}
