//! Quotas and LimitRanges in the layout of `kubectl describe`.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{LimitRange, ResourceQuota, ResourceQuotaStatus};

use super::map;
use crate::cli::render::Page;
use crate::manifest::openshift::ClusterResourceQuota;
use crate::report::table::{figures, label_selector};

/// What the basic scopes mean.
const SCOPES: [(&str, &str); 4] = [
    (
        "Terminating",
        "pods that end by themselves: activeDeadlineSeconds is set",
    ),
    ("NotTerminating", "pods without activeDeadlineSeconds"),
    (
        "BestEffort",
        "pods whose containers ask for nothing and are bound by nothing",
    ),
    ("NotBestEffort", "pods with a request or a limit"),
];

/// One quota.
pub fn quota(quota: &ResourceQuota) -> Page {
    let mut page = Page::description();
    let meta = &quota.metadata;
    page.row(0, &[&"Name:", &meta.name.as_deref().unwrap_or_default()]);
    page.row(
        0,
        &[
            &"Namespace:",
            &meta.namespace.as_deref().unwrap_or_default(),
        ],
    );
    let scopes = quota.spec.as_ref().and_then(|spec| spec.scopes.as_ref());
    let scopes: BTreeSet<_> = scopes.into_iter().flatten().map(String::as_str).collect();
    if !scopes.is_empty() {
        let names: Vec<_> = scopes.iter().copied().collect();
        page.row(0, &[&"Scopes:", &names.join(", ")]);
        for scope in scopes {
            if let Some((_, meaning)) = SCOPES.iter().find(|(name, _)| *name == scope) {
                page.row(0, &[&format!(" * {scope}: {meaning}")]);
            }
        }
    }
    write_figures(&mut page, quota.status.as_ref());
    page
}

fn write_figures(page: &mut Page, status: Option<&ResourceQuotaStatus>) {
    page.heading(0, &["Resource", "Used", "Hard"]);
    for (name, used, hard) in figures(status) {
        page.row(0, &[&name, &used, &hard]);
    }
}

/// One quota of several namespaces, or what one of them may see of it.
pub fn cluster_quota(quota: &ClusterResourceQuota) -> Page {
    let mut page = Page::description();
    let meta = &quota.metadata;
    page.row(0, &[&"Name:", &meta.name.as_deref().unwrap_or_default()]);
    if let Some(namespace) = &meta.namespace {
        page.row(0, &[&"Namespace:", namespace]);
    }
    map(&mut page, "Labels:", meta.labels.as_ref(), "=");
    map(&mut page, "Annotations:", meta.annotations.as_ref(), ": ");
    let status = quota.status.as_ref();
    let parts = || status.and_then(|status| status.namespaces.as_ref());
    let names: Vec<_> = parts().into_iter().flatten().collect();
    let quoted: Vec<_> = names
        .iter()
        .map(|part| format!("{:?}", part.namespace))
        .collect();
    page.row(
        0,
        &[&"Namespace Selector:", &format!("[{}]", quoted.join(" "))],
    );
    let selector = &quota.spec.selector;
    page.row(
        0,
        &[
            &"Label Selector:",
            &label_selector(selector.labels.as_ref()),
        ],
    );
    map(
        &mut page,
        "Annotation Selector:",
        selector.annotations.as_ref(),
        "=",
    );
    let scopes = quota.spec.quota.scopes.iter().flatten();
    let scopes: BTreeSet<_> = scopes.map(String::as_str).collect();
    if !scopes.is_empty() {
        let names: Vec<_> = scopes.into_iter().collect();
        page.row(0, &[&"Scopes:", &names.join(", ")]);
    }
    write_figures(&mut page, status.map(|status| &status.total));
    // Who uses how much of it: oc shows the total only.
    for part in names.iter().filter(|_| names.len() > 1) {
        page.row(0, &[&format!("Used by {}:", part.namespace)]);
        for (name, used, _) in figures(Some(&part.status)) {
            page.row(1, &[&name, &used]);
        }
    }
    page
}

/// One LimitRange.
pub fn limit_range(range: &LimitRange) -> Page {
    let mut page = Page::description();
    let meta = &range.metadata;
    page.row(0, &[&"Name:", &meta.name.as_deref().unwrap_or_default()]);
    page.row(
        0,
        &[
            &"Namespace:",
            &meta.namespace.as_deref().unwrap_or_default(),
        ],
    );
    let columns = [
        "Type",
        "Resource",
        "Min",
        "Max",
        "Default Request",
        "Default Limit",
        "Max Limit/Request Ratio",
    ];
    page.heading(0, &columns);
    for item in range.spec.iter().flat_map(|spec| &spec.limits) {
        let lists = [
            &item.min,
            &item.max,
            &item.default_request,
            &item.default,
            &item.max_limit_request_ratio,
        ];
        let names: BTreeSet<_> = lists
            .iter()
            .copied()
            .flatten()
            .flat_map(|list| list.keys())
            .collect();
        for name in names {
            let amounts = lists.map(|list| {
                let amount = list.as_ref().and_then(|list| list.get(name));
                amount.map_or("-", |amount| amount.0.as_str())
            });
            let mut cells = vec![item.type_.as_str(), name.as_str()];
            cells.extend(amounts);
            page.texts(0, &cells);
        }
    }
    page
}
