//! Extended resources, advertised by a patch of the node's status.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use k8s_openapi::api::core::v1::Node;

use super::Shared;
use super::body::{ChangeQuery, media_type};
use super::place::Place;
use super::read::find;
use super::status::{Answer, Failure};
use crate::agent::{Refusal, Request};
use crate::model::kind::NODE;

/// The media type of RFC 6902.
const JSON_PATCH: &str = "application/json-patch+json";

/// Changes `status.capacity`: how extended resources are advertised.
pub(super) async fn patch(
    State(shared): State<Shared>,
    place: Place,
    Query(query): Query<ChangeQuery>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer<Json<Node>> {
    if place.kind != NODE {
        let message = format!(
            "PATCH is not possible for the status of {}: allotd keeps it",
            place.kind.plural
        );
        return Err(Refusal::new(405, "MethodNotAllowed", message).into());
    }
    query.no_dry_run()?;
    let given = media_type(&headers);
    if given != JSON_PATCH {
        return Err(Failure(Refusal::new(
            415,
            "UnsupportedMediaType",
            format!("the body is {given:?}: {JSON_PATCH} is right"),
        )));
    }
    let patch: json_patch::Patch = serde_json::from_slice(&body)
        .map_err(|error| Refusal::bad_request(format!("the body is no JSON patch: {error}")))?;
    find(&shared, &place)?;
    let node = shared
        .handle
        .ask(|reply| Request::PatchNode(patch, reply))
        .await?;
    Ok(Json(*node))
}
