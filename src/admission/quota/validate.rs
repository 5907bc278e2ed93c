//! Is a quota itself sound?
//!
//! Decides from the object alone (Kubernetes 1.36 `ValidateResourceQuota`).

use super::super::reason::Reason;
use super::super::validate::identity;
use super::super::validate::resources::{amount_reasons, entry, name_problems};
use super::selector;
use crate::model::kind::{CLUSTER_QUOTA, RESOURCE_QUOTA};
use crate::model::{ClusterResourceQuota, Operator, ResourceName, ResourceQuota, Scope, name};

/// Keys of one quota. A bound of ours.
const MAX_KEYS: usize = 1000;

/// Bare keys that count amounts (`IsStandardQuotaResourceName`).
const AMOUNTS: [&str; 10] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "requests.storage",
];

/// Bare keys that count objects.
const COUNTS: [&str; 9] = [
    "pods",
    "services",
    "services.loadbalancers",
    "services.nodeports",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
];

/// Every rule that a quota breaks.
pub fn validate(quota: &ResourceQuota) -> Vec<Reason> {
    let mut reasons = identity(RESOURCE_QUOTA, &quota.namespace, &quota.name);
    reasons.extend(spec(quota, "spec"));
    reasons
}

/// Every rule that a quota of several namespaces breaks (OpenShift
/// `ValidateClusterResourceQuota`).
pub fn validate_cluster(cluster: &ClusterResourceQuota) -> Vec<Reason> {
    let mut reasons = identity(CLUSTER_QUOTA, "", &cluster.quota.name);
    reasons.extend(selector::validate(&cluster.selector, "spec.selector"));
    reasons.extend(spec(&cluster.quota, "spec.quota"));
    reasons
}

/// Every rule that bounds and scopes break. `path` is their place in the object.
fn spec(quota: &ResourceQuota, path: &str) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let hard = format!("{path}.hard");
    let number = quota.hard.iter().count();
    if number > MAX_KEYS {
        reasons.push(Reason::too_many(hard, number, MAX_KEYS));
        return reasons;
    }
    for (key, amount) in quota.hard.iter() {
        let field = entry(&hard, key);
        let problems = key_problems(key);
        reasons.extend(
            problems
                .iter()
                .map(|problem| Reason::invalid(&field, key, problem)),
        );
        reasons.extend(amount_reasons(&field, key, amount));
        if is_count(key) && !amount.is_integer() {
            reasons.push(Reason::invalid(&field, amount, "must be an integer"));
        }
    }
    reasons.extend(scopes(quota, path));
    reasons.extend(values(quota, path));
    reasons
}

/// Why a key is none that a quota may bound; empty if it is one.
fn key_problems(key: &ResourceName) -> Vec<String> {
    let text = key.to_string();
    if text.starts_with("hugepages-") {
        return name_problems(key);
    }
    let problems = name::qualified_name(&text);
    if problems.is_empty() && !text.contains('/') && !is_standard(&text) {
        return vec!["must be a standard resource for quota".to_owned()];
    }
    problems
}

fn is_standard(text: &str) -> bool {
    let pages = |text: &str| {
        let pages = text.strip_prefix("requests.")?;
        matches!(ResourceName::from(pages), ResourceName::HugePages(_)).then_some(())
    };
    AMOUNTS.contains(&text)
        || COUNTS.contains(&text)
        || text.starts_with("hugepages-")
        || pages(text).is_some()
}

/// Whether a key counts whole things. (`amount_reasons` knows the qualified ones.)
fn is_count(key: &ResourceName) -> bool {
    let text = key.to_string();
    let device = text.strip_prefix("requests.");
    COUNTS.contains(&text.as_str())
        || device.is_some_and(|device| ResourceName::from(device).is_extended())
}

/// Whether a scope can hold for the objects that a key counts. Keys of other domains go with any scope.
///
/// Ephemeral storage goes where cpu and memory go, as in OpenShift; upstream forgot it
/// (kubernetes#102996).
fn is_compatible(scope: Scope, key: &str) -> bool {
    if !is_standard(key) {
        return true;
    }
    match scope {
        Scope::BestEffort => key == "pods",
        Scope::VolumeAttributesClass => {
            ["persistentvolumeclaims", "requests.storage"].contains(&key)
        }
        _ => key == "pods" || AMOUNTS.contains(&key) && key != "requests.storage",
    }
}

/// What scopes may be named beside each other and beside these keys.
fn scopes(quota: &ResourceQuota, path: &str) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let bare = quota
        .scopes
        .iter()
        .map(|scope| (format!("{path}.scopes"), *scope));
    let selected = quota.selector.iter().enumerate();
    let selected = selected.map(|(index, term)| {
        let field = format!("{path}.scopeSelector.matchExpressions[{index}].scopeName");
        (field, term.scope)
    });
    let named: Vec<(String, Scope)> = bare.chain(selected).collect();
    for (index, (field, scope)) in named.iter().enumerate() {
        let unsupported: Vec<_> = quota
            .hard
            .iter()
            .map(|(key, _)| key.to_string())
            .filter(|key| !is_compatible(*scope, key))
            .collect();
        if !unsupported.is_empty() {
            let detail = format!(
                "unsupported scope applied to resource {}",
                unsupported.join(", ")
            );
            reasons.push(Reason::invalid(field, scope, detail));
        }
        let earlier = named.iter().take(index);
        if let Some((_, other)) = earlier
            .clone()
            .find(|(_, other)| scope.opposite() == Some(*other))
        {
            let detail = format!("conflicting scopes: nothing is both {other} and {scope}");
            reasons.push(Reason::invalid(field, scope, detail));
        }
    }
    reasons
}

/// Which operators and values a scope takes.
fn values(quota: &ResourceQuota, path: &str) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for (index, term) in quota.selector.iter().enumerate() {
        let path = format!("{path}.scopeSelector.matchExpressions[{index}]");
        if !term.scope.has_values() && term.operator != Operator::Exists {
            let names: Vec<_> = Scope::ALL
                .iter()
                .filter(|scope| !scope.has_values())
                .map(ToString::to_string)
                .collect();
            let detail = format!("must be 'Exists' when scope is any of {}", names.join(", "));
            reasons.push(Reason::invalid(
                format!("{path}.operator"),
                term.operator,
                detail,
            ));
        }
        let field = format!("{path}.values");
        if term.operator.takes_values() && term.values.is_empty() {
            let detail =
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
            reasons.push(Reason::required(field, detail));
        } else if !term.operator.takes_values() && !term.values.is_empty() {
            let detail =
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
            reasons.push(Reason::invalid(field, term.values.join(","), detail));
        }
    }
    reasons
}
