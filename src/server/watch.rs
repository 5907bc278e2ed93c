//! Watches: what becomes of objects, told one line for each change, as Kubernetes' clients follow it.
//!
//! A client that does not read holds its connection and nothing else; one that is too slow for the
//! changes is told to begin anew (410 Expired), never served with a gap.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;

use super::Shared;
use super::follow::{self, Pieces};
use super::form::{Form, table};
use super::place::Place;
use super::query::ListQuery;
use super::select::Selection;
use super::status::{Answer, body_of};
use crate::agent::{Change, Expired, Refusal, Seen, Watcher};

/// How often a client is told how far it is, where nothing changes.
const BOOKMARK: Duration = Duration::from_secs(60);

/// No watch is longer; clients begin the next one by themselves.
const LONGEST: Duration = Duration::from_secs(3600);

/// Changes of the objects of a path.
pub(super) fn stream(
    shared: &Shared,
    place: Place,
    query: ListQuery,
    selection: Selection,
    form: Form,
) -> Answer<Response> {
    let permit = follow::permit(shared)?;
    let cache = shared.handle.cache();
    let from = query.watched_from()?;
    let (first, revision, watcher) = match from {
        Some(from) => {
            let watcher = cache
                .watch(from)
                .map_err(|Expired { oldest }| expired(from, oldest))?;
            (Vec::new(), from, watcher)
        }
        None => cache.list_and_watch(&place.kind.resource(), place.namespace.as_deref()),
    };
    let (lines, receive) = mpsc::channel(4);
    let teller = Teller {
        until: Instant::now() + query.timeout().unwrap_or(LONGEST).min(LONGEST),
        resource: place.kind.resource(),
        place,
        query,
        selection,
        form,
        told_columns: false,
        lines,
        _permit: permit,
    };
    tokio::spawn(teller.run(first, revision, watcher));
    let content = [(header::CONTENT_TYPE, "application/json")];
    Ok((content, Body::new(Pieces(receive))).into_response())
}

fn expired(from: u64, oldest: u64) -> Refusal {
    let message = format!("too old resource version: {from} (changes are kept since {oldest})");
    Refusal::new(410, "Expired", message)
}

/// Tells one client.
struct Teller {
    place: Place,
    resource: String,
    query: ListQuery,
    selection: Selection,
    form: Form,
    /// A table's columns stand in its first event only.
    told_columns: bool,
    until: Instant,
    lines: mpsc::Sender<Bytes>,
    _permit: OwnedSemaphorePermit,
}

/// The client is gone.
struct Gone;

impl Teller {
    async fn run(mut self, first: Vec<Arc<Seen>>, revision: u64, watcher: Watcher) {
        // Whoever went away need not be told.
        let _ = self.tell_all(first, revision, watcher).await;
    }

    async fn tell_all(
        &mut self,
        first: Vec<Arc<Seen>>,
        mut revision: u64,
        mut watcher: Watcher,
    ) -> Result<(), Gone> {
        for seen in first {
            if self.selection.takes(&seen.object) {
                self.tell("ADDED", &seen.object, seen.revision).await?;
            }
        }
        if self.query.ends_its_list() {
            self.bookmark(revision, true).await?;
        }
        let mut bookmark = Instant::now() + BOOKMARK;
        loop {
            let lines = self.lines.clone();
            let changes = tokio::select! {
                changes = watcher.next() => changes,
                () = lines.closed() => return Err(Gone),
                () = tokio::time::sleep_until(self.until) => return Ok(()),
                () = tokio::time::sleep_until(bookmark) => {
                    bookmark = Instant::now() + BOOKMARK;
                    if self.query.wants_bookmarks() {
                        self.bookmark(revision, false).await?;
                    }
                    continue;
                }
            };
            match changes {
                Ok(changes) if changes.is_empty() => return Ok(()),
                Ok(changes) => {
                    for change in changes {
                        self.change(&change).await?;
                        revision = revision.max(change.revision);
                    }
                }
                Err(Expired { oldest }) => {
                    let status = body_of(&expired(revision, oldest));
                    let line = json!({"type": "ERROR", "object": status});
                    return self.send(&line).await;
                }
            }
        }
    }

    /// What a change is to this client: one who asked for some of the objects takes one that is not
    /// among them any more for deleted.
    async fn change(&mut self, change: &Change) -> Result<(), Gone> {
        let namespace = self.place.namespace.as_ref();
        if change.key.resource != self.resource
            || namespace.is_some_and(|wanted| *wanted != change.key.namespace)
        {
            return Ok(());
        }
        let taken = |seen: &Option<Arc<Seen>>| {
            let taken = seen
                .as_ref()
                .filter(|seen| self.selection.takes(&seen.object));
            taken.cloned()
        };
        match (taken(&change.before), taken(&change.after)) {
            (None, None) => Ok(()),
            (None, Some(now)) => self.tell("ADDED", &now.object, now.revision).await,
            (Some(_), Some(now)) => self.tell("MODIFIED", &now.object, now.revision).await,
            (Some(before), None) => {
                let mut last = before.object.clone();
                if let Some(metadata) = last.get_mut("metadata").and_then(Value::as_object_mut) {
                    let revision = change.revision.to_string();
                    metadata.insert("resourceVersion".to_owned(), json!(revision));
                }
                self.tell("DELETED", &last, change.revision).await
            }
        }
    }

    async fn tell(&mut self, what: &str, object: &Value, revision: u64) -> Result<(), Gone> {
        let mut line = match self.form {
            Form::Object => json!({"type": what, "object": object}),
            Form::Table => {
                let mut table = table(self.place.kind, &[object], revision, Timestamp::now());
                if self.told_columns
                    && let Some(table) = table.as_object_mut()
                {
                    table.insert("columnDefinitions".to_owned(), Value::Null);
                }
                self.told_columns = true;
                json!({"type": what, "object": table})
            }
        };
        if let Some(object) = line.get_mut("object").filter(|_| self.form == Form::Object) {
            self.place.speak(object);
        }
        self.send(&line).await
    }

    /// Tells how far the client is, and whether that ends the list it asked for.
    async fn bookmark(&self, revision: u64, ends_list: bool) -> Result<(), Gone> {
        let mut metadata =
            json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if ends_list && let Some(metadata) = metadata.as_object_mut() {
            let annotations = json!({"k8s.io/initial-events-end": "true"});
            metadata.insert("annotations".to_owned(), annotations);
        }
        let kind = self.place.kind;
        let object = json!({
            "kind": kind.kind,
            "apiVersion": kind.api_version(),
            "metadata": metadata,
        });
        self.send(&json!({"type": "BOOKMARK", "object": object}))
            .await
    }

    async fn send(&self, line: &Value) -> Result<(), Gone> {
        let mut text = line.to_string();
        text.push('\n');
        self.lines.send(text.into()).await.map_err(|_| Gone)
    }
}
