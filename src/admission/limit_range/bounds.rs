//! The bounds on the amounts of containers, pods and claims.

use std::cmp::Ordering;

use super::super::defaults::Defaulted;
use super::super::reason::{Code, Reason};
use super::super::validate::MAX_CONTAINERS;
use super::{MAX_FILLED, both, origins};
use crate::model::effective::sum_of_containers;
use crate::model::{LimitRange, LimitRangeItem, LimitType, List, Pod, ResourceName, Resources};
use crate::units::Quantity;

/// Broken bounds that are told of one object. A bound of ours: beyond it nobody reads.
const MAX_REASONS: usize = 1000;

/// A bound that is broken.
pub(in crate::admission) struct Breach {
    /// The amount at fault, or the one that is missing.
    pub list: List,
    /// Whether the other list's amount may be at fault as well.
    pub is_either: bool,
    pub resource: ResourceName,
    /// In Kubernetes' words.
    pub text: String,
}

impl Breach {
    fn is_about(&self, filled: &Defaulted) -> bool {
        filled.resource == self.resource && (self.is_either || filled.list == self.list)
    }

    fn reason(&self, field: String, range: &LimitRange, origins: &str) -> Reason {
        let message = format!("{}; LimitRange {}", self.text, range.name);
        Reason::policy(Code::LimitRange, field, &message).adding(origins)
    }
}

/// Every bound that a pod breaks. `filled` is what it did not give itself.
pub fn pod(pod: &Pod, ranges: &[&LimitRange], filled: &[Defaulted]) -> Vec<Reason> {
    let number = pod
        .init_containers
        .len()
        .saturating_add(pod.containers.len());
    if number > MAX_CONTAINERS {
        // Refused already, by a rule that needs no look at each of them.
        return Vec::new();
    }
    let mut reasons = Vec::new();
    if filled.len() >= MAX_FILLED {
        let message = format!("LimitRanges give it {MAX_FILLED} amounts or more by default");
        reasons.push(Reason::policy(Code::LimitRange, "", &message));
    }
    let whole = whole(pod);
    for range in ranges {
        for item in &range.items {
            reasons.extend(match item.kind {
                LimitType::Container => containers(pod, range, item, filled),
                LimitType::Pod => together(pod, &whole, range, item, filled),
                _ => Vec::new(),
            });
        }
        if reasons.len() > MAX_REASONS {
            reasons.truncate(MAX_REASONS);
            break;
        }
    }
    reasons
}

fn containers(
    pod: &Pod,
    range: &LimitRange,
    item: &LimitRangeItem,
    filled: &[Defaulted],
) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for (place, index, container) in pod.all_containers() {
        for breach in breaches(item, &container.resources) {
            let (list, resource) = (breach.list, &breach.resource);
            let field = format!("spec.{place}[{index}].resources.{list}[{resource}]");
            let own = filled.iter().filter(|one| {
                one.container.as_deref() == Some(&container.name) && breach.is_about(one)
            });
            let reason = breach.reason(field, range, &origins(own));
            reasons.push(reason.about(&container.name));
        }
        if reasons.len() > MAX_REASONS {
            break;
        }
    }
    reasons
}

/// The pod's amounts as this bound looks at them: without overhead, and of the amounts at pod level
/// only those of cpu and memory count (1.36 `podRequests`, `podLimits`).
fn whole(pod: &Pod) -> Resources {
    let mut whole = Resources {
        requests: sum_of_containers(pod, List::Requests),
        limits: sum_of_containers(pod, List::Limits),
    };
    for list in [List::Requests, List::Limits] {
        for name in [ResourceName::Cpu, ResourceName::Memory] {
            if let Some(amount) = at_pod_level(pod, list, &name) {
                whole.list_mut(list).set(name, amount);
            }
        }
    }
    whole
}

fn at_pod_level(pod: &Pod, list: List, name: &ResourceName) -> Option<Quantity> {
    pod.resources.as_ref()?.list(list).get(name)
}

fn together(
    pod: &Pod,
    whole: &Resources,
    range: &LimitRange,
    item: &LimitRangeItem,
    filled: &[Defaulted],
) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for breach in breaches(item, whole) {
        let (list, resource) = (breach.list, &breach.resource);
        let decisive = [ResourceName::Cpu, ResourceName::Memory].contains(resource);
        let reason = if decisive && at_pod_level(pod, list, resource).is_some() {
            breach.reason(format!("spec.resources.{list}[{resource}]"), range, "")
        } else {
            let parts = filled.iter().filter(|one| breach.is_about(one));
            breach.reason("spec.containers".to_owned(), range, &origins(parts))
        };
        reasons.push(reason);
    }
    reasons
}

