//! What a pod asks for in all, and what each container gets: the only pod-sum arithmetic of the
//! project.
//!
//! Decides how containers, sidecars, overhead and pod-level resources combine. It must never fill in
//! a default (`admission::defaults` does) and never look at a node.

use super::{Container, ContainerKind, List, Pod, ResourceList, ResourceName, Resources};

/// A container's amounts after defaulting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveContainer {
    /// The container's name.
    pub name: String,
    /// The part it plays.
    pub kind: ContainerKind,
    /// What its cgroup is made from: its own values, a limit that it lacks taken from the pod's.
    pub resources: Resources,
}

/// A pod's amounts after defaulting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectivePod {
    /// What the pod asks of the node, overhead included.
    pub requests: ResourceList,
    /// The sum of the limits that are given, overhead included. A resource in here is a bound of
    /// the pod only if `is_bounded` says so.
    pub limits: ResourceList,
    /// Resources that are limited as a whole: at pod level, or in every single container.
    pub bounded: Vec<ResourceName>,
    /// Init containers and sidecars first, then the others, as they start.
    pub containers: Vec<EffectiveContainer>,
}

impl EffectivePod {
    /// The amounts of a pod that was defaulted already.
    pub fn of(pod: &Pod) -> Self {
        let mut requests = sum_without_overhead(pod, List::Requests);
        requests.add(&pod.overhead);

        let mut limits = sum_without_overhead(pod, List::Limits);
        let bounded = limits
            .iter()
            .filter(|(name, limit)| !limit.is_zero() && is_limited_as_a_whole(pod, name))
            .map(|(name, _)| name.clone())
            .collect();
        // Overhead widens a limit; it never makes one where there is none.
        let widened = pod
            .overhead
            .iter()
            .filter(|(name, _)| is_set(&limits, name));
        limits.add(
            &widened
                .map(|(name, amount)| (name.clone(), amount))
                .collect(),
        );

        let pod_limits = pod.resources.as_ref().map(|resources| &resources.limits);
        let containers = pod
            .all_containers()
            .map(|(_, _, container)| EffectiveContainer {
                name: container.name.clone(),
                kind: container.kind,
                resources: with_limits_of_pod(container, pod_limits),
            })
            .collect();
        Self {
            requests,
            limits,
            bounded,
            containers,
        }
    }

    /// Whether the pod as a whole has a limit of this resource. One container without a limit
    /// unbounds the pod; zero is no limit.
    pub fn is_bounded(&self, name: &ResourceName) -> bool {
        self.bounded.contains(name)
    }
}

/// The containers' amounts alone, without pod-level resources and overhead: the greatest amount in
/// force at any moment (Kubernetes 1.36 `AggregateContainerRequests` and `…Limits`).
///
/// Init containers run one after another, each beside the sidecars started before it; afterwards
/// all sidecars and app containers run together.
pub fn sum_of_containers(pod: &Pod, list: List) -> ResourceList {
    let mut sidecars = ResourceList::default();
    let mut peak = ResourceList::default();
    for container in &pod.init_containers {
        let own = container.resources.list(list);
        if container.kind == ContainerKind::Sidecar {
            sidecars.add(own);
            peak.raise_to(&sidecars);
        } else {
            let mut together = sidecars.clone();
            together.add(own);
            peak.raise_to(&together);
        }
    }
    let mut running = sidecars;
    for container in &pod.containers {
        running.add(container.resources.list(list));
    }
    peak.raise_to(&running);
    peak
}

/// The pod's amounts without overhead: the containers' sum, in which each amount given at pod level
/// takes the place of the sum (Kubernetes 1.36 `PodRequests`, `PodLimits` with `ExcludeOverhead`).
pub fn sum_without_overhead(pod: &Pod, list: List) -> ResourceList {
    let mut sum = sum_of_containers(pod, list);
    for (name, amount) in pod.resources.iter().flat_map(|r| r.list(list).iter()) {
        if name.is_pod_level() {
            sum.set(name.clone(), amount);
        }
    }
    sum
}

/// Whether a limit holds for the pod as a whole: one at pod level, or one in every container.
///
/// Each container counts by its own limit. The kubelet (1.36 `ResourceConfigForPod`) counts an init
/// container by its limit plus those of the sidecars before it, so that one without any limit passes
/// when it stands behind a limited sidecar; it may use all it likes, so here it unbounds the pod.
fn is_limited_as_a_whole(pod: &Pod, name: &ResourceName) -> bool {
    let at_pod_level = name.is_pod_level()
        && pod
            .resources
            .as_ref()
            .is_some_and(|resources| is_set(&resources.limits, name));
    at_pod_level
        || pod
            .all_containers()
            .all(|(_, _, container)| is_set(&container.resources.limits, name))
}

/// Named and not zero.
fn is_set(list: &ResourceList, name: &ResourceName) -> bool {
    list.get(name).is_some_and(|amount| !amount.is_zero())
}

/// The container's own amounts; a limit that it lacks is the pod's. Zero is no limit of cpu and
/// memory, but a limit of huge pages: none may be used.
fn with_limits_of_pod(container: &Container, pod_limits: Option<&ResourceList>) -> Resources {
    let mut resources = container.resources.clone();
    for (name, amount) in pod_limits.into_iter().flat_map(ResourceList::iter) {
        let has_own = match name {
            ResourceName::HugePages(_) => resources.limits.contains(name),
            _ => is_set(&resources.limits, name),
        };
        if name.is_pod_level() && !amount.is_zero() && !has_own {
            resources.limits.set(name.clone(), amount);
        }
    }
    resources
}
