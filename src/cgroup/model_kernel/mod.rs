//! A kernel in memory that keeps the rules of cgroup v2, for tests and dry runs.
//!
//! It refuses what the kernel refuses and rounds what the kernel rounds, and it answers as the real
//! door does. It must never invent a rule: what is not known of the kernel is not modelled. Left out
//! are time (a killed process is gone at once), threads, the root of all cgroups, and how memory
//! protection steers reclaim.

mod bench;
mod memory;
mod reader;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{
    CgroupPath, Controller, ControllerSet, Counters, ErrorKind, Hierarchy, InterfaceFile,
    KernelError, Node, Op, Pid, Reader, Setting, Tree,
};
use crate::units::{Bytes, CpuSet, HugePageSize, PageSize};
use bench::Fault;
use memory::Charged;

/// The model. A new one has only the top cgroup, with every controller.
#[derive(Debug)]
pub struct ModelKernel {
    cgroups: BTreeMap<CgroupPath, Cgroup>,
    processes: BTreeMap<Pid, Process>,
    available: ControllerSet,
    absent: BTreeSet<InterfaceFile>,
    page: PageSize,
    huge_page_sizes: Vec<HugePageSize>,
    /// CPUs and memory nodes that the machine could have.
    possible: (CpuSet, CpuSet),
    has_reclaim: bool,
    /// Removed cgroups that it still holds; `None`: it does not say.
    dying: Option<u64>,
    ours: fn(&CgroupPath) -> bool,
    faults: Vec<Fault>,
    performed: Vec<Op>,
    looks: usize,
}

#[derive(Debug, Default)]
struct Cgroup {
    node: Node,
    /// Memory that reclaim can take: page cache.
    cache: Bytes,
    peak: Bytes,
    /// CPU time of this cgroup and those below (µs).
    cpu_usec: u64,
    oom_local: u64,
    oom: u64,
    oom_kill_local: u64,
    oom_kill: u64,
    oom_group_kill_local: u64,
    oom_group_kill: u64,
}

#[derive(Debug)]
struct Process {
    home: Option<CgroupPath>,
    /// What it holds, by the cgroup that was charged for it: a charge does not move with the process.
    charges: BTreeMap<(CgroupPath, Charged), Bytes>,
}

impl ModelKernel {
    fn cgroup(&mut self, operation: &str, path: &CgroupPath) -> Result<&mut Cgroup, KernelError> {
        let cgroup = self.cgroups.get_mut(path);
        cgroup.ok_or_else(|| refused(operation, path, libc::ENOENT))
    }

    /// `cgroup.controllers`: what the cgroup above hands down.
    fn controllers_of(&self, path: &CgroupPath) -> ControllerSet {
        match path.parent() {
            None => self.available.clone(),
            Some(above) => {
                let above = self.cgroups.get(&above);
                above.map_or_else(ControllerSet::default, |cgroup| cgroup.node.enabled.clone())
            }
        }
    }

    /// What a new cgroup has in the files of these controllers.
    fn initial(&self, controllers: &ControllerSet) -> Vec<Setting> {
        InterfaceFile::all(&self.huge_page_sizes)
            .into_iter()
            .filter(|file| controllers.contains(file.controller()) && !self.absent.contains(file))
            .map(Setting::initial)
            .collect()
    }

    fn children(&self, path: &CgroupPath) -> Vec<CgroupPath> {
        let depth = path.depth().saturating_add(1);
        let below = self.cgroups.range(path.below()).map(|(path, _)| path);
        below
            .filter(|path| path.depth() == depth)
            .cloned()
            .collect()
    }

    fn itself_and_below(&self, path: &CgroupPath) -> Vec<CgroupPath> {
        let itself = self.cgroups.get_key_value(path);
        let all = itself.into_iter().chain(self.cgroups.range(path.below()));
        all.map(|(path, _)| path.clone()).collect()
    }

    /// The processes in a cgroup and below.
    fn inhabitants(&self, path: &CgroupPath) -> Vec<Pid> {
        let lives = |process: &Process| process.home.as_ref().is_some_and(|at| at.is_within(path));
        let found = self.processes.iter().filter(|(_, process)| lives(process));
        found.map(|(pid, _)| *pid).collect()
    }

