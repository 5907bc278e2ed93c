//! What a test can do to the model that the project itself cannot do to a kernel: be another writer,
//! start processes and let them grow, take controllers away, and make operations fail.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Cgroup, CgroupPath, Charged, ModelKernel, Process, explained};
use crate::cgroup::{
    Controller, ControllerSet, ErrorKind, InterfaceFile, KernelError, Node, Op, Pid, Setting,
};
use crate::units::{Bytes, CpuSet, HugePageSize, PageSize};

/// An operation that is made to fail, or to do nothing.
pub(super) struct Fault {
    kind: Option<ErrorKind>,
    which: Box<dyn FnMut(&Op) -> bool + Send>,
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fault")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl Default for ModelKernel {
    fn default() -> Self {
        Self::with_controllers(ControllerSet::all())
    }
}

impl ModelKernel {
    /// A kernel whose top cgroup has only these controllers. Pages are 4 KiB, huge pages 2 MiB and
    /// 1 GiB; there are 64 CPUs and 4 memory nodes.
    pub fn with_controllers(available: ControllerSet) -> Self {
        let mut kernel = Self {
            cgroups: BTreeMap::new(),
            processes: BTreeMap::new(),
            available,
            absent: BTreeSet::new(),
            page: PageSize::FOUR_KIB,
            huge_page_sizes: vec![HugePageSize::TWO_MIB, HugePageSize::ONE_GIB],
            possible: (numbers(64), numbers(4)),
            has_reclaim: true,
            dying: Some(0),
            ours: |_| true,
            faults: Vec::new(),
            performed: Vec::new(),
            looks: 0,
        };
        kernel.lay_top();
        kernel
    }

    /// The same kernel without one file, such as `memory.swap.max` where there is no swap accounting.
    /// Only for a kernel that is still empty.
    #[must_use]
    pub fn without_file(mut self, file: InterfaceFile) -> Self {
        self.absent.insert(file);
        self.lay_top();
        self
    }

    /// The same kernel with these sizes of huge page. Only for a kernel that is still empty.
    #[must_use]
    pub fn with_huge_pages(mut self, sizes: &[HugePageSize]) -> Self {
        self.huge_page_sizes = sizes.to_vec();
        self.lay_top();
        self
    }

    /// The same kernel on a machine with these CPUs and memory nodes. Only for a kernel that is still empty.
    #[must_use]
    pub fn with_cpus(mut self, cpus: CpuSet, nodes: CpuSet) -> Self {
        self.possible = (cpus, nodes);
        self
    }

    /// `cpuset.cpus.effective`: what is listed, as far as the cgroup above may use it; all of that where
    /// nothing is left.
    pub fn effective_cpus(&self, path: &CgroupPath) -> CpuSet {
        let Some(above) = path.parent() else {
            return self.possible.0;
        };
        let above = self.effective_cpus(&above);
        let node = self.cgroups.get(path).map(|cgroup| &cgroup.node);
        let own = match node.and_then(|node| node.get(InterfaceFile::CpusetCpus)) {
            Some(Setting::CpusetCpus(own)) => own.intersection(above),
            _ => CpuSet::EMPTY,
        };
        if own.is_empty() { above } else { own }
    }

    /// The same kernel without `memory.reclaim`, as before Linux 5.19.
    #[must_use]
    pub fn without_reclaim(mut self) -> Self {
        self.has_reclaim = false;
        self
    }

    /// The same kernel, whose `found` reports only these cgroups.
    #[must_use]
    pub fn reporting(mut self, ours: fn(&CgroupPath) -> bool) -> Self {
        self.ours = ours;
        self
    }

    /// The same kernel, which holds so many removed cgroups; `None`: it does not count them.
    #[must_use]
    pub fn with_dying(mut self, dying: Option<u64>) -> Self {
        self.dying = dying;
        self
    }

    fn lay_top(&mut self) {
        let node: Node = self.initial(&self.available).into_iter().collect();
        let cgroup = Cgroup {
            node,
            ..Cgroup::default()
        };
        self.cgroups.insert(CgroupPath::top(), cgroup);
    }

