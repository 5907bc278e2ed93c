//! Every system call of the door fails once with every kind of error that it can plausibly have, on the real kernel.
//!
//! What must hold each time: nothing panics; what is not as wanted afterwards is told; and one pass without the fault
//! brings it all about.

use std::collections::BTreeMap;
use std::path::Path;

use allotd::cgroup::{
    CgroupPath, Cgroupfs, ControllerSet, Hierarchy, KernelError, Node, Op, Setting, Tree,
};
use allotd::enforcement::{Outcome as Applied, apply, plan, remember};
use allotd::units::{Bytes, CpuWeight, Limit};
use libc::{
    EACCES, EAGAIN, EBUSY, EEXIST, EINTR, EINVAL, EIO, ELOOP, EMFILE, ENODEV, ENOENT, ENOMEM,
    ENOSPC, ENOTEMPTY, EOPNOTSUPP, ERANGE, EROFS, c_long,
};

use crate::Outcome;
use crate::door::top::{path, patiently};
use crate::interceptor::{Fault, intercepted};

tests![
    opening_the_door_survives_every_fault,
    making_a_pod_survives_every_fault,
    changing_a_container_survives_every_fault_of_opening,
    changing_a_container_survives_every_other_fault,
    removing_a_pod_survives_every_fault,
];

const TOP: &str = "/sys/fs/cgroup/faults";

/// What each call can plausibly answer (`Documentation/admin-guide/cgroup-v2.rst`, openat2(2), and `kernel/cgroup`).
/// Errors to which the door reacts alike stand together: calls take turns with them.
fn plausible(call: c_long) -> &'static [&'static [i32]] {
    match call {
        libc::SYS_openat | libc::SYS_openat2 => &[
            &[ENOENT],
            &[ENODEV],
            &[EACCES, ELOOP],
            &[EAGAIN, EINTR, EMFILE, ENOMEM],
        ],
        libc::SYS_read => &[&[EINTR, ENOMEM], &[EIO], &[ENODEV], &[EOPNOTSUPP]],
        libc::SYS_write => &[
            &[EBUSY],
            &[EINVAL, ERANGE],
            &[EINTR, ENOMEM, ENOSPC],
            &[ENODEV],
            &[EOPNOTSUPP],
            &[EACCES],
        ],
        libc::SYS_mkdir | libc::SYS_mkdirat => &[
            &[EAGAIN, ENOMEM, ENOSPC],
            &[EEXIST],
            &[ENOENT],
            &[ENODEV],
            &[EROFS, EACCES],
        ],
        libc::SYS_unlinkat => &[&[EBUSY], &[ENOENT], &[ENODEV], &[ENOTEMPTY], &[EACCES]],
        libc::SYS_getdents64 => &[&[EINTR], &[EIO], &[ENOENT], &[ENODEV]],
        libc::SYS_newfstatat => &[&[EACCES], &[EINTR], &[ENOENT], &[ENODEV]],
        _ => &[&[EINTR, EIO]],
    }
}

/// One error of each group for the `nth` call.
fn errors(call: c_long, nth: usize) -> impl Iterator<Item = i32> {
    let groups = plausible(call).iter();
    groups.map(move |group| group[nth % group.len()])
}

struct Owner {
    kernel: Cgroupfs,
    applied: Tree,
}

fn open() -> Result<Cgroupfs, KernelError> {
    Cgroupfs::open(Path::new(TOP), &ControllerSet::all(), |_| true)
}

impl Owner {
    fn with(wanted: &Tree) -> Result<Self, Box<dyn std::error::Error>> {
        let mut owner = Self {
            kernel: open()?,
            applied: Tree::default(),
        };
        patiently(|| owner.converge(wanted))?;
        Ok(owner)
    }

    fn pass(&mut self, wanted: &Tree) -> Result<Applied, KernelError> {
        let (top, page) = (CgroupPath::top(), self.kernel.page_size());
        let mut found = self.kernel.found(&top)?;
        let plan = plan(&top, wanted, &found, &self.applied, page);
        let outcome = apply(&mut self.kernel, &plan);
        outcome.update(&mut found);
        remember(&mut self.applied, &top, wanted, &found, page);
        Ok(outcome)
    }

    fn converge(&mut self, wanted: &Tree) -> Result<(), String> {
        let outcome = self.pass(wanted).map_err(|error| error.to_string())?;
        if !outcome.is_complete() {
            return Err(format!("{outcome:?}"));
        }
        differs(wanted)
    }
}

/// What the kernel holds is what is wanted, by a look of its own.
fn differs(wanted: &Tree) -> Result<(), String> {
    let found = open().and_then(|mut kernel| kernel.found(&CgroupPath::top()));
    let found = found.map_err(|error| error.to_string())?;
    let extra = found.iter().find(|(path, _)| !wanted.contains(path));
    if let Some((path, _)) = extra {
        return Err(format!("{path} is there"));
    }
    for (path, node) in wanted.iter() {
        let there = found.get(path).ok_or(format!("{path} is not there"))?;
        let missing = node.enabled.without(&there.enabled);
        if !missing.is_empty() {
            return Err(format!("{missing} is not enabled in {path}"));
        }
        for setting in node.settings.values() {
            if there.get(setting.file()) != Some(*setting) {
                return Err(format!("{setting} is not in {path}"));
            }
        }
    }
    Ok(())
}

