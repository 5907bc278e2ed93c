//! The model's rules, one by one.

use super::*;
use crate::cgroup::Setting::{CpuMax as Cpu, HugetlbMax, HugetlbRsvdMax, MemoryMax, PidsMax};
use crate::units::{CpuMax, Limit, Micros};

const MIB: u64 = 1 << 20;

fn path(text: &str) -> CgroupPath {
    let names = text.split('/').filter(|name| !name.is_empty());
    names.fold(CgroupPath::top(), |path, name| path.child(name).unwrap())
}

/// `top` hands everything to `pod`, and `pod` to `pod/a` and `pod/b`.
fn kernel() -> ModelKernel {
    let mut kernel = ModelKernel::default();
    for op in [
        Op::Enable(path(""), ControllerSet::all()),
        Op::Create(path("pod")),
        Op::Enable(path("pod"), ControllerSet::all()),
        Op::Create(path("pod/a")),
        Op::Create(path("pod/b")),
    ] {
        kernel.perform(&op).unwrap();
    }
    kernel
}

fn kind(answer: Result<(), KernelError>) -> Option<ErrorKind> {
    answer.err().map(|error| error.kind)
}

fn write(kernel: &mut ModelKernel, at: &str, setting: Setting) -> Option<ErrorKind> {
    kind(kernel.perform(&Op::Write(path(at), setting)))
}

fn memory(mib: u64) -> Setting {
    MemoryMax(Limit::At(Bytes(mib * MIB)))
}

#[test]
fn values_out_of_range_are_refused_and_sizes_are_floored() {
    let mut kernel = kernel();
    let cpu = |quota, period| {
        Cpu(CpuMax {
            quota,
            period: Micros(period),
        })
    };
    let at = |us| Limit::At(Micros(us));
    for (setting, refusal) in [
        (cpu(at(999), 100_000), Some(ErrorKind::Invalid)),
        (cpu(at(1000), 100_000), None),
        (cpu(Limit::Max, 999), Some(ErrorKind::Invalid)),
        (cpu(Limit::Max, 1_000_001), Some(ErrorKind::Invalid)),
        (cpu(Limit::Max, 1_000_000), None),
        (cpu(at(1 << 44), 100_000), Some(ErrorKind::Invalid)),
        (PidsMax(Limit::At(4_194_305)), Some(ErrorKind::Invalid)),
        (PidsMax(Limit::At(4_194_304)), None),
        (PidsMax(Limit::At(0)), None),
    ] {
        assert_eq!(write(&mut kernel, "pod/a", setting), refusal, "{setting}");
    }
    assert_eq!(
        write(&mut kernel, "pod/a", MemoryMax(Limit::At(Bytes(4097)))),
        None
    );
    let shown = kernel.node(&path("pod/a")).get(InterfaceFile::MemoryMax);
    assert_eq!(shown, Some(MemoryMax(Limit::At(Bytes(4096)))));
}

#[test]
fn files_are_there_only_with_their_controller() {
    let mut kernel = ModelKernel::with_controllers([Controller::Hugetlb].into_iter().collect());
    kernel.perform(&Op::Create(path("pod"))).unwrap();
    let huge = HugetlbMax(HugePageSize::TWO_MIB, Limit::At(Bytes(4 * MIB)));
    let refusal = kernel.perform(&Op::Write(path("pod"), huge)).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "cannot write 4194304 to pod/hugetlb.2MB.max: \
         controller hugetlb is not enabled in cgroup.subtree_control"
    );
    assert_eq!(refusal.kind, ErrorKind::Unsupported);

    // Enabling all enables what is there and tells the rest.
    let refusal = kernel
        .perform(&Op::Enable(path(""), ControllerSet::all()))
        .unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::Unsupported);
    assert_eq!(refusal.operation, "enable cpu memory pids cpuset in");
    assert_eq!(write(&mut kernel, "pod", huge), None);
    let enable = Op::Enable(path("pod"), [Controller::Cpu].into_iter().collect());
    assert_eq!(kind(kernel.perform(&enable)), Some(ErrorKind::Unsupported));
    assert_eq!(
        kind(kernel.perform(&Op::Create(path("x/y")))),
        Some(ErrorKind::Gone)
    );
}

