//! `allot describe node`, in the layout of `kubectl describe node`: what the node has, which pods hold
//! it, and how much that is in all.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Event, Node, NodeCondition, NodeSystemInfo, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;

use super::{map, write_events};
use crate::cli::render::{Clock, Page};
use crate::manifest::convert;
use crate::model::{EffectivePod, List, PodUid, ResourceList, ResourceName};
use crate::units::Quantity;

/// The whole description. `pods` are those of the node.
pub fn page(node: &Node, pods: &[Pod], events: &[Event], clock: &Clock) -> Page {
    let mut page = Page::description();
    let meta = &node.metadata;
    let status = node.status.clone().unwrap_or_default();
    page.texts(0, &["Name:", meta.name.as_deref().unwrap_or_default()]);
    map(&mut page, "Labels:", meta.labels.as_ref(), "=");
    map(&mut page, "Annotations:", meta.annotations.as_ref(), ": ");
    let created = clock.date(meta.creation_timestamp.as_ref());
    page.texts(0, &["CreationTimestamp:", &created]);
    conditions(
        &mut page,
        status.conditions.as_deref().unwrap_or_default(),
        clock,
    );
    for (name, amounts) in [
        ("Capacity:", &status.capacity),
        ("Allocatable:", &status.allocatable),
    ] {
        if let Some(amounts) = amounts {
            page.texts(0, &[name]);
            for (resource, amount) in amounts {
                page.texts(1, &[&format!("{resource}:"), &amount.0]);
            }
        }
    }
    if let Some(info) = &status.node_info {
        system(&mut page, info);
    }
    let base = base(node);
    let pods = Running::of(pods);
    pod_table(&mut page, &pods, &base, clock);
    page.texts(0, &["Allocated resources:"]);
    page.texts(
        1,
        &["(Total limits may be over 100 percent, i.e., overcommitted.)"],
    );
    allocated(&mut page, &pods, &base);
    write_events(&mut page, events, clock);
    page
}

/// What percentages are of: allocatable, or capacity where that is empty.
pub fn base(node: &Node) -> ResourceList {
    let status = node.status.as_ref();
    let allocatable = status.and_then(|status| status.allocatable.as_ref());
    let capacity = status.and_then(|status| status.capacity.as_ref());
    let nothing = BTreeMap::<String, Text>::new();
    let amounts = allocatable
        .filter(|amounts| !amounts.is_empty())
        .or(capacity);
    convert::resource_list(amounts.unwrap_or(&nothing), "status").0
}

/// Pods that are not over, each with its sums.
#[derive(Debug, Default)]
pub struct Running<'a>(Vec<(&'a Pod, EffectivePod)>);

impl<'a> Running<'a> {
    /// The pods among these that are not over.
    pub fn of(pods: &'a [Pod]) -> Self {
        let is_over = |pod: &Pod| {
            let phase = pod
                .status
                .as_ref()
                .and_then(|status| status.phase.as_deref());
            matches!(phase, Some("Succeeded" | "Failed"))
        };
        let sums = |pod: &'a Pod| {
            let uid = PodUid::new("none")?;
            let model = convert::pod(pod, &uid).object;
            Some((pod, EffectivePod::of(&model)))
        };
        Self(
            pods.iter()
                .filter(|pod| !is_over(pod))
                .filter_map(sums)
                .collect(),
        )
    }

    fn sum(&self, list: List) -> ResourceList {
        let mut sum = ResourceList::default();
        for (_, pod) in &self.0 {
            sum.add(of(pod, list));
        }
        sum
    }
}

fn of(pod: &EffectivePod, list: List) -> &ResourceList {
    match list {
        List::Requests => &pod.requests,
        List::Limits => &pod.limits,
    }
}

