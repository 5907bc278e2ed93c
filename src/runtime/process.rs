//! The agent's side of the process runtime: start, look, wait, clean up.
//!
//! Every function works from the directories alone and may be repeated after a crash. `start` blocks
//! for some milliseconds (a disk sync, a fork, an exec), so it is not for the owner's thread.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, flock};

use super::dir::{self, GROUP_READS};
use super::errand::Errands;
use super::record::{self, LogBounds, Mount, MountSpec, RecordError, SPEC, Spec};
use super::space::{ProjectSpec, VolumeSpec};
use super::state::{self, AttemptState};
use super::{AttemptId, ContainerId, lock};
use crate::model::security::Security;
use crate::sys::readable::readable;

/// `PATH` of a container that sets none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// How long `start` waits for a shim that another agent started.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often an attempt that says "starting" is looked at.
const GLANCE: Duration = Duration::from_millis(10);

/// The process runtime of one node.
#[derive(Clone, Debug)]
pub struct Runtime {
    /// The directory of the agent's state, absolute.
    pub state: PathBuf,
    /// The directory of the containers' logs, absolute.
    pub logs: PathBuf,
    /// Who starts shims and mounts volumes.
    pub errands: Errands,
    /// The cgroup directory that shims live in, absolute and existing. `None`: the agent's own, whose
    /// end would be theirs under systemd.
    pub shim_cgroup: Option<PathBuf>,
}

/// What to run in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerSpec {
    /// Which run of which container.
    pub id: AttemptId,
    /// The program and its arguments: `command` and `args`.
    pub argv: Vec<String>,
    /// The environment in order; of two of a name the later one counts. `PATH`, `HOME` and `TMPDIR`
    /// are added where missing, the last two as the scratch directory.
    pub env: Vec<(String, String)>,
    /// Where the program starts, absolute; the scratch directory unless given.
    pub working_dir: Option<PathBuf>,
    /// The cgroup's directory, absolute and existing. `None` only where there are no cgroups.
    pub cgroup: Option<PathBuf>,
    /// The OOM score adjustment, −1000 to 1000.
    pub oom_score_adj: i16,
    /// All volumes of the pod. Each is named to the program as `ALLOTD_VOLUME_NAME`.
    pub volumes: Vec<VolumeSpec>,
    /// Where the program sees which volume.
    pub mounts: Vec<MountSpec>,
    /// The projects of the pod's files.
    pub projects: Vec<ProjectSpec>,
    /// As whom it runs, and what it may not do.
    pub security: Security,
    /// How much of a log is kept.
    pub log: LogBounds,
}

/// What went wrong beside the container's own program.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The specification cannot be run.
    #[error("cannot run {id}: {why}")]
    BadSpec {
        /// The attempt.
        id: String,
        /// What is wrong with it.
        why: String,
    },
    /// A file or directory of the runtime could not be used.
    #[error("cannot {operation} {path}: {source}")]
    Io {
        /// What was tried.
        operation: &'static str,
        /// With what.
        path: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A record could not be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The shim could neither start the program nor record why.
    #[error("the shim of {id} failed: {message}")]
    Shim {
        /// The attempt.
        id: String,
        /// What it said.
        message: String,
    },
}

impl RuntimeError {
    /// For `map_err`: names the operation and its object.
    pub(super) fn io(
        operation: &'static str,
        path: impl ToString,
    ) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            operation,
            path: path.to_string(),
            source,
        }
    }
}

impl Runtime {
    /// Starts an attempt unless it has been started before, and says what has become of it: running,
    /// or ended (a program that cannot be executed has ended with a `StartError`). A shim slower
    /// than 10 s leaves it at `Starting`. However often this is called and interrupted, the attempt
    /// has at most one process.
    ///
    /// # Errors
    /// Where nothing was started; it may be tried again.
    pub fn start(&self, want: &ContainerSpec) -> Result<AttemptState, RuntimeError> {
        let id = &want.id;
        // The pod's own directory has its project before anything else is made in it.
        self.prepare(&id.container, &want.volumes, &want.projects)?;
        let dir = make(&self.state, &id.path(), GROUP_READS)?;
        // Two callers at once would write the same files; the second one finds all done.
        flock(&dir, FlockOperation::LockExclusive)
            .map_err(|errno| RuntimeError::io("lock", id)(errno.into()))?;
        if state::inspect(&dir)? == AttemptState::NotStarted {
            let spec = self.spec(want)?;
            record::write(&dir, SPEC, &spec).map_err(RuntimeError::io("write the spec of", id))?;
            self.run_shim(id)?;
        }
        settle(&dir)
    }

