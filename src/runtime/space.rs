//! The directories that a pod's files are in: made, given to their projects, cleared.
//!
//! A directory is given to its project while it is empty, because what is in it already would stay with
//! the project it has.

use std::fmt::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, fchmod, fchown, fstat, fstatfs, openat, statat};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::Gid;

use super::dir::{self, GROUP_READS, OWNER_ONLY};
use super::process::{RuntimeError, join};
use super::{ContainerId, Runtime};
use crate::model::space::Space;
use crate::sys::{project, quota};

/// The type of tmpfs in `statfs` (`TMPFS_MAGIC`).
const TMPFS: i64 = 0x0102_1994;
/// What Kubernetes gives to an `emptyDir`: whichever user a container runs as may write.
const EVERYBODY: Mode = Mode::from_raw_mode(0o777);

/// A volume of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeSpec {
    /// A DNS label.
    pub name: String,
    /// What holds it.
    pub held: Held,
    /// The group that it belongs to, and all that is made in it (`fsGroup`).
    pub group: Option<u32>,
}

/// What holds a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// The file system of the state directory.
    OnDisk,
    /// A file system of its own in memory, of so many bytes at the most.
    InMemory(Option<u64>),
}

/// The project of a part of a pod's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectSpec {
    /// The part.
    pub space: Space,
    /// The project's id.
    pub project: u32,
    /// What its files may take (bytes), kept by the kernel; none where it only counts.
    pub limit: Option<u64>,
}

impl Runtime {
    /// The directories of a part of a pod's files. Any of the pod's containers will do as `of`.
    pub fn directories(&self, of: &ContainerId, space: &Space) -> Vec<PathBuf> {
        let (state, logs) = names(of, space);
        let state = state.map(|names| join(&self.state, &names));
        let logs = logs.map(|names| join(&self.logs, &names));
        state.into_iter().chain(logs).collect()
    }

    /// Makes a pod's directories as far as its volumes and this container need them.
    pub(super) fn prepare(
        &self,
        of: &ContainerId,
        volumes: &[VolumeSpec],
        projects: &[ProjectSpec],
    ) -> Result<(), RuntimeError> {
        let mut parts = vec![Space::Pod, Space::Container(of.name().to_owned())];
        parts.extend(volumes.iter().map(|v| Space::Volume(v.name.clone())));
        for space in &parts {
            let (state, logs) = names(of, space);
            let own = projects.iter().find(|own| own.space == *space);
            let mode = match space {
                Space::Pod => GROUP_READS,
                Space::Container(_) | Space::Volume(_) => OWNER_ONLY,
            };
            for (base, names, mode) in [(&self.state, state, mode), (&self.logs, logs, GROUP_READS)]
            {
                let Some(names) = names else { continue };
                let shown = || join(base, &names).display().to_string();
                let directory = dir::make(base, &names, mode)
                    .map_err(|error| RuntimeError::io("make", shown())(error))?;
                if let Some(own) = own {
                    give(&directory, own).map_err(|error| {
                        RuntimeError::io("limit the disk use of", shown())(error)
                    })?;
                }
                if let Space::Volume(name) = space {
                    let volume = volumes.iter().find(|volume| volume.name == *name);
                    let held = volume.map_or(Held::OnDisk, |volume| volume.held);
                    let group = volume.and_then(|volume| volume.group);
                    self.furnish(&directory, &join(base, &names), held, group)
                        .map_err(|error| RuntimeError::io("make volume", shown())(error))?;
                }
            }
        }
        Ok(())
    }

    /// Takes back the limits of a pod's projects once its files are gone.
    pub fn forget_projects(&self, projects: impl Iterator<Item = u32>) {
        let open = [&self.state, &self.logs].map(|base| dir::open(base, &[]));
        for project in projects {
            for directory in open.iter().flatten().flatten() {
                // Where nothing counts by project any more there is nothing to take back.
                let _ = quota::limit_project(directory, project, 0);
            }
        }
    }

