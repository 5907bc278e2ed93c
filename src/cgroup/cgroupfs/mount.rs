//! Finding the cgroup2 mount that a directory lies on, without following any symbolic link.
//!
//! It must never take a directory on another file system for cgroup2: the file system's magic
//! number is checked on the directory that is used from then on.

use std::path::{Component, Path, PathBuf};

use procfs::process::{MountInfo, MountInfos};
use procfs::{FromRead, ProcError};

use super::dir::Dir;
use crate::cgroup::{ErrorKind, KernelError};

const MOUNTINFO: &str = "/proc/self/mountinfo";

/// Options of the cgroup2 mount that change what event files mean; they can only be set for the
/// whole system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MountOptions {
    /// `memory.events` counts the cgroup alone, as `memory.events.local` always does (Linux 5.2).
    pub memory_localevents: bool,
    /// `pids.events` counts failed forks where they were tried, as before Linux 6.11.
    pub pids_localevents: bool,
}

/// A mount of cgroup2.
#[derive(Debug)]
pub(super) struct Mount {
    /// Its root, held open.
    pub(super) root: Dir,
    /// Where it is mounted.
    pub(super) point: PathBuf,
    /// How it is mounted.
    pub(super) options: MountOptions,
}

impl Mount {
    /// The mount that `top` lies on, and the path of `top` below it.
    pub(super) fn of(top: &Path) -> Result<(Self, String), KernelError> {
        let shown = top.display().to_string();
        let refuse = |why: String| {
            KernelError::explained("open", shown.clone(), ErrorKind::Unsupported, why)
        };
        let mounts = MountInfos::from_file(MOUNTINFO).map_err(unreadable)?;
        let (mount, below) = choose(&mounts.0, top).map_err(refuse)?;
        let point = mount.mount_point.clone();
        let failed = |errno| KernelError::new("open", point.display().to_string(), errno);
        let root = Dir::of_mount(&point).map_err(failed)?;
        if !root.is_cgroup2().map_err(failed)? {
            return Err(refuse(format!("{} is not cgroup2", point.display())));
        }
        let on = |option: &str| mount.super_options.contains_key(option);
        let options = MountOptions {
            memory_localevents: on("memory_localevents"),
            pids_localevents: on("pids_localevents"),
        };
        Ok((
            Self {
                root,
                point,
                options,
            },
            below,
        ))
    }

    /// Where a cgroup lies in the file system; the empty path is the root.
    pub(super) fn shown(&self, path: &str) -> String {
        let point = self.point.display();
        if path.is_empty() {
            point.to_string()
        } else {
            format!("{point}/{path}")
        }
    }
}

/// The mount that is visible at `top`, if it is cgroup2, and the path below it.
fn choose<'a>(mounts: &'a [MountInfo], top: &Path) -> Result<(&'a MountInfo, String), String> {
    let plain = top.is_absolute()
        && top
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !plain {
        return Err("the path is not absolute, or it climbs".to_owned());
    }
    // The deepest mount point counts; among mounts on the same point, the one mounted last.
    let mount = mounts
        .iter()
        .filter(|mount| top.starts_with(&mount.mount_point))
        .max_by_key(|mount| mount.mount_point.components().count())
        .ok_or("no file system is mounted there")?;
    if mount.fs_type != "cgroup2" {
        let elsewhere = mounts.iter().find(|mount| mount.fs_type == "cgroup2");
        return Err(match elsewhere {
            Some(other) => format!(
                "it lies on {}, not on cgroup2, which is mounted at {}",
                mount.fs_type,
                other.mount_point.display()
            ),
            None => format!("it lies on {}, and cgroup2 is not mounted", mount.fs_type),
        });
    }
    let below = top
        .strip_prefix(&mount.mount_point)
        .ok()
        .and_then(Path::to_str)
        .ok_or("the path is not UTF-8")?;
    if below.is_empty() {
        return Err("it is the root of the mount, which belongs to the system".to_owned());
    }
    Ok((mount, below.to_owned()))
}

fn unreadable(error: ProcError) -> KernelError {
    let source = match error {
        ProcError::Io(source, _) => source,
        other => std::io::Error::other(other.to_string()),
    };
    KernelError::new("read", MOUNTINFO, source)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIFIED: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/root rw
26 22 0:24 / /sys/fs/cgroup rw,nosuid - tmpfs cgroup rw
27 26 0:25 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate,memory_localevents
";
    const HYBRID: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/root rw
26 22 0:24 / /sys/fs/cgroup rw,nosuid - tmpfs cgroup rw
27 26 0:25 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
28 26 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";

    fn chosen(mountinfo: &str, top: &str) -> Result<(PathBuf, String), String> {
        let mounts = MountInfos::from_read(mountinfo.as_bytes()).unwrap();
        choose(&mounts.0, Path::new(top)).map(|(mount, below)| (mount.mount_point.clone(), below))
    }

    #[test]
    fn the_deepest_and_last_mount_counts() {
        assert_eq!(
            chosen(UNIFIED, "/sys/fs/cgroup/allot.slice/allot-pods.service"),
            Ok((
                "/sys/fs/cgroup".into(),
                "allot.slice/allot-pods.service".into()
            ))
        );
        assert_eq!(
            chosen(HYBRID, "/sys/fs/cgroup/unified/allot"),
            Ok(("/sys/fs/cgroup/unified".into(), "allot".into()))
        );
    }

    #[test]
    fn anything_but_a_directory_below_cgroup2_is_refused() {
        for (mountinfo, top, why) in [
            (HYBRID, "/sys/fs/cgroup/allot", "/sys/fs/cgroup/unified"),
            (HYBRID, "/sys/fs/cgroup/memory/allot", "not on cgroup2"),
            (UNIFIED, "/sys/fs/cgroup", "root of the mount"),
            (UNIFIED, "/sys/fs/cgroup/../cgroup/allot", "climbs"),
            (UNIFIED, "sys/fs/cgroup/allot", "not absolute"),
            (
                "22 1 254:0 / / rw - ext4 /dev/root rw\n",
                "/a",
                "not mounted",
            ),
        ] {
            let refusal = chosen(mountinfo, top).unwrap_err();
            assert!(refusal.contains(why), "{top}: {refusal}");
        }
    }
}
