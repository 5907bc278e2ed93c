//! What is filled in where a pod is silent, and why.
//!
//! Decides defaults and nothing else: whether the result is allowed is for `validate`. Every change
//! is told, so that `explain` can name its rule; doing it twice changes nothing more.

use std::fmt;

use super::reason::tame;
use crate::model::effective::sum_of_containers;
use crate::model::{Bound, EffectivePod, List, Pod, ResourceList, ResourceName, Resources};
use crate::units::Quantity;

/// One amount that the pod did not give itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defaulted {
    /// The container's name; `None`: the pod as a whole.
    pub container: Option<String>,
    /// Where it was put.
    pub list: List,
    /// The resource.
    pub resource: ResourceName,
    /// The amount that holds now.
    pub amount: Quantity,
    /// Why.
    pub rule: Rule,
}

impl fmt::Display for Defaulted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.container {
            Some(name) => write!(f, "container {}: ", tame(name, 64))?,
            None => f.write_str("pod: ")?,
        }
        write!(
            f,
            "{}.{} = {}: {}",
            self.list, self.resource, self.amount, self.rule
        )
    }
}

/// Why an amount was put there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The API keeps thousandths: finer amounts are rounded up.
    RoundedUp {
        /// The amount as given.
        from: Quantity,
    },
    /// The same, for the pod's overhead.
    OverheadRoundedUp {
        /// The amount as given.
        from: Quantity,
    },
    /// A request that is absent is the limit.
    RequestFromLimit,
    /// A pod-level limit of huge pages that is absent is what the containers may use together.
    PodLimitFromContainers,
    /// A pod-level request that is absent is what the containers ask for together.
    PodRequestFromContainers,
    /// A pod-level request that is absent, and no container asks: the pod-level limit.
    PodRequestFromPodLimit,
    /// A container without a limit of its own is held by that of the pod. Its spec stays as it is.
    ContainerLimitFromPod,
    /// A LimitRange of the namespace gives an amount to containers that give none.
    LimitRange {
        /// Its name.
        name: String,
        /// The list that the amount is from.
        bound: Bound,
    },
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RoundedUp { from } => write!(f, "{from} is rounded up to thousandths"),
            Self::OverheadRoundedUp { from } => {
                write!(f, "overhead of {from} is rounded up to thousandths")
            }
            Self::RequestFromLimit => f.write_str("request defaults to the limit"),
            Self::PodLimitFromContainers => {
                f.write_str("pod limit defaults to the sum of container limits")
            }
            Self::PodRequestFromContainers => {
                f.write_str("pod request defaults to the sum of container requests")
            }
            Self::PodRequestFromPodLimit => f.write_str("pod request defaults to the pod limit"),
            Self::ContainerLimitFromPod => f.write_str("container limit from the pod's limit"),
            Self::LimitRange { name, bound } => {
                write!(f, "{bound} of LimitRange {}", tame(name, 253))
            }
        }
    }
}

/// Fills in what the Kubernetes API fills in (1.36 `SetDefaults_Pod`, `SetDefaults_ResourceList`).
pub fn apply(pod: &mut Pod) -> Vec<Defaulted> {
    let mut done = round_up(pod);
    let all = pod.init_containers.iter_mut().chain(&mut pod.containers);
    for container in all {
        let name = Some(container.name.as_str());
        let limits = container.resources.limits.clone();
        let requests = &mut container.resources.requests;
        done.extend(fill(
            requests,
            name,
            List::Requests,
            &limits,
            &Rule::RequestFromLimit,
        ));
    }
    done.extend(pod_level(pod));
    done
}

/// Tells which containers are held by the pod's limit for want of one of their own.
pub fn inherited(pod: &Pod, effective: &EffectivePod) -> Vec<Defaulted> {
    let own = pod.all_containers().map(|(_, _, container)| container);
    let mut done = Vec::new();
    for (own, held) in own.zip(&effective.containers) {
        let own = &own.resources.limits;
        let limits = held.resources.limits.iter();
        done.extend(
            limits
                .filter(|(resource, amount)| own.get(resource) != Some(*amount))
                .map(|(resource, amount)| Defaulted {
                    container: Some(held.name.clone()),
                    list: List::Limits,
                    resource: resource.clone(),
                    amount,
                    rule: Rule::ContainerLimitFromPod,
                }),
        );
    }
    done
}

