//! `allot top`: what node, pods and containers use now, against what they asked for and may have.
//!
//! On a terminal a picture that goes on: `fetch` asks, `state` makes a model of what came in, `view`
//! a picture of the model, and `live` alone touches the terminal. Elsewhere one table. Both show the
//! same figures, which are those of `kubectl top`. One that cannot be had is `-`, never 0.

mod fetch;
pub mod history;
pub mod keys;
mod live;
mod once;
pub mod rows;
mod screen;
pub mod state;
mod units;
pub mod view;

use std::io::{self, IsTerminal, Write};

use super::error::CliError;
use super::{Context, OutputForm};

/// Show what node, pods and containers use, against what they asked for and may have
///
/// On a terminal the figures go on until q; ? shows the keys. Otherwise, and with --once or -o, they are
/// printed once.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Print the figures once
    #[arg(long)]
    pub once: bool,
    /// Pods of all namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub interval: u64,
    /// How to print them
    #[arg(short, long, value_enum, default_value_t)]
    pub output: OutputForm,
}

/// Shows the figures, once or for as long as somebody looks.
///
/// # Errors
/// No daemon, or output that cannot be written.
pub fn run(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let once = args.once || args.output != OutputForm::Text;
    if once || !io::stdout().is_terminal() || is_dumb() {
        return once::run(args, context, out);
    }
    live::run(args, context)
}

/// A terminal on which nothing can be drawn.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|kind| kind.is_empty() || kind == "dumb")
}
