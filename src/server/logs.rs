//! `…/pods/NAME/log`: a container's output, as kubectl asks for it.
//!
//! Reading follows the file, never the owner's time: each page is read on a blocking thread, and a
//! client that does not read holds nothing but its own connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::Shared;
use super::follow::{self, Pieces};
use super::status::Answer;
use crate::agent::{ObjectKey, PodKey, Refusal, Request};
use crate::model::kind::POD;
use crate::runtime::logs::{self, Log, Page};

/// How often a followed log is looked at while nothing comes.
const FOLLOW: Duration = Duration::from_millis(250);

/// Query parameters, with kubectl's names.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct LogQuery {
    container: Option<String>,
    follow: bool,
    previous: bool,
    timestamps: bool,
    tail_lines: Option<u64>,
    limit_bytes: Option<u64>,
}

/// A container's output.
pub(super) async fn read(
    State(shared): State<Shared>,
    Path((namespace, name)): Path<(String, String)>,
    Query(query): Query<LogQuery>,
) -> Answer<Response> {
    let key = PodKey { namespace, name };
    let path = shared
        .handle
        .ask(|reply| Request::LogFile {
            key: key.clone(),
            container: query.container.clone(),
            previous: query.previous,
            reply,
        })
        .await?;
    let failed = |error: std::io::Error| Refusal::internal(format!("the log: {error}"));
    let content = [(header::CONTENT_TYPE, "text/plain")];
    let mut logs = logs::open_all(&path).map_err(failed)?;
    let Some(last) = logs.last() else {
        return Ok((content, Body::empty()).into_response());
    };
    // Without follow, what is written after the question is no part of the answer: a fast writer must
    // not keep it going for ever.
    let end = if query.follow {
        u64::MAX
    } else {
        last.length().map_err(failed)?
    };
    let offset = match query.tail_lines {
        Some(lines) => logs::tail(&mut logs, lines).map_err(failed)?,
        None => 0,
    };
    let mut logs: VecDeque<_> = logs.into_iter().map(Arc::new).collect();
    let Some(log) = logs.pop_front() else {
        return Ok((content, Body::empty()).into_response());
    };
    let permit = if query.follow {
        Some(follow::permit(&shared)?)
    } else {
        None
    };
    let (send, receive) = mpsc::channel(4);
    let reader = Reader {
        _permit: permit,
        end,
        shared,
        key,
        log,
        later: logs,
        path,
        query,
    };
    tokio::spawn(reader.run(offset, send));
    Ok((content, Body::new(Pieces(receive))).into_response())
}

struct Reader {
    _permit: Option<OwnedSemaphorePermit>,
    end: u64,
    shared: Shared,
    key: PodKey,
    log: Arc<Log>,
    /// Files of the log that follow, as far as they are known.
    later: VecDeque<Arc<Log>>,
    path: std::path::PathBuf,
    query: LogQuery,
}

impl Reader {
    async fn run(mut self, mut offset: u64, pages: mpsc::Sender<Bytes>) {
        let mut left = self.query.limit_bytes.unwrap_or(u64::MAX);
        loop {
            // Asked before the page is read, so that what was written last is still read.
            let goes_on = self.query.follow && self.goes_on().await;
            let is_last = self.later.is_empty();
            let end = if is_last { self.end } else { u64::MAX };
            let log = Arc::clone(&self.log);
            let Ok(Ok(page)) = tokio::task::spawn_blocking(move || log.page(offset, end)).await
            else {
                return;
            };
            let progress = page.next != offset;
            offset = page.next;
            let mut text = self.text(&page);
            text.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            left = left.saturating_sub(u64::try_from(text.len()).unwrap_or(u64::MAX));
            if !text.is_empty() && pages.send(text.into()).await.is_err() {
                return;
            }
            if left == 0 {
                return;
            }
            if !progress {
                if !is_last && let Some(next) = self.later.pop_front() {
                    self.log = next;
                    offset = 0;
                    continue;
                }
                // Once more: what came before it was put aside must not be missed.
                if is_last && self.was_rotated() {
                    continue;
                }
            }
            if !progress && !goes_on {
                return;
            }
            if !progress {
                tokio::select! {
                    () = tokio::time::sleep(FOLLOW) => {}
                    () = pages.closed() => return,
                }
            }
        }
    }

    /// Whether the log has gone on in another file, which is found then. This one gets no more.
    fn was_rotated(&mut self) -> bool {
        let found = self.query.follow.then(|| logs::open_all(&self.path).ok());
        let Some(files) = found.flatten() else {
            return false;
        };
        let own = self.log.inode().ok();
        let is_own = |log: &Log| log.inode().ok() == own;
        let after = files.iter().position(is_own).map_or(0, |at| at + 1);
        self.later
            .extend(files.into_iter().skip(after).map(Arc::new));
        !self.later.is_empty()
    }

    /// Whether the container still writes to this very log.
    async fn goes_on(&self) -> bool {
        let container = self.query.container.clone();
        let now = self
            .shared
            .handle
            .ask(|reply| Request::LogFile {
                key: self.key.clone(),
                container: container.clone(),
                previous: self.query.previous,
                reply,
            })
            .await;
        if !now.is_ok_and(|path| path == self.path) {
            return false;
        }
        let key = ObjectKey::of(POD, &self.key.namespace, &self.key.name);
        let seen = self.shared.handle.cache().get(&key);
        let pod = seen.and_then(|seen| Pod::deserialize(&seen.object).ok());
        let Some(status) = pod.and_then(|pod| pod.status) else {
            return false;
        };
        let inits = status.init_container_statuses.into_iter().flatten();
        let apps = status.container_statuses.into_iter().flatten();
        inits
            .chain(apps)
            .filter(|status| container.as_ref().is_none_or(|name| *name == status.name))
            .any(|status| status.state.is_some_and(|state| state.running.is_some()))
    }

    fn text(&self, page: &Page) -> Vec<u8> {
        let mut text = Vec::new();
        for record in &page.records {
            if self.query.timestamps {
                text.extend_from_slice(format!("{:.9} ", record.time).as_bytes());
            }
            text.extend_from_slice(&record.text);
            if record.full {
                text.push(b'\n');
            }
        }
        text
    }
}