    /// The processes in the cgroup itself.
    fn occupants(&self, path: &CgroupPath) -> Vec<Pid> {
        let found = self.processes.iter();
        let found = found.filter(|(_, process)| process.home.as_ref() == Some(path));
        found.map(|(pid, _)| *pid).collect()
    }

    /// Whatever happens, without faults and without a record.
    fn act(&mut self, op: &Op) -> Result<(), KernelError> {
        match op {
            Op::Create(path) => self.create(path),
            Op::Enable(path, controllers) => self.enable(path, controllers),
            Op::Write(path, setting) => self.write(path, *setting),
            Op::Reclaim(path, bytes) => self.reclaim_by_hand(path, *bytes),
            Op::Attach(path, pid) => self.attach(path, *pid),
            Op::Kill(path) => self.kill(path),
            Op::Remove(path) => self.remove(path),
        }
    }
}

impl Hierarchy for ModelKernel {
    fn found(&mut self, above: &CgroupPath) -> Result<Tree, KernelError> {
        self.cgroup("open", above)?;
        let mut tree = Tree::default();
        for path in self.itself_and_below(above) {
            // A cgroup that is none of ours is passed over with all below it.
            let hidden = path
                .self_and_above()
                .any(|at| at != *above && at.is_within(above) && !(self.ours)(&at));
            if !hidden && let Some(cgroup) = self.cgroups.get(&path) {
                tree.insert(path, cgroup.node.clone());
            }
        }
        Ok(tree)
    }

    fn look(&mut self, path: &CgroupPath) -> Result<Option<Node>, KernelError> {
        self.looks = self.looks.saturating_add(1);
        Ok(self.cgroups.get(path).map(|cgroup| cgroup.node.clone()))
    }

    fn counters(&mut self, path: &CgroupPath) -> Result<Counters, KernelError> {
        self.cgroup("open", path)?;
        let has = self.controllers_of(path);
        let inhabitants = self.inhabitants(path).len();
        let memory = has.contains(Controller::Memory);
        let current = self.usage(path, Charged::Memory);
        let cgroup = self.cgroup("open", path)?;
        let of_memory = |value| memory.then_some(value);
        Ok(Counters {
            memory_current: memory.then_some(current),
            memory_peak: memory.then_some(cgroup.peak),
            oom_local: of_memory(cgroup.oom_local),
            oom: of_memory(cgroup.oom),
            oom_kill_local: of_memory(cgroup.oom_kill_local),
            oom_kill: of_memory(cgroup.oom_kill),
            oom_group_kill_local: of_memory(cgroup.oom_group_kill_local),
            oom_group_kill: of_memory(cgroup.oom_group_kill),
            pids_current: has
                .contains(Controller::Pids)
                .then(|| u64::try_from(inhabitants).unwrap_or(u64::MAX)),
            populated: Some(inhabitants > 0),
            ..Counters::default()
        })
    }

    fn reader(&mut self) -> Arc<dyn Reader> {
        Arc::new(self.snapshot())
    }

    fn processes(&mut self, path: &CgroupPath) -> Result<Vec<Pid>, KernelError> {
        self.cgroup("open", path)?;
        Ok(self.occupants(path))
    }

    fn perform(&mut self, op: &Op) -> Result<(), KernelError> {
        if self.fault(op)? {
            self.act(op)?;
        }
        self.performed.push(op.clone());
        Ok(())
    }

    fn controllers(&mut self) -> Result<ControllerSet, KernelError> {
        Ok(self.available.clone())
    }

    fn page_size(&self) -> PageSize {
        self.page
    }

    fn huge_page_sizes(&self) -> &[HugePageSize] {
        &self.huge_page_sizes
    }
}

fn refused(operation: &str, path: &CgroupPath, errno: i32) -> KernelError {
    let source = std::io::Error::from_raw_os_error(errno);
    KernelError::new(operation, path.to_string(), source)
}

fn explained(operation: String, path: &CgroupPath, kind: ErrorKind, why: String) -> KernelError {
    KernelError::explained(operation, path.to_string(), kind, why)
}
