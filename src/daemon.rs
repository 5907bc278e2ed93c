//! The daemon: opens what the agent needs, serves until told to stop, and leaves the pods running.

use std::io::{self, IsTerminal};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::Path;
use std::sync::{Arc, mpsc};

use anyhow::{Context, bail};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::agent::{self, Handle, Input, News, Parts};
use crate::cgroup::Cgroupfs;
use crate::config::Config;
use crate::observation::kmsg;
use crate::observation::node as facts;
use crate::observation::pressure::{Places, Pressure};
use crate::observation::watch::Watch;
use crate::report::node::SystemInfo;
use crate::runtime::Runtime;
use crate::server::{self, Access, Bounds};
use crate::store;
use crate::translation;

/// Runs the daemon until SIGTERM or SIGINT.
///
/// # Errors
/// What keeps it from starting, or a failure of the socket.
pub fn run(config: &Config) -> anyhow::Result<()> {
    start_logs(&config.log_level)?;
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
    let parts = parts(config, handle.clone(), tokio.handle().clone())?;
    let access = Access {
        admin_gid: group_id(&config.admin_group)?,
    };
    let listener = {
        let _in_runtime = tokio.enter();
        listen(config)?
    };
    let owner = agent::start(parts, receive).context("cannot start")?;
    let pressure = watch_pressure(config, handle.clone())?;
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    tracing::info!("serving on {}", config.socket.display());
    let stopped = tokio.block_on(server::serve(
        listener,
        handle.clone(),
        Arc::new(config.clone()),
        access,
        Bounds::default(),
        stop_signal(),
    ));
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
    tracing::info!("stopping; pods go on");
    drop(pressure);
    handle.tell(Input::Stop);
    let _ = owner.join();
    let _ = std::fs::remove_file(&config.socket);
    stopped.context("the socket failed")
}

fn parts(config: &Config, handle: Handle, tokio: tokio::runtime::Handle) -> anyhow::Result<Parts> {
    let controllers = translation::controllers(&config.policy());
    let kernel = Cgroupfs::open(&config.cgroup_root, &controllers, translation::ours)
        .with_context(|| format!("cannot use {}", config.cgroup_root.display()))?;
    let store_path = config.state_dir.join("store.redb");
    let (store, aside) = store::open_or_set_aside(&store_path)?;
    if let Some(aside) = aside {
        tracing::error!(
            "the store was damaged; it is kept as {}, and a new one is empty",
            aside.display()
        );
    }
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
            program: "/proc/self/exe".into(),
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

/// Logs go to the journal where systemd connected it, else to the terminal.
fn start_logs(level: &str) -> anyhow::Result<()> {
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::util::SubscriberInitExt;
    let filter = tracing_subscriber::EnvFilter::try_new(level).with_context(|| {
        format!("logLevel is {level:?}: error, warn, info, debug or trace is right")
    })?;
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
    .context("cannot start logging")
}

fn make_dir(path: &Path, mode: u32) -> anyhow::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path)
        .with_context(|| format!("cannot make {}", path.display()))
}

/// The socket: the one systemd passed, or a new one that only root and the group can open.
fn listen(config: &Config) -> anyhow::Result<UnixListener> {
    let path = &config.socket;
    if let Some(dir) = path.parent() {
        make_dir(dir, 0o755)?;
    }
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                bail!("another allotd serves on {}", path.display());
            }
            std::fs::remove_file(path)
                .with_context(|| format!("cannot replace {}", path.display()))?;
        }
        Ok(_) => bail!("{} exists and is no socket", path.display()),
        Err(_) => {}
    }
    // Nobody else may open it before its group and mode are set.
    let before = nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o177));
    let bound = UnixListener::bind(path);
    nix::sys::stat::umask(before);
    let listener = bound.with_context(|| format!("cannot listen on {}", path.display()))?;
    if let Some(gid) = group_id(&config.socket_group)? {
        std::os::unix::fs::chown(path, None, Some(gid))
            .with_context(|| format!("cannot give {} to its group", path.display()))?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))
            .with_context(|| format!("cannot set the mode of {}", path.display()))?;
    }
    Ok(listener)
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

async fn stop_signal() {
    let wait = |kind| async move {
        match signal(kind) {
            Ok(mut signals) => {
                signals.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = wait(SignalKind::terminate()) => {}
        () = wait(SignalKind::interrupt()) => {}
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
    }
}
