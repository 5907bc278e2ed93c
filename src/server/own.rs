//! What Kubernetes has no words for, under the group `allotd.dev/v1`.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use super::body::ChangeQuery;
use super::status::Answer;
use crate::agent::{ObjectKey, PodKey, Refusal, Request};
use crate::model::kind::{EVENT, NODE, POD};
use crate::report;
use crate::report::accounts::{Accounts, AccountsReport, QuotaCharges};
use crate::report::drift::Drift;
use crate::report::explain::PodExplanation;
use crate::report::top::{Objects, TopReport};
use crate::report::{DiffReport, Orphan, PodUsage, StatusReport};

/// Namespace and name in a path.
type PodPath = Path<(String, String)>;

fn key(Path((namespace, name)): PodPath) -> PodKey {
    PodKey { namespace, name }
}

/// The agent's own state.
pub(super) async fn status(State(shared): State<Shared>) -> Answer<Json<StatusReport>> {
    Ok(Json(shared.handle.status().await?))
}

/// Wanted against kernel.
pub(super) async fn diff(State(shared): State<Shared>) -> Answer<Json<DiffReport>> {
    Ok(Json(shared.handle.ask(Request::Diff).await?))
}

/// The cgroups of pods without a record.
pub(super) async fn orphans(State(shared): State<Shared>) -> Answer<Json<Vec<Orphan>>> {
    let asked = |reply| Request::Orphans(false, reply);
    Ok(Json(shared.handle.ask(asked).await?))
}

/// Ends them; what was there is answered.
pub(super) async fn end_orphans(
    State(shared): State<Shared>,
    Query(query): Query<ChangeQuery>,
) -> Answer<Json<Vec<Orphan>>> {
    query.no_dry_run()?;
    let asked = |reply| Request::Orphans(true, reply);
    Ok(Json(shared.handle.ask(asked).await?))
}

/// Which drifts are asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct DriftQuery {
    after: u64,
}

/// What somebody else changed, the oldest first.
pub(super) async fn drifts(
    State(shared): State<Shared>,
    Query(DriftQuery { after }): Query<DriftQuery>,
) -> Answer<Json<Vec<Drift>>> {
    let asked = |reply| Request::Drifts(after, reply);
    Ok(Json(shared.handle.ask(asked).await?))
}

/// Which OOM kills are asked for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OomQuery {
    namespace: Option<String>,
    pod: Option<String>,
}

/// The processes that OOM kills took, the oldest first.
pub(super) async fn oom_kills(
    State(shared): State<Shared>,
    Query(OomQuery { namespace, pod }): Query<OomQuery>,
) -> Answer<Json<Value>> {
    let asked = |reply| Request::OomKills {
        namespace,
        pod,
        reply,
    };
    let kills = shared.handle.ask(asked).await?;
    let kills: Vec<_> = kills.iter().map(AsRef::as_ref).collect();
    Ok(Json(json!(kills)))
}

/// From the spec to the kernel.
pub(super) async fn explain(
    State(shared): State<Shared>,
    path: PodPath,
) -> Answer<Json<PodExplanation>> {
    let explanation = shared
        .handle
        .ask(|reply| Request::Explain(key(path), reply))
        .await?;
    Ok(Json(*explanation))
}

/// What a pod uses.
pub(super) async fn usage(State(shared): State<Shared>, path: PodPath) -> Answer<Json<PodUsage>> {
    Ok(Json(shared.handle.usage(key(path)).await?))
}

/// Whether the accounts are true.
pub(super) async fn accounts(State(shared): State<Shared>) -> Answer<Json<AccountsReport>> {
    added(&shared, Accounts::recount).await
}

/// Who is charged what in a namespace.
pub(super) async fn charges(
    State(shared): State<Shared>,
    Path(namespace): Path<String>,
) -> Answer<Json<Vec<QuotaCharges>>> {
    added(&shared, move |accounts| accounts.charges(&namespace)).await
}

/// Something that takes time to add up: not by the owner, and not by those who serve others.
async fn added<T: Send + 'static>(
    shared: &Shared,
    add_up: impl FnOnce(&Accounts) -> T + Send + 'static,
) -> Answer<Json<T>> {
    let accounts = shared.handle.ask(Request::Accounts).await?;
    let added = tokio::task::spawn_blocking(move || add_up(&accounts)).await;
    added
        .map(Json)
        .map_err(|error| Refusal::internal(error.to_string()).into())
}

/// What `allot top` shows: figures, bounds and marks of node, pods and containers in one moment.
pub(super) async fn top(State(shared): State<Shared>) -> Answer<Json<TopReport>> {
    let readings = shared.handle.readings(true).await?;
    let disk = shared.handle.disk(&readings).await?;
    let cache = shared.handle.cache();
    let node = cache.get(&ObjectKey::of(NODE, "", &readings.census.node));
    let pods: Vec<_> = readings
        .census
        .pods
        .iter()
        .filter_map(|pod| {
            let key = ObjectKey::of(POD, &pod.namespace, &pod.name);
            Some((pod, cache.get(&key)?))
        })
        .collect();
    let (events, _) = cache.list(&EVENT.resource(), None);
    let objects = Objects {
        node: node.as_ref().map(|seen| &seen.object),
        pods: pods
            .iter()
            .map(|(pod, seen)| {
                let key = (pod.namespace.as_str(), pod.name.as_str());
                (key, &seen.object)
            })
            .collect(),
        events: events.iter().map(|seen| &seen.object).collect(),
    };
    Ok(Json(report::top::report(&readings, &disk, &objects)))
}

/// The body of an attach request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AttachBody {
    container: String,
    pid: i32,
    #[serde(default)]
    children: bool,
}

/// Puts a running process into a container.
pub(super) async fn attach(
    State(shared): State<Shared>,
    path: PodPath,
    Query(query): Query<ChangeQuery>,
    body: Bytes,
) -> Answer<Json<Value>> {
    query.no_dry_run()?;
    let body: AttachBody = serde_json::from_slice(&body).map_err(|error| {
        Refusal::bad_request(format!(
            "the body is no attach request ({error}): {{\"container\":\"NAME\",\"pid\":N}} is right"
        ))
    })?;
    let pids = shared
        .handle
        .ask(|reply| Request::Attach {
            key: key(path),
            container: body.container,
            pid: body.pid,
            children: body.children,
            reply,
        })
        .await?;
    Ok(Json(json!({"attached": pids})))
}
