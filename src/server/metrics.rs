//! `/metrics` and `/metrics/resource`: made from the kernel's counters when they are asked for, and at
//! no other time. What they hold is decided in `report::metrics`.

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};

use super::Shared;
use super::status::Answer;
use crate::agent::Refusal;
use crate::model::kind::RESOURCE_QUOTA;
use crate::report::metrics::{Scope, metrics};

/// All metrics as they are now.
pub(super) async fn all(shared: State<Shared>, headers: HeaderMap) -> Answer<Response> {
    answer(shared, headers, Scope::All).await
}

/// What autoscalers and metrics-server ask of a kubelet.
pub(super) async fn resource(shared: State<Shared>, headers: HeaderMap) -> Answer<Response> {
    answer(shared, headers, Scope::Resource).await
}

async fn answer(
    State(shared): State<Shared>,
    headers: HeaderMap,
    scope: Scope,
) -> Answer<Response> {
    let readings = shared.handle.readings(false).await?;
    let accept = headers.get(header::ACCEPT);
    let accept = accept.and_then(|value| value.to_str().ok());
    let (quotas, _) = shared.handle.cache().list(&RESOURCE_QUOTA.resource(), None);
    let quotas = quotas.iter().map(|seen| &seen.object);
    let (kind, text) = metrics(readings, quotas, scope, accept.unwrap_or_default())
        .map_err(|error| Refusal::internal(error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}