    /// What has become of an attempt.
    ///
    /// # Errors
    /// A directory or record that cannot be read.
    pub fn inspect(&self, id: &AttemptId) -> Result<AttemptState, RuntimeError> {
        match self.open(&id.path())? {
            Some(dir) => state::inspect(&dir),
            None => Ok(AttemptState::NotStarted),
        }
    }

    /// The main process of an attempt, be it alive or not; `None` if it never had one.
    ///
    /// # Errors
    /// As [`Self::inspect`].
    pub fn started(&self, id: &AttemptId) -> Result<Option<record::Started>, RuntimeError> {
        match self.open(&id.path())? {
            Some(dir) => Ok(record::read(&dir, record::STARTED)?),
            None => Ok(None),
        }
    }

    /// Waits until an attempt is neither starting nor running. Needs a tokio runtime with I/O and
    /// time. Safe to drop and to call again.
    ///
    /// # Errors
    /// As [`Self::inspect`], or no descriptor was free.
    pub async fn wait(&self, id: &AttemptId) -> Result<AttemptState, RuntimeError> {
        loop {
            let state = self.inspect(id)?;
            let fd = match &state {
                AttemptState::Starting => None,
                AttemptState::Running(running) if running.supervised => self
                    .open(&id.path())?
                    .map_or(Ok(None), |dir| lock::open_holder(&dir))
                    .map_err(RuntimeError::io("watch the shim of", id))?,
                AttemptState::Running(running) => running
                    .process
                    .open()
                    .map_err(RuntimeError::io("watch", id))?,
                _ => return Ok(state),
            };
            match fd {
                Some(fd) => readable(fd)
                    .await
                    .map_err(RuntimeError::io("wait for", id))?,
                None => tokio::time::sleep(GLANCE).await,
            }
        }
    }

    /// The highest attempt of a container that has a directory.
    ///
    /// # Errors
    /// A directory that cannot be read.
    pub fn latest(&self, id: &ContainerId) -> Result<Option<AttemptId>, RuntimeError> {
        let Some(dir) = self.open(&id.path())? else {
            return Ok(None);
        };
        let attempts = attempts(&dir).map_err(RuntimeError::io("list", id))?;
        Ok(attempts
            .into_iter()
            .max()
            .map(|attempt| id.attempt(attempt)))
    }

    /// The log of an attempt.
    pub fn log_path(&self, id: &AttemptId) -> PathBuf {
        let dir = join(&self.logs, &id.container.log_path());
        dir.join(format!("{}.log", id.attempt))
    }

    /// The directory of a container's logs.
    pub fn log_dir(&self, id: &ContainerId) -> PathBuf {
        join(&self.logs, &id.log_path())
    }

    /// The directory that a container may write to.
    pub fn scratch_dir(&self, id: &ContainerId) -> PathBuf {
        join(&self.state, &id.scratch_path())
    }

    /// The directory of a pod: everything of it that is not a log.
    pub fn pod_dir(&self, id: &ContainerId) -> PathBuf {
        join(&self.state, &id.pod_path())
    }

    pub(super) fn open(&self, names: &[String]) -> Result<Option<OwnedFd>, RuntimeError> {
        dir::open(&self.state, names)
            .map_err(RuntimeError::io("open", join(&self.state, names).display()))
    }

