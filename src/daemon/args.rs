//! The words that `allotd` is started with. Decides nothing else.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Node agent: admits pods, turns requests and limits into cgroup v2 values, keeps them true
///
/// SIGTERM ends it, and pods go on. SIGHUP reads the configuration again.
#[derive(Debug, Parser)]
#[command(name = "allotd", version)]
pub struct Args {
    /// Configuration file (default: /etc/allotd/config.yaml, if it exists)
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print every setting with its default and what it means
    #[arg(long)]
    pub print_config: bool,
    /// Check the configuration and exit
    #[arg(long)]
    pub check_config: bool,
    /// Print the CPU weight that all pods together should have on this machine
    #[arg(long)]
    pub print_cpu_weight: bool,
    /// End all containers, within so many seconds, and exit; the pods stay, and begin anew with the next allotd
    ///
    /// For when the node goes down, while no other allotd runs: `preStop` hooks, SIGTERM, and SIGKILL after each
    /// pod's own grace period or this time, whichever is shorter. Critical and static pods end after the others, in
    /// a third of the time that is kept for them. The exit code is 1 if this cannot be done.
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(1..=86_400),
        conflicts_with_all = ["print_config", "check_config", "print_cpu_weight"]
    )]
    pub end_pods: Option<u64>,
    /// Start containers and mount volumes through this socket, where `allotd errand` answers, in place of
    /// doing so itself: so a service manager can confine allotd and leave containers alone
    #[arg(long, value_name = "SOCKET")]
    pub errands: Option<PathBuf>,
    /// What to do in place of serving.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What allotd calls itself for.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the process of one container and watch it.
    #[command(hide = true)]
    Shim {
        /// The directory of the run.
        dir: PathBuf,
    },
    /// Run a program beside a container's own.
    #[command(hide = true)]
    Exec {
        /// The directory of the run.
        dir: PathBuf,
        /// What it may take.
        milliseconds: u64,
        /// The program and its arguments.
        #[arg(last = true, required = true)]
        words: Vec<OsString>,
    },
    /// Mount a volume in memory.
    #[command(hide = true)]
    MountVolume {
        /// The volume's directory.
        dir: PathBuf,
        /// What it may hold (bytes).
        bytes: Option<u64>,
    },
    /// Unmount a volume in memory.
    #[command(hide = true)]
    UnmountVolume {
        /// The volume's directory.
        dir: PathBuf,
    },
    /// Read one of the above from standard input, do it, and answer on standard output.
    #[command(hide = true)]
    Errand,
    /// Print stateDir and podLogsDir of the configuration, for whoever removes them.
    #[command(hide = true)]
    Directories,
}
