//! What is charged to whom, reclaim, and the OOM killer of one cgroup.
//!
//! The counters rise where the kernel lets them rise (`mm/memcontrol.c` and `mm/oom_kill.c`, Linux
//! 6.12), but once for each death: a real group kill may count its first victim twice, and a real
//! `oom` rises again in every round in which a lowered bound waits for the victim's end.

use super::{Cgroup, ModelKernel, refused};
use crate::cgroup::{CgroupPath, Controller, ErrorKind, InterfaceFile, KernelError, Pid, Setting};
use crate::units::{Bytes, HugePageSize, Limit};

/// What can be charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Charged {
    /// `memory.current`
    Memory,
    /// `hugetlb.SIZE.current`
    Huge(HugePageSize),
    /// `hugetlb.SIZE.rsvd.current`
    HugeReserved(HugePageSize),
}

impl Charged {
    /// Who counts it.
    pub(super) fn controller(self) -> Controller {
        match self {
            Self::Memory => Controller::Memory,
            Self::Huge(_) | Self::HugeReserved(_) => Controller::Hugetlb,
        }
    }
}

impl ModelKernel {
    /// What is charged to a cgroup and those below.
    pub(super) fn usage(&self, path: &CgroupPath, what: Charged) -> Bytes {
        let mut sum = Bytes::ZERO;
        for ((at, charged), bytes) in self.processes.values().flat_map(|p| &p.charges) {
            if *charged == what && at.is_within(path) {
                sum = sum.saturating_add(*bytes);
            }
        }
        if what == Charged::Memory {
            let below = self.cgroups.range(path.below()).map(|(_, cgroup)| cgroup);
            for cgroup in self.cgroups.get(path).into_iter().chain(below) {
                sum = sum.saturating_add(cgroup.cache);
            }
        }
        sum
    }

    /// After a charge to `path`: every limit above holds, the nearest first.
    pub(super) fn charged(&mut self, path: &CgroupPath) {
        for at in path.self_and_above() {
            let usage = self.usage(&at, Charged::Memory);
            if let Some(cgroup) = self.cgroups.get_mut(&at) {
                cgroup.peak = cgroup.peak.max(usage);
            }
        }
        for at in path.self_and_above() {
            self.bring_below_max(&at);
        }
    }

    /// Reclaims, then kills, until usage is within `memory.max` or nobody is left to kill. Each
    /// decision to kill is one `oom` of the cgroup whose limit it is.
    pub(super) fn bring_below_max(&mut self, path: &CgroupPath) {
        let Some(max) = self.cgroups.get(path).and_then(max_of) else {
            return;
        };
        loop {
            let above = self.usage(path, Charged::Memory).saturating_sub(max);
            if above == Bytes::ZERO {
                return;
            }
            if self.reclaim(path, above) > Bytes::ZERO {
                continue;
            }
            self.count(path, |cgroup| &mut cgroup.oom_local);
            self.count_upwards(path, |cgroup| &mut cgroup.oom);
            let victims = self.inhabitants(path);
            let Some(victim) = victims.into_iter().max_by_key(|pid| self.size_of(*pid)) else {
                return;
            };
            self.oom_kill(path, victim);
        }
    }

    /// Takes up to `most` of the page cache in a cgroup and below.
    fn reclaim(&mut self, path: &CgroupPath, most: Bytes) -> Bytes {
        let mut left = most;
        for at in self.itself_and_below(path) {
            if let Some(cgroup) = self.cgroups.get_mut(&at) {
                let taken = cgroup.cache.min(left);
                cgroup.cache = cgroup.cache.saturating_sub(taken);
                left = left.saturating_sub(taken);
            }
        }
        most.saturating_sub(left)
    }

    /// A write to `memory.reclaim`.
    pub(super) fn reclaim_by_hand(
        &mut self,
        path: &CgroupPath,
        bytes: Bytes,
    ) -> Result<(), KernelError> {
        let operation = format!("reclaim {bytes} from");
        self.cgroup(&operation, path)?;
        if !self.controllers_of(path).contains(Controller::Memory) || !self.has_reclaim {
            let why = "there is no memory.reclaim".to_owned();
            let kind = ErrorKind::Unsupported;
            return Err(super::explained(operation, path, kind, why));
        }
        // What is asked for is counted in whole pages.
        let bytes = self.page.floor(bytes);
        if self.reclaim(path, bytes) < bytes {
            return Err(refused(&operation, path, libc::EAGAIN));
        }
        Ok(())
    }