/// Every bound that a claim for this much storage breaks; `None`: it does not say how much.
pub fn claim(request: Option<Quantity>, ranges: &[&LimitRange]) -> Vec<Reason> {
    let storage = ResourceName::from("storage");
    let mut reasons = Vec::new();
    for range in ranges {
        let items = range.items.iter();
        for item in items.filter(|item| item.kind == LimitType::PersistentVolumeClaim) {
            let least = item.min.get(&storage);
            let least = least.and_then(|least| min(item, &storage, least, request, None));
            let most = item.max.get(&storage).and_then(|most| {
                let head = format!("maximum {storage} usage per {} is {most}", item.kind);
                match request {
                    None => Some(format!("{head}.  No request is specified")),
                    Some(request) if request > most => {
                        Some(format!("{head}, but request is {request}"))
                    }
                    Some(_) => None,
                }
            });
            for text in least.map(|(_, text)| text).into_iter().chain(most) {
                let breach = Breach {
                    list: List::Requests,
                    is_either: false,
                    resource: storage.clone(),
                    text,
                };
                let field = format!("spec.resources.requests[{storage}]");
                reasons.push(breach.reason(field, range, ""));
            }
        }
    }
    reasons
}

/// Where an amount is at fault, and Kubernetes' words for it.
type Finding = (List, String);

/// Every bound of an item that these amounts break; at most one for each bound, as a request that is
/// no greater than its limit breaks no bound that the limit keeps.
pub(in crate::admission) fn breaches(item: &LimitRangeItem, resources: &Resources) -> Vec<Breach> {
    type Check = fn(
        &LimitRangeItem,
        &ResourceName,
        Quantity,
        Option<Quantity>,
        Option<Quantity>,
    ) -> Option<Finding>;
    let checks: [(_, Check, bool); 3] = [
        (&item.min, min, false),
        (&item.max, max, false),
        (&item.max_limit_request_ratio, ratio, true),
    ];
    let mut breaches = Vec::new();
    for (bounds, check, is_ratio) in checks {
        for (name, bound) in bounds.iter() {
            let (request, limit) = both(resources, name);
            if let Some((list, text)) = check(item, name, bound, request, limit) {
                breaches.push(Breach {
                    list,
                    is_either: is_ratio,
                    resource: name.clone(),
                    text,
                });
            }
        }
    }
    breaches
}

// The two blanks after the point are upstream's.

fn min(
    item: &LimitRangeItem,
    name: &ResourceName,
    least: Quantity,
    request: Option<Quantity>,
    limit: Option<Quantity>,
) -> Option<Finding> {
    let head = format!("minimum {name} usage per {} is {least}", item.kind);
    match (request, limit) {
        (None, _) => Some((List::Requests, format!("{head}.  No request is specified"))),
        (Some(request), _) if request < least => {
            Some((List::Requests, format!("{head}, but request is {request}")))
        }
        (_, Some(limit)) if limit < least => {
            Some((List::Limits, format!("{head}, but limit is {limit}")))
        }
        _ => None,
    }
}

fn max(
    item: &LimitRangeItem,
    name: &ResourceName,
    most: Quantity,
    request: Option<Quantity>,
    limit: Option<Quantity>,
) -> Option<Finding> {
    let head = format!("maximum {name} usage per {} is {most}", item.kind);
    match (request, limit) {
        (_, None) => Some((List::Limits, format!("{head}.  No limit is specified"))),
        (_, Some(limit)) if limit > most => {
            Some((List::Limits, format!("{head}, but limit is {limit}")))
        }
        (Some(request), _) if request > most => {
            Some((List::Requests, format!("{head}, but request is {request}")))
        }
        _ => None,
    }
}

fn ratio(
    item: &LimitRangeItem,
    name: &ResourceName,
    most: Quantity,
    request: Option<Quantity>,
    limit: Option<Quantity>,
) -> Option<Finding> {
    let head = format!(
        "{name} max limit to request ratio per {} is {most}",
        item.kind
    );
    let given = |amount: Option<Quantity>| amount.filter(|amount| !amount.is_zero());
    let Some(request) = given(request) else {
        let text = format!("{head}, but no request is specified or request is 0");
        return Some((List::Requests, text));
    };
    let Some(limit) = given(limit) else {
        let text = format!("{head}, but no limit is specified or limit is 0");
        return Some((List::Limits, text));
    };
    compare(limit, request, most).is_gt().then(|| {
        let quotient = quotient(limit, request);
        (
            List::Limits,
            format!("{head}, but provided ratio is {quotient}"),
        )
    })
}

/// How the quotient of limit and request compares with a ratio, exactly; upstream compares
/// floating-point numbers.
pub(super) fn compare(limit: Quantity, request: Quantity, ratio: Quantity) -> Ordering {
    // Milli-units reach 10^32: the left product is exact, and a right one that is not is far above it.
    let limit = limit.milli_value().saturating_mul(1000);
    limit.cmp(&ratio.milli_value().saturating_mul(request.milli_value()))
}

/// The quotient with six digits, as upstream prints it.
pub(super) fn quotient(limit: Quantity, request: Quantity) -> String {
    const DIGITS: u128 = 1_000_000;
    let milli = |amount: Quantity| amount.milli_value().unsigned_abs();
    let request = milli(request).max(1);
    let doubled = milli(limit).saturating_mul(2 * DIGITS) / request;
    let rounded = doubled.saturating_add(1) / 2;
    format!("{}.{:06}", rounded / DIGITS, rounded % DIGITS)
}