    /// Does an operation as another writer: no fault stops it and no record is kept.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn as_another(&mut self, op: &Op) -> Result<(), KernelError> {
        self.act(op)
    }

    /// Another writer disables a controller for the children of a cgroup.
    ///
    /// # Errors
    /// `ErrorKind::Busy` while a child hands the controller on, `ErrorKind::Gone` without the cgroup.
    pub fn disable(
        &mut self,
        path: &CgroupPath,
        controller: Controller,
    ) -> Result<(), KernelError> {
        let operation = format!("disable {controller} in");
        self.cgroup(&operation, path)?;
        let children = self.children(path);
        let hands_on = |child: &CgroupPath| {
            let child = self.cgroups.get(child);
            child.is_some_and(|cgroup| cgroup.node.enabled.contains(controller))
        };
        if children.iter().any(hands_on) {
            return Err(super::refused(&operation, path, libc::EBUSY));
        }
        for child in children {
            self.hand_up(&child, |what| what.controller() == controller);
            let settings = &mut self.cgroup(&operation, &child)?.node.settings;
            settings.retain(|file, _| file.controller() != controller);
        }
        let enabled = &mut self.cgroup(&operation, path)?.node.enabled;
        *enabled = enabled.without(&[controller].into_iter().collect());
        Ok(())
    }

    /// Starts a process outside our tree.
    pub fn spawn(&mut self, pid: Pid) {
        let process = Process {
            home: None,
            charges: BTreeMap::new(),
        };
        self.processes.insert(pid, process);
    }

    /// Starts a process in a cgroup.
    ///
    /// # Errors
    /// `ErrorKind::Busy` for a cgroup that hands down controllers, `ErrorKind::Gone` without one.
    pub fn spawn_in(&mut self, path: &CgroupPath, pid: Pid) -> Result<(), KernelError> {
        self.spawn(pid);
        let answer = self.attach(path, pid);
        if answer.is_err() {
            self.processes.remove(&pid);
        }
        answer
    }

    /// A process ends; what it held is free.
    pub fn exit(&mut self, pid: Pid) {
        self.processes.remove(&pid);
    }

    /// Whether the process lives.
    pub fn is_alive(&self, pid: Pid) -> bool {
        self.processes.contains_key(&pid)
    }

    /// A process runs for so long (µs); no bound of CPU time is asked.
    pub fn run_for(&mut self, pid: Pid, micros: u64) {
        let home = self.processes.get(&pid).and_then(|p| p.home.clone());
        for at in home.iter().flat_map(CgroupPath::self_and_above) {
            if let Some(cgroup) = self.cgroups.get_mut(&at) {
                cgroup.cpu_usec = cgroup.cpu_usec.saturating_add(micros);
            }
        }
    }

    /// A process takes memory that cannot be reclaimed. If a limit is in the way, it or another one
    /// may die.
    pub fn grow(&mut self, pid: Pid, bytes: Bytes) {
        self.charge(pid, Charged::Memory, bytes);
    }

    /// A process gives back memory that it took.
    pub fn shrink(&mut self, pid: Pid, bytes: Bytes) {
        let charges = self
            .processes
            .get_mut(&pid)
            .map(|process| &mut process.charges);
        let mut left = bytes;
        for ((_, charged), held) in charges.into_iter().flatten() {
            if *charged == Charged::Memory {
                let given = (*held).min(left);
                *held = held.saturating_sub(given);
                left = left.saturating_sub(given);
            }
        }
    }

    /// A process maps and touches huge pages. The limits are not asked.
    pub fn take_huge_pages(&mut self, pid: Pid, size: HugePageSize, bytes: Bytes) {
        self.charge(pid, Charged::HugeReserved(size), bytes);
        self.charge(pid, Charged::Huge(size), bytes);
    }

    fn charge(&mut self, pid: Pid, what: Charged, bytes: Bytes) {
        let home = self.processes.get(&pid).and_then(|p| p.home.clone());
        let Some(at) = home.and_then(|home| self.payer(&home, what)) else {
            return;
        };
        if let Some(process) = self.processes.get_mut(&pid) {
            let sum = process.charges.entry((at.clone(), what)).or_default();
            *sum = sum.saturating_add(bytes);
        }
        if what == Charged::Memory {
            self.charged(&at);
        }
    }

    /// The page cache charged to a cgroup itself is now so much, as far as its limits allow.
    pub fn set_cache(&mut self, path: &CgroupPath, bytes: Bytes) {
        let payer = self.payer(path, Charged::Memory);
        if let Some((at, cgroup)) =
            payer.and_then(|at| Some((at.clone(), self.cgroups.get_mut(&at)?)))
        {
            cgroup.cache = bytes;
            self.charged(&at);
        }
    }

    /// From now on every operation that `which` picks fails, until `heal`.
    pub fn fail(&mut self, kind: ErrorKind, which: impl FnMut(&Op) -> bool + Send + 'static) {
        self.faults.push(Fault {
            kind: Some(kind),
            which: Box::new(which),
        });
    }

    /// From now on every operation that `which` picks succeeds and changes nothing, until `heal`: as
    /// if another writer set everything back at once.
    pub fn ignore(&mut self, which: impl FnMut(&Op) -> bool + Send + 'static) {
        self.faults.push(Fault {
            kind: None,
            which: Box::new(which),
        });
    }

    /// The `nth` operation from now fails; the next one is number 0.
    pub fn fail_nth(&mut self, kind: ErrorKind, nth: usize) {
        let mut left = Some(nth);
        self.fail(kind, move |_| {
            let now = left == Some(0);
            left = left.and_then(|n| n.checked_sub(1));
            now
        });
    }

    /// No more faults.
    pub fn heal(&mut self) {
        self.faults.clear();
    }

    /// Whether the operation shall be done.
    pub(super) fn fault(&mut self, op: &Op) -> Result<bool, KernelError> {
        // All are asked, so that each counts every operation.
        let mut hit = None;
        for fault in &mut self.faults {
            if (fault.which)(op) {
                hit = hit.or(Some(fault.kind));
            }
        }
        match hit {
            Some(Some(kind)) => {
                let why = "the test lets it fail".to_owned();
                Err(explained(operation_of(op), op.path(), kind, why))
            }
            Some(None) => Ok(false),
            None => Ok(true),
        }
    }

    /// The operations that succeeded, oldest first, since this was last asked.
    pub fn take_performed(&mut self) -> Vec<Op> {
        std::mem::take(&mut self.performed)
    }

    /// How often a single cgroup was looked at, since this was last asked.
    pub fn take_looks(&mut self) -> usize {
        std::mem::take(&mut self.looks)
    }

    /// A cgroup as it is; a test's look that is not counted. Empty where there is none.
    pub fn node(&self, path: &CgroupPath) -> Node {
        let cgroup = self.cgroups.get(path);
        cgroup.map_or_else(Node::default, |cgroup| cgroup.node.clone())
    }
}

fn operation_of(op: &Op) -> String {
    let text = op.to_string();
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// The first so many numbers.
fn numbers(count: u64) -> CpuSet {
    let mut set = CpuSet::EMPTY;
    for number in 0..count {
        let _ = set.insert(number);
    }
    set
}
