//! Plans carried out on this kernel: what a smaller bound does to memory in use, and what a pod costs.

use allotd::cgroup::{
    CgroupPath, Cgroupfs, ControllerSet, Hierarchy, InterfaceFile, Node, Op, Setting, Tree,
};
use allotd::enforcement::{Held, Outcome as Applied, apply, plan, remember};
use allotd::units::{Bytes, CpuMax, CpuWeight, Limit, Micros};
use nix::mount::{MsFlags, mount, umount};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::player::Player;

tests![
    a_bound_below_memory_in_use_waits_and_nobody_dies,
    a_page_cache_makes_room_for_a_smaller_bound,
    applying_a_pod_costs_at_most_twice_its_bare_calls,
];

const TOP: &str = "/sys/fs/cgroup/top";

/// An owner of the top cgroup.
struct Owner {
    kernel: Cgroupfs,
    applied: Tree,
}

impl Owner {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        Ok(Self {
            kernel: Cgroupfs::open(Path::new(TOP), &ControllerSet::all(), |_| true)?,
            applied: Tree::default(),
        })
    }

    fn pass(&mut self, wanted: &Tree) -> Result<Applied, Box<dyn std::error::Error>> {
        let (top, page) = (CgroupPath::top(), self.kernel.page_size());
        let found = self.kernel.found(&top)?;
        let plan = plan(&top, wanted, &found, &self.applied, page);
        let outcome = apply(&mut self.kernel, &plan);
        remember(
            &mut self.applied,
            &top,
            wanted,
            &self.kernel.found(&top)?,
            page,
        );
        Ok(outcome)
    }

    fn shown(&mut self, path: &CgroupPath, file: InterfaceFile) -> Option<Setting> {
        self.kernel.look(path).ok()??.get(file)
    }
}

fn app() -> CgroupPath {
    let pod = CgroupPath::top().child("pod1").unwrap();
    pod.child("app").unwrap()
}

fn max(mib: u64) -> Setting {
    Setting::MemoryMax(Limit::At(Bytes::mib(mib)))
}

/// One pod with one container, both bounded at `mib`.
fn wanted(mib: u64) -> Tree {
    let swap = Setting::MemorySwapMax(Limit::At(Bytes::ZERO));
    let node = |enabled| Node {
        enabled,
        ..[max(mib), swap].into_iter().collect()
    };
    let top = Node {
        enabled: ControllerSet::all(),
        ..Node::default()
    };
    let pod = app().parent().unwrap();
    [
        (CgroupPath::top(), top),
        (pod, node(ControllerSet::all())),
        (app(), node(ControllerSet::default())),
    ]
    .into_iter()
    .collect()
}

/// A process in the container writes `mib` MiB to a file and ends.
fn write(mib: u64, file: &str) -> Outcome {
    let script = format!(
        "echo $$ > {TOP}/pod1/app/cgroup.procs && dd if=/dev/zero of={file} bs=1048576 count={mib} && sync"
    );
    let output = Command::new("sh").args(["-c", &script]).output()?;
    assert!(output.status.success(), "{output:?}");
    Ok(())
}

fn a_bound_below_memory_in_use_waits_and_nobody_dies() -> Outcome {
    let mut owner = Owner::new()?;
    assert!(owner.pass(&wanted(128))?.is_complete());
    let process = Player::waits()?;
    owner.kernel.perform(&Op::Attach(app(), process.pid()))?;
    // Files in memory cannot be reclaimed without swap, and stay when their writer has ended.
    mount(
        Some("tmpfs"),
        "/tmp",
        Some("tmpfs"),
        MsFlags::empty(),
        None::<&str>,
    )?;
    write(48, "/tmp/held")?;

    let outcome = owner.pass(&wanted(32))?;
    assert!(outcome.failed.is_empty(), "{outcome:?}");
    assert_eq!(outcome.held.len(), 2, "{outcome:?}");
    for Held { path, in_use, .. } in &outcome.held {
        assert!(*in_use >= Some(Bytes::mib(48)), "{path}: {in_use:?}");
        assert_eq!(owner.shown(path, InterfaceFile::MemoryMax), Some(max(128)));
    }
    let counters = owner.kernel.counters(&app())?;
    assert_eq!((counters.oom_local, counters.oom_kill), (Some(0), Some(0)));
    assert_eq!(owner.kernel.processes(&app())?, [process.pid()]);

    fs::remove_file("/tmp/held")?;
    let outcome = owner.pass(&wanted(32))?;
    assert!(outcome.is_complete(), "{outcome:?}");
    assert_eq!(owner.shown(&app(), InterfaceFile::MemoryMax), Some(max(32)));
    umount("/tmp")?;
    Ok(())
}

