//! Is a LimitRange itself sound?
//!
//! Decides from the object alone (Kubernetes 1.36 `ValidateLimitRange`), so that contradictions are
//! refused when it is made and not when nothing can start any more. What is allowed and yet leads to
//! that is told by `lint`.

use std::collections::BTreeSet;

use super::super::reason::Reason;
use super::super::validate::identity;
use super::super::validate::resources::{NOT_FOR_CONTAINERS, amount_reasons, entry, name_problems};
use super::bounds::{compare, quotient};
use crate::model::kind::LIMIT_RANGE;
use crate::model::{Bound, LimitRange, LimitRangeItem, LimitType, List, ResourceName, name};
use crate::units::{Format, Quantity};

/// Items of one LimitRange, and resources in one of their lists. A bound of ours.
const MAX_ENTRIES: usize = 64;

/// Every rule that a LimitRange breaks.
pub fn validate(range: &LimitRange) -> Vec<Reason> {
    let mut reasons = identity(LIMIT_RANGE, &range.namespace, &range.name);
    if range.items.len() > MAX_ENTRIES {
        let number = range.items.len();
        reasons.push(Reason::too_many("spec.limits", number, MAX_ENTRIES));
        return reasons;
    }
    let mut seen = BTreeSet::new();
    for (index, item) in range.items.iter().enumerate() {
        let path = format!("spec.limits[{index}]");
        let field = format!("{path}.type");
        if let LimitType::Other(text) = &item.kind {
            let mut problems = name::qualified_name(text);
            if problems.is_empty() && !text.contains('/') {
                problems.push("must be a standard limit type or fully qualified".to_owned());
            }
            let problems = problems.iter();
            reasons.extend(problems.map(|problem| Reason::invalid(&field, text, problem)));
        }
        if !seen.insert(&item.kind) {
            reasons.push(Reason::duplicate(&field, &item.kind));
        }
        reasons.extend(lists(&path, item));
        reasons.extend(pairs(&path, item));
    }
    reasons
}

/// What each list may hold on its own.
fn lists(path: &str, item: &LimitRangeItem) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for bound in Bound::ALL {
        let list = item.list(bound);
        let field = format!("{path}.{bound}");
        let number = list.iter().count();
        if number > MAX_ENTRIES {
            reasons.push(Reason::too_many(field, number, MAX_ENTRIES));
            continue;
        }
        let is_default = matches!(bound, Bound::Default | Bound::DefaultRequest);
        if is_default && number > 0 && item.kind == LimitType::Pod {
            let detail = "may not be specified when `type` is 'Pod'";
            reasons.push(Reason::forbidden(&field, detail));
        }
        for (name, amount) in list.iter() {
            let field = entry(&field, name);
            let problems = resource_problems(&item.kind, name);
            let problems = problems.iter();
            reasons.extend(problems.map(|problem| Reason::invalid(&field, name, problem)));
            if bound != Bound::MaxLimitRequestRatio {
                reasons.extend(amount_reasons(&field, name, amount));
            } else if amount < one() {
                let detail = format!("ratio {amount} is less than 1");
                reasons.push(Reason::invalid(&field, amount, detail));
            }
        }
    }
    let storage = ResourceName::from("storage");
    let is_claim = item.kind == LimitType::PersistentVolumeClaim;
    if is_claim && !item.min.contains(&storage) && !item.max.contains(&storage) {
        let detail =
            "either minimum or maximum storage value is required, but neither was provided";
        reasons.push(Reason::required(format!("{path}.limits"), detail));
    }
    reasons
}

/// What the lists may hold beside each other.
fn pairs(path: &str, item: &LimitRangeItem) -> Vec<Reason> {
    /// The lesser list, the greater one, the list at fault, and what upstream calls the two.
    const ORDERED: [(Bound, Bound, Bound, &str, &str); 6] = {
        use Bound::{Default, DefaultRequest, Max, Min};
        [
            (Min, Max, Min, "min", "max"),
            (
                Min,
                DefaultRequest,
                DefaultRequest,
                "min",
                "default request",
            ),
            (
                DefaultRequest,
                Max,
                DefaultRequest,
                "default request",
                "max",
            ),
            (
                DefaultRequest,
                Default,
                DefaultRequest,
                "default request",
                "default limit",
            ),
            (Min, Default, Default, "min", "default"),
            (Default, Max, Default, "default", "max"),
        ]
    };
    let mut reasons = Vec::new();
    for (lesser, greater, at_fault, lesser_name, greater_name) in ORDERED {
        for (name, low) in item.list(lesser).iter() {
            let Some(high) = item.list(greater).get(name).filter(|high| low > *high) else {
                continue;
            };
            let value = if at_fault == lesser { low } else { high };
            let detail =
                format!("{lesser_name} value {low} is greater than {greater_name} value {high}");
            let field = entry(&format!("{path}.{at_fault}"), name);
            reasons.push(Reason::invalid(field, value, detail));
        }
    }
    for (name, ratio) in item.max_limit_request_ratio.iter() {
        if let (Some(max), Some(min)) = (item.max.get(name), item.min.get(name))
            && min > Quantity::ZERO
            && compare(max, min, ratio).is_lt()
        {
            let field = entry(&format!("{path}.{}", Bound::MaxLimitRequestRatio), name);
            let quotient = quotient(max, min);
            let detail = format!("ratio {ratio} is greater than max/min = {quotient}");
            reasons.push(Reason::invalid(field, ratio, detail));
        }
    }
    let requests = item.defaults(List::Requests);
    for (name, (limit, _)) in item.defaults(List::Limits) {
        if let Some((request, _)) = requests.get(name)
            && name.is_never_overcommitted()
            && *request != limit
        {
            let field = entry(&format!("{path}.{}", Bound::DefaultRequest), name);
            let detail = format!(
                "default value {limit} must equal to defaultRequest value {request} in {name}"
            );
            reasons.push(Reason::invalid(field, request, detail));
        }
    }
    reasons
}

fn one() -> Quantity {
    Quantity::from_units(1, Format::DecimalSi)
}

/// Why an item of this kind may not bound a resource of this name; empty if it may.
fn resource_problems(kind: &LimitType, name: &ResourceName) -> Vec<String> {
    if matches!(kind, LimitType::Container | LimitType::Pod) {
        return name_problems(name);
    }
    let text = name.to_string();
    let mut problems = name::qualified_name(&text);
    let is_known = match name {
        ResourceName::Other(text) => NOT_FOR_CONTAINERS.contains(&text.as_str()),
        _ => true,
    };
    if problems.is_empty() && !is_known && !text.contains('/') {
        problems.push("must be a standard resource type or fully qualified".to_owned());
    }
    problems
}
