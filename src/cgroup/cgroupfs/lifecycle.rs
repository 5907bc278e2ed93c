//! Making the top cgroup, handing controllers down to it, moving and killing processes.
//!
//! `cgroups-rs` makes the directories, hands the controllers down, attaches and kills: the parts of
//! it that answer truly. It is pointed at a directory that we hold open, so it acts there whatever
//! is mounted where. It passes over a controller that could not be enabled, so what it enabled is
//! read back here, the rest is tried again, and every refusal is told. Its `apply` is never used: it
//! answers Ok when a write failed.

use std::error::Error as _;
use std::path::{Path, PathBuf};

use cgroups_rs::CgroupPid;
use cgroups_rs::fs::cgroup::UNIFIED_MOUNTPOINT;
use cgroups_rs::fs::error::{Error as CrateError, ErrorKind as CrateErrorKind};
use cgroups_rs::fs::pid::PidController;
use cgroups_rs::fs::{Cgroup, Hierarchy, Subsystem};
use rustix::io::Errno;

use super::dir::Dir;
use super::mount::Mount;
use crate::cgroup::parse;
use crate::cgroup::{Controller, ControllerSet, ErrorKind, KernelError, Pid};

const CONTROLLERS: &str = "cgroup.controllers";
const SUBTREE: &str = "cgroup.subtree_control";

/// Makes the cgroup `below` the mount's root and enables controllers in the cgroups above it, but never in
/// those of a service manager. Answers with what could not be enabled: one missing controller does not stop
/// the others.
pub(super) fn lay(
    mount: &Mount,
    below: &str,
    wanted: &ControllerSet,
) -> Result<Vec<KernelError>, KernelError> {
    let shown = |path: &str| mount.shown(path);
    let open = |path: &str| {
        let opened = mount.root.below(path);
        opened.map_err(|errno| KernelError::new("open", shown(path), errno))
    };
    if let Ok(top) = mount.root.below(below)
        && wanted
            .without(&set(&top, CONTROLLERS, &shown(below))?)
            .is_empty()
    {
        return Ok(Vec::new());
    }

    let ours = handed_over(mount, below);
    let named = if ours.is_empty() && crate_may_enable(mount, below) {
        set(&mount.root, CONTROLLERS, &shown(""))?.common(wanted)
    } else {
        ControllerSet::default()
    };
    let named = named.iter().map(|controller| controller.to_string());
    let hierarchy = Box::new(Held::of(&mount.root));
    Cgroup::new_with_specified_controllers(hierarchy, below, Some(named.collect()))
        .map_err(|error| from_crate("create", &shown(below), &error))?;

    let mut refused = Vec::new();
    let mut left = wanted.clone();
    for path in above(below) {
        let dir = open(path)?;
        let missing = left.without(&set(&dir, SUBTREE, &shown(path))?);
        if path.len() < ours.len() {
            if !missing.is_empty() {
                refused.push(managed(&shown(path), &missing, &shown(ours)));
                left = left.without(&missing);
            }
            continue;
        }
        count_io(&dir);
        if !missing.is_empty() {
            refused.extend(enable(&dir, &shown(path), &missing).err());
            // What stops here cannot be had further down: one refusal is enough.
            left = left.common(&set(&dir, SUBTREE, &shown(path))?);
        }
    }
    Ok(refused)
}

/// The lowest cgroup, this one or above it, that a service manager has handed over: those above are its own,
/// and it alone writes them. The empty path where there is none: then all are ours.
fn handed_over<'a>(mount: &Mount, below: &'a str) -> &'a str {
    let marked = |path: &&str| {
        let dir = mount.root.below(path);
        dir.is_ok_and(|dir| dir.is_delegated())
    };
    let found = above(below).chain([below]).filter(marked).last();
    found.unwrap_or_default()
}

/// Why controllers were not even tried: the cgroup is the service manager's.
fn managed(shown: &str, missing: &ControllerSet, ours: &str) -> KernelError {
    let why =
        format!("it belongs to the service manager, which handed over {ours} without {missing}");
    let operation = format!("enable {missing} in");
    KernelError::explained(operation, shown, ErrorKind::Unsupported, why)
}

