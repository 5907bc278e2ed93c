//! Objects that are created, replaced, patched and deleted.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::Shared;
use super::body::{Body, ChangeQuery, DeleteOptions, parse, placed, warn};
use super::patch::Patch;
use super::place::Place;
use super::read::find;
use super::status::{Answer, Failure};
use crate::agent::{Kept, PodKey, Put, Refusal, Request};
use crate::model::Kind;
use crate::model::kind::POD;

/// So often a change is tried that somebody else's came before: a patch, or a name that is made.
const TRIES: usize = 5;

/// More of `metadata.generateName` is not used (bytes).
const MAX_PREFIX: usize = 58;

/// A new object.
pub(super) async fn create(
    State(shared): State<Shared>,
    place: Place,
    Query(query): Query<ChangeQuery>,
    Body(body): Body,
) -> Answer<(StatusCode, HeaderMap, Json<Value>)> {
    check_changeable(place.kind, "POST")?;
    let (object, headers) = parse(&place, &body, &query)?;
    let how = query.put(true)?;
    let kept = match prefix(&object) {
        Some(prefix) => put_named(&shared, &place, &object, &prefix, how).await?,
        None => put(&shared, &place, object, Part::Whole(how)).await?,
    };
    Ok((
        StatusCode::CREATED,
        warned(headers, &kept),
        Json(kept.object),
    ))
}

/// Another object in the place of one.
pub(super) async fn replace(
    State(shared): State<Shared>,
    place: Place,
    Query(query): Query<ChangeQuery>,
    Body(body): Body,
) -> Answer<(HeaderMap, Json<Value>)> {
    check_changeable(place.kind, "PUT")?;
    let how = query.put(false)?;
    replaced(&shared, &place, &query, &body, Part::Whole(how)).await
}

/// The same pod with other amounts of cpu and memory, while it runs (`pods/NAME/resize` of Kubernetes 1.32).
pub(super) async fn resize(
    State(shared): State<Shared>,
    place: Place,
    Query(query): Query<ChangeQuery>,
    Body(body): Body,
) -> Answer<(HeaderMap, Json<Value>)> {
    let how = query.put(false)?;
    replaced(&shared, &place, &query, &body, Part::Amounts(how)).await
}

