//! The client side of the daemon's socket: one request, one connection.
//!
//! Everything is bounded: how long an answer may take and how long it may be. Only a followed log
//! may go on for ever.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, WARNING};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::error::CliError;
use super::target::Target;

/// How long the daemon may take to take a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// How long it may take to answer.
const ANSWER: Duration = Duration::from_secs(60);
/// The longest answer that is read: some ten thousand pods.
const MAX_ANSWER: usize = 128 << 20;
/// So much of an answer that is no `Status` is shown.
const MAX_SHOWN: usize = 300;

/// An answer, and what the daemon remarked with it.
#[derive(Clone, Debug)]
pub struct Answer<T> {
    /// The object.
    pub object: T,
    /// Texts of `Warning` headers.
    pub warnings: Vec<String>,
}

/// A client of the daemon. Its calls block.
#[derive(Debug)]
pub struct Client {
    socket: PathBuf,
    runtime: Runtime,
}

impl Client {
    /// A client for this socket; it connects when it is asked for something.
    ///
    /// # Errors
    /// The system has no room for an event loop.
    pub fn new(socket: &Path) -> Result<Self, CliError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| CliError::Failed(format!("cannot start an event loop: {error}")))?;
        Ok(Self {
            socket: socket.to_owned(),
            runtime,
        })
    }

    /// The object at a path.
    ///
    /// # Errors
    /// No daemon, no answer in time, or a refusal.
    pub fn get<T: DeserializeOwned>(&self, target: &Target) -> Result<T, CliError> {
        let answer = self.ask(Method::GET, target, None::<&()>)?;
        Ok(answer.object)
    }

    /// Sends an object.
    ///
    /// # Errors
    /// As for `get`.
    pub fn post<T: DeserializeOwned>(
        &self,
        target: &Target,
        body: &impl Serialize,
    ) -> Result<Answer<T>, CliError> {
        self.ask(Method::POST, target, Some(body))
    }

    /// Replaces an object.
    ///
    /// # Errors
    /// As for `get`.
    pub fn put<T: DeserializeOwned>(
        &self,
        target: &Target,
        body: &impl Serialize,
    ) -> Result<Answer<T>, CliError> {
        self.ask(Method::PUT, target, Some(body))
    }

    /// Deletes an object.
    ///
    /// # Errors
    /// As for `get`.
    pub fn delete<T: DeserializeOwned>(&self, target: &Target) -> Result<T, CliError> {
        let answer = self.ask(Method::DELETE, target, None::<&()>)?;
        Ok(answer.object)
    }

    /// Passes an answer on in pieces as they come, for as long as there are any.
    ///
    /// # Errors
    /// As for `get`, and whatever `sink` reports.
    pub fn stream(
        &self,
        target: &Target,
        sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), CliError> {
        self.runtime.block_on(async {
            let request = self.request(Method::GET, target, None::<&()>)?;
            let mut body = self
                .within(ANSWER, "answer", self.send(request))
                .await?
                .into_body();
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|error| self.unusable(&error))?;
                if let Some(piece) = frame.data_ref() {
                    sink(piece)?;
                }
            }
            Ok(())
        })
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        target: &Target,
        body: Option<&impl Serialize>,
    ) -> Result<Answer<T>, CliError> {
        let request = self.request(method, target, body)?;
        self.runtime.block_on(self.within(ANSWER, "answer", async {
            let response = self.send(request).await?;
            let warnings = warnings(&response);
            let bytes = self.whole(response.into_body()).await?;
            let object = serde_json::from_slice(&bytes).map_err(|error| self.unusable(&error))?;
            Ok(Answer { object, warnings })
        }))
    }

    fn request(
        &self,
        method: Method,
        target: &Target,
        body: Option<&impl Serialize>,
    ) -> Result<Request<Full<Bytes>>, CliError> {
        let mut request = Request::builder()
            .method(method)
            .uri(target.as_str())
            .header(HOST, "allotd")
            .header(ACCEPT, "application/json");
        let bytes = match body {
            Some(body) => {
                request = request.header(CONTENT_TYPE, "application/json");
                serde_json::to_vec(body).map_err(|error| self.unusable(&error))?
            }
            None => Vec::new(),
        };
        request
            .body(Full::new(Bytes::from(bytes)))
            .map_err(|error| {
                CliError::Usage(format!("{} cannot be asked: {error}", target.as_str()))
            })
    }

    /// Sends a request and returns the answer if it is a good one.
    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, CliError> {
        let connecting = async {
            UnixStream::connect(&self.socket)
                .await
                .map_err(|source| CliError::Unreachable {
                    socket: self.socket.clone(),
                    source,
                })
        };
        let stream = self
            .within(CONNECT, "take the connection", connecting)
            .await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| self.unusable(&error))?;
        tokio::spawn(connection);
        let response = sender
            .send_request(request)
            .await
            .map_err(|error| self.unusable(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let code = response.status();
        let bytes = self.whole(response.into_body()).await?;
        Err(CliError::Refused(Box::new(refusal(code, &bytes))))
    }

    async fn whole(&self, body: Incoming) -> Result<Bytes, CliError> {
        let body = Limited::new(body, MAX_ANSWER).collect().await;
        Ok(body.map_err(|error| self.unusable(&error))?.to_bytes())
    }

    async fn within<T>(
        &self,
        limit: Duration,
        what: &str,
        work: impl Future<Output = Result<T, CliError>>,
    ) -> Result<T, CliError> {
        timeout(limit, work).await.unwrap_or_else(|_| {
            Err(CliError::Slow {
                socket: self.socket.clone(),
                what: what.to_owned(),
                limit,
            })
        })
    }

    fn unusable(&self, why: &impl ToString) -> CliError {
        CliError::Answer {
            socket: self.socket.clone(),
            why: why.to_string(),
        }
    }
}

