//! A pod as Kubernetes' clients know it: the stored object with a status made from what is so now.

use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::resize::{InForce, Resize};
use crate::model::lifecycle::{Condition, ContainerState, ContainerStatus, PodPhase, Termination};
use crate::model::{ContainerKind, QosClass};

/// The condition of a pod that is ended for the node's sake; it stays.
pub const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// The condition that says whether the kernel holds what is wanted.
pub const ENFORCED: &str = "allotd.dev/Enforced";

/// What is so of a pod now.
#[derive(Clone, Debug)]
pub struct PodFacts {
    /// Its phase.
    pub phase: PodPhase,
    /// Its class.
    pub qos: QosClass,
    /// Why the agent ended it, if it did: reason and message.
    pub ended: Option<(String, String)>,
    /// When it was admitted.
    pub started_at: jiff::Timestamp,
    /// When its deletion was asked for, and the seconds it has.
    pub deletion: Option<(jiff::Timestamp, u64)>,
    /// What is so or not so.
    pub conditions: Vec<Condition>,
    /// Its containers in the order they start.
    pub containers: Vec<ContainerStatus>,
    /// The store's revision of its last change.
    pub revision: u64,
    /// The node's name.
    pub node: String,
    /// What its containers have.
    pub in_force: InForce,
}

/// The object with its status.
pub fn with_status(object: &v1::Pod, facts: &PodFacts) -> v1::Pod {
    let mut pod = object.clone();
    pod.metadata.resource_version = Some(facts.revision.to_string());
    if let Some((at, grace)) = facts.deletion {
        // Kubernetes' timestamp is that of the end of the grace period.
        let grace = i64::try_from(grace).unwrap_or(i64::MAX);
        let end = at
            .checked_add(jiff::SignedDuration::from_secs(grace))
            .unwrap_or(at);
        pod.metadata.deletion_timestamp = Some(Time(end));
        pod.metadata.deletion_grace_period_seconds = Some(grace);
    }
    if let Some(spec) = pod.spec.as_mut() {
        spec.node_name = Some(facts.node.clone());
    }
    let (init, app): (Vec<_>, Vec<_>) = facts
        .containers
        .iter()
        .partition(|container| container.kind != ContainerKind::App);
    let statuses = |list: Vec<&ContainerStatus>| {
        let filled = |container| {
            let mut status = container_status(container);
            facts.in_force.fill(object, &mut status);
            status
        };
        let list: Vec<_> = list.into_iter().map(filled).collect();
        (!list.is_empty()).then_some(list)
    };
    let (reason, message) = match &facts.ended {
        Some((reason, message)) => (Some(reason.clone()), Some(message.clone())),
        None => (None, None),
    };
    pod.status = Some(v1::PodStatus {
        phase: Some(facts.phase.to_string()),
        reason,
        message,
        qos_class: Some(facts.qos.to_string()),
        observed_generation: object.metadata.generation,
        start_time: Some(Time(facts.started_at)),
        conditions: Some(facts.conditions.iter().map(condition).collect()),
        init_container_statuses: statuses(init),
        container_statuses: statuses(app),
        ..v1::PodStatus::default()
    });
    pod
}

fn condition(condition: &Condition) -> v1::PodCondition {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    v1::PodCondition {
        type_: condition.kind.clone(),
        status: if condition.status { "True" } else { "False" }.to_owned(),
        reason: text(&condition.reason),
        message: text(&condition.message),
        last_transition_time: Some(Time(condition.since)),
        ..v1::PodCondition::default()
    }
}

fn container_status(container: &ContainerStatus) -> v1::ContainerStatus {
    let running = matches!(container.state, ContainerState::Running { .. });
    v1::ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone(),
        ready: container.is_ready(),
        started: Some(running && container.started),
        restart_count: i32::try_from(container.restart_count).unwrap_or(i32::MAX),
        container_id: match container.state {
            ContainerState::Running { pid, .. } => Some(format!("process://{pid}")),
            _ => None,
        },
        state: Some(state(&container.state)),
        last_state: container.last.as_ref().map(|end| v1::ContainerState {
            terminated: Some(terminated(end)),
            ..v1::ContainerState::default()
        }),
        ..v1::ContainerStatus::default()
    }
}

