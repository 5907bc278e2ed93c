//! The life of a pod and its containers, as plain data and as pure decisions.
//!
//! Decides a pod's phase from its containers; it starts and stops nothing.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::pod::{ContainerKind, RestartPolicy};

/// How a container ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Termination {
    /// The exit code, 128 + signal for a process that a signal ended. `None`: not known, as for an
    /// attached process, which is nobody's child here.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// One word: `Completed`, `Error`, `OOMKilled` …
    pub reason: String,
    /// More, where there is more to say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When it started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Timestamp,
}

impl Termination {
    /// Ended well.
    pub fn is_success(&self) -> bool {
        self.exit_code == Some(0)
    }
}

/// What a container does now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContainerState {
    /// Not running, but it will.
    Waiting {
        /// One word, such as `PodInitializing` or `CrashLoopBackOff`.
        reason: &'static str,
        /// More to say.
        message: String,
    },
    /// Its main process lives.
    Running {
        /// The main process.
        pid: i32,
        /// Since when.
        since: Timestamp,
    },
    /// It ended and does not start again.
    Terminated(Termination),
}

/// A container and its past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerStatus {
    /// Its name.
    pub name: String,
    /// The part it plays.
    pub kind: ContainerKind,
    /// The image it names.
    pub image: String,
    /// What it does now.
    pub state: ContainerState,
    /// How it ended the last time.
    pub last: Option<Termination>,
    /// How often it was started anew.
    pub restart_count: u32,
    /// Processes of it that OOM kills took, over all its restarts.
    pub oom_kills: u64,
    /// As long as it runs: its hook and its startup probe have said yes.
    pub started: bool,
    /// As long as it runs: its readiness probe says yes, too.
    pub ready: bool,
}

impl ContainerStatus {
    /// Whether it is one of the pod's own containers and has run, now or before.
    pub fn has_started(&self) -> bool {
        self.kind == ContainerKind::App
            && (self.last.is_some() || !matches!(self.state, ContainerState::Waiting { .. }))
    }

    /// Whether it lets the pod's own containers begin: a sidecar that has started, or an init container that
    /// did its work.
    pub fn has_prepared(&self) -> bool {
        match (&self.state, self.kind) {
            (ContainerState::Running { .. }, ContainerKind::Sidecar) => self.started,
            _ => self.is_ready(),
        }
    }

    /// Whether it counts as ready: running, or an init container that did its work.
    pub fn is_ready(&self) -> bool {
        match (&self.state, self.kind) {
            (ContainerState::Running { .. }, ContainerKind::App | ContainerKind::Sidecar) => {
                self.ready
            }
            (ContainerState::Terminated(end), ContainerKind::Init) => end.is_success(),
            _ => false,
        }
    }
}

/// Where a pod is in its life (`status.phase`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodPhase {
    /// Accepted, but not all containers have started.
    Pending,
    /// At least one container runs or is about to run again.
    Running,
    /// All containers ended well and none starts again.
    Succeeded,
    /// All containers ended, at least one of them badly.
    Failed,
}

impl PodPhase {
    /// Whether the pod is over and holds nothing any more.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }

    /// The phase that follows from the containers (kubelet `getPhase`, Kubernetes 1.36).
    pub fn of(containers: &[ContainerStatus], policy: RestartPolicy) -> Self {
        let mut ended = Vec::new();
        let mut any_running = false;
        let mut any_waiting = false;
        for container in containers {
            match (&container.state, container.kind) {
                (ContainerState::Terminated(end), ContainerKind::Init) => {
                    if !end.is_success() && policy == RestartPolicy::Never {
                        return Self::Failed;
                    }
                    if !end.is_success() {
                        return Self::Pending;
                    }
                }
                (_, ContainerKind::Init) => return Self::Pending,
                (_, ContainerKind::Sidecar) => {}
                (ContainerState::Running { .. }, ContainerKind::App) => any_running = true,
                (ContainerState::Waiting { .. }, ContainerKind::App) => {
                    // One that has run before is between two runs, which counts as running.
                    if container.last.is_some() {
                        any_running = true;
                    } else {
                        any_waiting = true;
                    }
                }
                (ContainerState::Terminated(end), ContainerKind::App) => ended.push(end),
            }
        }
        let well = ended.iter().all(|end| end.is_success());
        if any_waiting {
            Self::Pending
        } else if any_running || ended.is_empty() || policy == RestartPolicy::Always {
            // What has ended under this policy is about to run again.
            Self::Running
        } else if well {
            Self::Succeeded
        } else if policy == RestartPolicy::OnFailure {
            Self::Running
        } else {
            Self::Failed
        }
    }
}