/// Copies each amount that the list does not name.
fn fill(
    into: &mut ResourceList,
    container: Option<&str>,
    list: List,
    from: &ResourceList,
    rule: &Rule,
) -> Vec<Defaulted> {
    let mut done = Vec::new();
    for (resource, amount) in from.iter() {
        if !into.contains(resource) {
            into.set(resource.clone(), amount);
            done.push(Defaulted {
                container: container.map(str::to_owned),
                list,
                resource: resource.clone(),
                amount,
                rule: rule.clone(),
            });
        }
    }
    done
}

/// Fills in `spec.resources`, where there is something to begin with.
fn pod_level(pod: &mut Pod) -> Vec<Defaulted> {
    let asked = pod_level_part(&sum_of_containers(pod, List::Requests));
    let allowed = pod_level_part(&sum_of_containers(pod, List::Limits));
    let Some(own) = pod.resources.as_mut().filter(|own| !own.is_empty()) else {
        return Vec::new();
    };
    let huge_page_limits = allowed
        .iter()
        .filter(|(name, _)| is_huge_pages(name) && !own.requests.contains(name))
        .map(|(name, amount)| (name.clone(), amount))
        .collect();
    let mut done = fill(
        &mut own.limits,
        None,
        List::Limits,
        &huge_page_limits,
        &Rule::PodLimitFromContainers,
    );
    if own.limits.is_empty() {
        return done;
    }
    // The request of huge pages is always the limit.
    let asked = asked
        .iter()
        .filter(|(name, _)| !is_huge_pages(name))
        .map(|(name, amount)| (name.clone(), amount))
        .collect();
    let limits = pod_level_part(&own.limits);
    for (from, rule) in [
        (asked, Rule::PodRequestFromContainers),
        (limits, Rule::PodRequestFromPodLimit),
    ] {
        done.extend(fill(&mut own.requests, None, List::Requests, &from, &rule));
    }
    done
}

/// The resources that may stand at pod level.
fn pod_level_part(list: &ResourceList) -> ResourceList {
    list.iter()
        .filter(|(name, _)| name.is_pod_level())
        .map(|(name, amount)| (name.clone(), amount))
        .collect()
}

fn is_huge_pages(name: &ResourceName) -> bool {
    matches!(name, ResourceName::HugePages(_))
}

fn round_up(pod: &mut Pod) -> Vec<Defaulted> {
    let mut done = Vec::new();
    for container in pod.init_containers.iter_mut().chain(&mut pod.containers) {
        round_up_both(&mut container.resources, Some(&container.name), &mut done);
    }
    if let Some(own) = &mut pod.resources {
        round_up_both(own, None, &mut done);
    }
    for (resource, from, amount) in round_up_list(&mut pod.overhead) {
        done.push(Defaulted {
            container: None,
            list: List::Requests,
            resource,
            amount,
            rule: Rule::OverheadRoundedUp { from },
        });
    }
    done
}

fn round_up_both(resources: &mut Resources, container: Option<&str>, done: &mut Vec<Defaulted>) {
    for list in [List::Requests, List::Limits] {
        for (resource, from, amount) in round_up_list(resources.list_mut(list)) {
            done.push(Defaulted {
                container: container.map(str::to_owned),
                list,
                resource,
                amount,
                rule: Rule::RoundedUp { from },
            });
        }
    }
}

/// Rounds every amount up to thousandths; returns those that changed, with the old amount and the new.
fn round_up_list(list: &mut ResourceList) -> Vec<(ResourceName, Quantity, Quantity)> {
    let changed: Vec<_> = list
        .iter()
        .map(|(name, from)| (name.clone(), from, from.round_up(Quantity::MILLI)))
        .filter(|(_, from, amount)| from != amount)
        .collect();
    for (name, _, amount) in &changed {
        list.set(name.clone(), *amount);
    }
    changed
}
