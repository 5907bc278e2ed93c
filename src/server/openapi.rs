//! `/openapi/v2` and `/openapi/v3`: as much of a schema as kubectl wants before it sends an object.
//!
//! What an object may hold is checked here, on the server, by `fieldValidation`; so version 3 says of
//! each kind that this parameter is understood, and version 2, which only kubectl before 1.27 reads,
//! describes no kind: what it does not describe, kubectl leaves to the server.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::Shared;
use super::discovery::group_versions;
use super::status::Answer;
use crate::agent::Refusal;
use crate::model::Kind;

/// Version 2 in the form of Google's gnostic. kubectl 1.20 asks for it with an `@` in the name, which it
/// then cannot read in an answer; Kubernetes has long written it like this.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Version 2.
pub(super) async fn v2(headers: HeaderMap) -> Response {
    let accepted = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    if accepted.is_some_and(|accepted| accepted.contains("protobuf")) {
        // A message without any field has no bytes.
        return ([(header::CONTENT_TYPE, PROTOBUF)], "").into_response();
    }
    Json(json!({"swagger": "2.0", "info": info(), "paths": {}, "definitions": {}})).into_response()
}

/// The groups that version 3 describes.
pub(super) async fn v3(State(shared): State<Shared>) -> Json<Value> {
    let paths: Map<_, _> = group_versions(&shared.handle.kinds())
        .into_iter()
        .map(|path| {
            let url = format!("/openapi/v3/{path}?hash={}", env!("CARGO_PKG_VERSION"));
            (path, json!({"serverRelativeURL": url}))
        })
        .collect();
    Json(json!({"paths": paths}))
}

/// One group in version 3.
pub(super) async fn v3_of(
    State(shared): State<Shared>,
    Path(path): Path<String>,
) -> Answer<Json<Value>> {
    let known = shared.handle.kinds();
    if !group_versions(&known).contains(&path) {
        let message = format!("there is no API group at {path:?}");
        return Err(Refusal::new(404, "NotFound", message).into());
    }
    let kinds = known
        .all()
        .filter(|kind| kind.root() == path && !kind.is_own());
    let paths: Map<_, _> = kinds
        .map(|kind| {
            let namespace = if kind.namespaced {
                "namespaces/{namespace}/"
            } else {
                ""
            };
            let url = format!("/{path}/{namespace}{}/{{name}}", kind.plural);
            (url, json!({"patch": operation(kind)}))
        })
        .collect();
    Ok(Json(
        json!({"openapi": "3.0.0", "info": info(), "paths": paths, "components": {}}),
    ))
}

fn info() -> Value {
    json!({"title": "allotd", "version": env!("CARGO_PKG_VERSION")})
}

fn operation(kind: Kind) -> Value {
    let parameter = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string"}});
    json!({
        "operationId": format!("patch{}", kind.kind),
        "parameters": [parameter("fieldValidation"), parameter("dryRun")],
        "responses": {"200": {"description": "the object"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind":
            {"group": kind.group, "version": kind.version, "kind": kind.kind},
    })
}
