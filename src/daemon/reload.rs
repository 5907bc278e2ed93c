//! Reading the configuration again while the daemon runs.
//!
//! Decides nothing about settings: which can change is the configuration's word, and the owner takes all of
//! them or none. What was refused is told, and what was in effect stays.

use std::path::PathBuf;
use std::sync::Arc;

use sd_notify::NotifyState;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::logs::{self, Level};
use super::{tell, watch_pressure};
use crate::agent::{Handle, Request};
use crate::config::Config;
use crate::observation::pressure::Pressure;

/// SIGHUP, caught from now on.
pub(super) fn signals() -> std::io::Result<Signal> {
    signal(SignalKind::hangup())
}

/// What a new configuration changes outside the owner.
pub(super) struct Reload {
    config: Config,
    path: Option<PathBuf>,
    handle: Handle,
    level: Arc<Level>,
    pressure: Option<Pressure>,
}

impl Reload {
    pub fn new(
        config: Config,
        path: Option<PathBuf>,
        handle: Handle,
        level: Level,
        pressure: Pressure,
    ) -> Self {
        Self {
            config,
            path,
            handle,
            level: Arc::new(level),
            pressure: Some(pressure),
        }
    }

    /// Reads the configuration again at each signal.
    pub async fn run(mut self, signals: std::io::Result<Signal>) {
        let mut signals = match signals {
            Ok(signals) => signals,
            Err(error) => {
                tracing::error!("the configuration is read at the start only: {error}");
                // What is held goes on.
                return std::future::pending().await;
            }
        };
        while signals.recv().await.is_some() {
            let since = NotifyState::monotonic_usec_now();
            tell(
                &[NotifyState::Reloading]
                    .into_iter()
                    .chain(since)
                    .collect::<Vec<_>>(),
            );
            let told = self.once().await;
            tell(&[NotifyState::Ready, NotifyState::Status(&told)]);
        }
    }

    /// Reads and takes it once; what became of it in one line.
    async fn once(&mut self) -> String {
        let path = self.path.clone();
        let read = tokio::task::spawn_blocking(move || {
            let config = Config::load(path.as_deref()).map_err(|error| error.to_string())?;
            logs::filter(&config.log_level).map_err(|error| format!("configuration: {error:#}"))?;
            Ok(Box::new(config))
        });
        let read = read.await.unwrap_or_else(|error| Err(error.to_string()));
        let reply = |reply| Request::Reload { read, reply };
        match self.handle.ask(reply).await {
            Ok(taken) => {
                let told = taken.told();
                self.follow(taken.config).await;
                told
            }
            // The owner has told of it in the log.
            Err(refusal) => format!(
                "configuration refused, the former one stays: {}",
                refusal.message
            ),
        }
    }

    /// What hangs on the configuration beside the owner.
    async fn follow(&mut self, config: Config) {
        if config.log_level != self.config.log_level
            && let Err(error) = self.level.set(&config.log_level)
        {
            tracing::error!("{error:#}");
        }
        if config.eviction().ok() != self.config.eviction().ok() {
            let before = self.pressure.take();
            let (handle, new) = (self.handle.clone(), config.clone());
            // To end the one before takes as long as its last look.
            let started = tokio::task::spawn_blocking(move || {
                drop(before);
                watch_pressure(&new, handle)
            });
            match started.await {
                Ok(Ok(pressure)) => self.pressure = Some(pressure),
                Ok(Err(error)) => tracing::error!("{error:#}"),
                Err(error) => tracing::error!("{error}"),
            }
        }
        self.config = config;
    }
}
