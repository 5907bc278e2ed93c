//! What may be used only where a quota counts it (`limitedResources` of the quota admission).

use std::collections::BTreeSet;

use super::super::reason::{Code, Reason};
use super::{Demand, Keys, growth};
use crate::model::{LimitedResource, ResourceName, ResourceQuota};

/// What an object uses of that and no quota counts.
pub(super) fn uncovered(
    demand: &Demand,
    before: Option<&Demand>,
    quotas: &[&ResourceQuota],
    limited: &[LimitedResource],
) -> Vec<Reason> {
    let limited: Vec<_> = limited
        .iter()
        .filter(|limited| limited.resource == demand.resource())
        .collect();
    let growth = growth(demand.usage(), before.map(Demand::usage));
    if limited.is_empty() || growth.is_empty() {
        return Vec::new();
    }
    let counted: BTreeSet<&ResourceName> = quotas
        .iter()
        .filter(|quota| demand.matches(quota))
        .flat_map(|quota| quota.hard.iter().map(|(name, _)| name))
        .collect();
    let is_limited = |name: &ResourceName| {
        let text = name.to_string();
        let mut parts = limited.iter().flat_map(|limited| &limited.match_contains);
        parts.any(|part| text.contains(part))
    };
    let mut reasons = Vec::new();
    let missing = growth
        .iter()
        .filter(|(name, _)| is_limited(name) && !counted.contains(name))
        .map(|(name, amount)| (name.clone(), amount))
        .collect();
    let missing = Keys(&missing).to_string();
    if !missing.is_empty() {
        let message = format!("insufficient quota to consume: {missing}");
        reasons.push(Reason::policy(Code::InsufficientQuota, "", &message));
    }

    // A scope is covered by any quota with a matching expression about it, whatever that quota counts.
    let traits = demand.traits();
    let terms = quotas.iter().flat_map(|quota| quota.terms());
    let covered: Vec<_> = terms
        .filter(|term| traits.match_term(term))
        .map(|term| term.scope)
        .collect();
    let uncovered: Vec<_> = limited
        .iter()
        .flat_map(|limited| &limited.match_scopes)
        .filter(|term| traits.match_term(term) && !covered.contains(&term.scope))
        .map(ToString::to_string)
        .collect();
    if !uncovered.is_empty() {
        let scopes = uncovered.join(" ");
        let message = format!("insufficient quota to match these scopes: [{scopes}]");
        reasons.push(Reason::policy(Code::InsufficientQuota, "", &message));
    }
    reasons
}
