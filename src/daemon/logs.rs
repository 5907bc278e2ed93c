//! Logs: to the journal where systemd connected it, else to the terminal.
//!
//! Fields in capitals (POD, NAMESPACE, CONTAINER) arrive in the journal as they are, to be searched for.

use std::io::{self, IsTerminal};

use anyhow::Context;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, reload};

/// What is logged, to be changed while the daemon runs.
pub(super) struct Level(reload::Handle<EnvFilter, Registry>);

impl Level {
    /// From now on this is logged.
    ///
    /// # Errors
    /// The text is no level.
    pub fn set(&self, level: &str) -> anyhow::Result<()> {
        self.0
            .reload(filter(level)?)
            .context("cannot set the level")
    }
}

/// Starts logging.
pub(super) fn start(level: &str) -> anyhow::Result<Level> {
    let (filter, handle) = reload::Layer::new(filter(level)?);
    let registry = tracing_subscriber::registry().with(filter);
    let journal = std::env::var_os("JOURNAL_STREAM")
        .and_then(|_| tracing_journald::layer().ok())
        .map(|layer| layer.with_field_prefix(None));
    match journal {
        Some(journal) => registry.with(journal).try_init(),
        None => registry
            .with(
                tracing_subscriber::fmt::layer()
                    .with_writer(io::stderr)
                    .with_ansi(io::stderr().is_terminal()),
            )
            .try_init(),
    }
    .context("cannot start logging")?;
    Ok(Level(handle))
}

/// What a level lets through.
pub(super) fn filter(level: &str) -> anyhow::Result<EnvFilter> {
    EnvFilter::try_new(level).with_context(|| {
        format!("logLevel is {level:?}: error, warn, info, debug or trace is right")
    })
}
