//! Probes and hooks, as far as they are the owner's: who is looked after, and what follows from what is
//! told.
//!
//! Looking itself is the work of `prober`, on tasks of its own: here nothing waits and nothing is counted.

mod act;
mod prober;

use std::sync::Arc;
use std::time::Duration;

use tokio::task::AbortHandle;

use super::ending::HookStage;
use super::entry::Live;
use super::events::Severity;
use super::input::Input;
use super::record::Unhealthy;
use super::request::PodKey;
use super::run::Agent;
use crate::model::PodUid;
use crate::model::pod::{ContainerKind, RestartPolicy};
use crate::model::probe::ProbeKind;
use act::Actor;
pub(super) use act::Limits;
use prober::Prober;

/// What is told of the present run of a container.
#[derive(Debug)]
pub struct ProbeNews {
    /// The pod.
    pub(super) uid: PodUid,
    /// The container.
    pub(super) container: String,
    /// The run.
    pub(super) attempt: u32,
    /// What.
    pub(super) told: Told,
}

/// What is told.
#[derive(Debug)]
pub(super) enum Told {
    /// `postStart` has ended.
    Hooked(Result<(), String>),
    /// A probe has come to another verdict.
    Verdict {
        kind: ProbeKind,
        success: bool,
        message: String,
    },
    /// A look failed, and others in a row before it did not.
    Failing { kind: ProbeKind, message: String },
    /// `preStop` has ended.
    Stopped(Result<(), String>),
}

/// A container that is looked after; dropped, it is no longer.
#[derive(Debug)]
pub(super) struct Probing(AbortHandle);

impl Drop for Probing {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Agent {
    /// From now on a container that runs is looked after, where it asks for that.
    pub(super) fn begin_probing(&mut self, key: &PodKey, container: &str) {
        if self.node_end.is_some() {
            return;
        }
        let Some(actor) = self.actor(key, container) else {
            return;
        };
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        let (Live::Running(main), Some(own)) = (entry.live(container), entry.container(container))
        else {
            return;
        };
        if !own.probes.is_needed() {
            return;
        }
        let prober = Prober {
            actor,
            probes: own.probes.clone(),
            health: entry.health(container),
            since: main.since,
            process: main.process.clone(),
        };
        let task = self.tokio.spawn(prober.look_after());
        if let Some(entry) = self.pods.get_mut(key) {
            let probing = Probing(task.abort_handle());
            entry.probing.insert(container.to_owned(), probing);
        }
    }

    /// Who acts on the present run of a container.
    fn actor(&self, key: &PodKey, container: &str) -> Option<Actor> {
        let entry = self.pods.get(key)?;
        Some(Actor {
            id: self
                .container_id(key, container)?
                .attempt(entry.attempt(container)),
            uid: entry.uid().clone(),
            container: container.to_owned(),
            runtime: self.runtime.clone(),
            handle: self.handle.clone(),
            limits: Arc::clone(&self.acting),
        })
    }

    /// Begins a container's `preStop`, which has so long.
    pub(super) fn begin_pre_stop(&mut self, key: &PodKey, container: &str, time: Duration) {
        let entry = self.pods.get(key);
        let hook = entry.and_then(|entry| entry.container(container)?.probes.pre_stop.clone());
        if let (Some(hook), Some(actor)) = (hook, self.actor(key, container)) {
            self.tokio.spawn(async move {
                let done = actor.hook(&hook, time).await;
                actor.tell(Told::Stopped(done));
            });
        }
    }

