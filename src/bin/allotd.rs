//! The daemon's program: reads its arguments and hands over to `allotd::daemon`.

use std::path::PathBuf;
use std::process::ExitCode;

use allotd::config::{Config, DEFAULT_TEXT};
use allotd::{daemon, runtime};
use clap::{Parser, Subcommand};

/// Node agent: admits pods, turns requests and limits into cgroup v2 values, keeps them true.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// Configuration file (default: /etc/allotd/config.yaml, if it exists)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print every setting with its default and what it means
    #[arg(long)]
    print_config: bool,
    /// Check the configuration and exit
    #[arg(long)]
    check_config: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the process of one container and watch it; allotd calls this itself.
    #[command(hide = true)]
    Shim {
        /// The directory of the run.
        dir: PathBuf,
    },
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(Command::Shim { dir }) = args.command {
        return ExitCode::from(runtime::shim::main(&dir));
    }
    if args.print_config {
        print!("{DEFAULT_TEXT}");
        return ExitCode::SUCCESS;
    }
    let config = match Config::load(args.config.as_deref()) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("allotd: {error}");
            return ExitCode::from(2);
        }
    };
    if args.check_config {
        return ExitCode::SUCCESS;
    }
    match daemon::run(&config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("allotd: {error:#}");
            ExitCode::FAILURE
        }
    }
}
