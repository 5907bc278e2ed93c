//! Refusals in the shape of Kubernetes' `Status`, which kubectl knows how to print.

use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::body::media_type;
use crate::agent::Refusal;
use crate::manifest::protobuf;

/// A refusal as a response.
#[derive(Debug)]
pub(super) struct Failure(pub Refusal);

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Self(refusal) = self;
        (super::code(refusal.code), Json(body_of(&refusal))).into_response()
    }
}

/// A refusal as a `Status`.
pub(super) fn body_of(refusal: &Refusal) -> Value {
    let causes: Vec<_> = refusal
        .causes
        .iter()
        .map(
            |cause| json!({"reason": cause.reason, "field": cause.field, "message": cause.message}),
        )
        .collect();
    let mut body = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": refusal.message,
        "reason": refusal.reason,
        "code": refusal.code,
    });
    let mut details = serde_json::Map::new();
    if let Some(about) = &refusal.about {
        details.insert("name".to_owned(), json!(about.name));
        details.insert("kind".to_owned(), json!(about.resource));
    }
    if !causes.is_empty() {
        details.insert("causes".to_owned(), json!(causes));
    }
    if !details.is_empty()
        && let Some(body) = body.as_object_mut()
    {
        body.insert("details".to_owned(), details.into());
    }
    body
}

/// What a handler answers.
pub(super) type Answer<T> = Result<T, Failure>;

/// There is nothing at this path.
pub(super) async fn no_such_path(request: Request) -> Failure {
    Failure(Refusal::new(
        404,
        "NotFound",
        format!("there is nothing at {}", request.uri().path()),
    ))
}

/// The path is right, the method is not.
pub(super) async fn no_such_method(request: Request) -> Failure {
    Failure(Refusal::new(
        405,
        "MethodNotAllowed",
        format!(
            "{} is not possible at {}",
            request.method(),
            request.uri().path()
        ),
    ))
}

/// A library's plain refusal, as of a body that is too long or a query that cannot be read, becomes a
/// `Status` like all others.
pub(super) async fn in_our_words(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let status = response.status();
    let is_ours = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|value| value == "application/json");
    if is_ours || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let text = axum::body::to_bytes(response.into_body(), MAX_TEXT).await;
    let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
    let reason = match status.as_u16() {
        400 => "BadRequest",
        413 => "RequestEntityTooLarge",
        415 => "UnsupportedMediaType",
        _ if status.is_client_error() => "Invalid",
        _ => "InternalError",
    };
    Failure(Refusal::new(status.as_u16(), reason, text)).into_response()
}

/// More of a plain refusal is not read (bytes).
const MAX_TEXT: usize = 4096;

/// What objects may be written in. curl says `x-www-form-urlencoded` of all it sends if nobody tells it
/// otherwise.
const FORMATS: [&str; 10] = [
    "",
    "application/json",
    protobuf::MEDIA_TYPE,
    "application/yaml",
    "application/x-yaml",
    "text/yaml",
    "text/x-yaml",
    "text/plain",
    "application/octet-stream",
    "application/x-www-form-urlencoded",
];

/// Refuses bodies that say they are neither JSON nor YAML nor protobuf. Patches have types of their own.
pub(super) async fn in_a_known_format(request: Request, next: Next) -> Response {
    let given = media_type(request.headers());
    let is_known = FORMATS
        .iter()
        .any(|format| given.eq_ignore_ascii_case(format));
    if is_known || *request.method() == Method::PATCH {
        return next.run(request).await;
    }
    let message = format!("the body is {given:?}: application/json or application/yaml is right");
    Failure(Refusal::new(415, "UnsupportedMediaType", message)).into_response()
}

/// Refuses what takes too long.
pub(super) async fn in_time(
    State(most): State<Duration>,
    request: Request,
    next: Next,
) -> Response {
    match tokio::time::timeout(most, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Failure(Refusal::new(
            504,
            "Timeout",
            format!("no answer within {most:?}"),
        ))
        .into_response(),
    }
}