    /// Gives back the memory that volumes of a pod hold that is over; its files stay.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn give_back_memory(&self, of: &ContainerId) -> Result<(), RuntimeError> {
        self.detach_volumes(of)
    }

    /// Detaches the volumes of a pod that are file systems in memory: nothing of them is left.
    pub(super) fn detach_volumes(&self, of: &ContainerId) -> Result<(), RuntimeError> {
        let above = of.volumes_path();
        let Some(open) = self.open(&above)? else {
            return Ok(());
        };
        let shown = || join(&self.state, &above).display().to_string();
        let failed = |operation| move |error| RuntimeError::io(operation, shown())(error);
        for name in dir::names(&open).map_err(failed("list"))? {
            let names = [above.clone(), vec![name]].concat();
            let path = join(&self.state, &names);
            let failed = |operation| RuntimeError::io(operation, path.display());
            let Some(volume) = self.open(&names)? else {
                continue;
            };
            if is_memory(&volume).map_err(failed("look at"))? {
                // Open, it would be in use.
                drop(volume);
                self.errands
                    .unmount_volume(&path)
                    .and_then(|answer| answer.map_err(std::io::Error::other))
                    .map_err(failed("detach"))?;
            }
        }
        Ok(())
    }

    /// Makes a new directory the volume that it is to be; one that is so already stays as it is.
    fn furnish(
        &self,
        directory: &OwnedFd,
        path: &Path,
        held: Held,
        group: Option<u32>,
    ) -> std::io::Result<()> {
        let Held::InMemory(bytes) = held else {
            return hand_over(directory, group);
        };
        if is_memory(directory)? {
            return Ok(());
        }
        let answer = self.errands.mount_volume(path, bytes)?;
        answer.map_err(std::io::Error::other)?;
        // Whoever mounted it did so among the host's mounts; without seeing it too, nothing of it would be
        // counted here or taken away again.
        match dir::open(path, &[])? {
            Some(seen) if is_memory(&seen)? => hand_over(&seen, group),
            _ => Err(std::io::Error::other(
                "it is mounted, and not seen by allotd",
            )),
        }
    }
}

/// Lets everybody write in a new volume. What is made in it belongs to its group, if it has one.
fn hand_over(volume: &OwnedFd, group: Option<u32>) -> std::io::Result<()> {
    let Some(group) = group else {
        return Ok(fchmod(volume, EVERYBODY)?);
    };
    fchown(volume, None, Some(Gid::from_raw(group)))?;
    Ok(fchmod(volume, EVERYBODY.union(Mode::SGID))?)
}

/// Mounts a file system in memory on a directory, of so many bytes at the most; one that is there already
/// stays.
pub(super) fn mount_memory(path: &Path, bytes: Option<u64>) -> std::io::Result<()> {
    let directory = open_volume(path)?;
    if is_memory(&directory)? {
        return Ok(());
    }
    let mut options = "mode=0777".to_owned();
    if let Some(bytes) = bytes {
        // A size of 0 would read as none. Writing to memory does not fail.
        let _ = write!(options, ",size={}", bytes.max(1));
    }
    let options = std::ffi::CString::new(options)?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let place = by_number(&directory);
    Ok(mount("tmpfs", place, "tmpfs", flags, options.as_c_str())?)
}

/// Detaches all file systems in memory from a directory: a pod whose start was interrupted again and again
/// may have one mount over another.
pub(super) fn unmount_memory(path: &Path) -> std::io::Result<()> {
    loop {
        let directory = open_volume(path)?;
        if !is_memory(&directory)? {
            return Ok(());
        }
        unmount(by_number(&directory), UnmountFlags::DETACH)?;
    }
}

/// Opens a volume's directory, which is no symlink.
fn open_volume(path: &Path) -> std::io::Result<OwnedFd> {
    Ok(openat(CWD, path, dir::DIRECTORY, Mode::empty())?)
}

/// The names of a part's directories below the state directory and below that of the logs.
fn names(of: &ContainerId, space: &Space) -> (Option<Vec<String>>, Option<Vec<String>>) {
    match space {
        Space::Pod => (Some(of.pod_path()), Some(of.pod_log_path())),
        Space::Container(name) => match of.sibling(name) {
            Ok(own) => (Some(own.scratch_path()), Some(own.log_path())),
            Err(_) => (None, None),
        },
        Space::Volume(name) => (of.volume_path(name).ok(), None),
    }
}

/// Gives a directory to its project. Where nothing is limited a file system that does not count is none of
/// the container's trouble: its files are walked.
fn give(directory: &OwnedFd, own: &ProjectSpec) -> std::io::Result<()> {
    let given = match project::project(directory) {
        Ok(project) if project == own.project => Ok(()),
        Ok(_) => project::set_project(directory, own.project),
        Err(error) => Err(error),
    };
    let limit = own.limit.unwrap_or(0);
    let done = given.and_then(|()| quota::limit_project(directory, own.project, limit));
    match done {
        Err(error) if own.limit.is_none() => {
            tracing::warn!("project {} only counts by walks: {error}", own.project);
            Ok(())
        }
        done => done,
    }
}

/// Whether a file system in memory is mounted on this very directory: the one above may be in memory too.
fn is_memory(directory: &OwnedFd) -> std::io::Result<bool> {
    let above = statat(directory, "..", AtFlags::SYMLINK_NOFOLLOW)?;
    let is_mount = fstat(directory)?.st_dev != above.st_dev;
    Ok(is_mount && fstatfs(directory)?.f_type == TMPFS)
}

/// A name for what is open: nobody can put something else in its place.
pub(super) fn by_number(file: &OwnedFd) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
