//! Interface files: what is written, what the kernel keeps, what it refuses.

use allotd::cgroup::{CgroupPath, Controller, ErrorKind, Hierarchy, InterfaceFile, Op, Setting};
use allotd::units::{Bytes, CpuMax, CpuSet, CpuWeight, HugePageSize, Limit, Micros};

use super::top::{Top, path, refused, set};
use crate::Outcome;

tests![
    a_new_cgroup_has_the_initial_values,
    every_file_keeps_what_the_types_say,
    refused_values_change_nothing,
    a_missing_file_says_why,
];

fn a_new_cgroup_has_the_initial_values() -> Outcome {
    let mut top = Top::with_container("other")?;
    let sizes = top.kernel.huge_page_sizes().to_vec();
    let node = top.node(&path("pod1/app"))?;
    for file in InterfaceFile::all(&sizes) {
        assert_eq!(node.get(file), Some(Setting::initial(file)), "{file}");
    }
    assert!(node.enabled.is_empty());
    Ok(())
}

fn every_file_keeps_what_the_types_say() -> Outcome {
    let mut top = Top::with_container("top")?;
    let page = top.kernel.page_size();
    let app = path("pod1/app");
    let mut seen = std::collections::BTreeSet::new();
    for setting in accepted(top.kernel.huge_page_sizes()) {
        top.perform(&Op::Write(app.clone(), setting))?;
        let file = setting.file();
        let node = top.node(&app)?;
        assert_eq!(node.get(file), Some(setting.kept(page)), "{setting}");
        assert_eq!(
            top.text(&format!("pod1/app/{file}"))?,
            setting.kept(page).value(),
            "{setting}"
        );
        seen.insert(file);
    }
    let all = InterfaceFile::all(top.kernel.huge_page_sizes());
    assert_eq!(seen, all.into_iter().collect(), "a file was not tried");
    Ok(())
}

fn accepted(sizes: &[HugePageSize]) -> Vec<Setting> {
    let mut all = Vec::new();
    for weight in [1, 35, 100, 10_000] {
        all.push(Setting::CpuWeight(CpuWeight::clamped(weight)));
    }
    for (quota, period) in [
        (Limit::At(50_000), 100_000),
        (Limit::At(1000), 1000),
        (Limit::At(400_000), 1_000_000),
        (Limit::Max, 250_000),
        (Limit::Max, 100_000),
    ] {
        let (quota, period) = (quota.map(Micros), Micros(period));
        all.push(Setting::CpuMax(CpuMax { quota, period }));
    }
    // Without a quota any burst is taken.
    all.extend([1, 100_000, u64::MAX / 1000, 0].map(|us| Setting::CpuMaxBurst(Micros(us))));
    let memory = [
        Limit::At(0),
        Limit::At(4095),
        Limit::At(4097),
        Limit::At((64 << 20) + 1),
        Limit::At((1 << 63) - 8192),
        Limit::At((1 << 63) - 4097),
        Limit::At((1 << 63) - 4096),
        Limit::At((1 << 63) - 1),
        Limit::At(u64::MAX),
        Limit::Max,
    ];
    for bytes in memory.map(|limit| limit.map(Bytes)) {
        all.push(Setting::MemoryMin(bytes));
        all.push(Setting::MemoryLow(bytes));
        all.push(Setting::MemoryHigh(bytes));
        all.push(Setting::MemoryMax(bytes));
        all.push(Setting::MemorySwapMax(bytes));
        for &size in sizes {
            all.push(Setting::HugetlbMax(size, bytes));
            all.push(Setting::HugetlbRsvdMax(size, bytes));
        }
    }
    for &size in sizes {
        let huge = size.bytes().0;
        for bytes in [
            huge - 1,
            huge,
            3 * huge / 2,
            (1 << 63) - huge - 1,
            (1 << 63) - huge,
        ] {
            let bytes = Limit::At(Bytes(bytes));
            all.push(Setting::HugetlbMax(size, bytes));
            all.push(Setting::HugetlbRsvdMax(size, bytes));
        }
    }
    all.extend([true, false].map(Setting::MemoryOomGroup));
    for tasks in [Limit::At(0), Limit::At(7), Limit::At(4_194_304), Limit::Max] {
        all.push(Setting::PidsMax(tasks));
    }
    // The machine has one CPU and one memory node.
    for list in [numbers("0"), CpuSet::EMPTY] {
        all.extend([Setting::CpusetCpus(list), Setting::CpusetMems(list)]);
    }
    all
}

fn numbers(list: &str) -> CpuSet {
    list.parse().unwrap()
}

fn refused_values_change_nothing() -> Outcome {
    let mut top = Top::with_container("top")?;
    let app = path("pod1/app");
    let quota = |quota, period| {
        Setting::CpuMax(CpuMax {
            quota: Limit::At(Micros(quota)),
            period: Micros(period),
        })
    };
    let before = top.kernel.look(&app)?;
    for setting in [
        quota(999, 100_000),
        quota(0, 100_000),
        quota(50_000, 999),
        quota(50_000, 1_000_001),
        quota(u64::MAX, 100_000),
        Setting::CpuMax(CpuMax::unlimited(Micros(0))),
        Setting::CpuMaxBurst(Micros(u64::MAX)),
        Setting::PidsMax(Limit::At(4_194_305)),
        Setting::PidsMax(Limit::At(u64::MAX)),
        Setting::CpusetCpus(numbers("0,511")),
        Setting::CpusetCpus(numbers("511")),
        Setting::CpusetMems(numbers("511")),
    ] {
        top.refused(&Op::Write(app.clone(), setting), ErrorKind::Invalid)?;
        assert_eq!(top.kernel.look(&app)?, before, "{setting}");
    }
    assert_eq!(
        top.refused(&Op::Write(app, quota(999, 100_000)), ErrorKind::Invalid)?,
        "cannot write 999 100000 to /sys/fs/cgroup/top/pod1/app/cpu.max: Invalid argument \
         (os error 22)"
    );
    Ok(())
}

fn a_missing_file_says_why() -> Outcome {
    let mut top = Top::new("top")?;
    let cpu = set(&[Controller::Cpu]);
    top.perform(&Op::Enable(CgroupPath::top(), cpu))?;
    top.perform(&Op::Create(path("pod1")))?;
    let sizes = top.kernel.huge_page_sizes().to_vec();
    for file in InterfaceFile::all(&sizes) {
        let answer = top.perform(&Op::Write(path("pod1"), Setting::initial(file)));
        if file.controller() == Controller::Cpu {
            answer?;
            continue;
        }
        let text = refused(answer, ErrorKind::Unsupported)?;
        let why = format!(
            "controller {} is not enabled in /sys/fs/cgroup/top/cgroup.subtree_control",
            file.controller()
        );
        assert!(text.ends_with(&why), "{text}");
    }
    // What is not there is not found, either.
    let node = top.node(&path("pod1"))?;
    assert_eq!(
        node.settings.into_keys().collect::<Vec<_>>(),
        [
            InterfaceFile::CpuWeight,
            InterfaceFile::CpuMax,
            InterfaceFile::CpuMaxBurst
        ]
    );

    // The controller is there, the file is not: no machine has huge pages of 1 KiB.
    let mut top = Top::with_container("other")?;
    let size = HugePageSize::new(1024).ok_or("no such size")?;
    let setting = Setting::HugetlbMax(size, Limit::Max);
    let text = top.refused(&Op::Write(path("pod1"), setting), ErrorKind::Unsupported)?;
    assert!(
        text.ends_with(": the kernel has no hugetlb.1KB.max"),
        "{text}"
    );
    Ok(())
}