    /// Checks what is wanted and turns it into what the shim reads.
    fn spec(&self, want: &ContainerSpec) -> Result<Spec, RuntimeError> {
        let bad = |why: &str| RuntimeError::BadSpec {
            id: want.id.to_string(),
            why: why.to_owned(),
        };
        let zero = |text: &str| text.contains('\0');
        if want.argv.first().is_none_or(String::is_empty) {
            return Err(bad("there is no command"));
        }
        if want.argv.iter().any(|arg| zero(arg)) {
            return Err(bad("an argument holds a zero byte"));
        }
        if want
            .env
            .iter()
            .any(|(name, value)| name.is_empty() || name.contains('=') || zero(name) || zero(value))
        {
            return Err(bad(
                "an environment variable has no name, a '=' in it or a zero byte",
            ));
        }
        if !(-1000..=1000).contains(&want.oom_score_adj) {
            return Err(bad("the OOM score adjustment is outside -1000 to 1000"));
        }
        let scratch = self.scratch_dir(&want.id.container);
        let cwd = want.working_dir.as_ref().unwrap_or(&scratch).clone();
        let paths = [
            Some(&cwd),
            Some(&self.logs),
            want.cgroup.as_ref(),
            self.shim_cgroup.as_ref(),
        ];
        if let Some(path) = paths.into_iter().flatten().find(|path| !path.is_absolute()) {
            return Err(bad(&format!("{} is not an absolute path", path.display())));
        }
        let own = scratch.clone();
        let scratch = scratch
            .to_str()
            .ok_or_else(|| bad("the state directory is not UTF-8"))?;
        let defaults = [
            ("PATH", DEFAULT_PATH),
            ("HOME", scratch),
            ("TMPDIR", scratch),
        ];
        let mut mounts = Vec::new();
        let of = &want.id.container;
        let place = |name: &str| {
            let names = of
                .volume_path(name)
                .map_err(|error| bad(&error.to_string()))?;
            Ok::<_, RuntimeError>(join(&self.state, &names))
        };
        for mount in &want.mounts {
            mounts.push(Mount {
                source: place(&mount.volume)?,
                target: mount.path.clone(),
                read_only: mount.read_only,
            });
        }
        let (mut named, mut volumes) = (Vec::new(), Vec::new());
        for volume in &want.volumes {
            let name = volume.name.to_uppercase().replace('-', "_");
            let path = place(&volume.name)?;
            named.push((format!("ALLOTD_VOLUME_{name}"), path.display().to_string()));
            volumes.push(path);
        }
        let defaults = defaults.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let defaults: Vec<_> = defaults.into_iter().chain(named).collect();
        Ok(Spec {
            argv: want.argv.clone(),
            env: environment(&want.env, &defaults),
            mounts,
            security: want.security.clone(),
            state: Some(self.state.clone()),
            scratch: Some(own),
            volumes,
            // Root could write on where the kernel stops everybody else.
            heeds_quota: want.projects.iter().any(|own| own.limit.is_some()),
            log_bounds: want.log,
            cwd,
            cgroup: want.cgroup.clone(),
            shim_cgroup: self.shim_cgroup.clone(),
            oom_score_adj: want.oom_score_adj,
            log: self.log_path(&want.id),
        })
    }

    fn run_shim(&self, id: &AttemptId) -> Result<(), RuntimeError> {
        let answer = self
            .errands
            .shim(&join(&self.state, &id.path()))
            .map_err(RuntimeError::io("start the shim of", id))?;
        answer.map_err(|message| RuntimeError::Shim {
            id: id.to_string(),
            message,
        })
    }
}

fn make(base: &Path, names: &[String], mode: Mode) -> Result<OwnedFd, RuntimeError> {
    dir::make(base, names, mode).map_err(RuntimeError::io("make", join(base, names).display()))
}

/// `base` and the names below it as one path.
pub(super) fn join(base: &Path, names: &[String]) -> PathBuf {
    base.iter().chain(names.iter().map(AsRef::as_ref)).collect()
}

/// Waits for a shim that is starting.
fn settle(dir: &OwnedFd) -> Result<AttemptState, RuntimeError> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let state = state::inspect(dir)?;
        if state != AttemptState::Starting || Instant::now() >= deadline {
            return Ok(state);
        }
        std::thread::sleep(GLANCE);
    }
}

/// The environment as `execve` takes it, each name once: a program would see the first of two, and
/// Kubernetes means the last.
fn environment(given: &[(String, String)], defaults: &[(String, String)]) -> Vec<String> {
    let all: Vec<_> = defaults
        .iter()
        .chain(given)
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let last: std::collections::BTreeMap<_, _> = all
        .iter()
        .enumerate()
        .map(|(index, (name, _))| (*name, index))
        .collect();
    all.iter()
        .enumerate()
        .filter(|(index, (name, _))| last.get(name) == Some(index))
        .map(|(_, (name, value))| format!("{name}={value}"))
        .collect()
}

/// The numbers of the attempts in a container's directory.
pub(super) fn attempts(container: &OwnedFd) -> io::Result<Vec<u32>> {
    let names = dir::names(container)?;
    Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
}
