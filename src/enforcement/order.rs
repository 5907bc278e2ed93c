//! Which step comes first, and the fact of the kernel behind each rule.
//!
//! The steps come in five groups; each rule below is one line of `finish`. It must never drop a step
//! or add one.

use std::cmp::Ordering;

use super::plan::{Cause, Step};
use crate::cgroup::{CgroupPath, InterfaceFile, Op, Setting};

/// Steps by group. Cgroups must be handed in parents first.
#[derive(Debug, Default)]
pub(super) struct Order {
    kill: Vec<Step>,
    remove: Vec<Step>,
    build: Vec<Step>,
    free: Vec<Step>,
    lower: Vec<Step>,
    raise: Vec<Step>,
}

/// What a write does to the amount that a file stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// The file stands for no amount, or neither value for the smaller one.
    Free,
    Lower,
    Raise,
}

impl Order {
    /// A cgroup that goes, with all below it.
    pub(super) fn tear_down(&mut self, path: &CgroupPath) {
        self.kill.push(unwanted(Op::Kill(path.clone())));
        self.remove.push(unwanted(Op::Remove(path.clone())));
    }

    /// A cgroup or its controllers.
    pub(super) fn build(&mut self, op: Op, cause: Cause) {
        self.build.push(Step {
            op,
            cause,
            before: None,
        });
    }

    /// All writes of one cgroup.
    pub(super) fn write(&mut self, writes: impl Iterator<Item = Step>) {
        let ranked = |step: Step| match step.op {
            Op::Write(_, setting) => {
                Some((rank(setting.file()), change(step.before, setting), step))
            }
            _ => None,
        };
        let mut writes: Vec<_> = writes.filter_map(ranked).collect();
        writes.sort_by_key(|(rank, ..)| *rank);
        for (_, change, step) in writes {
            match change {
                Change::Free => self.free.push(step),
                Change::Lower => self.lower.push(step),
                Change::Raise => self.raise.push(step),
            }
        }
    }

    /// All steps.
    pub(super) fn finish(self) -> Vec<Step> {
        let mut steps = self.kill;
        // What goes makes room for what comes: until rmdir, what is left of the cgroup's page cache is
        // still protected, at the cost of its siblings. All kills come before the first removal, because a
        // killed process counts as a member until it has exited, and rmdir answers EBUSY so long.
        steps.extend(self.remove);
        // A cgroup needs its parent, and its controllers' files appear only when the parent has them
        // in `cgroup.subtree_control`, which the parent can only take from its own parent. So creating
        // and enabling go down the tree together, before any write.
        steps.extend(self.build);
        // `cpu.weight` needs no order. `memory.oom.group` comes before every lowered `memory.max`: if
        // the kernel does kill inside that write, the flag already says how many go.
        steps.extend(self.free);
        // Lowering comes before raising: what one sibling gives up is there before another takes it,
        // so protections never add up to more than the parent's, which the kernel would share out by
        // usage, at the cost of those that were promised it (`effective_protection`).
        //
        // Lowering goes children first. Were the parent's bound lowered first, it would be the one to
        // trip, and the kernel would look for a victim among all the children; were its protection
        // lowered first, all children would lose some of theirs.
        steps.extend(self.lower.into_iter().rev());
        // Raising is the mirror image, parents first: a child that may use more than its parent trips
        // the parent's bound, and its protection counts only as far as its parent's reaches.
        steps.extend(self.raise);
        steps
    }
}

fn unwanted(op: Op) -> Step {
    Step {
        op,
        cause: Cause::Unwanted,
        before: None,
    }
}

/// The order of one cgroup's files when they are raised; when they are lowered it is the reverse.
fn rank(file: InterfaceFile) -> u8 {
    match file {
        InterfaceFile::CpuWeight | InterfaceFile::MemoryOomGroup => 0,
        // Bounds that do not touch each other. A child above its parent is accepted, be it an amount or a list
        // of CPUs. A throttle that somebody set goes before anything else may grow.
        InterfaceFile::CpuMax
        | InterfaceFile::PidsMax
        | InterfaceFile::CpusetCpus
        | InterfaceFile::MemoryHigh => 1,
        // The kernel refuses a burst above the quota, and a quota below the burst (`tg_set_cfs_bandwidth`). A
        // change of `cpuset.mems` moves pages, on CPUs that are right by then.
        //
        // Swap is bounded before memory, so that reclaim for a smaller `memory.max` does not push out
        // more than the new bound of swap: what is swapped out stays (`memory.swap.max` does not
        // swap in).
        InterfaceFile::CpuMaxBurst | InterfaceFile::CpusetMems | InterfaceFile::MemoryMax => 2,
        InterfaceFile::MemorySwapMax => 3,
        // Protection stays below the bound at all times: what is protected cannot be reclaimed when
        // the bound is reached, and then only the OOM killer is left.
        InterfaceFile::MemoryLow => 4,
        InterfaceFile::MemoryMin => 5,
        // A page may be reserved only where it may be used: mmap asks `rsvd.max` and fails cleanly,
        // the page fault asks `max` and ends in SIGBUS.
        InterfaceFile::HugetlbMax(_) => 6,
        InterfaceFile::HugetlbRsvdMax(_) => 7,
    }
}

/// Where there is no file yet, it will appear with the kernel's initial value.
fn change(before: Option<Setting>, after: Setting) -> Change {
    let before = before.unwrap_or_else(|| Setting::initial(after.file()));
    match before.compare(after) {
        None => Change::Free,
        Some(Ordering::Less) => Change::Raise,
        Some(Ordering::Equal | Ordering::Greater) => Change::Lower,
    }
}
