//! `allot describe pod`, in the layout of `kubectl describe pod`. Fields that a node agent knows
//! nothing of, such as addresses and volumes, are left out.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateTerminated, ContainerStatus, Event, Pod, PodSpec,
    PodStatus, ResourceRequirements,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::{map, probes, write_events};
use crate::cli::render::{Clock, Page};
use crate::report::PodUsage;
use crate::report::table::{app_statuses, init_statuses};

/// The whole description.
pub fn page(pod: &Pod, events: &[Event], usage: Option<&PodUsage>, clock: &Clock) -> Page {
    let mut page = Page::description();
    let spec = pod.spec.clone().unwrap_or_default();
    let status = pod.status.clone().unwrap_or_default();
    head(&mut page, pod, &spec, &status, clock);
    let init = spec.init_containers.as_deref().unwrap_or_default();
    if !init.is_empty() {
        page.texts(0, &["Init Containers:"]);
        containers(&mut page, init, init_statuses(pod), clock);
    }
    page.texts(0, &["Containers:"]);
    containers(&mut page, &spec.containers, app_statuses(pod), clock);
    conditions(&mut page, &status);
    if let Some(own) = &spec.resources {
        page.texts(0, &["Pod Resources:"]);
        resources(&mut page, 1, own);
    }
    let qos = status.qos_class.as_deref().unwrap_or("<unknown>");
    page.texts(0, &["QoS Class:", qos]);
    if let Some(usage) = usage {
        super::usage::write(&mut page, usage);
    }
    write_events(&mut page, events, clock);
    page
}

fn head(page: &mut Page, pod: &Pod, spec: &PodSpec, status: &PodStatus, clock: &Clock) {
    let meta = &pod.metadata;
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    page.texts(0, &["Name:", &text(&meta.name)]);
    page.texts(0, &["Namespace:", &text(&meta.namespace)]);
    page.texts(0, &["UID:", &text(&meta.uid)]);
    page.row(0, &[&"Priority:", &spec.priority.unwrap_or(0)]);
    if let Some(class) = &spec.priority_class_name {
        page.texts(0, &["Priority Class Name:", class]);
    }
    page.texts(0, &["Node:", spec.node_name.as_deref().unwrap_or("<none>")]);
    if let Some(start) = &status.start_time {
        page.texts(0, &["Start Time:", &clock.date(Some(start))]);
    }
    map(page, "Labels:", meta.labels.as_ref(), "=");
    map(page, "Annotations:", meta.annotations.as_ref(), ": ");
    if let Some(end) = &meta.deletion_timestamp {
        let left = end.0.duration_since(clock.now).as_secs().max(0);
        page.texts(
            0,
            &["Status:", &format!("Terminating (at most {left}s more)")],
        );
        if let Some(grace) = meta.deletion_grace_period_seconds {
            page.row(0, &[&"Termination Grace Period:", &format!("{grace}s")]);
        }
    } else {
        page.texts(0, &["Status:", &text(&status.phase)]);
    }
    for (name, value) in [("Reason:", &status.reason), ("Message:", &status.message)] {
        if let Some(value) = value {
            page.texts(0, &[name, value]);
        }
    }
}

fn containers(
    page: &mut Page,
    containers: &[Container],
    statuses: &[ContainerStatus],
    clock: &Clock,
) {
    for container in containers {
        let status = statuses.iter().find(|status| status.name == container.name);
        page.row(1, &[&format!("{}:", container.name)]);
        describe_container(page, container, status, clock);
    }
}