    /// Kills one process, or with it all in the highest cgroup between it and `domain` that has
    /// `memory.oom.group` (`mem_cgroup_get_oom_group`).
    fn oom_kill(&mut self, domain: &CgroupPath, victim: Pid) {
        let home = self.processes.get(&victim).and_then(|p| p.home.clone());
        let Some(home) = home else {
            return;
        };
        let grouped = |cgroup: &Cgroup| {
            let setting = cgroup.node.get(InterfaceFile::MemoryOomGroup);
            setting == Some(Setting::MemoryOomGroup(true))
        };
        let group = home
            .self_and_above()
            .take_while(|at| at.is_within(domain))
            .filter(|at| self.cgroups.get(at).is_some_and(grouped))
            .last();
        let victims = match &group {
            Some(group) => self.inhabitants(group),
            None => vec![victim],
        };
        if let Some(group) = &group {
            self.count(group, |cgroup| &mut cgroup.oom_group_kill_local);
            self.count_upwards(group, |cgroup| &mut cgroup.oom_group_kill);
        }
        for pid in victims {
            let Some(home) = self.processes.remove(&pid).and_then(|p| p.home) else {
                continue;
            };
            self.count(&home, |cgroup| &mut cgroup.oom_kill_local);
            self.count_upwards(&home, |cgroup| &mut cgroup.oom_kill);
        }
    }

    fn size_of(&self, pid: Pid) -> Bytes {
        let charges = self
            .processes
            .get(&pid)
            .into_iter()
            .flat_map(|p| &p.charges);
        let memory = charges.filter(|((_, what), _)| *what == Charged::Memory);
        memory.fold(Bytes::ZERO, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    fn count_upwards(&mut self, path: &CgroupPath, which: impl Fn(&mut Cgroup) -> &mut u64) {
        for at in path.self_and_above() {
            self.count(&at, &which);
        }
    }

    fn count(&mut self, path: &CgroupPath, which: impl Fn(&mut Cgroup) -> &mut u64) {
        if let Some(cgroup) = self.cgroups.get_mut(path) {
            let counter = which(cgroup);
            *counter = counter.saturating_add(1);
        }
    }

    /// Who is charged for what a process in `path` takes: the nearest that has the controller.
    pub(super) fn payer(&self, path: &CgroupPath, what: Charged) -> Option<CgroupPath> {
        path.self_and_above()
            .find(|at| self.controllers_of(at).contains(what.controller()))
    }

    /// Takes an empty cgroup out; what is still charged to it goes to the cgroup above.
    pub(super) fn take_out(&mut self, path: &CgroupPath) {
        self.hand_up(path, |_| true);
        self.cgroups.remove(path);
    }

    /// What is charged to a cgroup that loses its controllers, or itself, goes to the cgroup above.
    pub(super) fn hand_up(&mut self, path: &CgroupPath, which: impl Fn(Charged) -> bool) {
        let Some(above) = path.parent() else {
            return;
        };
        if which(Charged::Memory) {
            let cache = self
                .cgroups
                .get_mut(path)
                .map(|cgroup| std::mem::take(&mut cgroup.cache));
            if let (Some(above), Some(cache)) = (self.cgroups.get_mut(&above), cache) {
                above.cache = above.cache.saturating_add(cache);
            }
        }
        for process in self.processes.values_mut() {
            let moving: Vec<_> = process
                .charges
                .extract_if(.., |(at, what), _| at == path && which(*what))
                .collect();
            for ((_, what), bytes) in moving {
                let sum = process.charges.entry((above.clone(), what)).or_default();
                *sum = sum.saturating_add(bytes);
            }
        }
    }
}

fn max_of(cgroup: &Cgroup) -> Option<Bytes> {
    match cgroup.node.get(InterfaceFile::MemoryMax) {
        Some(Setting::MemoryMax(Limit::At(max))) => Some(max),
        _ => None,
    }
}
