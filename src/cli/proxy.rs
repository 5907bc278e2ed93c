//! `allot proxy`: the daemon's socket on a port of this machine, for kubectl and whatever else speaks TCP.
//!
//! Who comes through it has the rights of whoever started it. So it listens on the loopback alone, asks
//! the kernel whose connection each one is, and lets in only the same user and root; and it refuses what
//! a web page could make that user's browser send.

use std::convert::Infallible;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, ORIGIN};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, client, server};
use hyper_util::rt::{TokioIo, TokioTimer};
use nix::unistd::Uid;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream, UnixStream};

use super::Context;
use super::error::CliError;

/// Serve the daemon's API on a port of the loopback, for kubectl: only you and root can use it
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The port on 127.0.0.1; 0: any that is free
    #[arg(short, long, default_value_t = 8001)]
    pub port: u16,
}

/// How long a request's head may take to come.
const PATIENCE: Duration = Duration::from_secs(30);

type Body = Either<Incoming, Full<Bytes>>;

/// Serves until it is interrupted.
///
/// # Errors
/// The port cannot be had, or output cannot be written.
pub fn run(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::Failed(format!("cannot start an event loop: {error}")))?;
    let served: Result<Infallible, CliError> = runtime.block_on(async {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
        let listener = TcpListener::bind(address)
            .await
            .map_err(|error| CliError::Failed(format!("cannot listen on {address}: {error}")))?;
        // kubectl's words, which scripts wait for.
        writeln!(out, "Starting to serve on {}", listener.local_addr()?)?;
        out.flush()?;
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    tokio::spawn(serve(stream, peer, context.global.socket.clone()));
                }
                // Out of descriptors: whoever connects waits a moment.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    });
    served.map(|never| match never {})
}

async fn serve(stream: TcpStream, peer: SocketAddr, socket: PathBuf) {
    let stranger = stranger(&stream, peer);
    let service = service_fn(move |request: Request<Incoming>| {
        let (stranger, socket) = (stranger.clone(), socket.clone());
        async move {
            let refused = stranger.or_else(|| forged(&request));
            Ok::<_, Infallible>(match refused {
                Some(why) => refusal(StatusCode::FORBIDDEN, "Forbidden", &why),
                None => pass_on(request, &socket).await,
            })
        }
    });
    // A connection that breaks is its client's business.
    let _ = server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

/// Why whoever connected may not, if so.
fn stranger(stream: &TcpStream, peer: SocketAddr) -> Option<String> {
    let own = Uid::effective().as_raw();
    let here = stream.local_addr().ok()?;
    // The kernel knows both ends of a connection on the loopback; the other end is the client's.
    let connections = match procfs::net::tcp() {
        Ok(connections) => connections,
        Err(error) => return Some(format!("the kernel does not say who connected: {error}")),
    };
    let client = connections
        .iter()
        .find(|one| one.local_address == peer && one.remote_address == here);
    match client {
        Some(client) if client.uid == own || client.uid == 0 => None,
        Some(client) => Some(format!(
            "user {} may not use the proxy of user {own}: start one of your own",
            client.uid
        )),
        None => Some("the kernel does not say who connected".to_owned()),
    }
}

/// Why a request must come from a web page, if so: a browser says where a page is from, and asks for
/// the host that the page's author chose.
fn forged(request: &Request<Incoming>) -> Option<String> {
    if let Some(origin) = request.headers().get(ORIGIN) {
        return Some(format!(
            "requests of web pages are refused (Origin: {origin:?})"
        ));
    }
    let host = request.headers().get(HOST)?.to_str().unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    (!matches!(name, "localhost" | "127.0.0.1"))
        .then(|| format!("the host is {host:?}: 127.0.0.1 and localhost are served"))
}

async fn pass_on(request: Request<Incoming>, socket: &PathBuf) -> Response<Body> {
    let answer = async {
        let stream = UnixStream::connect(socket)
            .await
            .map_err(|error| error.to_string())?;
        let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        tokio::spawn(connection);
        sender
            .send_request(request)
            .await
            .map_err(|error| error.to_string())
    };
    match answer.await {
        Ok(answer) => answer.map(Either::Left),
        Err(why) => {
            let why = format!("allotd does not answer at {}: {why}", socket.display());
            refusal(StatusCode::BAD_GATEWAY, "ServiceUnavailable", &why)
        }
    }
}

fn refusal(code: StatusCode, reason: &str, message: &str) -> Response<Body> {
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code.as_u16(),
    });
    let mut response = Response::new(Either::Right(Full::from(status.to_string())));
    *response.status_mut() = code;
    let json = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}
