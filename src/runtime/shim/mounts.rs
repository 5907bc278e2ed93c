//! What a container sees in place of the host's directories, and what it may not do to quotas.
//!
//! The shim itself moves to a mount namespace of its own, which the program inherits: nothing is mounted
//! where others would see it, and what the host mounts later is still seen.

use std::io;
use std::path::Path;

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{MountFlags, MountPropagationFlags, mount_bind, mount_change, mount_remount};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

use crate::runtime::dir::DIRECTORY;
use crate::runtime::record::Mount;
use crate::runtime::space::by_number;

/// Shows volumes where they belong; nothing is done where there are none.
pub(super) fn show(mounts: &[Mount]) -> Result<(), String> {
    if mounts.is_empty() {
        return Ok(());
    }
    unshare(CloneFlags::CLONE_NEWNS)
        .map_err(|errno| format!("cannot make a mount namespace: {errno}"))?;
    let down = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", down)
        .map_err(|errno| format!("cannot part from the host's mounts: {errno}"))?;
    mounts.iter().try_for_each(show_one)
}

fn show_one(mount: &Mount) -> Result<(), String> {
    let Mount { source, target, .. } = mount;
    let open = |path: &Path, flags| openat(CWD, path, flags, Mode::empty());
    let shown = open(source, DIRECTORY)
        .map_err(|errno| format!("cannot open the volume {}: {errno}", source.display()))?;
    let place = open(target, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC).map_err(|errno| {
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
    mount_bind(by_number(&shown), by_number(&place)).map_err(failed)?;
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
