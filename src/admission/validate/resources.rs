//! Names and amounts of resources: of one container, or of the overhead.

use crate::admission::Reason;
use crate::model::{List, ResourceList, ResourceName, Resources, name};
use crate::units::{Format, Quantity};

/// A limit with a fraction of a byte is refused below so many bytes.
const LEAST_FRACTION: u64 = 4096;

/// Names that Kubernetes knows, but not for containers (`IsStandardResourceName`).
pub(in crate::admission) const NOT_FOR_CONTAINERS: [&str; 9] = [
    "configmaps",
    "persistentvolumeclaims",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
    "storage",
];

/// Every rule that a container's resources break; `path` ends in `resources`.
pub(super) fn check(path: &str, resources: &Resources) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for list in [List::Limits, List::Requests] {
        reasons.extend(amounts(&format!("{path}.{list}"), resources.list(list)));
    }
    reasons.extend(fraction_of_byte(path, &resources.limits));
    reasons.extend(pairs(path, resources));
    reasons
}

/// `400m` of memory is a slip, and under a limit like that no process can start (kubernetes#28741). A
/// request like that is warned of; a fraction of more is what remains of an amount like 1.1Gi.
fn fraction_of_byte(path: &str, limits: &ResourceList) -> Option<Reason> {
    let limit = limits.get(&ResourceName::Memory)?;
    let least = Quantity::from_units(LEAST_FRACTION, Format::BinarySi);
    if limit.is_integer() || limit.is_negative() || limit >= least {
        return None;
    }
    let number = limit.to_string();
    let number = number.trim_end_matches('m');
    let detail = format!(
        "is {} bytes, and must be whole bytes; did you mean {number}M or {number}Mi?",
        limit.exact()
    );
    let field = entry(&format!("{path}.limits"), &ResourceName::Memory);
    Some(Reason::invalid(field, limit, detail))
}

/// Every rule that single amounts break; `path` is that of the list.
pub(super) fn amounts(path: &str, list: &ResourceList) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for (name, amount) in list.iter() {
        let field = entry(path, name);
        reasons.extend(
            name_problems(name)
                .iter()
                .map(|problem| Reason::invalid(&field, name, problem)),
        );
        reasons.extend(amount_reasons(&field, name, amount));
    }
    reasons
}

/// The field of one resource in a list.
pub(in crate::admission) fn entry(path: &str, name: &ResourceName) -> String {
    format!("{path}[{name}]")
}

/// Every rule that an amount breaks, whatever the name is allowed to be.
pub(in crate::admission) fn amount_reasons(
    field: &str,
    name: &ResourceName,
    amount: Quantity,
) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if amount.is_negative() {
        reasons.push(Reason::invalid(
            field,
            amount,
            "must be greater than or equal to 0",
        ));
    }
    if name.is_extended() && !amount.is_integer() {
        reasons.push(Reason::invalid(field, amount, "must be an integer"));
    }
    if let ResourceName::HugePages(size) = name {
        // Upstream's words; zero is a multiple nevertheless.
        let page = i128::from(size.bytes().0);
        if amount.value().checked_rem(page) != Some(0) {
            let detail = format!("{amount} is not positive integer multiple of {name}");
            reasons.push(Reason::invalid(field, amount, detail));
        }
    }
    reasons
}

/// Every rule about a request and its limit; `path` ends in `resources`.
pub(super) fn pairs(path: &str, resources: &Resources) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let field = format!("{path}.requests");
    for (name, request) in resources.requests.iter() {
        match resources.limits.get(name) {
            Some(limit) if name.is_never_overcommitted() && request != limit => {
                let detail = format!("must be equal to {name} limit of {limit}");
                reasons.push(Reason::invalid(&field, request, detail));
            }
            Some(limit) if request > limit => {
                let detail = format!("must be less than or equal to {name} limit of {limit}");
                reasons.push(Reason::invalid(&field, request, detail));
            }
            None if name.is_never_overcommitted() => reasons.push(Reason::required(
                format!("{path}.limits"),
                &format!("Limit must be set for non overcommitable resources ({name})"),
            )),
            _ => {}
        }
    }
    let names = || {
        resources
            .limits
            .iter()
            .chain(resources.requests.iter())
            .map(|(name, _)| name)
    };
    let huge = names().any(|name| matches!(name, ResourceName::HugePages(_)));
    if huge && !names().any(|name| matches!(name, ResourceName::Cpu | ResourceName::Memory)) {
        reasons.push(Reason::forbidden(path, "HugePages require cpu or memory"));
    }
    reasons
}

/// Why a container may not ask for a resource of this name; empty if it may.
pub(in crate::admission) fn name_problems(name: &ResourceName) -> Vec<String> {
    const STRANGE: &str = "must be a standard resource type or fully qualified";
    const ELSEWHERE: &str = "must be a standard resource for containers";
    const EXTENDED: &str = "doesn't follow extended resource name standard";
    let text = match name {
        ResourceName::Cpu
        | ResourceName::Memory
        | ResourceName::EphemeralStorage
        | ResourceName::HugePages(_) => return Vec::new(),
        ResourceName::Pods => return vec![ELSEWHERE.to_owned()],
        ResourceName::Other(text) => text,
    };
    if text.starts_with("hugepages-") {
        // Upstream takes the name and then gives the container no pages (`hugepages-2MB`).
        return vec![
            "must name a size of huge page, as hugepages-2Mi and hugepages-1Gi do".to_owned(),
        ];
    }
    let problems = name::qualified_name(text);
    if !problems.is_empty() {
        return problems;
    }
    let qualified = text.contains('/');
    let native = text.contains("kubernetes.io/");
    let counted =
        || name.is_extended() && name::qualified_name(&format!("requests.{text}")).is_empty();
    let problem = match qualified {
        true if native || counted() => return problems,
        true => EXTENDED,
        false if NOT_FOR_CONTAINERS.contains(&text.as_str()) => ELSEWHERE,
        false => STRANGE,
    };
    vec![problem.to_owned()]
}
