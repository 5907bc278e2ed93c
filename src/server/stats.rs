//! Figures of node and pods as others ask for them: the kubelet's summary, and `metrics.k8s.io` for
//! `kubectl top`.

use axum::Json;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use super::query::ListQuery;
use super::status::Answer;
use crate::agent::{ObjectKey, Refusal};
use crate::model::kind::{NODE, POD};
use crate::observation::machine;
use crate::report::stats::summary::summary as summarise;
use crate::report::stats::{PodPlace, Readings, top};

/// What of the summary is wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SummaryQuery {
    only_cpu_and_memory: bool,
}

/// The kubelet's summary.
pub(super) async fn summary(
    State(shared): State<Shared>,
    Query(query): Query<SummaryQuery>,
) -> Answer<Json<Value>> {
    let readings = shared.handle.readings(true).await?;
    let disk = if query.only_cpu_and_memory {
        None
    } else {
        Some(shared.handle.disk(&readings).await?)
    };
    let answer = summarise(&readings, machine::booted(), disk.as_deref());
    Ok(Json(answer))
}

/// The nodes: this one, if it is wanted.
pub(super) async fn nodes(
    State(shared): State<Shared>,
    Query(query): Query<ListQuery>,
) -> Answer<Json<Value>> {
    let selection = query.selection(NODE)?;
    let readings = shared.handle.readings(true).await?;
    let key = ObjectKey::of(NODE, "", &readings.census.node);
    let seen = shared.handle.cache().get(&key);
    let is_wanted = seen.is_some_and(|seen| selection.takes(&seen.object));
    let items = top::node(&readings).filter(|_| is_wanted);
    Ok(Json(list("NodeMetricsList", items.as_slice())))
}

/// One node.
pub(super) async fn node(
    State(shared): State<Shared>,
    Path(name): Path<String>,
) -> Answer<Json<Value>> {
    let readings = shared.handle.readings(true).await?;
    let own = top::node(&readings).filter(|_| readings.census.node == name);
    let own = own.ok_or_else(|| Refusal::not_found("nodes.metrics.k8s.io", &name))?;
    Ok(Json(own))
}

/// The pods of all namespaces.
pub(super) async fn pods(
    State(shared): State<Shared>,
    Query(query): Query<ListQuery>,
) -> Answer<Json<Value>> {
    pods_of(&shared, &query, None).await
}

/// The pods of a namespace.
pub(super) async fn pods_within(
    State(shared): State<Shared>,
    Path(namespace): Path<String>,
    Query(query): Query<ListQuery>,
) -> Answer<Json<Value>> {
    pods_of(&shared, &query, Some(&namespace)).await
}

/// One pod.
pub(super) async fn pod(
    State(shared): State<Shared>,
    Path((namespace, name)): Path<(String, String)>,
) -> Answer<Json<Value>> {
    let readings = shared.handle.readings(true).await?;
    let all = readings.census.pods.iter();
    let mut wanted = all.filter(|pod| (&pod.namespace, &pod.name) == (&namespace, &name));
    let found = wanted
        .next()
        .and_then(|pod| metrics(&shared, &readings, pod));
    let (_, found) = found.ok_or_else(|| Refusal::not_found("pods.metrics.k8s.io", &name))?;
    Ok(Json(found))
}

async fn pods_of(
    shared: &Shared,
    query: &ListQuery,
    namespace: Option<&str>,
) -> Answer<Json<Value>> {
    let selection = query.selection(POD)?;
    let readings = shared.handle.readings(true).await?;
    let pods = readings.census.pods.iter();
    let pods = pods.filter(|pod| namespace.is_none_or(|wanted| wanted == pod.namespace));
    let items = pods
        .filter_map(|pod| metrics(shared, &readings, pod))
        .filter(|(object, _)| selection.takes(object))
        .map(|(_, metrics)| metrics);
    Ok(Json(list("PodMetricsList", &items.collect::<Vec<_>>())))
}

/// A pod as readers see it, and its figures.
fn metrics(shared: &Shared, readings: &Readings, pod: &PodPlace) -> Option<(Value, Value)> {
    let key = ObjectKey::of(POD, &pod.namespace, &pod.name);
    let object = shared.handle.cache().get(&key)?.object.clone();
    let metrics = top::pod(readings, pod, object.pointer("/metadata/labels"))?;
    Some((object, metrics))
}

fn list(kind: &str, items: &[Value]) -> Value {
    json!({
        "kind": kind,
        "apiVersion": top::API_VERSION,
        "metadata": {},
        "items": items,
    })
}
