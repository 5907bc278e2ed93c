//! Health, version and configuration.

use axum::Json;
use axum::extract::{Query, State};
use axum::http::Uri;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use super::status::Answer;
use crate::agent::Request;

/// Healthy is: the owner answers. With `?verbose` it says which checks were made.
pub(super) async fn healthz(
    State(shared): State<Shared>,
    uri: Uri,
    Query(query): Query<HealthQuery>,
) -> Answer<String> {
    shared.handle.ask(Request::Alive).await?;
    let check = uri.path().trim_matches('/');
    Ok(match query.verbose {
        Some(_) => format!("[+]owner ok\n{check} check passed\n"),
        None => "ok".to_owned(),
    })
}

/// Query parameters of a health check.
#[derive(Debug, Default, Deserialize)]
pub(super) struct HealthQuery {
    verbose: Option<String>,
}

/// The version in Kubernetes' shape; minor and major are those of the object types.
pub(super) async fn version() -> Json<Value> {
    Json(json!({
        "major": "1",
        "minor": "37",
        "gitVersion": format!("v1.37.0+allotd.{}", env!("CARGO_PKG_VERSION")),
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    }))
}

/// The configuration in force.
pub(super) async fn configz(State(shared): State<Shared>) -> Answer<Json<Value>> {
    let config = shared.handle.ask(Request::Config).await?;
    Ok(Json(json!({"allotdconfig": config})))
}
