//! Project ids: which file systems count by them, and which are free.
//!
//! Decides what may be assigned, never to whom. An id is free if nobody uses it on any of the file
//! systems and no administrator has written it down, so files that outlive their pod keep theirs from
//! being given away (kubernetes#140938).

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::sys::project;
use crate::sys::quota::{ProjectUse, project_use};

/// The first id that is assigned: far from those of the kubelet, which begin at 1048577, and of people.
pub const FIRST: u32 = 0x616c_0000;
/// How many ids there are from the first on.
pub const COUNT: u32 = 1 << 20;
/// Where administrators write down the projects they use (projects(5), projid(5)).
const FOREIGN: [&str; 2] = ["/etc/projects", "/etc/projid"];
/// The type of XFS in `statfs` (`XFS_SUPER_MAGIC`).
const XFS: i64 = 0x5846_5342;
/// As much is read of each of these (bytes).
const MAX_FOREIGN: u64 = 1 << 20;

/// The file systems of the pods' files, as far as they count by project.
#[derive(Debug)]
pub struct FileSystems {
    /// A directory on each of them.
    open: Vec<OwnedFd>,
    foreign: BTreeSet<u32>,
    /// What a writer is told that would be above its project's limit on the first of them.
    pub refusal: Refusal,
}

/// What a writer is told that would be above a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Refusal {
    /// EDQUOT: "Disk quota exceeded".
    #[default]
    Quota,
    /// ENOSPC, which is what XFS says for projects, and a file system of its own: "No space left on device".
    Space,
}

impl Refusal {
    /// As programs show it.
    pub fn text(self) -> &'static str {
        match self {
            Self::Quota => "Disk quota exceeded",
            Self::Space => "No space left on device",
        }
    }
}

impl FileSystems {
    /// Looks at the file systems of these directories. All must count by project, or none does: a part of
    /// a pod's files must not be exact on one disk and walked on the other.
    pub fn look(directories: &[&Path]) -> Option<Self> {
        let open: Vec<_> = directories
            .iter()
            .filter_map(|path| counting(path))
            .collect();
        let is_xfs = |directory| rustix::fs::fstatfs(directory).is_ok_and(|all| all.f_type == XFS);
        let refusal = match open.first() {
            Some(directory) if is_xfs(directory) => Refusal::Space,
            _ => Refusal::Quota,
        };
        (open.len() == directories.len()).then(|| Self {
            open,
            refusal,
            foreign: FOREIGN.iter().flat_map(|path| written_down(path)).collect(),
        })
    }

    /// Whether nobody uses this id.
    pub fn is_free(&self, project: u32) -> bool {
        let unused = |directory: &OwnedFd| {
            project_use(directory, project).is_ok_and(|used| used == ProjectUse::default())
        };
        !self.foreign.contains(&project) && self.open.iter().all(unused)
    }
}

/// Opens a directory if its file system counts by project.
fn counting(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat(CWD, path, flags, Mode::empty()).ok()?;
    project::project(&directory).ok()?;
    project_use(&directory, FIRST).ok()?;
    Some(directory)
}

fn written_down(path: &str) -> BTreeSet<u32> {
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FOREIGN).read_to_string(&mut text));
    match read {
        Ok(_) => ids(&text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeSet::new(),
        Err(error) => {
            tracing::warn!("cannot read {path}: {error}");
            BTreeSet::new()
        }
    }
}

/// The ids in `ID:PATH` and `NAME:ID` lines.
fn ids(text: &str) -> BTreeSet<u32> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let parts = lines.flat_map(|line| line.split(':'));
    parts.filter_map(|part| part.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_administrators_wrote_down_is_taken() {
        let text = "# 7:/comment\n10:/data/a\nlogs:11\n 12 : /b\nname:\n:\n4294967296:/too-big\n";
        assert_eq!(ids(text), BTreeSet::from([10, 11, 12]));
    }

    #[test]
    fn a_file_system_without_project_quotas_is_told() {
        // Neither proc nor a directory that is missing counts by project.
        assert!(FileSystems::look(&[Path::new("/proc")]).is_none());
        assert!(FileSystems::look(&[Path::new("/nowhere")]).is_none());
    }
}
