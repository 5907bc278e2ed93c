//! Who would be evicted, and one that is, because somebody says so.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use super::body::ChangeQuery;
use super::status::Answer;
use crate::agent::{PodKey, Refusal, Request};
use crate::report::eviction::EvictionReport;

/// What the node has left, and which pods would go in which order.
pub(super) async fn dry_run(State(shared): State<Shared>) -> Answer<Json<EvictionReport>> {
    Ok(Json(shared.handle.eviction().await?))
}

/// The body of an eviction by hand; it may be empty.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[serde(rename_all = "camelCase")]
pub(super) struct EvictBody {
    grace_seconds: Option<u64>,
}

/// Ends a pod as evicted.
pub(super) async fn by_hand(
    State(shared): State<Shared>,
    Path((namespace, name)): Path<(String, String)>,
    Query(query): Query<ChangeQuery>,
    body: Bytes,
) -> Answer<Json<Value>> {
    query.no_dry_run()?;
    let body: EvictBody = if body.is_empty() {
        EvictBody::default()
    } else {
        serde_json::from_slice(&body).map_err(|error| {
            Refusal::bad_request(format!(
                "the body is no eviction ({error}): {{\"graceSeconds\":N}} or nothing is right"
            ))
        })?
    };
    let evict = |reply| Request::Evict {
        key: PodKey::new(&namespace, &name),
        grace_seconds: body.grace_seconds,
        reply,
    };
    shared.handle.ask(evict).await?;
    Ok(Json(json!({"evicted": format!("{namespace}/{name}")})))
}