/// Whether the crate may be told to enable controllers. It compares their names with those at the
/// usual mount point, and it would silently make a cgroup with processes a threaded one.
fn crate_may_enable(mount: &Mount, below: &str) -> bool {
    let empty = |path| {
        let dir = mount.root.below(path)?;
        occupants(&dir).map(|found| found.is_empty())
    };
    mount.point == Path::new(UNIFIED_MOUNTPOINT)
        // Those that are not there yet are empty.
        && above(below).all(|path| !matches!(empty(path), Ok(false)))
}

/// Enables controllers for the children of a cgroup, all at once; where some are not there, the
/// others are still enabled.
pub(super) fn enable(dir: &Dir, shown: &str, wanted: &ControllerSet) -> Result<(), KernelError> {
    if wanted.is_empty() {
        return Ok(());
    }
    count_io(dir);
    let Err(refusal) = enable_at_once(dir, shown, wanted) else {
        return Ok(());
    };
    // ENOENT or EINVAL if one of them is not in `cgroup.controllers`.
    let missing = match set(dir, CONTROLLERS, shown) {
        Ok(there) => wanted.without(&there),
        Err(_) => return Err(refusal),
    };
    if missing.is_empty() {
        return Err(refusal);
    }
    let there = wanted.without(&missing);
    if !there.is_empty() {
        enable_at_once(dir, shown, &there)?;
    }
    Err(KernelError::explained(
        format!("enable {missing} in"),
        shown,
        ErrorKind::Unsupported,
        not_enabled(dir, &missing.to_string(), shown),
    ))
}

/// Lets the children of a cgroup count what they read and write. `io` bounds nothing here, so it is none of
/// the controllers that are wanted and told of: where it cannot be had, its figures are absent.
fn count_io(dir: &Dir) {
    // One that is a domain controller is refused where processes are, as the others are.
    let _ = dir.write(SUBTREE, "+io");
}

fn enable_at_once(dir: &Dir, shown: &str, set: &ControllerSet) -> Result<(), KernelError> {
    // Enabling only threaded controllers where processes are succeeds, and silently makes the
    // cgroup threaded: its children then take no processes (Linux 6.12 cgroup-v2.rst, "Threads").
    let threaded = |controller| {
        matches!(
            controller,
            Controller::Cpu | Controller::Pids | Controller::Cpuset
        )
    };
    let answer = if set.iter().all(threaded) && occupants(dir).is_ok_and(|found| !found.is_empty())
    {
        Err(Errno::BUSY)
    } else {
        let text: Vec<String> = set.iter().map(|name| format!("+{name}")).collect();
        dir.write(SUBTREE, &text.join(" "))
    };
    answer.map_err(|errno| {
        let operation = format!("enable {set} in");
        if errno != Errno::BUSY {
            return KernelError::new(operation, shown, errno);
        }
        let who = match occupants(dir).ok().and_then(|found| found.first().copied()) {
            Some(pid) => format!("process {pid} is in it"),
            None => "a process was in it".to_owned(),
        };
        let why = format!("{who}, and a cgroup with processes cannot give controllers to others");
        KernelError::explained(operation, shown, ErrorKind::Busy, why)
    })
}

/// Why a controller's files are missing: it is not handed down by the cgroup above `shown`.
pub(super) fn not_enabled(dir: &Dir, controller: &str, shown: &str) -> String {
    let above = Path::new(shown).parent();
    match above.filter(|_| !is_root(dir)) {
        Some(above) => format!(
            "controller {controller} is not enabled in {}/{SUBTREE}",
            above.display()
        ),
        None => format!("the kernel has no controller {controller} on cgroup2"),
    }
}

