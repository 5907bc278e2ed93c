//! What the LimitRanges of a namespace give to an object and ask of it.
//!
//! Decides which amounts are filled in, and every bound that is broken, each told with the LimitRange
//! it stands in; texts are those of Kubernetes 1.36 (`plugin/pkg/admission/limitranger`). Of several
//! LimitRanges all bounds hold, and a default is that of the first one by name: upstream takes them in
//! whatever order its cache has. It must never look at other objects of the namespace: that is `quota`.

mod bounds;
mod image;
mod validate;

use std::collections::BTreeMap;

use super::defaults::{Defaulted, Rule};
use super::reason::Reason;
use crate::model::{Bound, LimitRange, List, Pod, ResourceName, Resources};
use crate::units::Quantity;

pub(super) use bounds::breaches;
pub use bounds::{claim, pod};
pub use image::{StreamCounts, image, stream, stream_limits};
pub use validate::validate;

/// Where the defaults that a pod got are told, as upstream does.
pub const ANNOTATION: &str = "kubernetes.io/limit-ranger";

/// Amounts that are filled in for one pod. A bound of ours: 512 containers times 8 amounts.
const MAX_FILLED: usize = 4096;

/// The LimitRanges of a namespace, by name.
pub fn in_force<'a>(ranges: &'a [LimitRange], namespace: &str) -> Vec<&'a LimitRange> {
    let mut own: Vec<_> = ranges
        .iter()
        .filter(|range| range.namespace == namespace)
        .collect();
    own.sort_by(|a, b| a.name.cmp(&b.name));
    own
}

/// A default and where it is from.
pub(super) struct Default<'a> {
    pub amount: Quantity,
    /// The list that gives it.
    pub bound: Bound,
    /// The LimitRange that it stands in.
    pub range: &'a str,
}

/// All defaults of one list. The first one of a resource holds.
pub(super) fn defaults<'a>(
    ranges: &[&'a LimitRange],
    list: List,
) -> BTreeMap<&'a ResourceName, Vec<Default<'a>>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for range in ranges {
        for (name, (amount, bound)) in range.items.iter().flat_map(|item| item.defaults(list)) {
            all.entry(name).or_default().push(Default {
                amount,
                bound,
                range: &range.name,
            });
        }
    }
    all
}

/// Fills in what containers leave out. Comes after the API's own defaults, so that a container that
/// gives a limit alone asks for that and not for the default request.
pub(super) fn fill(pod: &mut Pod, ranges: &[&LimitRange]) -> Vec<Defaulted> {
    let mut filled = Vec::new();
    for list in [List::Requests, List::Limits] {
        for (name, defaults) in defaults(ranges, list) {
            let Some(default) = defaults.first() else {
                continue;
            };
            let all = pod.init_containers.iter_mut().chain(&mut pod.containers);
            for container in all {
                let amounts = container.resources.list_mut(list);
                if amounts.contains(name) || filled.len() >= MAX_FILLED {
                    continue;
                }
                amounts.set(name.clone(), default.amount);
                filled.push(Defaulted {
                    container: Some(container.name.clone()),
                    list,
                    resource: name.clone(),
                    amount: default.amount,
                    rule: Rule::LimitRange {
                        name: default.range.to_owned(),
                        bound: default.bound,
                    },
                });
            }
        }
    }
    if !filled.is_empty() {
        let text = annotation(pod, &filled);
        pod.annotations.insert(ANNOTATION.to_owned(), text);
    }
    filled
}

/// Upstream's words for what was filled in; of several LimitRanges upstream names only the last.
fn annotation(pod: &Pod, filled: &[Defaulted]) -> String {
    let mut by_place: BTreeMap<(&str, List), Vec<String>> = BTreeMap::new();
    for one in filled {
        if let Some(container) = &one.container {
            let names = by_place.entry((container, one.list)).or_default();
            names.push(one.resource.to_string());
        }
    }
    let containers = pod.containers.iter().map(|container| ("", container));
    let init = pod.init_containers.iter();
    let init = init.map(|container| ("init ", container));
    let mut parts = Vec::new();
    for (kind, container) in containers.chain(init) {
        for (list, what) in [(List::Requests, "request"), (List::Limits, "limit")] {
            if let Some(mut names) = by_place.remove(&(container.name.as_str(), list)) {
                names.sort();
                let names = names.join(", ");
                let name = &container.name;
                parts.push(format!("{names} {what} for {kind}container {name}"));
            }
        }
    }
    format!("LimitRanger plugin set: {}", parts.join("; "))
}

/// Says of the rules that a pod breaks only since it was filled in that it did not write the amounts
/// itself. `before` are those that it broke as it was.
pub(super) fn blame(reasons: Vec<Reason>, before: &[Reason], filled: &[Defaulted]) -> Vec<Reason> {
    let blame_one = |reason: Reason| {
        if before.contains(&reason) {
            return reason;
        }
        let here =
            |one: &&Defaulted| reason.container.is_none() || reason.container == one.container;
        let named = |one: &&Defaulted| {
            let name = one.resource.to_string();
            reason.message.contains(&name) || reason.field.contains(&name)
        };
        // A rule may be about one resource or about several.
        let mut origins = origins(filled.iter().filter(here).filter(named));
        if origins.is_empty() {
            origins = self::origins(filled.iter().filter(here));
        }
        reason
            .adding(&origins)
            .adding("what a container gives itself holds instead")
    };
    reasons.into_iter().map(blame_one).collect()
}

/// Where amounts are from that the object did not give itself; empty if there are none.
fn origins<'a>(filled: impl Iterator<Item = &'a Defaulted>) -> String {
    const MOST: usize = 3;
    let mut texts = Vec::new();
    let mut more = 0_usize;
    for one in filled {
        if texts.len() == MOST {
            more = more.saturating_add(1);
            continue;
        }
        let container = one.container.as_deref().unwrap_or_default();
        texts.push(format!(
            "{}.{} {} of container {container} is the {}",
            one.list, one.resource, one.amount, one.rule
        ));
    }
    let text = texts.join(", ");
    if more > 0 {
        format!("{text} and {more} more")
    } else {
        text
    }
}

/// One of the two amounts of a resource.
fn both(resources: &Resources, name: &ResourceName) -> (Option<Quantity>, Option<Quantity>) {
    (resources.requests.get(name), resources.limits.get(name))
}
