//! Containers: started, seen to end, started again.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use super::crash::Point;
use super::ends::{lost_termination, termination};
use super::entry::{Live, Main};
use super::events::Severity;
use super::input::Input;
use super::lifecycle::{Step, steps};
use super::record::Attached;
use super::request::PodKey;
use super::run::{Agent, RETRY, STORE_RETRY};
use crate::model::{Container, PodUid};
use crate::runtime::{
    AttemptId, AttemptState, ContainerId, ContainerSpec, ProcessId, Running, RuntimeError,
};

/// How long a container waits that could not be started.
const START_RETRY: Duration = Duration::from_secs(10);

/// How long until a process is looked at again that could not be looked at.
pub(super) const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Agent {
    /// Takes every step that is due for a pod: its cgroups, its containers, its end.
    pub(super) fn drive(&mut self, key: &PodKey) {
        if self.node_end.is_some() {
            return self.end_with_node(key);
        }
        self.check_deadline(key);
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        if let Some(deletion) = entry.record.deletion {
            self.drive_deletion(key, deletion);
        } else if entry.is_over() {
            self.wind_up(key);
        } else {
            self.go_on(key);
        }
        self.guard_storage(key);
        self.refresh_conditions(key);
        self.account(key);
    }

    /// What is due in a pod that goes on.
    fn go_on(&mut self, key: &PodKey) {
        let changed = self.place(key);
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        let path = entry.path();
        if changed || entry.enforced.is_err() {
            self.enforce(&path);
        }
        self.mind_resize(key);
        self.mind_unhealthy(key);
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        let policy = entry.admitted.pod().restart_policy;
        for step in steps(&entry.candidates(), policy, Timestamp::now()) {
            match step {
                Step::Start(container) => self.start(key, &container),
                Step::Again(container) => self.schedule_restart(key, &container),
                Step::Wake(at) => {
                    let wait = Timestamp::now()
                        .duration_until(at)
                        .max(SignedDuration::ZERO);
                    self.wake_pod(key, Duration::try_from(wait).unwrap_or_default());
                }
            }
        }
    }

    /// Starts the present run of a container, on a thread of its own.
    fn start(&mut self, key: &PodKey, container: &str) {
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        let Some(spec) = self.spec(key, container) else {
            return;
        };
        let uid = entry.uid().clone();
        let attempt = spec.id.attempt;
        let name = container.to_owned();
        if !self.may_start(key, container, &spec.id) {
            return;
        }
        if let Some(entry) = self.pods.get_mut(key) {
            entry.live.insert(name.clone(), Live::Starting);
        }
        let runtime = self.runtime.clone();
        let handle = self.handle.clone();
        self.tokio.spawn_blocking(move || {
            let result = runtime.start(&spec);
            // Earlier runs keep their log once, for `logs --previous`.
            if let Err(error) = runtime.prune(&spec.id.container, attempt.saturating_sub(1)) {
                tracing::warn!("cannot remove old runs of {name}: {error}");
            }
            handle.tell(Input::Started {
                uid,
                container: name,
                attempt,
                result,
            })
        });
    }

    /// Whether a run may begin. If not, the pod is looked at again.
    fn may_start(&mut self, key: &PodKey, container: &str, id: &AttemptId) -> bool {
        let path = self
            .pods
            .get(key)
            .and_then(|entry| entry.container_path(container));
        let there = path.filter(|path| matches!(self.kernel.look(path), Ok(Some(_))));
        let Some(path) = there else {
            // Nothing runs outside its cgroup; the condition says what is wrong with that.
            self.wake_pod(key, START_RETRY);
            return false;
        };
        // What the run before left behind dies first. Once this run has begun, what is there is its.
        if matches!(self.runtime.inspect(id), Ok(AttemptState::NotStarted)) && !self.is_empty(&path)
        {
            self.kill(&path);
            self.wake_pod(key, RETRY);
            return false;
        }
        // After a crash the number of this run must be known, or it would be taken for what the run
        // before left behind.
        self.settle_all();
        if self.pods.get(key).is_none_or(|entry| entry.dirty) {
            self.wake_pod(key, STORE_RETRY);
            return false;
        }
        true
    }

    /// What the runtime is asked to run.
    fn spec(&self, key: &PodKey, container: &str) -> Option<ContainerSpec> {
        let entry = self.pods.get(key)?;
        let Container {
            command,
            args,
            env,
            working_dir,
            security,
            ..
        } = entry.container(container)?;
        let cgroup = entry.container_path(container)?;
        let score = entry
            .translated
            .oom_scores
            .iter()
            .find(|(name, _)| name == container)
            .map_or(0, |(_, score)| *score);
        Some(ContainerSpec {
            id: self
                .container_id(key, container)?
                .attempt(entry.attempt(container)),
            argv: command.iter().chain(args).cloned().collect(),
            env: env.clone(),
            working_dir: working_dir.as_ref().map(Into::into),
            cgroup: Some(self.config.cgroup_root.join(cgroup.as_str())),
            oom_score_adj: i16::try_from(score).unwrap_or(0),
            volumes: self.volume_specs(&entry.admitted),
            mounts: Self::mount_specs(entry, container),
            projects: self.project_specs(entry),
            security: security.clone(),
            log: self.log_bounds(),
        })
    }

    /// The runtime's name of a container.
    pub(super) fn container_id(&self, key: &PodKey, container: &str) -> Option<ContainerId> {
        let uid = self.pods.get(key)?.uid();
        match ContainerId::new(&key.namespace, &key.name, uid.clone(), container) {
            Ok(id) => Some(id),
            Err(error) => {
                tracing::error!("{error}");
                None
            }
        }
    }

    /// A start was carried out.
    pub(super) fn started(
        &mut self,
        uid: &PodUid,
        container: &str,
        attempt: u32,
        result: Result<AttemptState, RuntimeError>,
    ) {
        Self::crash_point(Point::ProcessStarted);
        let Some(key) = self.by_uid.get(uid).cloned() else {
            return;
        };
        let Some(entry) = self.pods.get_mut(&key) else {
            return;
        };
        if entry.attempt(container) != attempt {
            return;
        }
        match result {
            Ok(AttemptState::Running(running)) => {
                self.note_running(&key, container, running);
                self.event(
                    &key,
                    container,
                    Severity::Normal,
                    "Started",
                    &format!("Started container {container}"),
                );
            }
            Ok(AttemptState::Exited(exit)) => self.note_end(&key, container, termination(exit)),
            Ok(AttemptState::Lost(lost)) => self.note_end(&key, container, lost_termination(&lost)),
            Ok(AttemptState::NotStarted | AttemptState::Starting) => {
                self.retry_start(&key, container, "the process is not running yet");
            }
            Err(error) => self.retry_start(&key, container, &error.to_string()),
        }
        self.drive(&key);
    }

    fn retry_start(&mut self, key: &PodKey, container: &str, why: &str) {
        let message = format!("cannot start container {container}: {why}");
        self.event(key, container, Severity::Warning, "FailedStart", &message);
        if let Some(entry) = self.pods.get_mut(key) {
            entry.live.insert(container.to_owned(), Live::Idle);
            let pause = SignedDuration::try_from(START_RETRY).unwrap_or(SignedDuration::ZERO);
            entry.change(container).not_before = Timestamp::now().checked_add(pause).ok();
        }
    }

    /// A container's process runs: from now on its end is awaited.
    pub(super) fn note_running(&mut self, key: &PodKey, container: &str, running: Running) {
        let Some(entry) = self.pods.get_mut(key) else {
            return;
        };
        entry.change(container).not_before = None;
        self.note_main(key, container, running.process, running.started_at);
    }

    /// An attached process is in its container: from now on its end is awaited.
    pub(super) fn note_attached(&mut self, key: &PodKey, container: &str, attached: &Attached) {
        self.note_main(key, container, attached.process(), attached.since);
    }

    fn note_main(&mut self, key: &PodKey, container: &str, process: ProcessId, since: Timestamp) {
        let Some(entry) = self.pods.get_mut(key) else {
            return;
        };
        // Kills that an earlier agent told of, and died before it knew whether this was the victim.
        let suspected = entry
            .container_record(container)
            .is_some_and(|record| record.oom_kills > record.oom_kills_before)
            .then(Instant::now);
        let main = Main {
            process,
            since,
            ending: None,
            suspected,
        };
        entry.live.insert(container.to_owned(), Live::Running(main));
        if suspected.is_some() {
            self.wake_pod(key, Duration::ZERO);
        }
        self.await_end(key, container, Duration::ZERO);
        self.begin_probing(key, container);
    }

    /// Sends `Exited` once a container's main process may have ended. That is a hint to look, so it
    /// may come too often, but it must come: after `pause`, if waiting fails.
    pub(super) fn await_end(&self, key: &PodKey, container: &str, pause: Duration) {
        let (Some(entry), Some(id)) = (self.pods.get(key), self.container_id(key, container))
        else {
            return;
        };
        let Live::Running(Main { process, .. }) = entry.live(container) else {
            return;
        };
        let process = process.clone();
        let attempt = (!entry.is_attached(container)).then(|| id.attempt(entry.attempt(container)));
        let (runtime, handle) = (self.runtime.clone(), self.handle.clone());
        let (uid, container) = (entry.uid().clone(), container.to_owned());
        self.tokio.spawn(async move {
            tokio::time::sleep(pause).await;
            let waited = match &attempt {
                Some(attempt) => runtime
                    .wait(attempt)
                    .await
                    .map(drop)
                    .map_err(|e| e.to_string()),
                None => process.ended().await.map_err(|e| e.to_string()),
            };
            if let Err(error) = waited {
                tracing::warn!("cannot wait for process {}: {error}", process.pid);
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            handle.tell(Input::Exited { uid, container })
        });
    }
}