fn describe_container(
    page: &mut Page,
    container: &Container,
    status: Option<&ContainerStatus>,
    clock: &Clock,
) {
    if let Some(id) = status.and_then(|status| status.container_id.as_deref()) {
        page.texts(2, &["Container ID:", id]);
    }
    let image = container.image.as_deref().filter(|image| !image.is_empty());
    page.texts(2, &["Image:", image.unwrap_or("<none>")]);
    for (name, words) in [("Command:", &container.command), ("Args:", &container.args)] {
        let words = words.as_deref().unwrap_or_default();
        if !words.is_empty() {
            page.texts(2, &[name]);
            for word in words {
                page.texts(3, &[word]);
            }
        }
    }
    if let Some(status) = status {
        let nothing = ContainerState::default();
        state(
            page,
            "State:",
            status.state.as_ref().unwrap_or(&nothing),
            clock,
        );
        if let Some(last) = &status.last_state
            && *last != nothing
        {
            state(page, "Last State:", last, clock);
        }
        page.texts(2, &["Ready:", if status.ready { "True" } else { "False" }]);
        page.row(2, &[&"Restart Count:", &status.restart_count]);
    }
    if let Some(own) = &container.resources {
        resources(page, 2, own);
    }
    probes::write(page, container);
    environment(page, container);
}

fn environment(page: &mut Page, container: &Container) {
    let env = container.env.as_deref().unwrap_or_default();
    if env.is_empty() {
        page.texts(2, &["Environment:", "<none>"]);
        return;
    }
    page.texts(2, &["Environment:"]);
    for variable in env {
        let value = variable.value.as_deref().unwrap_or_default();
        page.texts(3, &[&format!("{}:", variable.name), value]);
    }
}

fn state(page: &mut Page, name: &str, state: &ContainerState, clock: &Clock) {
    if let Some(running) = &state.running {
        page.texts(2, &[name, "Running"]);
        page.texts(3, &["Started:", &clock.date(running.started_at.as_ref())]);
    } else if let Some(end) = &state.terminated {
        page.texts(2, &[name, "Terminated"]);
        terminated(page, end, clock);
    } else {
        page.texts(2, &[name, "Waiting"]);
        let waiting = state.waiting.as_ref();
        for (name, value) in [
            (
                "Reason:",
                waiting.and_then(|waiting| waiting.reason.as_deref()),
            ),
            (
                "Message:",
                waiting.and_then(|waiting| waiting.message.as_deref()),
            ),
        ] {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                page.texts(3, &[name, value]);
            }
        }
    }
}

fn terminated(page: &mut Page, end: &ContainerStateTerminated, clock: &Clock) {
    for (name, value) in [("Reason:", &end.reason), ("Message:", &end.message)] {
        if let Some(value) = value.as_deref().filter(|value| !value.is_empty()) {
            page.texts(3, &[name, value]);
        }
    }
    // -1 stands for a code that nobody knows, as that of an attached process.
    let code = match end.exit_code {
        -1 => "<unknown>".to_owned(),
        code => code.to_string(),
    };
    page.texts(3, &["Exit Code:", &code]);
    if let Some(signal) = end.signal.filter(|signal| *signal != 0) {
        page.row(3, &[&"Signal:", &signal]);
    }
    page.texts(3, &["Started:", &clock.date(end.started_at.as_ref())]);
    page.texts(3, &["Finished:", &clock.date(end.finished_at.as_ref())]);
}

fn resources(page: &mut Page, level: usize, resources: &ResourceRequirements) {
    amounts(page, level, "Limits:", resources.limits.as_ref());
    amounts(page, level, "Requests:", resources.requests.as_ref());
}

fn amounts(
    page: &mut Page,
    level: usize,
    name: &str,
    amounts: Option<&BTreeMap<String, Quantity>>,
) {
    let Some(amounts) = amounts.filter(|amounts| !amounts.is_empty()) else {
        return;
    };
    page.texts(level, &[name]);
    for (resource, amount) in amounts {
        page.texts(level + 1, &[&format!("{resource}:"), &amount.0]);
    }
}

fn conditions(page: &mut Page, status: &PodStatus) {
    let conditions = status.conditions.as_deref().unwrap_or_default();
    if conditions.is_empty() {
        return;
    }
    page.texts(0, &["Conditions:"]);
    page.texts(1, &["Type", "Status"]);
    for condition in conditions {
        let mut cells = vec![condition.type_.as_str(), condition.status.as_str()];
        // Beyond kubectl: what is not so is said with its reason.
        if condition.status != "True" {
            cells.extend(condition.message.as_deref());
        }
        page.texts(1, &cells);
    }
}
