//! The daemon: opens what the agent needs, serves until told to stop, and leaves the pods running.
//!
//! It speaks with the service manager: takes its socket, tells it when it is ready, reads the configuration
//! again, and proves that it is alive. It decides nothing about pods.

mod args;
mod end;
mod listen;
mod logs;
mod reload;
mod watchdog;

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use anyhow::{Context, bail};
use sd_notify::NotifyState;
use tokio::signal::unix::{SignalKind, signal};

use crate::agent::{self, Handle, Input, News, Parts};
use crate::cgroup::{CgroupPath, Cgroupfs, InterfaceFile};
use crate::config::Config;
use crate::model::ResourceList;
use crate::observation::kmsg;
use crate::observation::node as facts;
use crate::observation::pressure::{Places, Pressure};
use crate::observation::watch::Watch;
use crate::report::node::SystemInfo;
use crate::runtime::{Errands, Runtime, open_files};
use crate::server::{self, Access, Bounds};
use crate::store;
use crate::translation::{self, Totals};

pub use args::{Args, Command};
pub use end::end_pods;

/// Runs the daemon until SIGTERM or SIGINT. `path` is where the configuration was read from, `errands` the
/// socket through which containers are started, if not by the daemon itself.
///
/// # Errors
/// What keeps it from starting, or a failure of the socket.
pub fn run(config: Config, path: Option<PathBuf>, errands: Option<PathBuf>) -> anyhow::Result<()> {
    let level = logs::start(&config.log_level)?;
    open_files::raise();
    make_dir(&config.state_dir, 0o700)?;
    make_dir(&config.pod_logs_dir, 0o755)?;
    let tokio = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("edge")
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    let (send, receive) = mpsc::channel();
    let handle = Handle::new(send);
    let errands = errands.map_or_else(|| Errands::Own("/proc/self/exe".into()), Errands::Socket);
    let parts = parts(&config, errands, handle.clone(), tokio.handle().clone())?;
    let access = Access {
        admin_gid: group_id(&config.admin_group)?,
    };
    // Before it is told that we are ready: whoever is told may send a signal.
    let (stop, again) = {
        let _in_runtime = tokio.enter();
        (stop_signal(), reload::signals())
    };
    let listening = {
        let _in_runtime = tokio.enter();
        listen::listen(&config)?
    };
    let owner = agent::start(parts, receive).context("cannot start")?;
    let pressure = watch_pressure(&config, handle.clone())?;
    tokio.spawn(watchdog::run(handle.clone()));
    let socket = config.socket.clone();
    let reload = reload::Reload::new(config, path, handle.clone(), level, pressure);
    let reloads = tokio.spawn(reload.run(again));
    tell(&[NotifyState::Ready]);
    tracing::info!("serving on {}", socket.display());
    let stopped = tokio.block_on(server::serve(
        listening.listener,
        handle.clone(),
        access,
        Bounds::default(),
        stop,
    ));
    tell(&[NotifyState::Stopping]);
    tracing::info!("stopping; pods go on");
    reloads.abort();
    handle.tell(Input::Stop);
    let _ = owner.join();
    if !listening.is_passed {
        let _ = std::fs::remove_file(&socket);
    }
    stopped.context("the socket failed")
}

/// The weight that all pods together should have, for whoever owns the cgroup that is to get it.
///
/// # Errors
/// The machine cannot be measured, or the reservations do not fit it.
pub fn cpu_weight(config: &Config) -> anyhow::Result<u64> {
    make_dir(&config.state_dir, 0o700)?;
    let facts = facts::read(&config.state_dir).context("cannot read what the machine has")?;
    let node = agent::build_node(config, &facts, &ResourceList::default())
        .map_err(|problems| anyhow::anyhow!(problems.join("; ")))?;
    let levels = translation::levels(&Totals::default(), &node, &config.policy());
    levels
        .tree
        .get(&CgroupPath::top())
        .and_then(|top| top.get(InterfaceFile::CpuWeight))
        .and_then(|weight| weight.value().parse().ok())
        .context("there is no weight for all pods")
}

/// Tells the service manager, if there is one.
fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("cannot tell the service manager: {error}");
    }
}

