//! Single objects and lists, as objects or as tables.
//!
//! All is taken from what the owner told last; reading costs it nothing.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Shared;
use super::form::{Form, table};
use super::place::Place;
use super::query::ListQuery;
use super::status::Answer;
use super::watch;
use crate::agent::{Refusal, Seen};
use crate::model::kind::{APPLIED_QUOTA, CLUSTER_QUOTA, EVENT};
use crate::report::policy::applied_quota;

/// One object.
pub(super) async fn one(
    State(shared): State<Shared>,
    place: Place,
    headers: HeaderMap,
) -> Answer<Json<Value>> {
    let seen = find(&shared, &place)?;
    let form = Form::asked(&headers);
    Ok(Json(match form {
        Form::Object => seen.object.clone(),
        Form::Table => table(place.kind, &[&seen.object], seen.revision, Timestamp::now()),
    }))
}

/// The object of a path.
pub(super) fn find(shared: &Shared, place: &Place) -> Result<Arc<Seen>, Refusal> {
    let key = place.key();
    let seen = match place.kind {
        APPLIED_QUOTA => {
            let (all, _) = list(shared, place);
            all.into_iter()
                .find(|seen| names(&seen.object).1 == key.name)
        }
        _ => shared.handle.cache().get(&key),
    };
    let seen = seen.ok_or_else(|| Refusal::not_found(&key.resource, &key.name))?;
    Ok(spoken(place, seen))
}

/// An object in the version of the path.
fn spoken(place: &Place, seen: Arc<Seen>) -> Arc<Seen> {
    if place.kind.defined.is_none() {
        return seen;
    }
    let mut object = seen.object.clone();
    place.speak(&mut object);
    let revision = seen.revision;
    Arc::new(Seen { object, revision })
}

/// The objects of a path, by namespace and name, and the revision of the answer.
fn list(shared: &Shared, place: &Place) -> (Vec<Arc<Seen>>, u64) {
    let cache = shared.handle.cache();
    let namespace = place.namespace.as_deref();
    if place.kind != APPLIED_QUOTA {
        let (all, revision) = cache.list(&place.kind.resource(), namespace);
        let all = all.into_iter().map(|seen| spoken(place, seen));
        return (all.collect(), revision);
    }
    let (quotas, revision) = cache.list(&CLUSTER_QUOTA.resource(), None);
    let mut applied: Vec<_> = quotas
        .iter()
        .flat_map(|quota| {
            let parts = quota.object.pointer("/status/namespaces");
            let parts = parts.and_then(Value::as_array).into_iter().flatten();
            let counted = parts.filter_map(|part| part.get("namespace")?.as_str());
            let wanted =
                counted.filter(|counted| namespace.is_none_or(|wanted| wanted == *counted));
            wanted.filter_map(|namespace| {
                Some(Arc::new(Seen {
                    object: applied_quota(&quota.object, namespace)?,
                    revision: quota.revision,
                }))
            })
        })
        .collect();
    applied.sort_by(|a, b| names(&a.object).cmp(&names(&b.object)));
    (applied, revision)
}

/// Many objects, or what becomes of them.
pub(super) async fn many(
    State(shared): State<Shared>,
    place: Place,
    Query(query): Query<ListQuery>,
    headers: HeaderMap,
) -> Answer<Response> {
    let form = Form::asked(&headers);
    let selection = query.selection(place.kind)?;
    let kind = place.kind;
    if query.is_watch() {
        if !kind.is_watched() {
            let message = format!(
                "{} cannot be watched: watch {}",
                kind.plural, CLUSTER_QUOTA.plural
            );
            return Err(Refusal::new(405, "MethodNotAllowed", message).into());
        }
        return watch::stream(&shared, place, query, selection, form);
    }
    let (mut seen, revision) = list(&shared, &place);
    query.check_revision(revision)?;
    seen.retain(|seen| selection.takes(&seen.object));
    let mut objects: Vec<_> = seen.iter().map(|seen| &seen.object).collect();
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if let Some(after) = query.after()? {
        objects.retain(|object| names(object) > after);
    }
    if let Some(limit) = query.limit()
        && let Some(left) = objects.len().checked_sub(limit).filter(|left| *left > 0)
    {
        objects.truncate(limit);
        if let (Some(metadata), Some((namespace, name))) = (
            metadata.as_object_mut(),
            objects.last().map(|last| names(last)),
        ) {
            metadata.insert("continue".to_owned(), json!(format!("{namespace}/{name}")));
            metadata.insert("remainingItemCount".to_owned(), json!(left));
        }
    }
    if kind == EVENT {
        // What happened last is read last.
        objects.sort_by_key(|event| event.get("lastTimestamp").and_then(Value::as_str));
    }
    let mut answer = match form {
        Form::Table => table(kind, &objects, revision, Timestamp::now()),
        Form::Object => json!({
            "kind": kind.list(),
            "apiVersion": kind.api_version(),
            "metadata": {},
            "items": objects,
        }),
    };
    if let Some(answer) = answer.as_object_mut() {
        answer.insert("metadata".to_owned(), metadata);
    }
    Ok(Json(answer).into_response())
}

/// Namespace and name: the order of lists.
fn names(object: &Value) -> (&str, &str) {
    let text = |field: &str| {
        object
            .pointer(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    (text("/metadata/namespace"), text("/metadata/name"))
}
