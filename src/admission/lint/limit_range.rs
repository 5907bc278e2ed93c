//! The LimitRanges of one namespace, as they act together.

use std::collections::BTreeMap;

use super::{Finding, Lint, MAX_FINDINGS, Owner, amounts};
use crate::admission::limit_range::{breaches, defaults};
use crate::admission::{Defaulted, Rule};
use crate::model::{Bound, LimitRange, LimitRangeItem, LimitType, List, ResourceName, Resources};
use crate::units::Quantity;

fn owner(range: &LimitRange) -> Owner {
    Owner::Policy("LimitRange", range.name.clone())
}

/// Every item with its place.
fn items<'a>(
    ranges: &'a [&'a LimitRange],
) -> impl Iterator<Item = (&'a LimitRange, usize, &'a LimitRangeItem)> {
    ranges.iter().flat_map(|range| {
        let items = range.items.iter().enumerate();
        items.map(|(index, item)| (*range, index, item))
    })
}

/// What is odd about LimitRanges, each of which is sound on its own. `ranges` are those of one namespace
/// by name (`limit_range::in_force`).
pub fn limit_ranges(ranges: &[&LimitRange]) -> Vec<Finding> {
    let mut findings = slips(ranges);
    findings.extend(contradictions(ranges));
    findings.extend(broken_defaults(ranges));
    findings.extend(derived_defaults(ranges));
    findings.extend(losers(ranges));
    findings.truncate(MAX_FINDINGS);
    findings
}

fn slips(ranges: &[&LimitRange]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (range, index, item) in items(ranges) {
        let bounds = Bound::ALL.into_iter();
        for bound in bounds.filter(|bound| *bound != Bound::MaxLimitRequestRatio) {
            for (name, amount) in item.list(bound).iter() {
                if let Some((lint, odd)) = amounts::of_policy(name, amount) {
                    let field = format!("spec.limits[{index}].{bound}[{name}]");
                    let message = format!("{bound} {amount} of {name} {odd}");
                    findings.push(Finding::new(lint, &owner(range), field, &message));
                }
            }
        }
    }
    findings
}

/// Bounds that nothing can keep at once: each min beside the least max there is.
fn contradictions(ranges: &[&LimitRange]) -> Vec<Finding> {
    let mut most = BTreeMap::new();
    for (range, _, item) in items(ranges) {
        for (name, max) in item.max.iter() {
            let least = most.entry((&item.kind, name)).or_insert((max, range));
            if max < least.0 {
                *least = (max, range);
            }
        }
    }
    let mut findings = Vec::new();
    for (low, index, item) in items(ranges) {
        for (name, min) in item.min.iter() {
            let kind = &item.kind;
            let Some((max, high)) = most.get(&(kind, name)).filter(|(max, _)| min > *max) else {
                continue;
            };
            let message = format!(
                "min {min} of {name} is greater than max {max} of LimitRange {}, \
                 so no {kind} can keep both",
                high.name
            );
            let field = format!("spec.limits[{index}].min[{name}]");
            let lint = Lint::ContradictingBounds;
            findings.push(Finding::new(lint, &owner(low), field, &message));
        }
    }
    findings
}

/// Bounds that a container, or a pod of one container, breaks that gives nothing itself. A bound without
/// a default asks for an amount, which is meant.
fn broken_defaults(ranges: &[&LimitRange]) -> Vec<Finding> {
    let mut resources = Resources::default();
    for list in [List::Requests, List::Limits] {
        for (name, given) in defaults(ranges, list) {
            if let Some(default) = given.first() {
                resources.list_mut(list).set(name.clone(), default.amount);
            }
        }
    }
    let mut findings = Vec::new();
    for (range, index, item) in items(ranges) {
        let who = match item.kind {
            LimitType::Container => "a container that gives no amounts itself",
            LimitType::Pod => "a pod of one container that gives no amounts itself",
            _ => continue,
        };
        for breach in breaches(item, &resources) {
            if resources.list(breach.list).contains(&breach.resource) {
                let message = format!("{who} is refused: {}", breach.text);
                let field = format!("spec.limits[{index}]");
                findings.push(Finding::new(
                    Lint::BrokenDefault,
                    &owner(range),
                    field,
                    &message,
                ));
            }
        }
    }
    findings
}

