//! The watchdog: tells the service manager that the daemon is alive.
//!
//! The owner must have answered for that. That this task runs proves nothing about it.

use std::time::Duration;

use sd_notify::NotifyState;

use super::tell;
use crate::agent::{Handle, Request};

/// Tells it for as long as the owner answers, if the service manager wants to know.
pub(super) async fn run(handle: Handle) {
    let Some(within) = sd_notify::watchdog_enabled() else {
        return;
    };
    // A third: one answer may come late.
    let pause = (within / 3).max(Duration::from_millis(10));
    loop {
        // However late the answer comes, it is an answer; if none comes there is nothing to tell.
        match tokio::time::timeout(within, handle.ask(Request::Alive)).await {
            Ok(Ok(())) => tell(&[NotifyState::Watchdog]),
            // It is stopping.
            Ok(Err(_)) => return,
            Err(_) => tracing::error!("the owner has not answered for {within:?}"),
        }
        tokio::time::sleep(pause).await;
    }
}
