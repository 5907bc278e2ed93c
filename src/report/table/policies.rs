//! The figures of a quota.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ResourceQuota, ResourceQuotaStatus};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::given;
use crate::manifest::convert;
use crate::manifest::openshift::ClusterResourceQuota;

/// What each bound of a quota is, and what of it is used, by name.
pub fn figures(status: Option<&ResourceQuotaStatus>) -> Vec<(String, String, String)> {
    let hard = status.and_then(|status| status.hard.as_ref());
    let used = status.and_then(|status| status.used.as_ref());
    let text = |list: Option<&BTreeMap<String, Quantity>>, name: &String| {
        let amount = list.and_then(|list| list.get(name));
        amount.map_or_else(|| "0".to_owned(), |amount| amount.0.clone())
    };
    let names = hard.into_iter().flat_map(BTreeMap::keys);
    names
        .map(|name| (name.clone(), text(used, name), text(hard, name)))
        .collect()
}

pub(super) fn of_quota(quota: &ResourceQuota, name: String, age: String) -> Vec<String> {
    let [requests, limits] = used_of_hard(quota.status.as_ref());
    vec![name, requests, limits, age]
}

pub(super) fn of_cluster_quota(
    quota: &ClusterResourceQuota,
    name: String,
    age: String,
) -> Vec<String> {
    let total = quota.status.as_ref().map(|status| &status.total);
    let [requests, limits] = used_of_hard(total);
    let selector = &quota.spec.selector;
    let annotations: Vec<_> = selector
        .annotations
        .iter()
        .flatten()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let labels = label_selector(selector.labels.as_ref());
    let annotations = given(Some(&annotations.join(",")));
    vec![name, labels, annotations, requests, limits, age]
}

/// A label selector as `kubectl` shows it.
pub fn label_selector(selector: Option<&LabelSelector>) -> String {
    // What cannot be read was refused before it could be shown.
    let text =
        selector.map(|selector| convert::label_selector(selector, "", &mut Vec::new()).to_string());
    given(text.as_deref())
}

/// The figures in one line each: of limits, and of everything else before them.
fn used_of_hard(status: Option<&ResourceQuotaStatus>) -> [String; 2] {
    let figures = figures(status);
    [false, true].map(|limits| {
        let own = figures
            .iter()
            .filter(|(name, ..)| name.starts_with("limits") == limits);
        let texts: Vec<_> = own
            .map(|(name, used, hard)| format!("{name}: {used}/{hard}"))
            .collect();
        texts.join(", ")
    })
}