/// Moves a process with its threads into a cgroup, `shown` to people.
pub(super) fn attach(top: &Dir, path: &str, shown: &str, pid: Pid) -> Result<(), KernelError> {
    let operation = format!("attach {pid} to");
    let dir = top.below(path);
    let subtree = dir.and_then(|dir| dir.read(SUBTREE));
    let subtree = subtree.map_err(|errno| KernelError::new(operation.as_str(), shown, errno))?;
    // The kernel refuses this with EBUSY only for domain controllers. With threaded ones alone it
    // would make the cgroup the root of threaded ones, and those below would take no process.
    if !subtree.trim_end().is_empty() {
        let why = "it gives controllers to others, and such a cgroup takes no process";
        let kind = ErrorKind::Busy;
        return Err(KernelError::explained(operation, shown, kind, why));
    }
    // Never `0`, which stands for the caller itself; the kernel refuses what is no process id.
    let pid = u64::try_from(pid.0).ok().filter(|pid| *pid > 0);
    let pid = CgroupPid::from(pid.unwrap_or(u64::MAX));
    Cgroup::load(Box::new(Held::of(top)), path)
        .add_task_by_tgid(pid)
        .map_err(|error| from_crate(&operation, shown, &error))
}

/// Kills all processes in a cgroup and below; `InvalidOperation` where there is no `cgroup.kill`.
pub(super) fn kill(top: &Dir, path: &str) -> Result<(), CrateError> {
    Cgroup::load(Box::new(Held::of(top)), path).kill()
}

/// The crate's error as ours: the errno it carries decides the kind.
pub(super) fn from_crate(operation: &str, path: &str, error: &CrateError) -> KernelError {
    let errno = error
        .source()
        .and_then(|source| source.downcast_ref::<std::io::Error>())
        .and_then(std::io::Error::raw_os_error);
    match errno {
        Some(errno) => KernelError::new(operation, path, std::io::Error::from_raw_os_error(errno)),
        None => KernelError::explained(operation, path, ErrorKind::Other, error.to_string()),
    }
}

/// Whether the crate found no `cgroup.kill`.
pub(super) fn lacks_kill(error: &CrateError) -> bool {
    *error.kind() == CrateErrorKind::InvalidOperation
}

/// The processes that keep a cgroup from handing down controllers; none in the root, which may do
/// both.
fn occupants(dir: &Dir) -> Result<Vec<Pid>, Errno> {
    if is_root(dir) {
        return Ok(Vec::new());
    }
    dir.read_records("cgroup.procs")
        .map(|text| parse::processes(&text))
}

/// Whether it is the root of all cgroups, the only one without a type.
fn is_root(dir: &Dir) -> bool {
    matches!(dir.has("cgroup.type"), Ok(false))
}

fn set(dir: &Dir, file: &str, shown: &str) -> Result<ControllerSet, KernelError> {
    dir.read(file)
        .map(|text| ControllerSet::parse(&text))
        .map_err(|errno| KernelError::new("read", format!("{shown}/{file}"), errno))
}

/// The paths above a path, the root of the mount (the empty path) first.
pub(super) fn above(path: &str) -> impl Iterator<Item = &str> {
    std::iter::once("").chain(path.match_indices('/').map(|(at, _)| path.split_at(at).0))
}

/// The crate's view of a hierarchy whose root is a directory that we hold open.
#[derive(Debug)]
struct Held(PathBuf);

impl Held {
    fn of(dir: &Dir) -> Self {
        Self(dir.proc_path())
    }
}

impl Hierarchy for Held {
    fn subsystems(&self) -> Vec<Subsystem> {
        // One is enough: on v2 the crate needs any controller to know the directory.
        let root = self.0.clone();
        vec![Subsystem::Pid(PidController::new(root.clone(), root, true))]
    }

    fn root(&self) -> PathBuf {
        self.0.clone()
    }

    fn root_control_group(&self) -> Cgroup {
        Cgroup::load(Box::new(Self(self.0.clone())), "")
    }

    fn parent_control_group(&self, path: &str) -> Cgroup {
        let above = Path::new(path).parent().unwrap_or(Path::new(""));
        Cgroup::load(Box::new(Self(self.0.clone())), above)
    }

    fn v2(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_go_from_the_root_down() {
        let paths: Vec<_> = above("allot.slice/allot-pods.service/x").collect();
        assert_eq!(paths, ["", "allot.slice", "allot.slice/allot-pods.service"]);
        assert_eq!(above("allot").collect::<Vec<_>>(), [""]);
    }
}
