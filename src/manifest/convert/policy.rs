//! LimitRanges, quotas and the namespaces they are for to the model. Amounts are kept in thousandths, as
//! the API keeps those of every such list.

use std::collections::BTreeMap;
use std::fmt::Display;

use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use super::{Converted, Remark, given, list, name};
use crate::manifest::misfit::shown;
use crate::manifest::openshift as written;
use crate::model::{
    ClusterResourceQuota, LabelSelector, LabelTerm, LimitRange, LimitRangeItem, LimitType,
    Namespace, NamespaceSelector, Operator, ResourceList, ResourceQuota, Scope, ScopeTerm,
};
use crate::units::Quantity;

/// A LimitRange.
pub fn limit_range(range: &v1::LimitRange) -> Converted<LimitRange> {
    let mut problems = Vec::new();
    let items = range.spec.iter().flat_map(|spec| &spec.limits).enumerate();
    let items = items
        .map(|(index, from)| {
            let mut read = |from: Option<&BTreeMap<String, Text>>, name: &str| {
                thousandths(from, &format!("spec.limits[{index}].{name}"), &mut problems)
            };
            LimitRangeItem {
                kind: LimitType::from(from.type_.as_str()),
                max: read(from.max.as_ref(), "max"),
                min: read(from.min.as_ref(), "min"),
                default: read(from.default.as_ref(), "default"),
                default_request: read(from.default_request.as_ref(), "defaultRequest"),
                max_limit_request_ratio: read(
                    from.max_limit_request_ratio.as_ref(),
                    "maxLimitRequestRatio",
                ),
            }
        })
        .collect();
    let (namespace, name) = identity(&range.metadata);
    Converted {
        object: LimitRange {
            namespace,
            name,
            items,
        },
        problems,
        notes: Vec::new(),
    }
}

/// A ResourceQuota. What its status says is used counts as used; what it says is hard does not count:
/// the spec does.
pub fn resource_quota(quota: &v1::ResourceQuota) -> Converted<ResourceQuota> {
    let mut problems = Vec::new();
    let (namespace, name) = identity(&quota.metadata);
    let object = ResourceQuota {
        namespace,
        name,
        used: used(quota.status.as_ref(), "status", &mut problems),
        ..bounds(quota.spec.as_ref(), "spec", &mut problems)
    };
    Converted {
        object,
        problems,
        notes: Vec::new(),
    }
}

/// A ClusterResourceQuota. Of its status, what each namespace uses counts; the total is their sum.
pub fn cluster_resource_quota(
    quota: &written::ClusterResourceQuota,
) -> Converted<ClusterResourceQuota> {
    let mut problems = Vec::new();
    let selector = namespace_selector(&quota.spec.selector, &mut problems);
    let mut object = ClusterResourceQuota {
        selector,
        quota: ResourceQuota {
            name: name(&quota.metadata),
            ..bounds(Some(&quota.spec.quota), "spec.quota", &mut problems)
        },
        namespaces: BTreeMap::new(),
    };
    let status = quota.status.as_ref();
    let parts = status.and_then(|status| status.namespaces.as_ref());
    for (index, part) in parts.into_iter().flatten().enumerate() {
        let field = format!("status.namespaces[{index}].status");
        let used = used(Some(&part.status), &field, &mut problems);
        if object
            .namespaces
            .insert(part.namespace.clone(), used)
            .is_some()
        {
            let field = format!("status.namespaces[{index}].namespace");
            let message = format!("{:?} is given twice", shown(&part.namespace));
            problems.push(Remark::new(field, message));
        }
    }
    object.quota.used = object.sum();
    Converted {
        object,
        problems,
        notes: Vec::new(),
    }
}

/// A namespace, as selectors see it.
pub fn namespace(namespace: &v1::Namespace) -> Namespace {
    let metadata = &namespace.metadata;
    Namespace::new(
        &name(metadata),
        metadata.labels.clone().unwrap_or_default(),
        metadata.annotations.clone().unwrap_or_default(),
    )
}