/// The place of the item that gives a default.
fn place(ranges: &[&LimitRange], range: &str, bound: Bound, name: &ResourceName) -> Option<String> {
    let mut items = items(ranges).filter(|(own, _, item)| {
        own.name == range && item.kind == LimitType::Container && item.list(bound).contains(name)
    });
    let (_, index, _) = items.next()?;
    Some(format!("spec.limits[{index}].{bound}[{name}]"))
}

/// Defaults that nobody wrote: they follow from a max, or from the default of the other list.
fn derived_defaults(ranges: &[&LimitRange]) -> Vec<Finding> {
    let limits = defaults(ranges, List::Limits);
    let requests = defaults(ranges, List::Requests);
    let mut findings = Vec::new();
    let mut find = |lint, range: &str, bound, name: &ResourceName, message: &str| {
        let owner = Owner::Policy("LimitRange", range.to_owned());
        let field = place(ranges, range, bound, name).unwrap_or_default();
        findings.push(Finding::new(lint, &owner, field, message));
    };
    for (name, given) in &limits {
        let Some(limit) = given.first().filter(|first| first.bound == Bound::Max) else {
            continue;
        };
        let request = requests.get(name).and_then(|given| given.first());
        let is_both = request.is_some_and(|it| it.bound == Bound::Max && it.range == limit.range);
        let (more, right) = if is_both {
            (" and the default request", "default and defaultRequest say")
        } else {
            ("", "default says")
        };
        let message = format!(
            "max {} of {name} is also the default limit{more}: a container that gives nothing gets the \
             most there is; {right} what it shall get",
            limit.amount
        );
        find(
            Lint::DefaultFromMax,
            limit.range,
            Bound::Max,
            name,
            &message,
        );
    }
    for (name, given) in &requests {
        let Some(request) = given.first().filter(|first| first.bound == Bound::Default) else {
            continue;
        };
        if name.is_never_overcommitted() {
            continue;
        }
        let message = format!(
            "default {} of {name} is also the default request: all of it is kept from others; \
             defaultRequest says how much shall be",
            request.amount
        );
        let lint = Lint::RequestFromDefault;
        find(lint, request.range, Bound::Default, name, &message);
    }
    findings
}

/// Defaults that are never given, as another LimitRange comes first.
fn losers(ranges: &[&LimitRange]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for list in [List::Requests, List::Limits] {
        for (name, given) in defaults(ranges, list) {
            let Some((first, others)) = given.split_first() else {
                continue;
            };
            for other in others.iter().filter(|other| other.amount != first.amount) {
                let message = format!(
                    "{} {} of {name} is never the default of {list}: LimitRange {} is the first by name, \
                     so its {} holds",
                    other.bound, other.amount, first.range, first.amount
                );
                let owner = Owner::Policy("LimitRange", other.range.to_owned());
                let field = place(ranges, other.range, other.bound, name).unwrap_or_default();
                findings.push(Finding::new(Lint::TiedDefaults, &owner, field, &message));
            }
        }
    }
    findings
}

/// Where LimitRanges disagree about a default that was filled in: which one holds.
pub fn tied(ranges: &[&LimitRange], filled: &[Defaulted]) -> Vec<Finding> {
    let mut told = Vec::new();
    for list in [List::Requests, List::Limits] {
        for (name, defaults) in defaults(ranges, list) {
            let Some((first, others)) = defaults.split_first() else {
                continue;
            };
            let used = filled.iter().any(|one| {
                one.list == list
                    && one.resource == *name
                    && matches!(one.rule, Rule::LimitRange { .. })
            });
            let others: Vec<_> = others
                .iter()
                .filter(|other| other.amount != first.amount)
                .take(3)
                .map(|other| format!("{} of LimitRange {}", other.amount, other.range))
                .collect();
            if used && !others.is_empty() {
                let amount: Quantity = first.amount;
                let message = format!(
                    "by default {list}.{name} is {amount} of LimitRange {}, the first by name; not {}",
                    first.range,
                    others.join(" or ")
                );
                told.push(Finding::new(
                    Lint::TiedDefaults,
                    &Owner::Object,
                    "",
                    &message,
                ));
            }
        }
    }
    told
}
