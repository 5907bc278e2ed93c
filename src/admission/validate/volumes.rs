//! The volumes of a pod and where its containers see them.
//!
//! Paths and texts as in Kubernetes 1.36 (`ValidateVolumes`, `ValidateVolumeMounts`). Beyond that a mount
//! must leave alone what every program of the host needs: the process runtime gives a container the host's
//! own files.

use std::collections::BTreeSet;

use super::named;
use crate::admission::Reason;
use crate::model::volume::{Medium, Mount};
use crate::model::{Pod, name};

/// Volumes of one pod. A bound of ours: each is a directory, and may be a mount.
const MAX_VOLUMES: usize = 256;
/// Mounts of one container, likewise.
const MAX_MOUNTS: usize = 256;
/// The longest path that the kernel takes, less the final NUL (`PATH_MAX`).
const MAX_PATH: usize = 4095;
/// What lies in these is the kernel's; with a mount over it no program would find itself.
const KEPT: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Every rule that the volumes break.
pub(super) fn check(pod: &Pod) -> Vec<Reason> {
    let count = pod.volumes.len().saturating_add(pod.foreign_volumes.len());
    if count > MAX_VOLUMES {
        return vec![Reason::too_many("spec.volumes", count, MAX_VOLUMES)];
    }
    let mut reasons = Vec::new();
    let mut seen: BTreeSet<&str> = pod.foreign_volumes.iter().map(String::as_str).collect();
    for volume in &pod.volumes {
        let field = format!("spec.volumes[{}]", volume.index);
        let path = format!("{field}.name");
        reasons.extend(named(&path, &volume.name, &name::dns_label(&volume.name)));
        if !seen.insert(&volume.name) {
            reasons.push(Reason::duplicate(path, &volume.name));
        }
        if let Medium::Other(medium) = &volume.medium {
            let field = format!("{field}.emptyDir.medium");
            reasons.push(Reason::not_supported(&field, medium, &["", "Memory"]));
        }
        if let Some(size) = &volume.negative_size {
            let field = format!("{field}.emptyDir.sizeLimit");
            reasons.push(Reason::invalid(
                field,
                size,
                "must be greater than or equal to 0",
            ));
        }
    }
    for (list, index, container) in pod.all_containers() {
        let field = format!("spec.{list}[{index}].volumeMounts");
        let found = mounts(&field, &container.mounts, &seen);
        reasons.extend(found.into_iter().map(|it| it.about(&container.name)));
    }
    reasons
}

fn mounts(field: &str, mounts: &[Mount], volumes: &BTreeSet<&str>) -> Vec<Reason> {
    if mounts.len() > MAX_MOUNTS {
        return vec![Reason::too_many(field, mounts.len(), MAX_MOUNTS)];
    }
    let mut reasons = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, mount) in mounts.iter().enumerate() {
        let field = format!("{field}[{index}]");
        if mount.volume.is_empty() {
            reasons.push(Reason::required(format!("{field}.name"), ""));
        } else if !volumes.contains(mount.volume.as_str()) {
            reasons.push(Reason::not_found(format!("{field}.name"), &mount.volume));
        }
        let path = format!("{field}.mountPath");
        if mount.path.is_empty() {
            reasons.push(Reason::required(path, ""));
        } else if let Some(problem) = path_problem(&mount.path) {
            reasons.push(Reason::invalid(path, &mount.path, problem));
        } else if !seen.insert(mount.path.trim_end_matches('/')) {
            reasons.push(Reason::invalid(path, &mount.path, "must be unique"));
        }
        if mount.is_part {
            let detail = "is not supported: mount the whole volume";
            reasons.push(Reason::forbidden(format!("{field}.subPath"), detail));
        }
    }
    reasons
}

fn path_problem(path: &str) -> Option<&'static str> {
    let is_kept = |kept: &&str| {
        let rest = path.strip_prefix(*kept);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if path.len() > MAX_PATH || path.contains('\0') {
        Some("must be a path of at most 4095 bytes without a NUL character")
    } else if !path.starts_with('/') {
        Some("must be an absolute path: the process runtime has no other root")
    } else if path.contains(':') {
        Some("must not contain ':'")
    } else if path.split('/').any(|part| part == ".." || part == ".") {
        Some("must not contain '.' or '..' as a part")
    } else if path.trim_end_matches('/').is_empty() || KEPT.iter().any(is_kept) {
        Some("must not hide /, /proc, /sys or /dev: the container runs on the host's files")
    } else {
        None
    }
}
