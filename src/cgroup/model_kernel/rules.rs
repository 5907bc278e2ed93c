//! What the kernel does with each operation: which it refuses, and what it rounds.

use super::memory::Charged;
use super::{Cgroup, ModelKernel, explained, refused};
use crate::cgroup::{
    CgroupPath, ControllerSet, ErrorKind, InterfaceFile, KernelError, Pid, Setting,
};
use crate::units::{CpuMax, Limit, Micros};

/// The longest period of `cpu.max`, 1 s (`max_cfs_quota_period`, Linux 6.12).
const MAX_PERIOD: Micros = Micros(1_000_000);
/// The longest quota of `cpu.max` (`MAX_BW` of `kernel/sched/sched.h`, Linux 6.12).
const MAX_QUOTA: Micros = Micros((1 << 44) - 1);
/// The largest `pids.max` (`PID_MAX_LIMIT` on 64 bits).
const MAX_PIDS: u64 = 4_194_304;

impl ModelKernel {
    pub(super) fn create(&mut self, path: &CgroupPath) -> Result<(), KernelError> {
        if self.cgroups.contains_key(path) {
            return Ok(());
        }
        if path
            .parent()
            .is_none_or(|above| !self.cgroups.contains_key(&above))
        {
            return Err(refused("create", path, libc::ENOENT));
        }
        let node = self
            .initial(&self.controllers_of(path))
            .into_iter()
            .collect();
        let cgroup = Cgroup {
            node,
            ..Cgroup::default()
        };
        self.cgroups.insert(path.clone(), cgroup);
        Ok(())
    }

    /// As `cgroup_subtree_control_write` through the real door: what the cgroup does not have is
    /// told, and the others are enabled all the same.
    pub(super) fn enable(
        &mut self,
        path: &CgroupPath,
        wanted: &ControllerSet,
    ) -> Result<(), KernelError> {
        let operation = format!("enable {wanted} in");
        let enabled = self.cgroup(&operation, path)?.node.enabled.clone();
        let missing = wanted.without(&enabled).without(&self.controllers_of(path));
        let new = wanted.without(&enabled).without(&missing);
        if !new.is_empty() {
            // No internal processes. For threaded controllers alone the kernel would make the
            // cgroup a threaded one, which the door refuses.
            if let Some(pid) = self.occupants(path).first() {
                let why = format!(
                    "process {pid} is in it, and a cgroup with processes cannot give controllers to \
                     others"
                );
                return Err(explained(operation, path, ErrorKind::Busy, why));
            }
            let appearing = self.initial(&new);
            for child in self.children(path) {
                let child = self.cgroup(&operation, &child)?;
                for setting in &appearing {
                    child.node.set(*setting);
                }
            }
            let node = &mut self.cgroup(&operation, path)?.node;
            new.iter().for_each(|name| node.enabled.insert(name));
        }
        if missing.is_empty() {
            return Ok(());
        }
        let why = not_enabled(path, &missing.to_string());
        let operation = format!("enable {missing} in");
        Err(explained(operation, path, ErrorKind::Unsupported, why))
    }

    pub(super) fn write(&mut self, path: &CgroupPath, setting: Setting) -> Result<(), KernelError> {
        let file = setting.file();
        let place = place(path, &file.to_string());
        let operation = format!("write {} to", setting.value());
        let answer = |errno| {
            let source = std::io::Error::from_raw_os_error(errno);
            Err(KernelError::new(operation.as_str(), place.as_str(), source))
        };
        let has = self.controllers_of(path);
        if self.cgroup(&operation, path)?.node.get(file).is_none() {
            let why = if has.contains(file.controller()) {
                format!("the kernel has no {file}")
            } else {
                not_enabled(path, file.controller().name())
            };
            let kind = ErrorKind::Unsupported;
            return Err(KernelError::explained(operation, place, kind, why));
        }
        if !is_valid(setting) {
            return answer(libc::EINVAL);
        }
        if let Setting::CpusetCpus(set) | Setting::CpusetMems(set) = setting {
            let (cpus, nodes) = self.possible;
            let possible = if file == InterfaceFile::CpusetCpus {
                cpus
            } else {
                nodes
            };
            if !set.is_subset(possible) {
                return answer(libc::EINVAL);
            }
            // Who runs keeps a list, once there was one (`validate_change`).
            let had = self.cgroup(&operation, path)?.node.get(file);
            let empties = set.is_empty() && had != Some(Setting::initial(file));
            if empties && !self.inhabitants(path).is_empty() {
                return answer(libc::ENOSPC);
            }
        }
        let quota = self
            .cgroup(&operation, path)?
            .node
            .get(InterfaceFile::CpuMax);
        let burst = self
            .cgroup(&operation, path)?
            .node
            .get(InterfaceFile::CpuMaxBurst);
        let (quota, burst) = match setting {
            Setting::CpuMax(_) => (Some(setting), burst),
            Setting::CpuMaxBurst(_) => (quota, Some(setting)),
            _ => (None, None),
        };
        if !is_within(quota, burst) {
            return answer(libc::EINVAL);
        }
        let kept = setting.kept(self.page);
        let counted = match kept {
            Setting::HugetlbMax(size, Limit::At(max)) => Some((Charged::Huge(size), max)),
            Setting::HugetlbRsvdMax(size, Limit::At(max)) => {
                Some((Charged::HugeReserved(size), max))
            }
            _ => None,
        };
        // Huge pages cannot be reclaimed (`page_counter_set_max`).
        if counted.is_some_and(|(what, max)| self.usage(path, what) > max) {
            return answer(libc::EBUSY);
        }
        self.cgroup(&operation, path)?.node.set(kept);
        if file == InterfaceFile::MemoryMax {
            self.bring_below_max(path);
        }
        Ok(())
    }