    /// Takes what is told of a container, if that is still the same run.
    pub(super) fn take_probe_news(&mut self, news: ProbeNews) {
        let ProbeNews {
            uid,
            container,
            attempt,
            told,
        } = news;
        let Some(key) = self.by_uid.get(&uid).cloned() else {
            return;
        };
        let Some(entry) = self.pods.get_mut(&key) else {
            return;
        };
        if entry.attempt(&container) != attempt {
            return;
        }
        let Live::Running(main) = entry.live(&container) else {
            return;
        };
        let is_ending = main.ending.is_some();
        match told {
            Told::Stopped(done) => {
                if let Some(ending) = entry.ending(&container) {
                    ending.hook = HookStage::Over { ran: true };
                }
                if let Err(why) = done {
                    let message = format!("PreStopHook failed: {why}");
                    self.event(
                        &key,
                        &container,
                        Severity::Warning,
                        "FailedPreStopHook",
                        &message,
                    );
                }
            }
            // What ends is not looked after any more; this was on its way.
            _ if is_ending => return,
            Told::Hooked(Ok(())) => entry.change(&container).health.hooked = true,
            Told::Hooked(Err(why)) => {
                let message = format!("PostStartHook failed: {why}");
                let reason = "FailedPostStartHook";
                self.event(&key, &container, Severity::Warning, reason, &message);
                self.condemn(&key, &container, "failed its postStart hook", None);
            }
            Told::Failing { kind, message } => {
                self.tell_unhealthy(&key, &container, kind, &message);
            }
            Told::Verdict {
                kind,
                success,
                message,
            } => self.judge(&key, &container, kind, success, &message),
        }
        self.drive(&key);
    }

    fn judge(
        &mut self,
        key: &PodKey,
        container: &str,
        kind: ProbeKind,
        success: bool,
        message: &str,
    ) {
        if !success {
            self.tell_unhealthy(key, container, kind, message);
        }
        let Some(entry) = self.pods.get_mut(key) else {
            return;
        };
        match (kind, success) {
            (ProbeKind::Readiness, ready) => entry.change(container).health.ready = ready,
            (ProbeKind::Startup, true) => entry.change(container).health.started = true,
            (ProbeKind::Liveness, true) => {}
            (ProbeKind::Startup | ProbeKind::Liveness, false) => {
                let own = entry.container(container);
                let grace = own.and_then(|own| own.probes.probe(kind)?.grace_seconds);
                let why = format!("failed {} probe", kind.to_string().to_lowercase());
                self.condemn(key, container, &why, grace);
            }
        }
    }

    fn tell_unhealthy(&mut self, key: &PodKey, container: &str, kind: ProbeKind, message: &str) {
        let message = format!("{kind} probe {message}");
        self.event(key, container, Severity::Warning, "Unhealthy", &message);
    }

    /// The present run of a container shall end; another begins unless the pod never restarts any.
    fn condemn(&mut self, key: &PodKey, container: &str, why: &str, grace_seconds: Option<u64>) {
        let Some(entry) = self.pods.get_mut(key) else {
            return;
        };
        let is_sidecar = entry
            .container(container)
            .is_some_and(|own| own.kind == ContainerKind::Sidecar);
        let policy = entry.admitted.pod().restart_policy;
        let again = is_sidecar || policy != RestartPolicy::Never;
        let then = if again { ", will be restarted" } else { "" };
        let record = entry.change(container);
        record.restart |= again;
        record.unhealthy = Some(Unhealthy {
            why: format!("Container {container} {why}{then}"),
            grace_seconds,
        });
    }

    /// Ends the runs that shall end for what their probes or hooks said.
    pub(super) fn mind_unhealthy(&mut self, key: &PodKey) {
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        let unhealthy: Vec<_> = entry
            .container_names()
            .filter(|name| matches!(entry.live(name), Live::Running(_)))
            .filter(|name| entry.unhealthy(name).is_some())
            .map(str::to_owned)
            .collect();
        if !unhealthy.is_empty() {
            // Durable first, while the disk takes it: the next agent must not take this for an end of its own.
            self.settle_all();
            self.stop_containers(key, None, |name| unhealthy.iter().any(|own| own == name));
        }
    }
}

impl Actor {
    fn tell(&self, told: Told) -> bool {
        self.handle.tell(Input::Probes(Box::new(ProbeNews {
            uid: self.uid.clone(),
            container: self.container.clone(),
            attempt: self.id.attempt,
            told,
        })))
    }
}
