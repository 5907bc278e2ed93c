//! The end of a container's run: how it ended, whether for lack of memory, and when the next begins.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::containers::LOOK_AGAIN;
use super::crash::Point;
use super::entry::{Live, Main};
use super::events::Severity;
use super::request::PodKey;
use super::run::Agent;
use crate::model::PodUid;
use crate::model::lifecycle::Termination;
use crate::model::probe::Health;
use crate::runtime::restart::{backoff, quick_ends};
use crate::runtime::{AttemptState, Exit, Lost};

impl Agent {
    /// The main process of a container may have ended: looks, and notes it if so.
    pub(super) fn exited(&mut self, uid: &PodUid, container: &str) {
        let Some(key) = self.by_uid.get(uid).cloned() else {
            return;
        };
        let Some(entry) = self.pods.get(&key) else {
            return;
        };
        let Live::Running(Main { process, since, .. }) = entry.live(container) else {
            return;
        };
        let end = if entry.is_attached(container) {
            match process.is_alive() {
                Ok(true) => return self.await_end(&key, container, Duration::ZERO),
                Ok(false) => Some(attached_termination(*since)),
                Err(error) => return self.look_again(&key, container, &error.to_string()),
            }
        } else {
            let attempt = entry.attempt(container);
            let Some(id) = self.container_id(&key, container) else {
                return;
            };
            match self.runtime.inspect(&id.attempt(attempt)) {
                Ok(AttemptState::Running(_)) => {
                    return self.await_end(&key, container, Duration::ZERO);
                }
                Ok(AttemptState::Exited(exit)) => Some(termination(exit)),
                Ok(AttemptState::Lost(lost)) => Some(lost_termination(&lost)),
                // Somebody removed its records: it begins anew.
                Ok(AttemptState::NotStarted | AttemptState::Starting) => None,
                Err(error) => return self.look_again(&key, container, &error.to_string()),
            }
        };
        match end {
            Some(end) => self.note_end(&key, container, end),
            None => {
                if let Some(entry) = self.pods.get_mut(&key) {
                    entry.live.insert(container.to_owned(), Live::Idle);
                    entry.probing.remove(container);
                }
            }
        }
        self.drive(&key);
    }

    fn look_again(&self, key: &PodKey, container: &str, why: &str) {
        tracing::error!(
            POD = key.name,
            NAMESPACE = key.namespace,
            CONTAINER = container,
            "cannot look at container {container} of {key}: {why}"
        );
        self.await_end(key, container, LOOK_AGAIN);
    }

    /// Notes the end of a container's run. OOM kills that its counters show make it `OOMKilled`.
    pub(super) fn note_end(&mut self, key: &PodKey, container: &str, mut end: Termination) {
        if self.node_end.is_some() {
            return self.note_last_end(key, container);
        }
        Self::crash_point(Point::EndSeen);
        self.look_for_oom(key);
        let Some(entry) = self.pods.get_mut(key) else {
            return;
        };
        let Some(path) = entry.container_path(container) else {
            return;
        };
        let record = entry
            .container_record(container)
            .cloned()
            .unwrap_or_default();
        let killed = record.oom_kills > record.oom_kills_before;
        // An attached process is nobody's child here, so nobody knows the signal.
        if killed
            && matches!(end.signal, Some(9) | None)
            && end.exit_code.is_none_or(|code| code == 137)
        {
            "OOMKilled".clone_into(&mut end.reason);
            end.exit_code = Some(137);
            end.signal = Some(9);
            self.main_was_killed(key, container);
        }
        let Some(entry) = self.pods.get_mut(key) else {
            return;
        };
        let text = format!(
            "container {container} ended: {}{}",
            end.reason,
            end.exit_code
                .map_or_else(String::new, |code| format!(", exit code {code}"))
        );
        // An end that was asked for is no bad news.
        let severity = if end.is_success() || entry.record.deletion.is_some() || record.restart {
            Severity::Normal
        } else {
            Severity::Warning
        };
        let attached = record.attached.is_some();
        entry.end(container, end);
        self.event(key, container, severity, "Exited", &text);
        // What the main process left behind would run beside the next one. Processes that were
        // attached belong to somebody else and stay.
        if !attached && !self.is_empty(&path) {
            self.kill(&path);
        }
    }

    /// The next run of a container, after a pause that grows with quick ends in a row.
    pub(super) fn schedule_restart(&mut self, key: &PodKey, container: &str) {
        let now = Timestamp::now();
        let Some(entry) = self.pods.get_mut(key) else {
            return;
        };
        let attached = entry.is_attached(container);
        let record = entry.change(container);
        let Some(end) = record.end.take() else {
            return;
        };
        let ran = end.started_at.map_or(SignedDuration::ZERO, |start| {
            start.duration_until(end.finished_at)
        });
        let ran = Duration::try_from(ran.max(SignedDuration::ZERO)).unwrap_or_default();
        // An end that was asked for is no reason to wait, and says nothing of the next run.
        let asked_for = std::mem::take(&mut record.restart);
        // Of itself it would have gone on, but not well.
        let unhealthy = record.unhealthy.take().is_some();
        record.health = Health::default();
        let mut pause = Duration::ZERO;
        if !asked_for || unhealthy {
            pause = backoff(record.quick_ends, ran);
            record.quick_ends = quick_ends(record.quick_ends, ran);
        }
        record.last = Some(end);
        record.attempt = record.attempt.saturating_add(1);
        record.oom_kills_before = record.oom_kills;
        if attached {
            // There is no program to start: it waits for the next process.
            record.attached = None;
            return;
        }
        let at = SignedDuration::try_from(pause)
            .ok()
            .and_then(|pause| now.checked_add(pause).ok())
            .unwrap_or(now);
        record.not_before = Some(at);
        self.tallies.restarts = self.tallies.restarts.saturating_add(1);
        if !pause.is_zero() {
            let message = format!("Back-off {pause:?} restarting container {container}");
            self.event(key, container, Severity::Warning, "BackOff", &message);
        }
        self.wake_pod(key, pause);
    }
}

pub(super) fn termination(exit: Exit) -> Termination {
    let dropped = match exit.dropped_log_bytes {
        0 => String::new(),
        bytes => format!("{bytes} bytes of output could not be logged"),
    };
    let message = [exit.message, dropped]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("; ");
    Termination {
        exit_code: Some(exit.exit_code),
        signal: exit.signal,
        reason: format!("{:?}", exit.reason),
        message,
        started_at: exit.started_at,
        finished_at: exit.finished_at,
    }
}

pub(super) fn lost_termination(lost: &Lost) -> Termination {
    Termination {
        exit_code: None,
        signal: None,
        reason: "ContainerStatusUnknown".to_owned(),
        message: lost.why.message().to_owned(),
        started_at: lost.started.as_ref().map(|started| started.started_at),
        finished_at: Timestamp::now(),
    }
}

fn attached_termination(since: Timestamp) -> Termination {
    Termination {
        exit_code: None,
        signal: None,
        reason: "Exited".to_owned(),
        message: "an attached process ended; its exit code is known to its parent alone".to_owned(),
        started_at: Some(since),
        finished_at: Timestamp::now(),
    }
}