fn bare() -> Tree {
    let top = Node {
        enabled: ControllerSet::all(),
        ..Node::default()
    };
    [(CgroupPath::top(), top)].into_iter().collect()
}

/// A pod with one container, which has a bound of so many MiB and this weight.
fn pod(mib: u64, weight: u64) -> Tree {
    let node = |mib, weight, enabled| Node {
        enabled,
        ..[
            Setting::MemoryMax(Limit::At(Bytes::mib(mib))),
            Setting::MemoryHigh(Limit::Max),
            Setting::CpuWeight(CpuWeight::clamped(weight)),
        ]
        .into_iter()
        .collect()
    };
    let mut tree = bare();
    tree.insert(path("pod1"), node(64, 50, ControllerSet::all()));
    let app = node(mib, weight, ControllerSet::default());
    tree.insert(path("pod1/app"), app);
    tree
}

/// One pass from `before` to `after` for each of these calls in it and each errno.
fn every_fault(before: &Tree, after: &Tree, which: fn(c_long) -> bool) -> Outcome {
    let mut owner = Owner::with(before)?;
    let (answer, calls) = intercepted(None, || owner.pass(after))?;
    assert!(answer.expect("no panic")?.is_complete());
    let (mut tried, mut told) = (0, 0);
    let mut kinds = BTreeMap::<c_long, usize>::new();
    for (nth, call) in calls.iter().enumerate() {
        if !which(*call) {
            continue;
        }
        *kinds.entry(*call).or_default() += 1;
        for errno in errors(*call, nth) {
            tried += 1;
            patiently(|| owner.converge(before))?;
            let fault = Some(Fault { nth, errno });
            let (answer, _) = intercepted(fault, || owner.pass(after))?;
            let answer =
                answer.map_err(|_| format!("call {nth} ({call}), errno {errno}: a panic"))?;
            let is_told = !answer.as_ref().is_ok_and(Applied::is_complete);
            told += usize::from(is_told);
            if let Err(what) = differs(after) {
                // Who is told that a cgroup is gone can only believe it.
                let is_believed = [ENOENT, ENODEV].contains(&errno) && what.ends_with("is there");
                assert!(
                    is_told || is_believed,
                    "call {nth} ({call}), errno {errno}: {what}, and nobody says so: {answer:?}"
                );
            }
            let again = patiently(|| owner.converge(after));
            again
                .map_err(|why| format!("call {nth} ({call}), errno {errno}: not mended: {why}"))?;
        }
    }
    println!(
        "measured: {} calls {kinds:?}, {tried} faults, {told} told",
        calls.len()
    );
    Ok(())
}

fn making_a_pod_survives_every_fault() -> Outcome {
    every_fault(&bare(), &pod(64, 50), |_| true)
}

fn changing_a_container_survives_every_fault_of_opening() -> Outcome {
    every_fault(&pod(64, 50), &pod(32, 70), |call| call == libc::SYS_openat2)
}

fn changing_a_container_survives_every_other_fault() -> Outcome {
    every_fault(&pod(64, 50), &pod(32, 70), |call| call != libc::SYS_openat2)
}

fn removing_a_pod_survives_every_fault() -> Outcome {
    every_fault(&pod(64, 50), &bare(), |_| true)
}

fn opening_the_door_survives_every_fault() -> Outcome {
    let (answer, calls) = intercepted(None, open)?;
    answer.expect("no panic")?;
    let mut refused = 0;
    for (nth, call) in calls.iter().enumerate() {
        for errno in errors(*call, nth) {
            // It begins with no top cgroup, so that making it is among the calls.
            let _ = std::fs::remove_dir(TOP);
            let fault = Some(Fault { nth, errno });
            let (answer, _) = intercepted(fault, open)?;
            let answer =
                answer.map_err(|_| format!("call {nth} ({call}), errno {errno}: a panic"))?;
            // A door that opened in spite of it says what it lacks, or lacks nothing.
            match answer {
                Err(_) => refused += 1,
                Ok(mut door) => {
                    let has = door.controllers()?;
                    let missing = ControllerSet::all().without(&has);
                    assert!(
                        missing.is_empty() || !door.remarks().is_empty(),
                        "call {nth} ({call}), errno {errno}: {missing} is not there, and nobody says so"
                    );
                }
            }
            let mut door = open()?;
            assert!(
                ControllerSet::all()
                    .without(&door.controllers()?)
                    .is_empty()
            );
            door.perform(&Op::Enable(CgroupPath::top(), ControllerSet::all()))?;
        }
    }
    println!("measured: {} calls, {refused} refusals", calls.len());
    Ok(())
}
