//! Removing what a pod left on the disk, its own doings included.
//!
//! A container may have built anything in its scratch directory: symlinks, mounts, a tree too deep to
//! walk. Nothing outside is ever touched: no symlink is followed and no mount is entered. The tree is
//! made flat while it is removed, so two descriptors are enough for any depth.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, Mode, ResolveFlags, openat2, renameat, statat, unlinkat};
use rustix::io::Errno;

use super::dir::{self, DIRECTORY};
use super::process::{RuntimeError, attempts, join};
use super::state;
use super::{ContainerId, Runtime, logs};
use crate::sys::project;

/// How many names are kept at once.
const BATCH: usize = 1024;

impl Runtime {
    /// Removes everything of a pod but its logs; nothing to remove is no error.
    ///
    /// # Errors
    /// What the kernel answered: EXDEV or EBUSY where a container mounted something in its scratch
    /// directory; ENOTEMPTY where a process still writes there: end the pod's processes first. It
    /// may be tried again; directories may have moved up meanwhile.
    pub fn remove_pod(&self, id: &ContainerId) -> Result<(), RuntimeError> {
        self.detach_volumes(id)?;
        remove(&self.state, &id.pod_path())
    }

    /// Removes the logs of a pod.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn remove_logs(&self, id: &ContainerId) -> Result<(), RuntimeError> {
        remove(&self.logs, &id.pod_log_path())
    }

    /// Removes the ended attempts of a container, with their logs, that are older than `keep`.
    ///
    /// # Errors
    /// What the kernel answered.
    pub fn prune(&self, id: &ContainerId, keep: u32) -> Result<(), RuntimeError> {
        let Some(container) = self.open(&id.path())? else {
            return Ok(());
        };
        let attempts = attempts(&container).map_err(RuntimeError::io("list", id))?;
        for old in attempts.into_iter().filter(|attempt| *attempt < keep) {
            let old = id.attempt(old);
            let ended = self.open(&old.path())?.map_or(Ok(true), |dir| {
                state::inspect(&dir).map(|state| state.is_final())
            })?;
            if ended {
                logs::remove_all(&self.log_path(&old))
                    .map_err(RuntimeError::io("remove the log of", &old))?;
                remove(&self.state, &old.path())?;
            }
        }
        Ok(())
    }
}

fn remove(base: &std::path::Path, names: &[String]) -> Result<(), RuntimeError> {
    let error = |source| RuntimeError::io("remove", join(base, names).display())(source);
    let Some((name, above)) = names.split_last() else {
        return Ok(());
    };
    let Some(above) = dir::open(base, above).map_err(error)? else {
        return Ok(());
    };
    remove_tree(&above, name).map_err(error)
}

/// Removes `name` and all below it from the directory `above`.
fn remove_tree(above: &OwnedFd, name: &str) -> io::Result<()> {
    let Some(top) = enter(above, name)? else {
        return Ok(());
    };
    // A file system with project quotas moves nothing into a directory of another project that hands it
    // on. Where there are none this fails, and nothing is in the way.
    let _ = project::stop_handing_on(&top);
    let mut flat = 0u64;
    loop {
        let dirs = remove_files(&top)?;
        if dirs.is_empty() {
            break;
        }
        for dir in dirs {
            let Some(inner) = enter(&top, &dir)? else {
                continue;
            };
            loop {
                let deeper = remove_files(&inner)?;
                if deeper.is_empty() {
                    break;
                }
                for deeper in deeper {
                    lift(&inner, &deeper, &top, &mut flat)?;
                }
            }
            match unlinkat(&top, &dir, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
    Ok(unlinkat(above, name, AtFlags::REMOVEDIR)?)
}

/// Opens a directory on the same file system; `None` where there is none.
fn enter<P: rustix::path::Arg>(above: &OwnedFd, name: P) -> io::Result<Option<OwnedFd>> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    match openat2(above, name, DIRECTORY, Mode::empty(), resolve) {
        Ok(dir) => Ok(Some(dir)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Removes the files and the empty directories in `dir`, and names directories that are left: all, or
/// a first [`BATCH`] of them.
fn remove_files(dir: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut left = Vec::new();
    for entry in Dir::read_from(dir)? {
        if left.len() == BATCH {
            break;
        }
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        match unlinkat(dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => continue,
            Err(Errno::ISDIR) => {}
            Err(errno) => return Err(errno.into()),
        }
        match unlinkat(dir, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST) => left.push(name.to_owned()),
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(left)
}

/// Moves a directory to the top under a name that is free there.
fn lift(from: &OwnedFd, name: &CString, top: &OwnedFd, flat: &mut u64) -> io::Result<()> {
    loop {
        let free = format!("lifted-{flat}");
        *flat += 1;
        match statat(top, &free, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => continue,
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        return match renameat(from, name, top, &free) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_deep_tree_goes_and_nothing_outside_does() {
        let base = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("canary"), "x").unwrap();
        let tree = base.path().join("tree");
        fs::create_dir_all(tree.join("a/b/c/d")).unwrap();
        fs::write(tree.join("a/b/file"), "x").unwrap();
        fs::write(tree.join("lifted-0"), "in the way").unwrap();
        symlink(outside.path(), tree.join("a/b/c/link")).unwrap();
        symlink("..", tree.join("a/loop")).unwrap();
        fs::write(tree.join("a/new\nline"), "x").unwrap();
        let above = dir::open(base.path(), &[]).unwrap().unwrap();
        // Deeper than any path can be long.
        let mut deep = dir::open(&tree, &[]).unwrap().unwrap();
        for _ in 0..600 {
            let name = "d".repeat(100);
            rustix::fs::mkdirat(&deep, &name, Mode::RWXU).unwrap();
            deep = rustix::fs::openat(&deep, &name, DIRECTORY, Mode::empty()).unwrap();
        }
        drop(deep);
        remove_tree(&above, "tree").unwrap();
        remove_tree(&above, "tree").unwrap();
        assert!(!tree.exists());
        assert!(outside.path().join("canary").exists());
    }

    /// Report kubernetes#104980.
    #[test]
    fn a_symlink_in_place_of_the_tree_is_not_followed() {
        let base = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("canary"), "x").unwrap();
        symlink(outside.path(), base.path().join("tree")).unwrap();
        let above = dir::open(base.path(), &[]).unwrap().unwrap();
        assert!(remove_tree(&above, "tree").is_err());
        assert!(outside.path().join("canary").exists());
    }
}
