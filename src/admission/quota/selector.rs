//! Is a choice of namespaces sound?
//!
//! Decides from the selector alone (OpenShift `ValidateClusterResourceQuota`, Kubernetes 1.36
//! `ValidateLabelSelector`).

use super::super::reason::Reason;
use super::super::validate::{annotations, labels};
use crate::model::{LabelSelector, LabelTerm, NamespaceSelector, name};

/// What a selector must do that is there.
const RESTRICT: &str = "must restrict the selected projects";

/// Every rule that it breaks. `path` is its place in the object.
pub(super) fn validate(selector: &NamespaceSelector, path: &str) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if selector.labels.is_none() && selector.annotations.is_empty() {
        reasons.push(Reason::required(path, RESTRICT));
    }
    if let Some(labels) = &selector.labels {
        let field = format!("{path}.labels");
        if labels.is_empty() {
            reasons.push(Reason::invalid(&field, "{}", RESTRICT));
        }
        reasons.extend(by_labels(labels, &field));
    }
    let field = format!("{path}.annotations");
    reasons.extend(annotations(&selector.annotations, &field));
    reasons
}

fn by_labels(selector: &LabelSelector, path: &str) -> Vec<Reason> {
    let mut reasons = labels(&selector.labels, &format!("{path}.matchLabels"));
    for (index, term) in selector.terms.iter().enumerate() {
        reasons.extend(by_term(term, &format!("{path}.matchExpressions[{index}]")));
    }
    reasons
}

fn by_term(term: &LabelTerm, path: &str) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let field = format!("{path}.values");
    match (term.operator.takes_values(), term.values.is_empty()) {
        (true, true) => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            reasons.push(Reason::required(&field, detail));
        }
        (false, false) => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            reasons.push(Reason::forbidden(&field, detail));
        }
        _ => {}
    }
    let problems = name::qualified_name(&term.key);
    let problems = problems.iter();
    reasons.extend(problems.map(|why| Reason::invalid(format!("{path}.key"), &term.key, why)));
    for (index, value) in term.values.iter().enumerate() {
        let problems = name::label_value(value);
        let problems = problems.iter();
        let field = format!("{field}[{index}]");
        reasons.extend(problems.map(|why| Reason::invalid(&field, value, why)));
    }
    reasons
}