#[test]
fn a_cgroup_has_processes_or_hands_down_controllers() {
    let mut kernel = kernel();
    assert_eq!(
        kind(kernel.spawn_in(&path("pod"), Pid(1))),
        Some(ErrorKind::Busy)
    );
    assert!(!kernel.is_alive(Pid(1)));
    kernel.spawn_in(&path("pod/a"), Pid(1)).unwrap();
    let enable = Op::Enable(path("pod/a"), [Controller::Memory].into_iter().collect());
    assert_eq!(kind(kernel.perform(&enable)), Some(ErrorKind::Busy));
    let attach = Op::Attach(path("pod/b"), Pid(1));
    assert_eq!(kind(kernel.perform(&attach)), None);
    assert_eq!(kernel.processes(&path("pod/b")).unwrap(), [Pid(1)]);
    let attach = Op::Attach(path("pod/b"), Pid(2));
    assert_eq!(kind(kernel.perform(&attach)), Some(ErrorKind::Gone));
}

#[test]
fn a_cgroup_with_processes_stays_and_what_is_empty_goes() {
    let mut kernel = kernel();
    kernel.spawn_in(&path("pod/a"), Pid(1)).unwrap();
    let remove = Op::Remove(path("pod"));
    assert_eq!(kind(kernel.perform(&remove)), Some(ErrorKind::Busy));
    assert_eq!(kernel.look(&path("pod/b")).unwrap(), None);
    assert!(kernel.look(&path("pod/a")).unwrap().is_some());
    kernel.perform(&Op::Kill(path("pod"))).unwrap();
    assert!(!kernel.is_alive(Pid(1)));
    kernel.perform(&remove).unwrap();
    kernel.perform(&remove).unwrap();
    assert_eq!(kernel.found(&path("")).unwrap().len(), 1);
    assert_eq!(
        kind(kernel.perform(&Op::Remove(path("")))),
        Some(ErrorKind::Invalid)
    );
}

#[test]
fn a_smaller_bound_reclaims_first_and_then_kills() {
    let mut kernel = kernel();
    kernel.spawn_in(&path("pod/a"), Pid(1)).unwrap();
    kernel.spawn_in(&path("pod/a"), Pid(2)).unwrap();
    kernel.grow(Pid(1), Bytes(10 * MIB));
    kernel.grow(Pid(2), Bytes(30 * MIB));
    kernel.set_cache(&path("pod/a"), Bytes(60 * MIB));

    assert_eq!(write(&mut kernel, "pod/a", memory(50)), None);
    let counters = kernel.counters(&path("pod/a")).unwrap();
    assert_eq!(counters.memory_current, Some(Bytes(50 * MIB)));
    assert_eq!(counters.memory_peak, Some(Bytes(100 * MIB)));
    assert_eq!(counters.oom_local, Some(0));

    // 40 MiB cannot be reclaimed: the larger process goes.
    assert_eq!(write(&mut kernel, "pod/a", memory(20)), None);
    assert!(kernel.is_alive(Pid(1)) && !kernel.is_alive(Pid(2)));
    let counters = kernel.counters(&path("pod/a")).unwrap();
    assert_eq!(counters.memory_current, Some(Bytes(10 * MIB)));
    assert_eq!(
        (counters.oom_local, counters.oom_kill_local),
        (Some(1), Some(1))
    );
    let above = kernel.counters(&path("pod")).unwrap();
    assert_eq!((above.oom_local, above.oom_kill_local), (Some(0), Some(0)));
    assert_eq!((above.oom, above.oom_kill), (Some(1), Some(1)));
}

#[test]
fn an_oom_at_the_pods_bound_takes_the_whole_group() {
    let mut kernel = kernel();
    assert_eq!(write(&mut kernel, "pod", memory(100)), None);
    assert_eq!(
        write(&mut kernel, "pod", Setting::MemoryOomGroup(true)),
        None
    );
    kernel.spawn_in(&path("pod/a"), Pid(1)).unwrap();
    kernel.spawn_in(&path("pod/b"), Pid(2)).unwrap();
    kernel.grow(Pid(1), Bytes(90 * MIB));
    kernel.grow(Pid(2), Bytes(20 * MIB));
    let pod = kernel.counters(&path("pod")).unwrap();
    assert_eq!(pod.populated, Some(false));
    assert_eq!((pod.oom_local, pod.oom_kill), (Some(1), Some(2)));
    assert_eq!(pod.oom_group_kill_local, Some(1));
    let top = kernel.counters(&CgroupPath::top()).unwrap();
    assert_eq!(
        (top.oom_group_kill_local, top.oom_group_kill),
        (Some(0), Some(1))
    );
    for container in ["pod/a", "pod/b"] {
        let own = kernel.counters(&path(container)).unwrap();
        assert_eq!((own.oom_local, own.oom_kill_local), (Some(0), Some(1)));
    }
}

