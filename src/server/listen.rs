//! Connections: how many at a time, and how long each may keep us waiting.
//!
//! Every client is taken for one that may stop in the middle of a word. Whatever it does, it holds one
//! connection for a bounded time, and no other client notices.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutStream;
use tower::ServiceExt;

use super::peer::Peer;

/// What clients may cost.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Connections at a time; more wait to be accepted.
    pub connections: usize,
    /// Requests at a time; more wait.
    pub requests: usize,
    /// Clients at a time that watch or follow a log; more are refused.
    pub followers: usize,
    /// The length of a body (bytes); a pod of 512 containers is far below.
    pub body: usize,
    /// The length of a request's head (bytes).
    pub head: usize,
    /// How long a head may take to come, and how long a connection may be idle.
    pub patience: Duration,
    /// How long a client may read nothing of what it asked for.
    pub stall: Duration,
    /// How long an answer may take, but for a watch or a followed log; its request's body included.
    pub answer: Duration,
    /// How long requests under way may take when the daemon stops.
    pub stop: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 512,
            requests: 256,
            followers: 256,
            body: 4 << 20,
            head: 64 << 10,
            patience: Duration::from_secs(30),
            stall: Duration::from_secs(60),
            answer: Duration::from_secs(30),
            stop: Duration::from_secs(5),
        }
    }
}

/// Accepts connections until `stop` completes; requests under way are answered first.
///
/// # Errors
/// The listener failed.
pub(super) async fn accept(
    listener: UnixListener,
    app: Router,
    bounds: Bounds,
    stop: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let free = Arc::new(Semaphore::new(bounds.connections));
    let graceful = GracefulShutdown::new();
    let mut stop = pin!(stop);
    loop {
        let accepted = async {
            // The semaphore is never closed.
            let place = Arc::clone(&free).acquire_owned().await;
            (place, listener.accept().await)
        };
        tokio::select! {
            (place, accepted) = accepted => match (place, accepted) {
                (Ok(place), Ok((stream, _))) => serve(stream, place, app.clone(), bounds, &graceful),
                // Out of descriptors or memory: the client waits, and so do we for a moment.
                (_, Err(error)) => {
                    tracing::warn!("cannot accept a connection: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                (Err(_), Ok(_)) => {}
            },
            () = &mut stop => break,
        }
    }
    if tokio::time::timeout(bounds.stop, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("some clients were not answered within {:?}", bounds.stop);
    }
    Ok(())
}

fn serve(
    stream: UnixStream,
    place: OwnedSemaphorePermit,
    app: Router,
    bounds: Bounds,
    graceful: &GracefulShutdown,
) {
    let peer = Peer::of(&stream);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(bounds.stall));
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer.clone()));
        let app = app.clone();
        async move {
            let answer = app.oneshot(request).await;
            Ok::<_, Infallible>(answer.unwrap_or_else(|never| match never {}))
        }
    });
    let mut http = hyper::server::conn::http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(bounds.patience)
        .max_buf_size(bounds.head);
    let connection = http.serve_connection(TokioIo::new(Box::pin(stream)), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!("a connection ended: {error}");
        }
        drop(place);
    });
}