fn parts(
    config: &Config,
    errands: Errands,
    handle: Handle,
    tokio: tokio::runtime::Handle,
) -> anyhow::Result<Parts> {
    let controllers = translation::controllers(&config.policy());
    let kernel = Cgroupfs::open(&config.cgroup_root, &controllers, translation::ours)
        .with_context(|| format!("cannot use {}", config.cgroup_root.display()))?;
    let store_path = config.state_dir.join("store.redb");
    let store = store::open_or_rebuild(&store_path, agent::FORMATS)
        .with_context(|| format!("cannot use {}", store_path.display()))?;
    let noticed = handle.clone();
    let watch = Watch::start(&config.cgroup_root, move |notice| {
        noticed.tell(Input::Notice(notice))
    })
    .context("cannot watch cgroups")?;
    let heard = handle.clone();
    let log = kmsg::Reader::start(Path::new(kmsg::KMSG), move |told| {
        heard.tell(Input::Log(told))
    })
    .map_err(|error| format!("cannot read {}: {error}", kmsg::KMSG));
    Ok(Parts {
        log,
        facts: facts::read(&config.state_dir).context("cannot read what the machine has")?,
        system: system_info(),
        kernel: Box::new(kernel),
        store,
        runtime: Runtime {
            state: config.state_dir.clone(),
            logs: config.pod_logs_dir.clone(),
            errands,
            shim_cgroup: None,
        },
        watch,
        tokio,
        handle,
        config: config.clone(),
    })
}

/// Looks at what the node has left from now on; the top cgroup is there by now.
fn watch_pressure(config: &Config, handle: Handle) -> anyhow::Result<Pressure> {
    let places = Places {
        pods: config.cgroup_root.clone(),
        files: config.state_dir.clone(),
        logs: config.pod_logs_dir.clone(),
    };
    let thresholds = config.eviction().unwrap_or_default().thresholds;
    Pressure::start(places, thresholds, move |facts| {
        handle.tell(Input::Eviction(Box::new(News::Seen(facts))))
    })
    .context("cannot watch what the node has left")
}

fn make_dir(path: &Path, mode: u32) -> anyhow::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path)
        .with_context(|| format!("cannot make {}", path.display()))
}

/// A group by number, or by name from `/etc/group`; the static build must not ask NSS.
fn group_id(group: &str) -> anyhow::Result<Option<u32>> {
    if group.is_empty() {
        return Ok(None);
    }
    if let Ok(gid) = group.parse() {
        return Ok(Some(gid));
    }
    let groups = std::fs::read_to_string("/etc/group").context("cannot read /etc/group")?;
    let found = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(group)).then(|| fields.nth(1)?.parse().ok())?
    });
    match found {
        Some(gid) => Ok(Some(gid)),
        None => bail!("there is no group {group:?}: groupadd --system {group}"),
    }
}

/// Completes on SIGTERM or SIGINT, which are caught from now on.
fn stop_signal() -> impl Future<Output = ()> + use<> {
    let wait = |kind| {
        let signals = signal(kind);
        async move {
            match signals {
                Ok(mut signals) => {
                    signals.recv().await;
                }
                Err(_) => std::future::pending().await,
            }
        }
    };
    let (terminate, interrupt) = (wait(SignalKind::terminate()), wait(SignalKind::interrupt()));
    async {
        tokio::select! {
            () = terminate => {}
            () = interrupt => {}
        }
    }
}

fn system_info() -> SystemInfo {
    let read = |path: &str| {
        std::fs::read_to_string(path)
            .map(|text| text.trim().to_owned())
            .unwrap_or_default()
    };
    // Two places and the default of os-release(5).
    let os_image = ["/etc/os-release", "/usr/lib/os-release"]
        .iter()
        .find_map(|path| {
            let text = read(path);
            let name = text
                .lines()
                .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
            Some(name.trim_matches('"').to_owned())
        })
        .unwrap_or_else(|| "Linux".to_owned());
    SystemInfo {
        machine_id: read("/etc/machine-id"),
        boot_id: read("/proc/sys/kernel/random/boot_id"),
        kernel_version: read("/proc/sys/kernel/osrelease"),
        os_image,
        ..SystemInfo::default()
    }
}
