//! `pods/NAME/resize`: other amounts of cpu and memory for a pod that runs (Kubernetes 1.32).
//!
//! Reads and answers; the owner judges.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use serde_json::Value;

use super::Shared;
use super::body::{Body, ChangeQuery, parse};
use super::change::{Part, patched, put, warned};
use super::patch::Patch;
use super::place::Place;
use super::status::Answer;

/// The pod with other amounts.
pub(super) async fn replace(
    State(shared): State<Shared>,
    place: Place,
    Query(query): Query<ChangeQuery>,
    Body(body): Body,
) -> Answer<(HeaderMap, Json<Value>)> {
    let (object, headers) = parse(&place, &body, &query)?;
    let kept = put(&shared, &place, object, part(&query)?).await?;
    Ok((warned(headers, &kept), Json(kept.object)))
}

/// The pod with a change of its amounts.
pub(super) async fn patch(
    State(shared): State<Shared>,
    place: Place,
    Query(query): Query<ChangeQuery>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer<(HeaderMap, Json<Value>)> {
    let patch = Patch::read(place.kind, &headers, &body)?;
    patched(&shared, &place, &patch, part(&query)?).await
}

fn part(query: &ChangeQuery) -> Answer<Part> {
    let dry_run = query.put(false)?.dry_run;
    Ok(Part::Amounts { dry_run })
}
