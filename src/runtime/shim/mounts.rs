//! What a container sees in place of the host's directories, and what it may not do to quotas.
//!
//! The shim itself moves to a mount namespace of its own, which the program inherits: nothing is mounted
//! where others would see it, and what the host mounts later is still seen.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{MountFlags, MountPropagationFlags, mount_bind, mount_change, mount_remount};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

use super::seclude;
use crate::runtime::dir::DIRECTORY;
use crate::runtime::record::{Mount, Spec};
use crate::runtime::space::by_number;

/// Shows volumes where they belong, and hides and protects what the program may not see or write to;
/// nothing is done where there is nothing of it.
pub(super) fn show(spec: &Spec) -> Result<(), String> {
    let is_secluded = spec.security.is_secluded();
    if spec.mounts.is_empty() && !is_secluded {
        return Ok(());
    }
    unshare(CloneFlags::CLONE_NEWNS)
        .map_err(|errno| format!("cannot make a mount namespace: {errno}"))?;
    let down = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", down)
        .map_err(|errno| format!("cannot part from the host's mounts: {errno}"))?;
    let host = if spec.security.has_read_only_root {
        seclude::mounts()?
    } else {
        Vec::new()
    };
    // Open before anything is hidden, but in this namespace: the kernel binds nothing of another.
    let shown = spec.mounts.iter().map(|mount| open(&mount.source));
    let shown = shown.collect::<Result<Vec<_>, _>>()?;
    if is_secluded && let Some(state) = &spec.state {
        let own = spec.scratch.iter().chain(&spec.volumes);
        let own = own.map(|path| Ok((path.as_path(), open(path)?)));
        let own = own.collect::<Result<Vec<_>, String>>()?;
        seclude::hide(state, &own)?;
    }
    for (mount, shown) in spec.mounts.iter().zip(&shown) {
        show_one(mount, shown)?;
    }
    let is_own = |path: &Path| {
        let hidden = spec
            .state
            .as_ref()
            .is_some_and(|state| path.starts_with(state));
        hidden || spec.mounts.iter().any(|mount| mount.target == path)
    };
    let host = host.iter().filter(|mount| !is_own(&mount.path));
    host.into_iter().try_for_each(seclude::protect)
}

fn open(path: &Path) -> Result<OwnedFd, String> {
    openat(CWD, path, DIRECTORY, Mode::empty())
        .map_err(|errno| format!("cannot open the volume {}: {errno}", path.display()))
}

fn show_one(mount: &Mount, shown: &OwnedFd) -> Result<(), String> {
    let Mount { source, target, .. } = mount;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let place = openat(CWD, target, flags, Mode::empty()).map_err(|errno| {
        let hint = if errno == rustix::io::Errno::NOENT {
            ": make that directory on the host, or leave the mount out and use ALLOTD_VOLUME_NAME"
        } else {
            ""
        };
        format!("mountPath {}: {errno}{hint}", target.display())
    })?;
    let failed = |errno| {
        format!(
            "cannot mount {} at {}: {errno}",
            source.display(),
            target.display()
        )
    };
    mount_bind(by_number(shown), by_number(&place)).map_err(failed)?;
    if mount.read_only {
        // By its path again: what is open is what lies below the mount.
        let flags = MountFlags::BIND | MountFlags::RDONLY;
        mount_remount(target, flags, "").map_err(failed)?;
    }
    Ok(())
}

/// The program and its children cannot write beyond a quota, be they root; the shim still can.
pub(super) fn heed_quotas() -> Result<(), String> {
    match remove_capability_from_bounding_set(CapabilitySet::SYS_RESOURCE) {
        Ok(()) => Ok(()),
        Err(errno) => Err(format!(
            "cannot give up CAP_SYS_RESOURCE, so the disk limit would not hold: {}",
            io::Error::from(errno)
        )),
    }
}
