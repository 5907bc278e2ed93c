//! What the API offers: groups, versions and resources, as kubectl asks for them. It must never name a
//! verb that is not served.

use axum::Json;
use axum::extract::{Path, State};
use serde_json::{Value, json};

use super::Shared;
use super::status::Answer;
use crate::agent::Refusal;
use crate::model::definition::rank;
use crate::model::kind::{NODE, POD};
use crate::model::{Kind, Kinds};

/// The group of what Kubernetes has no words for.
const OWN: (&str, &str) = ("allotd.dev", "v1");

/// The group of figures; what `kubectl top` asks.
const METRICS: (&str, &str) = ("metrics.k8s.io", "v1beta1");

/// Versions of the core group.
pub(super) async fn versions() -> Json<Value> {
    Json(json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
    }))
}

/// The other groups.
pub(super) async fn groups(State(shared): State<Shared>) -> Json<Value> {
    let groups: Vec<_> = known_groups(&shared.handle.kinds())
        .iter()
        .map(group_of)
        .collect();
    Json(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
}

/// One group.
pub(super) async fn group(
    State(shared): State<Shared>,
    Path(name): Path<String>,
) -> Answer<Json<Value>> {
    let known = known_groups(&shared.handle.kinds());
    let known = known.iter().find(|(known, _)| *known == name);
    let Some(known) = known else {
        return Err(
            Refusal::new(404, "NotFound", format!("there is no API group {name:?}")).into(),
        );
    };
    let mut group = group_of(known);
    if let Some(fields) = group.as_object_mut() {
        fields.insert("kind".to_owned(), json!("APIGroup"));
        fields.insert("apiVersion".to_owned(), json!("v1"));
    }
    Ok(Json(group))
}

/// The resources of the core group.
pub(super) async fn core(State(shared): State<Shared>) -> Json<Value> {
    Json(resources(&shared.handle.kinds(), "", "v1"))
}

/// The resources of another group.
pub(super) async fn of_group(
    State(shared): State<Shared>,
    Path((group, version)): Path<(String, String)>,
) -> Answer<Json<Value>> {
    let kinds = shared.handle.kinds();
    let mut known = known_groups(&kinds).into_iter();
    if known.any(|(known, versions)| known == group && versions.contains(&version.as_str())) {
        return Ok(Json(resources(&kinds, &group, &version)));
    }
    let message = format!("there is no API group {group:?} in version {version:?}");
    Err(Refusal::new(404, "NotFound", message).into())
}

/// A group and its versions, best first.
type Group = (&'static str, Vec<&'static str>);

/// Each once, in the order of the kinds; ours last.
fn known_groups(kinds: &Kinds) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let all = kinds.all().filter(|kind| !kind.group.is_empty());
    for (group, version) in all
        .map(|kind| (kind.group, kind.version))
        .chain([METRICS, OWN])
    {
        match groups.iter_mut().find(|(known, _)| *known == group) {
            Some((_, versions)) if versions.contains(&version) => {}
            Some((_, versions)) => versions.push(version),
            None => groups.push((group, vec![version])),
        }
    }
    for (_, versions) in &mut groups {
        versions.sort_by_key(|version| rank(version));
    }
    groups
}

/// Where the paths of each group with kinds begin.
pub(super) fn group_versions(kinds: &Kinds) -> Vec<String> {
    let mut roots: Vec<_> = kinds.all().map(|kind| kind.root()).collect();
    roots.sort();
    roots.dedup();
    roots
}

fn group_of((name, versions): &Group) -> Value {
    let versions = versions.iter();
    let versions: Vec<_> = versions
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
}

fn resources(kinds: &Kinds, group: &str, version: &str) -> Value {
    let mut list = Vec::new();
    let all = kinds.all();
    for kind in all.filter(|kind| (kind.group, kind.version) == (group, version)) {
        let mut own = resource(
            kind.plural,
            kind.kind,
            kind.namespaced,
            verbs(kind),
            kind.short,
        );
        if let Some(fields) = own.as_object_mut() {
            fields.insert("singularName".to_owned(), json!(kind.singular()));
            fields.insert("categories".to_owned(), json!(kind.categories));
        }
        list.push(own);
        match kind {
            POD => {
                let verbs = &["get", "patch", "update"];
                list.push(resource("pods/resize", "Pod", true, verbs, &[]));
                list.push(resource("pods/log", "Pod", true, &["get"], &[]));
                list.push(resource("pods/status", "Pod", true, &["get"], &[]));
            }
            NODE => list.push(resource(
                "nodes/status",
                "Node",
                false,
                &["get", "patch"],
                &[],
            )),
            _ => {}
        }
    }
    if (group, version) == METRICS {
        list.extend([
            resource("nodes", "NodeMetrics", false, &["get", "list"], &[]),
            resource("pods", "PodMetrics", true, &["get", "list"], &[]),
        ]);
    }
    if group == OWN.0 {
        list.extend([
            resource("status", "Status", false, &["get"], &[]),
            resource("accounts", "Accounts", false, &["get"], &[]),
            resource("namespaces/charges", "Charges", false, &["get"], &[]),
            resource("diff", "Diff", false, &["get"], &[]),
            resource("drifts", "Drift", false, &["get"], &[]),
            resource("pods/attach", "Attach", true, &["create"], &[]),
            resource("pods/explain", "Explanation", true, &["get"], &[]),
            resource("pods/usage", "Usage", true, &["get"], &[]),
        ]);
    }
    let group_version = match group {
        "" => version.to_owned(),
        group => format!("{group}/{version}"),
    };
    json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": list,
    })
}

fn verbs(kind: Kind) -> &'static [&'static str] {
    if !kind.is_watched() {
        return &["get", "list"];
    }
    if kind.is_own() {
        return &["get", "list", "watch"];
    }
    &[
        "create", "delete", "get", "list", "patch", "update", "watch",
    ]
}

fn resource(name: &str, kind: &str, namespaced: bool, verbs: &[&str], short: &[&str]) -> Value {
    json!({
        "name": name,
        "singularName": "",
        "kind": kind,
        "namespaced": namespaced,
        "verbs": verbs,
        "shortNames": short,
    })
}