    pub(super) fn attach(&mut self, path: &CgroupPath, pid: Pid) -> Result<(), KernelError> {
        let operation = format!("attach {pid} to");
        // No internal processes. The kernel would take one where threaded controllers alone are
        // handed down, and the cgroup would become a threaded one, which the door refuses.
        if !self.cgroup(&operation, path)?.node.enabled.is_empty() {
            let why = "it gives controllers to others, and such a cgroup takes no process";
            return Err(explained(operation, path, ErrorKind::Busy, why.to_owned()));
        }
        let Some(process) = self.processes.get_mut(&pid) else {
            return Err(refused(&operation, path, libc::ESRCH));
        };
        process.home = Some(path.clone());
        Ok(())
    }

    pub(super) fn kill(&mut self, path: &CgroupPath) -> Result<(), KernelError> {
        below_top("kill", path)?;
        self.cgroup("kill", path)?;
        for pid in self.inhabitants(path) {
            self.processes.remove(&pid);
        }
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &CgroupPath) -> Result<(), KernelError> {
        below_top("remove", path)?;
        let mut answer = Ok(());
        for path in self.itself_and_below(path).into_iter().rev() {
            if self.children(&path).is_empty() && self.occupants(&path).is_empty() {
                self.take_out(&path);
            } else {
                answer = Err(refused("remove", &path, libc::EBUSY));
            }
        }
        answer
    }
}

fn below_top(operation: &str, path: &CgroupPath) -> Result<(), KernelError> {
    if path.is_top() {
        let why = "it is the top cgroup".to_owned();
        return Err(explained(
            operation.to_owned(),
            path,
            ErrorKind::Invalid,
            why,
        ));
    }
    Ok(())
}

/// The ranges of `tg_set_cfs_bandwidth` and `pids_max_write`; those of other files are in their types.
fn is_valid(setting: Setting) -> bool {
    match setting {
        Setting::CpuMax(CpuMax { quota, period }) => {
            let quota = quota.value().unwrap_or(MAX_QUOTA);
            (CpuMax::MIN_QUOTA..=MAX_QUOTA).contains(&quota)
                && (CpuMax::MIN_QUOTA..=MAX_PERIOD).contains(&period)
        }
        Setting::PidsMax(Limit::At(tasks)) => tasks <= MAX_PIDS,
        // It must fit as nanoseconds.
        Setting::CpuMaxBurst(Micros(burst)) => burst <= u64::MAX / 1000,
        _ => true,
    }
}

/// Whether a burst is within a quota; without a quota any is. Together they are no longer than the longest quota.
fn is_within(quota: Option<Setting>, burst: Option<Setting>) -> bool {
    match (quota, burst) {
        (
            Some(Setting::CpuMax(CpuMax {
                quota: Limit::At(quota),
                ..
            })),
            Some(Setting::CpuMaxBurst(burst)),
        ) => burst <= quota && burst.0.saturating_add(quota.0) <= MAX_QUOTA.0,
        _ => true,
    }
}

/// Why a cgroup lacks a controller.
fn not_enabled(path: &CgroupPath, controller: &str) -> String {
    match path.parent() {
        Some(above) => {
            let file = place(&above, "cgroup.subtree_control");
            format!("controller {controller} is not enabled in {file}")
        }
        None => format!("the kernel has no controller {controller} on cgroup2"),
    }
}

/// A file of a cgroup, relative to the top.
fn place(path: &CgroupPath, file: &str) -> String {
    if path.is_top() {
        file.to_owned()
    } else {
        format!("{path}/{file}")
    }
}