#[test]
fn charges_stay_when_a_process_moves_and_go_up_when_a_cgroup_goes() {
    let mut kernel = kernel();
    let used = |kernel: &mut ModelKernel, at: &str| {
        kernel
            .counters(&path(at))
            .unwrap()
            .memory_current
            .unwrap()
            .0
            / MIB
    };
    kernel.spawn_in(&path("pod/a"), Pid(1)).unwrap();
    kernel.grow(Pid(1), Bytes(8 * MIB));
    kernel.perform(&Op::Attach(path("pod/b"), Pid(1))).unwrap();
    assert_eq!(
        (used(&mut kernel, "pod/a"), used(&mut kernel, "pod/b")),
        (8, 0)
    );
    kernel.perform(&Op::Remove(path("pod/a"))).unwrap();
    assert_eq!(
        (used(&mut kernel, "pod"), used(&mut kernel, "pod/b")),
        (8, 0)
    );
    kernel.exit(Pid(1));
    assert_eq!(used(&mut kernel, "pod"), 0);
}

#[test]
fn huge_pages_in_use_keep_their_bound() {
    let mut kernel = kernel();
    let size = HugePageSize::TWO_MIB;
    kernel.spawn_in(&path("pod/a"), Pid(1)).unwrap();
    kernel.take_huge_pages(Pid(1), size, Bytes(8 * MIB));
    for at in ["pod", "pod/a"] {
        for bound in [HugetlbMax, HugetlbRsvdMax] {
            let low = bound(size, Limit::At(Bytes(8 * MIB - 1)));
            assert_eq!(write(&mut kernel, at, low), Some(ErrorKind::Busy));
            assert_eq!(
                write(&mut kernel, at, bound(size, Limit::At(Bytes(8 * MIB)))),
                None
            );
        }
    }
}

#[test]
fn reclaim_takes_the_cache_and_tells_when_it_is_not_enough() {
    let mut kernel = kernel();
    kernel.spawn_in(&path("pod/a"), Pid(1)).unwrap();
    kernel.grow(Pid(1), Bytes(8 * MIB));
    kernel.set_cache(&path("pod/b"), Bytes(8 * MIB));
    let mut reclaim = |mib| kind(kernel.perform(&Op::Reclaim(path("pod"), Bytes(mib * MIB))));
    assert_eq!(reclaim(6), None);
    assert_eq!(reclaim(6), Some(ErrorKind::Interrupted));
    assert_eq!(
        kernel.counters(&path("pod")).unwrap().memory_current,
        Some(Bytes(8 * MIB))
    );
    assert!(kernel.is_alive(Pid(1)));
}

#[test]
fn what_is_not_ours_is_passed_over_with_all_below_it() {
    let mut kernel = kernel().reporting(|path| path.name() != "a");
    kernel.perform(&Op::Create(path("pod/a/deep"))).unwrap();
    let found = kernel.found(&path("")).unwrap();
    let paths: Vec<_> = found.iter().map(|(path, _)| path.to_string()).collect();
    assert_eq!(paths, ["/", "pod", "pod/b"]);
    let refusal = kernel.found(&path("x")).unwrap_err();
    assert_eq!(refusal.kind, ErrorKind::Gone);
}

#[test]
fn a_disabled_controller_takes_its_files_along() {
    let mut kernel = kernel();
    assert_eq!(
        kind(kernel.disable(&path(""), Controller::Memory)),
        Some(ErrorKind::Busy)
    );
    kernel.disable(&path("pod"), Controller::Memory).unwrap();
    let settings = kernel.node(&path("pod/a")).settings;
    assert!(
        settings
            .keys()
            .all(|file| file.controller() != Controller::Memory)
    );
    assert_eq!(
        kernel.counters(&path("pod/a")).unwrap().memory_current,
        None
    );
}

#[test]
fn a_reader_shows_what_was_when_it_was_handed_out() {
    let (mut kernel, pid) = (kernel(), Pid(1));
    kernel.spawn_in(&path("pod/a"), pid).unwrap();
    kernel.grow(pid, Bytes::mib(3));
    kernel.set_cache(&path("pod/a"), Bytes::mib(2));
    kernel.run_for(pid, 500);
    let reader = kernel.reader();
    kernel.exit(pid);
    for at in ["pod/a", "pod"] {
        let sample = reader.sample(&path(at)).unwrap().unwrap();
        assert_eq!(sample.memory.current, Some(Bytes::mib(5)), "{at}");
        assert_eq!(sample.memory.working_set(), Some(Bytes::mib(3)), "{at}");
        assert_eq!(sample.cpu.usage_usec, Some(500), "{at}");
        assert_eq!(sample.pids.current, Some(1), "{at}");
    }
    assert_eq!(reader.sample(&path("pod/none")).unwrap(), None);
}