impl fmt::Display for PodPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        })
    }
}

/// Something that is so or not so of a pod or a node (`status.conditions`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Its type, such as `Ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it is so.
    pub status: bool,
    /// One word why.
    pub reason: String,
    /// More to say.
    pub message: String,
    /// Since when.
    pub since: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container(kind: ContainerKind, state: ContainerState) -> ContainerStatus {
        ContainerStatus {
            name: "c".to_owned(),
            kind,
            image: String::new(),
            state,
            last: None,
            restart_count: 0,
            oom_kills: 0,
            started: true,
            ready: true,
        }
    }

    fn ended(code: i32) -> ContainerState {
        ContainerState::Terminated(Termination {
            exit_code: Some(code),
            signal: None,
            reason: String::new(),
            message: String::new(),
            started_at: None,
            finished_at: Timestamp::UNIX_EPOCH,
        })
    }

    const WAITING: ContainerState = ContainerState::Waiting {
        reason: "ContainerCreating",
        message: String::new(),
    };
    const RUNNING: ContainerState = ContainerState::Running {
        pid: 1,
        since: Timestamp::UNIX_EPOCH,
    };

    #[test]
    fn a_sidecar_need_not_be_ready_for_the_others_to_begin() {
        use ContainerKind::{App, Init, Sidecar};
        for (kind, state, started, ready, expected) in [
            (Sidecar, RUNNING, true, false, (true, false)),
            (Sidecar, RUNNING, false, false, (false, false)),
            (Sidecar, WAITING, true, true, (false, false)),
            (Init, ended(0), false, false, (true, true)),
            (Init, ended(1), true, true, (false, false)),
            (App, RUNNING, true, true, (true, true)),
        ] {
            let mut one = container(kind, state);
            one.started = started;
            one.ready = ready;
            assert_eq!((one.has_prepared(), one.is_ready()), expected, "{one:?}");
        }
    }

    #[test]
    fn the_phase_follows_from_the_containers() {
        use ContainerKind::{App, Init, Sidecar};
        use PodPhase::{Failed, Pending, Running, Succeeded};
        use RestartPolicy::{Always, Never, OnFailure};
        for (containers, policy, expected) in [
            (vec![(App, WAITING)], Always, Pending),
            (vec![(App, RUNNING), (App, WAITING)], Always, Pending),
            (vec![(App, RUNNING), (App, ended(1))], Never, Running),
            (vec![(App, ended(0)), (App, ended(0))], Never, Succeeded),
            (vec![(App, ended(0)), (App, ended(1))], Never, Failed),
            (vec![(Init, RUNNING), (App, WAITING)], Always, Pending),
            (vec![(Init, ended(1)), (App, WAITING)], Never, Failed),
            (vec![(Init, ended(1)), (App, WAITING)], Always, Pending),
            (vec![(Init, ended(0)), (App, RUNNING)], Always, Running),
            (vec![(Sidecar, RUNNING), (App, ended(0))], Never, Succeeded),
            (vec![(App, ended(0))], Always, Running),
            (vec![(App, ended(1))], OnFailure, Running),
            (vec![(App, ended(0))], OnFailure, Succeeded),
        ] {
            let list: Vec<_> = containers
                .into_iter()
                .map(|(kind, state)| container(kind, state))
                .collect();
            assert_eq!(PodPhase::of(&list, policy), expected, "{list:#?}");
        }
        let mut again = container(App, WAITING);
        again.last = match ended(1) {
            ContainerState::Terminated(end) => Some(end),
            _ => None,
        };
        assert_eq!(PodPhase::of(&[again], Always), Running);
    }
}
