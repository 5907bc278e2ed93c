//! The Kubernetes-shaped REST API on a Unix socket.
//!
//! Decides who may ask what, how requests are read and answers are written. It holds no state: every
//! question goes to the owner. Requests are bounded in size, number and time.

mod body;
mod change;
mod discovery;
mod eviction;
mod follow;
mod form;
mod health;
mod listen;
mod logs;
mod metrics;
mod nodes;
mod openapi;
mod own;
mod patch;
mod peer;
mod place;
mod query;
mod read;
mod select;
mod stats;
mod status;
mod watch;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware;
use axum::routing::{get, post};
use tokio::net::UnixListener;
use tokio::sync::Semaphore;

use crate::agent::Handle;

pub use listen::Bounds;
pub use peer::Access;

/// What the handlers share.
#[derive(Clone, Debug)]
pub struct Shared {
    handle: Handle,
    /// Places for clients that follow something for long: watches and logs.
    followers: Arc<Semaphore>,
}

/// Serves the API on the listener until `stop` completes; requests under way are answered first.
///
/// # Errors
/// The listener failed.
pub async fn serve(
    listener: UnixListener,
    handle: Handle,
    access: Access,
    bounds: Bounds,
    stop: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let cache = Arc::clone(handle.cache());
    let shared = Shared {
        handle,
        followers: Arc::new(Semaphore::new(bounds.followers)),
    };
    let stop = async {
        stop.await;
        // Watches would go on for ever.
        cache.close();
    };
    listen::accept(listener, router(shared, access, bounds), bounds, stop).await
}

fn router(shared: Shared, access: Access, bounds: Bounds) -> Router {
    let own = "/apis/allotd.dev/v1";
    let own_pod = "/apis/allotd.dev/v1/namespaces/{namespace}/pods/{name}";
    let figures = "/apis/metrics.k8s.io/v1beta1";
    let bounded = Router::new()
        .route("/healthz", get(health::healthz))
        .route("/livez", get(health::healthz))
        .route("/readyz", get(health::healthz))
        .route("/version", get(health::version))
        .route("/configz", get(health::configz))
        .route("/metrics", get(metrics::all))
        .route("/metrics/resource", get(metrics::resource))
        .route("/stats/summary", get(stats::summary))
        .route("/openapi/v2", get(openapi::v2))
        .route("/openapi/v3", get(openapi::v3))
        .route("/openapi/v3/{*path}", get(openapi::v3_of))
        .route("/api", get(discovery::versions))
        .route("/apis", get(discovery::groups))
        .route("/apis/{group}", get(discovery::group))
        .route("/apis/{group}/{version}", get(discovery::of_group))
        .route("/api/v1", get(discovery::core))
        .route(&format!("{own}/status"), get(own::status))
        .route(&format!("{own}/accounts"), get(own::accounts))
        .route(
            &format!("{own}/namespaces/{{namespace}}/charges"),
            get(own::charges),
        )
        .route(&format!("{own}/diff"), get(own::diff))
        .route(&format!("{own}/drifts"), get(own::drifts))
        .route(
            &format!("{own}/orphans"),
            get(own::orphans).delete(own::end_orphans),
        )
        .route(&format!("{own}/oomkills"), get(own::oom_kills))
        .route(&format!("{own}/top"), get(own::top))
        .route(&format!("{own}/eviction"), get(eviction::dry_run))
        .route(&format!("{own_pod}/evict"), post(eviction::by_hand))
        .route(&format!("{own_pod}/explain"), get(own::explain))
        .route(&format!("{own_pod}/usage"), get(own::usage))
        .route(&format!("{own_pod}/attach"), post(own::attach))
        .route(&format!("{figures}/nodes"), get(stats::nodes))
        .route(&format!("{figures}/nodes/{{name}}"), get(stats::node))
        .route(&format!("{figures}/pods"), get(stats::pods))
        .route(
            &format!("{figures}/namespaces/{{namespace}}/pods"),
            get(stats::pods_within),
        )
        .route(
            &format!("{figures}/namespaces/{{namespace}}/pods/{{name}}"),
            get(stats::pod),
        )
        .merge(objects("/api/v1"))
        .merge(objects("/apis/{group}/{version}"))
        .fallback(status::no_such_path)
        .method_not_allowed_fallback(status::no_such_method)
        .layer(middleware::from_fn_with_state(
            bounds.answer,
            status::in_time,
        ));
    Router::new()
        .route(
            "/api/v1/namespaces/{namespace}/pods/{name}/log",
            get(logs::read),
        )
        .merge(bounded)
        .layer(DefaultBodyLimit::max(bounds.body))
        .layer(middleware::from_fn(status::in_a_known_format))
        .layer(middleware::from_fn(status::in_our_words))
        .layer(middleware::from_fn_with_state(access, peer::authorize))
        .layer(tower::limit::GlobalConcurrencyLimitLayer::new(
            bounds.requests,
        ))
        .with_state(shared)
}

/// The paths of the objects of one group, or of any: all kinds are read and changed in the same way.
fn objects(root: &str) -> Router<Shared> {
    let one = || {
        get(read::one)
            .put(change::replace)
            .patch(change::patch)
            .delete(change::delete)
    };
    let many = || get(read::many).post(change::create);
    let within = format!("{root}/namespaces/{{namespace}}/{{plural}}");
    Router::new()
        .route(&format!("{root}/{{plural}}"), many())
        .route(&format!("{root}/{{plural}}/{{name}}"), one())
        .route(
            &format!("{root}/{{plural}}/{{name}}/status"),
            get(read::one).patch(nodes::patch),
        )
        .route(&within, many())
        .route(&format!("{within}/{{name}}"), one())
        .route(&format!("{within}/{{name}}/status"), get(read::one))
        .route(
            &format!("{within}/{{name}}/resize"),
            get(read::one)
                .put(change::resize)
                .patch(change::patch_amounts),
        )
}

/// The status code of a refusal; a number that is none becomes 500.
fn code(number: u16) -> StatusCode {
    StatusCode::from_u16(number).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