/// Bounds and scopes of a quota whose spec is at `path`.
fn bounds(
    spec: Option<&v1::ResourceQuotaSpec>,
    path: &str,
    problems: &mut Vec<Remark>,
) -> ResourceQuota {
    let spec = spec.cloned().unwrap_or_default();
    let hard = thousandths(spec.hard.as_ref(), &format!("{path}.hard"), problems);
    let mut scopes = Vec::new();
    for (index, name) in spec.scopes.iter().flatten().enumerate() {
        scopes.extend(scope(name, &format!("{path}.scopes[{index}]"), problems));
    }
    let selector = spec
        .scope_selector
        .and_then(|selector| selector.match_expressions);
    let mut terms = Vec::new();
    for (index, from) in selector.into_iter().flatten().enumerate() {
        let path = format!("{path}.scopeSelector.matchExpressions[{index}]");
        let scope = scope(&from.scope_name, &format!("{path}.scopeName"), problems);
        let operator = operator(&from.operator, &path, problems);
        if let (Some(scope), Some(operator)) = (scope, operator) {
            terms.push(ScopeTerm {
                scope,
                operator,
                values: from.values.unwrap_or_default(),
            });
        }
    }
    ResourceQuota {
        hard,
        scopes,
        selector: terms,
        ..ResourceQuota::default()
    }
}

fn used(
    status: Option<&v1::ResourceQuotaStatus>,
    path: &str,
    problems: &mut Vec<Remark>,
) -> ResourceList {
    let used = status.and_then(|status| status.used.as_ref());
    thousandths(used, &format!("{path}.used"), problems)
}

fn namespace_selector(
    from: &written::NamespaceSelector,
    problems: &mut Vec<Remark>,
) -> NamespaceSelector {
    let labels = from.labels.as_ref();
    let labels = labels.map(|from| label_selector(from, "spec.selector.labels", problems));
    NamespaceSelector {
        labels,
        annotations: from.annotations.clone().unwrap_or_default(),
    }
}

/// A label selector at `path`.
pub fn label_selector(
    from: &meta::LabelSelector,
    path: &str,
    problems: &mut Vec<Remark>,
) -> LabelSelector {
    let mut terms = Vec::new();
    for (index, from) in from.match_expressions.iter().flatten().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        if let Some(operator) = operator(&from.operator, &path, problems) {
            terms.push(LabelTerm {
                key: from.key.clone(),
                operator,
                values: from.values.clone().unwrap_or_default(),
            });
        }
    }
    LabelSelector {
        labels: from.match_labels.clone().unwrap_or_default(),
        terms,
    }
}

fn operator(name: &str, path: &str, problems: &mut Vec<Remark>) -> Option<Operator> {
    let operator = Operator::from_name(name);
    if operator.is_none() {
        let message = not_one_of(name, "operator", &Operator::ALL);
        problems.push(Remark::new(format!("{path}.operator"), message));
    }
    operator
}

fn scope(name: &str, field: &str, problems: &mut Vec<Remark>) -> Option<Scope> {
    let scope = Scope::from_name(name);
    if scope.is_none() {
        problems.push(Remark::new(field, not_one_of(name, "scope", &Scope::ALL)));
    }
    scope
}

fn not_one_of(value: &str, what: &str, supported: &[impl Display]) -> String {
    let supported: Vec<_> = supported.iter().map(ToString::to_string).collect();
    format!(
        "Invalid value: {:?}: unsupported {what}: it is one of {}",
        shown(value),
        supported.join(", ")
    )
}

fn identity(meta: &meta::ObjectMeta) -> (String, String) {
    let namespace = given(meta.namespace.as_deref()).unwrap_or("default");
    (namespace.to_owned(), name(meta))
}

fn thousandths(
    from: Option<&BTreeMap<String, Text>>,
    field: &str,
    problems: &mut Vec<Remark>,
) -> ResourceList {
    list(from, field, problems)
        .iter()
        .map(|(name, amount)| (name.clone(), amount.round_up(Quantity::MILLI)))
        .collect()
}
