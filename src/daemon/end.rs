//! The end of all pods while no agent runs: what the service manager asks for where the node ends them.
//!
//! Opens what the agent needs, without its socket, its watch on pressure and its files of static pods. It tells the
//! service manager nothing: it runs in a unit that is not the agent's. It must end by itself, whatever hangs.

use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, bail};

use super::{logs, parts};
use crate::agent::{self, Handle};
use crate::config::Config;
use crate::runtime::{Errands, open_files};

/// What it may take beyond its bound: to open the store, to wait for what was killed, and to tell.
const BEYOND: Duration = Duration::from_secs(15);

/// Ends all containers within so many seconds, and tells on standard output how that went.
///
/// # Errors
/// It cannot be done from here: an agent runs, or what is kept of the pods cannot be used.
pub fn end_pods(
    config: &Config,
    errands: Option<std::path::PathBuf>,
    seconds: u64,
) -> anyhow::Result<()> {
    let root = config.cgroup_root.display();
    if !config.cgroup_root.is_dir() {
        println!("nothing to end: there is no {root}");
        return Ok(());
    }
    if !config.state_dir.is_dir() {
        bail!("there is no {}", config.state_dir.display());
    }
    let _level = logs::start(&config.log_level)?;
    open_files::raise();
    let most = Duration::from_secs(seconds);
    give_up_after(most.saturating_add(BEYOND))?;
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("edge")
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let (send, inputs) = mpsc::channel();
    let errands = errands.map_or_else(|| Errands::Own("/proc/self/exe".into()), Errands::Socket);
    let parts = parts(config, errands, Handle::new(send), tokio.handle().clone())?;
    let ended = agent::end_pods(parts, &inputs, most, |containers, pods| {
        println!("ending {containers} containers of {pods} pods within {seconds} s");
    })
    .context("cannot end pods")?;
    println!("{ended}");
    // A hook that outlives its container is nobody's to wait for.
    tokio.shutdown_background();
    Ok(())
}

/// The service manager would not take the next step if this one took too long.
fn give_up_after(time: Duration) -> anyhow::Result<()> {
    std::thread::Builder::new()
        .name("patience".to_owned())
        .spawn(move || {
            std::thread::sleep(time);
            eprintln!("allotd: gives up after {} s", time.as_secs());
            std::process::exit(1);
        })
        .context("cannot start a thread")?;
    Ok(())
}