fn conditions(page: &mut Page, conditions: &[NodeCondition], clock: &Clock) {
    if conditions.is_empty() {
        return;
    }
    page.texts(0, &["Conditions:"]);
    page.heading(
        1,
        &[
            "Type",
            "Status",
            "LastHeartbeatTime",
            "LastTransitionTime",
            "Reason",
            "Message",
        ],
    );
    for condition in conditions {
        page.texts(
            1,
            &[
                condition.type_.as_str(),
                &condition.status,
                &clock.date(condition.last_heartbeat_time.as_ref()),
                &clock.date(condition.last_transition_time.as_ref()),
                condition.reason.as_deref().unwrap_or_default(),
                condition.message.as_deref().unwrap_or_default(),
            ],
        );
    }
}

fn system(page: &mut Page, info: &NodeSystemInfo) {
    page.texts(0, &["System Info:"]);
    for (name, value) in [
        ("Machine ID:", &info.machine_id),
        ("System UUID:", &info.system_uuid),
        ("Boot ID:", &info.boot_id),
        ("Kernel Version:", &info.kernel_version),
        ("OS Image:", &info.os_image),
        ("Operating System:", &info.operating_system),
        ("Architecture:", &info.architecture),
        (
            "Container Runtime Version:",
            &info.container_runtime_version,
        ),
        ("Kubelet Version:", &info.kubelet_version),
    ] {
        if !value.is_empty() {
            page.texts(1, &[name, value]);
        }
    }
}

fn pod_table(page: &mut Page, pods: &Running<'_>, base: &ResourceList, clock: &Clock) {
    let count = format!("({} in total)", pods.0.len());
    page.texts(0, &["Non-terminated Pods:", &count]);
    page.heading(
        1,
        &[
            "Namespace",
            "Name",
            "",
            "CPU Requests",
            "CPU Limits",
            "Memory Requests",
            "Memory Limits",
            "Age",
        ],
    );
    for (pod, sums) in &pods.0 {
        let meta = &pod.metadata;
        let cell = |list, name| with_percent(of(sums, list), &name, base);
        page.texts(
            1,
            &[
                meta.namespace.clone().unwrap_or_default(),
                meta.name.clone().unwrap_or_default(),
                String::new(),
                cell(List::Requests, ResourceName::Cpu),
                cell(List::Limits, ResourceName::Cpu),
                cell(List::Requests, ResourceName::Memory),
                cell(List::Limits, ResourceName::Memory),
                clock.age(meta.creation_timestamp.as_ref()),
            ],
        );
    }
}

/// A line for each resource with what all pods have of it together.
pub fn allocated(page: &mut Page, pods: &Running<'_>, base: &ResourceList) {
    let (requests, limits) = (pods.sum(List::Requests), pods.sum(List::Limits));
    page.heading(1, &["Resource", "Requests", "Limits"]);
    let of_every_node = [
        ResourceName::Cpu,
        ResourceName::Memory,
        ResourceName::EphemeralStorage,
    ];
    let names = || base.iter().map(|(name, _)| name.clone());
    let huge_pages = names().filter(|name| matches!(name, ResourceName::HugePages(_)));
    for name in of_every_node.into_iter().chain(huge_pages) {
        let cell = |list| with_percent(list, &name, base);
        page.row(1, &[&name, &cell(&requests), &cell(&limits)]);
    }
    for name in names().filter(|name| matches!(name, ResourceName::Other(_))) {
        let cell = |list: &ResourceList| list.get(&name).unwrap_or(Quantity::ZERO);
        page.row(1, &[&name, &cell(&requests), &cell(&limits)]);
    }
}

/// An amount and which part of the base it is, in whole percents rounded down.
fn with_percent(list: &ResourceList, name: &ResourceName, base: &ResourceList) -> String {
    let amount = list.get(name).unwrap_or(Quantity::ZERO);
    let count = |amount: Quantity| match name {
        ResourceName::Cpu => amount.milli_value(),
        _ => amount.value(),
    };
    let all = base.get(name).map_or(0, count);
    let percent = count(amount)
        .saturating_mul(100)
        .checked_div(all)
        .unwrap_or(0);
    format!("{amount} ({percent}%)")
}