/// A part of an object.
pub(super) async fn patch(
    State(shared): State<Shared>,
    place: Place,
    Query(query): Query<ChangeQuery>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer<(HeaderMap, Json<Value>)> {
    check_changeable(place.kind, "PATCH")?;
    let patch = Patch::read(place.kind, &headers, &body)?;
    let how = query.put(false)?;
    patched(&shared, &place, &patch, Part::Whole(how)).await
}

/// A part of a pod's amounts.
pub(super) async fn patch_amounts(
    State(shared): State<Shared>,
    place: Place,
    Query(query): Query<ChangeQuery>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer<(HeaderMap, Json<Value>)> {
    let patch = Patch::read(place.kind, &headers, &body)?;
    let how = query.put(false)?;
    patched(&shared, &place, &patch, Part::Amounts(how)).await
}

/// What of an object is sent.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// All of it.
    Whole(Put),
    /// A pod for the sake of its amounts of cpu and memory.
    Amounts(Put),
}

async fn replaced(
    shared: &Shared,
    place: &Place,
    query: &ChangeQuery,
    body: &Bytes,
    part: Part,
) -> Answer<(HeaderMap, Json<Value>)> {
    let (object, headers) = parse(place, body, query)?;
    let kept = put(shared, place, object, part).await?;
    Ok((warned(headers, &kept), Json(kept.object)))
}

/// Patches an object; again, where somebody else's change came before.
async fn patched(
    shared: &Shared,
    place: &Place,
    patch: &Patch,
    part: Part,
) -> Answer<(HeaderMap, Json<Value>)> {
    let mut tries = 0;
    loop {
        tries += 1;
        // What is read carries its version, so that nobody's change in between is lost.
        let mut object = find(shared, place)?.object.clone();
        patch.apply(&mut object)?;
        match put(shared, place, placed(place, object)?, part).await {
            Err(Failure(refusal)) if refusal.reason == "Conflict" && tries < TRIES => {}
            answer => {
                let kept = answer?;
                return Ok((warned(HeaderMap::new(), &kept), Json(kept.object)));
            }
        }
    }
}

/// An object, or for a pod the beginning of its end; the answer is the object as it is then.
pub(super) async fn delete(
    State(shared): State<Shared>,
    place: Place,
    Query(query): Query<ChangeQuery>,
    Body(body): Body,
) -> Answer<Json<Value>> {
    check_changeable(place.kind, "DELETE")?;
    let options = DeleteOptions::read(&body)?;
    let dry_run = options.is_dry_run(&query)?;
    let (key, uid) = (place.key(), options.uid());
    let last = shared.handle.ask(|reply| match place.kind {
        POD => Request::DeletePod {
            key: PodKey::new(&key.namespace, &key.name),
            grace_seconds: options.grace(&query),
            uid,
            dry_run,
            reply,
        },
        _ => Request::DeleteObject {
            key,
            uid,
            dry_run,
            reply,
        },
    });
    let mut last = last.await?;
    place.speak(&mut last);
    Ok(Json(last))
}

/// `metadata.generateName` of an object that has no name.
fn prefix(object: &Value) -> Option<String> {
    let text = |field: &str| {
        let text = object.get("metadata")?.get(field)?.as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    };
    text("generateName").filter(|_| text("name").is_none())
}

/// A new object under a name that begins so; another one is made of a name that is taken.
async fn put_named(
    shared: &Shared,
    place: &Place,
    object: &Value,
    prefix: &str,
    how: Put,
) -> Answer<Kept> {
    // As upstream, a prefix is cut so that the name stays a DNS label. What follows is the start of a
    // random uid, which the API server's five letters resemble.
    let (prefix, _) = prefix.split_at(prefix.floor_char_boundary(MAX_PREFIX));
    let mut tries = 0;
    loop {
        tries += 1;
        let random = uuid::Uuid::new_v4().simple().to_string();
        let mut object = object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.insert("name".to_owned(), format!("{prefix}{random:.5}").into());
        }
        match put(shared, place, object, Part::Whole(how)).await {
            Err(Failure(refusal)) if refusal.reason == "AlreadyExists" && tries < TRIES => {}
            answer => return answer,
        }
    }
}

/// With a `Warning` header for whatever is hardly meant.
fn warned(mut headers: HeaderMap, kept: &Kept) -> HeaderMap {
    warn(&mut headers, &kept.warnings);
    headers
}

async fn put(shared: &Shared, place: &Place, object: Value, part: Part) -> Answer<Kept> {
    let kind = place.kind;
    if kind == POD {
        // Read here and not by the owner, whose time is everybody's.
        let object = serde_json::from_value(object)
            .map_err(|error| Refusal::bad_request(format!("the pod: {error}")))?;
        let kept = shared.handle.ask(|reply| match part {
            Part::Whole(how) => Request::PutPod { object, how, reply },
            Part::Amounts(how) => Request::ResizePod {
                object,
                dry_run: how.dry_run,
                reply,
            },
        });
        return Ok(kept.await?);
    }
    let Part::Whole(how) = part else {
        let message = format!("{} cannot be resized: pods can", kind.plural);
        return Err(Refusal::new(404, "NotFound", message).into());
    };
    let object = Box::new(object);
    let kept = shared.handle.ask(|reply| Request::PutObject {
        kind,
        object,
        how,
        reply,
    });
    let mut kept = kept.await?;
    place.speak(&mut kept.object);
    Ok(kept)
}

/// The node and the events are the agent's own.
fn check_changeable(kind: Kind, method: &str) -> Result<(), Refusal> {
    if !kind.is_own() {
        return Ok(());
    }
    let message = format!(
        "{method} is not possible for {}: allotd makes them",
        kind.plural
    );
    Err(Refusal::new(405, "MethodNotAllowed", message))
}
