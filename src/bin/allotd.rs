//! The daemon's program: reads its arguments and hands over to `allotd::daemon` or `allotd::runtime`.

use std::path::Path;
use std::process::ExitCode;

use allotd::config::{Config, DEFAULT_TEXT};
use allotd::daemon::{self, Args, Command};
use allotd::runtime::{errand, open_files, shim};
use clap::Parser;

fn main() -> ExitCode {
    let args = Args::parse();
    if let Some(command) = args.command {
        open_files::restore();
        return ExitCode::from(match command {
            Command::Shim { dir } => shim::main(&dir),
            Command::Exec {
                dir,
                milliseconds,
                words,
            } => shim::exec::main(&dir, milliseconds, words),
            Command::MountVolume { dir, bytes } => errand::mount_volume(&dir, bytes),
            Command::UnmountVolume { dir } => errand::unmount_volume(&dir),
            Command::Errand => errand::main(),
            Command::Directories => print_directories(args.config.as_deref()),
        });
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
    let done = if args.print_cpu_weight {
        daemon::cpu_weight(&config).map(|weight| println!("{weight}"))
    } else if let Some(seconds) = args.end_pods {
        daemon::end_pods(&config, args.errands, seconds)
    } else {
        daemon::run(config, args.config, args.errands)
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("allotd: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn print_directories(path: Option<&Path>) -> u8 {
    match Config::load(path) {
        Ok(config) => {
            println!("stateDir={}", config.state_dir.display());
            println!("podLogsDir={}", config.pod_logs_dir.display());
            0
        }
        Err(error) => {
            eprintln!("allotd: {error}");
            2
        }
    }
}