fn a_page_cache_makes_room_for_a_smaller_bound() -> Outcome {
    let mut owner = Owner::new()?;
    assert!(owner.pass(&wanted(64))?.is_complete());
    let process = Player::waits()?;
    owner.kernel.perform(&Op::Attach(app(), process.pid()))?;
    mount(
        Some("/dev/ext4"),
        "/tmp",
        Some("ext4"),
        MsFlags::empty(),
        None::<&str>,
    )?;
    write(40, "/tmp/cached")?;
    let used = owner.kernel.counters(&app())?.memory_current;
    assert!(
        used >= Some(Bytes::mib(32)),
        "{used:?} is no cache to speak of"
    );

    let outcome = owner.pass(&wanted(16))?;
    assert!(outcome.is_complete(), "{outcome:?}");
    let counters = owner.kernel.counters(&app())?;
    assert!(
        counters.memory_current <= Some(Bytes::mib(16)),
        "{counters:?}"
    );
    assert_eq!((counters.oom_local, counters.oom_kill), (Some(0), Some(0)));
    assert_eq!(owner.kernel.processes(&app())?, [process.pid()]);
    fs::remove_file("/tmp/cached")?;
    umount("/tmp")?;
    Ok(())
}

/// A pod with two containers as translation makes it: every file but those of huge pages, which are
/// `hugetlb` pairs for each size of this kernel.
fn pod(name: &str, kernel: &dyn Hierarchy) -> Tree {
    let mut settings = vec![
        Setting::CpuWeight(CpuWeight::clamped(59)),
        Setting::CpuMax(CpuMax {
            quota: Limit::At(Micros(50_000)),
            period: CpuMax::DEFAULT_PERIOD,
        }),
        Setting::MemoryMin(Limit::At(Bytes::mib(16))),
        Setting::MemoryLow(Limit::At(Bytes::ZERO)),
        Setting::MemoryHigh(Limit::Max),
        max(64),
        Setting::MemorySwapMax(Limit::At(Bytes::ZERO)),
        Setting::MemoryOomGroup(true),
        Setting::PidsMax(Limit::At(100)),
    ];
    for size in kernel.huge_page_sizes() {
        settings.push(Setting::HugetlbMax(*size, Limit::At(Bytes::ZERO)));
        settings.push(Setting::HugetlbRsvdMax(*size, Limit::At(Bytes::ZERO)));
    }
    let container: Node = settings.into_iter().collect();
    let itself = Node {
        enabled: ControllerSet::all(),
        ..container.clone()
    };
    let path = CgroupPath::top().child(name).unwrap();
    let below = |name| (path.child(name).unwrap(), container.clone());
    [(path.clone(), itself), below("app"), below("log")]
        .into_iter()
        .collect()
}

fn applying_a_pod_costs_at_most_twice_its_bare_calls() -> Outcome {
    let mut owner = Owner::new()?;
    let page = owner.kernel.page_size();
    let enable = Op::Enable(CgroupPath::top(), ControllerSet::all());
    owner.kernel.perform(&enable)?;
    let (mut bare, mut applied) = (Vec::new(), Vec::new());
    for round in 0..20 {
        // The same operations by hand: each directory made, each file opened and written.
        let tree = pod(&format!("bare{round}"), &owner.kernel);
        let begin = Instant::now();
        for (path, node) in tree.iter() {
            let directory = owner.kernel.directory(path);
            fs::create_dir(&directory)?;
            if !node.enabled.is_empty() {
                fs::write(
                    directory.join("cgroup.subtree_control"),
                    "+cpu +memory +pids +hugetlb",
                )?;
            }
            for setting in node.settings.values() {
                fs::write(directory.join(setting.file().to_string()), setting.value())?;
            }
        }
        bare.push(begin.elapsed());

        let name = format!("pod{round}");
        let tree = pod(&name, &owner.kernel);
        let scope = CgroupPath::top().child(&name)?;
        let begin = Instant::now();
        let plan = plan(&scope, &tree, &Tree::default(), &Tree::default(), page);
        let outcome = apply(&mut owner.kernel, &plan);
        applied.push(begin.elapsed());
        assert!(outcome.is_complete(), "{outcome:?}");
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    let (bare, applied) = (median(&mut bare), median(&mut applied));
    println!("measured: bare calls {bare:?}, applied and read back {applied:?}");
    assert!(
        applied <= bare * 2,
        "bare calls {bare:?}, applied and read back {applied:?}"
    );
    Ok(())
}