/// The `Status` that the daemon sent, or one made of what it sent instead.
fn refusal(code: StatusCode, bytes: &[u8]) -> Status {
    let mut status = serde_json::from_slice(bytes).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(bytes.get(..MAX_SHOWN).unwrap_or(bytes));
        Status {
            message: Some(text.trim().to_owned()),
            ..Status::default()
        }
    });
    status.code.get_or_insert(i32::from(code.as_u16()));
    let reason = || {
        code.canonical_reason()
            .unwrap_or("Unknown")
            .replace(' ', "")
    };
    status.reason.get_or_insert_with(reason);
    status
}

/// The texts of `Warning: 299 AGENT "TEXT"` headers (RFC 7234, as the Kubernetes API sends them).
fn warnings(response: &Response<Incoming>) -> Vec<String> {
    let headers = response.headers().get_all(WARNING).iter();
    headers
        .filter_map(|header| warning_text(std::str::from_utf8(header.as_bytes()).ok()?))
        .collect()
}

fn warning_text(header: &str) -> Option<String> {
    let (_, quoted) = header.split_once('"')?;
    let (quoted, _) = quoted.rsplit_once('"')?;
    let mut text = String::with_capacity(quoted.len());
    let mut characters = quoted.chars();
    while let Some(c) = characters.next() {
        text.push(if c == '\\' { characters.next()? } else { c });
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;
    use std::thread;

    use serde_json::{Value, json};

    use super::*;

    /// A server for one request; what it was asked comes out of the thread.
    fn serve(answer: &'static str) -> (tempfile::TempDir, Client, thread::JoinHandle<String>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sock");
        let listener = UnixListener::bind(&path).unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = Vec::new();
            let mut buffer = [0; 4096];
            loop {
                let n = stream.read(&mut buffer).unwrap();
                asked.extend_from_slice(&buffer[..n]);
                let text = String::from_utf8_lossy(&asked).into_owned();
                if n == 0 || text.ends_with('}') || text.ends_with("\r\n\r\n") {
                    break;
                }
            }
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(asked).unwrap()
        });
        let client = Client::new(&path).unwrap();
        (dir, client, server)
    }

    #[test]
    fn an_object_is_sent_and_the_answer_read_with_its_warnings() {
        let (_dir, client, server) = serve(
            "HTTP/1.1 201 Created\r\nWarning: 299 - \"memory of \\\"400m\\\"\"\r\n\
             Content-Length: 7\r\n\r\n{\"a\":1}",
        );
        let answer: Answer<Value> = client
            .post(&Target::objects(Some("default"), "pods"), &json!({"b": 2}))
            .unwrap();
        assert_eq!(answer.object, json!({"a": 1}));
        assert_eq!(answer.warnings, ["memory of \"400m\""]);
        let asked = server.join().unwrap();
        assert!(asked.starts_with("POST /api/v1/namespaces/default/pods HTTP/1.1\r\n"));
        assert!(asked.ends_with("\r\n\r\n{\"b\":2}"), "{asked}");
    }

    #[test]
    fn a_refusal_keeps_the_status() {
        let (_dir, client, _server) = serve(
            "HTTP/1.1 404 Not Found\r\nContent-Length: 59\r\n\r\n\
             {\"kind\":\"Status\",\"reason\":\"NotFound\",\"message\":\"no pod a\"}  ",
        );
        let error = client.get::<Value>(&Target::new(&["x"])).unwrap_err();
        assert!(error.is_not_found(), "{error:?}");
        assert_eq!(error.to_string(), "no pod a");
    }

    #[test]
    fn a_refusal_that_is_no_status_is_told_too() {
        let status = refusal(StatusCode::BAD_GATEWAY, b"<html>\n");
        assert_eq!(status.code, Some(502));
        assert_eq!(status.reason.as_deref(), Some("BadGateway"));
        assert_eq!(status.message.as_deref(), Some("<html>"));
    }

    #[test]
    fn nonsense_in_place_of_an_answer_is_an_error() {
        for answer in [
            "",
            "hello\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[}",
        ] {
            let (_dir, client, _server) = serve(answer);
            let error = client.get::<Value>(&Target::new(&["x"])).unwrap_err();
            assert!(
                matches!(error, CliError::Answer { .. }),
                "{answer:?}: {error:?}"
            );
        }
    }

    #[test]
    fn a_stream_passes_on_every_piece() {
        let (_dir, client, _server) = serve(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na\nb\r\n2\r\nc\n\r\n0\r\n\r\n",
        );
        let mut read = Vec::new();
        client
            .stream(&Target::new(&["log"]), &mut |piece| {
                read.extend_from_slice(piece);
                Ok(())
            })
            .unwrap();
        assert_eq!(read, b"a\nbc\n");
    }

    #[test]
    fn no_daemon_is_told_as_that() {
        let client = Client::new(Path::new("/nonexistent/allotd.sock")).unwrap();
        let error = client.get::<Value>(&Target::new(&["healthz"])).unwrap_err();
        assert!(matches!(error, CliError::Unreachable { .. }), "{error:?}");
    }
}
