//! What probes and hooks do: a program, a request, a connection, a pause; bounded in time, size and number.
//!
//! Decides what is a success. It follows no redirection: a status of 300 to 399 is one, as with the kubelet
//! where it leads to another host.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONNECTION, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::super::input::Handle;
use crate::model::PodUid;
use crate::model::probe::{Action, Address, Hook, Http};
use crate::runtime::exec::{MAX_OUTPUT, Outcome};
use crate::runtime::{AttemptId, Runtime};

/// At most so many probes of a kind are under way at once.
const PROBES: usize = 64;
/// The same for hooks, which may take long.
const HOOKS: usize = 256;
/// All headers of an answer (bytes); the least that hyper takes.
const MAX_HEAD: usize = 8 << 10;
/// How many headers an answer may have.
const MAX_HEADERS: usize = 100;
/// What a hook's request may take.
const HOOK_REQUEST: Duration = Duration::from_secs(30);
/// So much of an answer is told (characters).
const SHOWN: usize = 256;

/// How much is done at once, on the whole node.
#[derive(Debug)]
pub(in crate::agent) struct Limits {
    programs: Semaphore,
    connections: Semaphore,
    hooks: Semaphore,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            programs: Semaphore::new(PROBES),
            connections: Semaphore::new(PROBES),
            hooks: Semaphore::new(HOOKS),
        }
    }
}

/// Who acts on one run of a container.
#[derive(Clone)]
pub(super) struct Actor {
    pub id: AttemptId,
    pub uid: PodUid,
    pub container: String,
    pub runtime: Runtime,
    pub handle: Handle,
    pub limits: Arc<Limits>,
}

/// What a look shows.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look {
    Success,
    /// It is not as it should be, for this reason.
    Failure(String),
    /// Nothing could be seen, for this reason.
    Errored(String),
}

impl Actor {
    /// Looks once, which takes `time` at the most once its turn has come.
    pub async fn look(&self, action: &Action, time: Duration) -> Look {
        let turns = match action {
            Action::Exec(_) => &self.limits.programs,
            _ => &self.limits.connections,
        };
        let _turn = turns.acquire().await;
        match action {
            Action::Exec(words) => self.run(words, time).await,
            Action::Http(http) => match timeout(time, ask(http)).await {
                Err(_) => Look::Failure(format!("no answer from {} within {time:?}", http.address)),
                Ok(Err(why)) => Look::Failure(why),
                Ok(Ok((status, _))) if (200..400).contains(&status) => Look::Success,
                Ok(Ok((status, said))) => {
                    Look::Failure(format!("HTTP probe failed with statuscode: {status}{said}"))
                }
            },
            Action::Tcp(address) => match timeout(time, connect(address)).await {
                Err(_) => Look::Failure(format!("no connection to {address} within {time:?}")),
                Ok(Err(why)) => Look::Failure(why),
                Ok(Ok(_)) => Look::Success,
            },
        }
    }

    /// Carries out a hook within `time`. Any answer to a request is a success, as with the kubelet.
    pub async fn hook(&self, hook: &Hook, time: Duration) -> Result<(), String> {
        let turn = async {
            let turn = timeout(time, self.limits.hooks.acquire()).await;
            turn.map_err(|_| "too many hooks are under way".to_owned())
        };
        match hook {
            Hook::Exec(words) => {
                let _turn = turn.await?;
                match self.run(words, time).await {
                    Look::Success => Ok(()),
                    Look::Failure(why) | Look::Errored(why) => Err(why),
                }
            }
            Hook::Http(http) => {
                let _turn = turn.await?;
                let answer = timeout(time.min(HOOK_REQUEST), ask(http)).await;
                let none = |_| format!("no answer from {}", http.address);
                answer.map_err(none)?.map(drop)
            }
            Hook::Sleep(seconds) => {
                sleep(time.min(Duration::from_secs(*seconds))).await;
                Ok(())
            }
        }
    }

    async fn run(&self, words: &[String], time: Duration) -> Look {
        match self.runtime.exec(&self.id, words, time).await {
            Err(error) => Look::Errored(error.to_string()),
            Ok(Outcome::NotRun { why }) => Look::Errored(why),
            Ok(Outcome::Exited { code: 0, .. }) => Look::Success,
            Ok(Outcome::Exited { code, output }) => match output.trim() {
                "" => Look::Failure(format!("exit code {code}")),
                output => Look::Failure(output.to_owned()),
            },
            Ok(Outcome::TimedOut { output }) => {
                let said = said(&output);
                Look::Failure(format!("command timed out after {time:?}{said}"))
            }
        }
    }
}

/// What there is to say beside.
fn said(text: &str) -> String {
    match text.trim() {
        "" => String::new(),
        text => format!(": {}", text.chars().take(SHOWN).collect::<String>()),
    }
}

async fn connect(address: &Address) -> Result<TcpStream, String> {
    let connected = TcpStream::connect((address.host.as_str(), address.port)).await;
    connected.map_err(|error| format!("cannot connect to {address}: {error}"))
}

/// The status of an answer, and the beginning of what it says.
async fn ask(http: &Http) -> Result<(u16, String), String> {
    let stream = connect(&http.address).await?;
    let failed = |error: hyper::Error| format!("no answer from {}: {error}", http.address);
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(failed)?;
    let request = request(http).map_err(|error| format!("cannot ask: {error}"))?;
    let exchange = async {
        let answer = sender.send_request(request).await.map_err(failed)?;
        let status = answer.status().as_u16();
        Ok((status, said(&beginning(answer).await)))
    };
    // The connection may end before all is read, and the exchange goes on with what has come.
    let carried = async {
        drop(connection.await);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        answer = exchange => answer,
        () = carried => Err(format!("{} closed the connection", http.address)),
    }
}

fn request(http: &Http) -> Result<Request<Empty<Bytes>>, hyper::http::Error> {
    let mut request = Request::get(http.path.as_str()).body(Empty::new())?;
    let headers = request.headers_mut();
    for (name, value) in &http.headers {
        headers.append(
            HeaderName::from_bytes(name.as_bytes())?,
            HeaderValue::from_bytes(value.as_bytes())?,
        );
    }
    for (name, value) in [
        (HOST, http.address.to_string()),
        (USER_AGENT, "kube-probe/1.37".to_owned()),
        (ACCEPT, "*/*".to_owned()),
        (CONNECTION, "close".to_owned()),
    ] {
        if !headers.contains_key(&name) {
            headers.insert(name, HeaderValue::from_str(&value)?);
        }
    }
    Ok(request)
}

/// The beginning of an answer's text, as far as it comes.
async fn beginning(answer: Response<Incoming>) -> String {
    let mut text = Vec::new();
    let mut body = answer.into_body();
    while text.len() < MAX_OUTPUT
        && let Some(Ok(frame)) = body.frame().await
    {
        let room = MAX_OUTPUT.saturating_sub(text.len());
        text.extend(frame.data_ref().into_iter().flatten().take(room));
    }
    String::from_utf8_lossy(&text).into_owned()
}
