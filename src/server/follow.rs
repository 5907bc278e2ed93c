//! Answers that go on for long: watches and followed logs. There are places for so many of them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Bytes;
use hyper::body::Frame;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::Shared;
use crate::agent::Refusal;

/// A place, until it is dropped.
///
/// # Errors
/// All are taken.
pub(super) fn permit(shared: &Shared) -> Result<OwnedSemaphorePermit, Refusal> {
    Arc::clone(&shared.followers)
        .try_acquire_owned()
        .map_err(|_| {
            Refusal::new(
                429,
                "TooManyRequests",
                "as many clients watch or follow already as may: try again later",
            )
        })
}

/// What is told piece by piece, as a response body.
pub(super) struct Pieces(pub(super) mpsc::Receiver<Bytes>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0
            .poll_recv(context)
            .map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }
}