fn state(state: &ContainerState) -> v1::ContainerState {
    match state {
        ContainerState::Waiting { reason, message } => v1::ContainerState {
            waiting: Some(v1::ContainerStateWaiting {
                reason: Some((*reason).to_owned()),
                message: (!message.is_empty()).then(|| message.clone()),
            }),
            ..v1::ContainerState::default()
        },
        ContainerState::Running { since, .. } => v1::ContainerState {
            running: Some(v1::ContainerStateRunning {
                started_at: Some(Time(*since)),
            }),
            ..v1::ContainerState::default()
        },
        ContainerState::Terminated(end) => v1::ContainerState {
            terminated: Some(terminated(end)),
            ..v1::ContainerState::default()
        },
    }
}

fn terminated(end: &Termination) -> v1::ContainerStateTerminated {
    v1::ContainerStateTerminated {
        // Kubernetes has no spelling for a code that nobody knows; the message says so.
        exit_code: end.exit_code.unwrap_or(-1),
        signal: end.signal,
        reason: Some(end.reason.clone()),
        message: (!end.message.is_empty()).then(|| end.message.clone()),
        started_at: end.started_at.map(Time),
        finished_at: Some(Time(end.finished_at)),
        ..v1::ContainerStateTerminated::default()
    }
}

/// The conditions of a pod, each since when it last changed (kubelet `status/generate.go`, Kubernetes
/// 1.36, and one of our own). `before` are those of the last time.
pub fn conditions(
    phase: PodPhase,
    containers: &[ContainerStatus],
    enforced: &Result<(), String>,
    resize: Option<&Resize>,
    before: &[Condition],
    now: jiff::Timestamp,
) -> Vec<Condition> {
    // Once one of the pod's own containers has started, what came before it was done, whatever its
    // sidecars do now.
    let initialized = containers.iter().any(ContainerStatus::has_started)
        || containers
            .iter()
            .filter(|container| container.kind != ContainerKind::App)
            .all(ContainerStatus::has_prepared);
    let unready: Vec<_> = containers
        .iter()
        .filter(|container| container.kind != ContainerKind::Init && !container.is_ready())
        .map(|container| container.name.as_str())
        .collect();
    let (unready_reason, why_unready) = match phase {
        PodPhase::Succeeded => ("PodCompleted", String::new()),
        PodPhase::Failed => ("PodFailed", String::new()),
        _ if unready.is_empty() => ("", String::new()),
        _ => (
            "ContainersNotReady",
            format!("containers with unready status: [{}]", unready.join(" ")),
        ),
    };
    let ready = unready_reason.is_empty();
    let (enforced_reason, enforced_message) = match enforced {
        Ok(()) => (
            "ReadBack",
            "all values were read back from the kernel".to_owned(),
        ),
        Err(why) => ("NotEnforced", why.clone()),
    };
    let mut conditions = vec![
        condition_of("PodScheduled", true, "", String::new(), now),
        condition_of("Initialized", initialized, "", String::new(), now),
        condition_of(
            "ContainersReady",
            ready,
            unready_reason,
            why_unready.clone(),
            now,
        ),
        condition_of(
            "Ready",
            ready && initialized,
            unready_reason,
            why_unready,
            now,
        ),
        condition_of(
            ENFORCED,
            enforced.is_ok(),
            enforced_reason,
            enforced_message,
            now,
        ),
    ];
    if let Some(resize) = resize {
        let (kind, reason, message) = resize.condition();
        conditions.push(condition_of(kind, true, reason, message.to_owned(), now));
    }
    let told = before.iter().filter(|old| old.kind == DISRUPTION_TARGET);
    conditions.extend(told.cloned());
    for condition in &mut conditions {
        if let Some(same) = before
            .iter()
            .find(|old| old.kind == condition.kind && old.status == condition.status)
        {
            condition.since = same.since;
        }
    }
    conditions
}

fn condition_of(
    kind: &str,
    status: bool,
    reason: &str,
    message: String,
    since: jiff::Timestamp,
) -> Condition {
    Condition {
        kind: kind.to_owned(),
        status,
        reason: reason.to_owned(),
        message,
        since,
    }
}
