//! Random trees of cgroups.

use std::collections::{BTreeMap, BTreeSet};

use allotd::cgroup::{CgroupPath, Controller, ControllerSet, InterfaceFile, Node, Setting, Tree};
use allotd::units::{Bytes, CpuMax, CpuSet, CpuWeight, HugePageSize, Limit, Micros};
use proptest::prelude::*;
use proptest::sample::select;

/// The one size of huge page in these trees.
pub const HUGE: HugePageSize = HugePageSize::TWO_MIB;
/// Bytes.
pub const MIB: u64 = 1 << 20;

/// The top cgroup.
pub fn top() -> CgroupPath {
    CgroupPath::top()
}

/// Up to three levels; the names sort on both sides of the slash.
pub fn paths() -> impl Strategy<Value = CgroupPath> {
    let name = select(vec!["a", "a-b", "a0", "b", "b.c"]);
    prop::collection::vec(name, 1..=3).prop_map(|names| {
        let child = |path: CgroupPath, name: &str| path.child(name).unwrap();
        names.into_iter().fold(top(), child)
    })
}

fn bytes() -> impl Strategy<Value = Limit<Bytes>> {
    prop_oneof![
        1 => Just(Limit::Max),
        1 => (0..8192_u64).prop_map(|less| Limit::At(Bytes((1 << 63) - less))),
        1 => Just(Limit::At(Bytes((1 << 63) - 2 * MIB))),
        6 => (0..64 * MIB).prop_map(|bytes| Limit::At(Bytes(bytes))),
        3 => (0..64_u64).prop_map(|mib| Limit::At(Bytes(mib * MIB))),
    ]
}

/// Any value of a file that the kernel takes.
pub fn setting_of(file: InterfaceFile) -> BoxedStrategy<Setting> {
    match file {
        InterfaceFile::CpuWeight => (1..=10_000_u64)
            .prop_map(|weight| Setting::CpuWeight(CpuWeight::clamped(weight)))
            .boxed(),
        InterfaceFile::CpuMax => {
            let quota = prop_oneof![
                Just(Limit::Max),
                (1000..400_000_u64).prop_map(|us| Limit::At(Micros(us)))
            ];
            let period = prop_oneof![Just(100_000), 1000..=1_000_000_u64];
            (quota, period)
                .prop_map(|(quota, period)| {
                    Setting::CpuMax(CpuMax {
                        quota,
                        period: Micros(period),
                    })
                })
                .boxed()
        }
        // Not above any quota.
        InterfaceFile::CpuMaxBurst => (0..=1000_u64)
            .prop_map(|us| Setting::CpuMaxBurst(Micros(us)))
            .boxed(),
        InterfaceFile::MemoryMin => bytes().prop_map(Setting::MemoryMin).boxed(),
        InterfaceFile::MemoryLow => bytes().prop_map(Setting::MemoryLow).boxed(),
        InterfaceFile::MemoryHigh => bytes().prop_map(Setting::MemoryHigh).boxed(),
        InterfaceFile::MemoryMax => bytes().prop_map(Setting::MemoryMax).boxed(),
        InterfaceFile::MemorySwapMax => bytes().prop_map(Setting::MemorySwapMax).boxed(),
        InterfaceFile::MemoryOomGroup => any::<bool>().prop_map(Setting::MemoryOomGroup).boxed(),
        InterfaceFile::HugetlbMax(size) => bytes()
            .prop_map(move |b| Setting::HugetlbMax(size, b))
            .boxed(),
        InterfaceFile::HugetlbRsvdMax(size) => bytes()
            .prop_map(move |b| Setting::HugetlbRsvdMax(size, b))
            .boxed(),
        InterfaceFile::PidsMax => prop_oneof![
            Just(Setting::PidsMax(Limit::Max)),
            (0..=4_194_304_u64).prop_map(|tasks| Setting::PidsMax(Limit::At(tasks))),
        ]
        .boxed(),
        InterfaceFile::CpusetCpus => numbers().prop_map(Setting::CpusetCpus).boxed(),
        InterfaceFile::CpusetMems => select(vec!["", "0", "1", "0-1", "3"])
            .prop_map(|list| Setting::CpusetMems(list.parse().unwrap()))
            .boxed(),
    }
}

fn numbers() -> impl Strategy<Value = CpuSet> {
    prop::collection::vec(0..64_u64, 0..6).prop_map(|numbers| {
        let mut set = CpuSet::EMPTY;
        for number in numbers {
            set.insert(number).unwrap();
        }
        set
    })
}

fn node() -> impl Strategy<Value = Node> {
    let files = select(InterfaceFile::all(&[HUGE])).prop_flat_map(setting_of);
    let enabled = prop::collection::vec(select(Controller::ALL.to_vec()), 0..2);
    (prop::collection::vec(files, 0..5), enabled).prop_map(|(settings, enabled)| Node {
        enabled: enabled.into_iter().collect(),
        ..settings.into_iter().collect()
    })
}

/// A tree as translation makes it: with each cgroup those above it, and above enabled what is set below.
pub fn trees() -> impl Strategy<Value = Tree> {
    (node(), prop::collection::vec((paths(), node()), 0..10)).prop_map(|(at_top, nodes)| {
        let mut nodes: BTreeMap<_, _> = nodes.into_iter().collect();
        nodes.insert(top(), at_top);
        close(nodes)
    })
}

fn close(mut nodes: BTreeMap<CgroupPath, Node>) -> Tree {
    let paths: Vec<_> = nodes.keys().flat_map(CgroupPath::self_and_above).collect();
    for path in paths {
        nodes.entry(path).or_default();
    }
    for path in nodes.keys().rev().cloned().collect::<Vec<_>>() {
        let node = nodes[&path].clone();
        if let Some(above) = path.parent().and_then(|above| nodes.get_mut(&above)) {
            let needed = node.settings.keys().map(|file| file.controller());
            needed
                .chain(node.enabled.iter())
                .for_each(|name| above.enabled.insert(name));
        }
    }
    nodes.into_iter().collect()
}

/// A tree in which all amounts fit: no child has more than its parent, protections fit into the
/// parent's and below the bound, and no more is reserved than may be used.
pub fn fitting_trees() -> impl Strategy<Value = Tree> {
    let quarters = [1..=4_u64, 0..=4, 0..=4, 0..=4];
    let place = prop_oneof![1 => Just(top()), 6 => paths()];
    prop::collection::vec((place, quarters), 0..10).prop_map(|shares| {
        let shares: BTreeMap<_, _> = shares.into_iter().collect();
        let paths = shares.keys().flat_map(CgroupPath::self_and_above);
        let paths: BTreeSet<_> = paths.chain([top()]).collect();
        // What is above gives a bound, what is left of its protection, pages to use and to reserve.
        let mut tree = Tree::default();
        let mut left = BTreeMap::new();
        for path in paths {
            let quarters = shares.get(&path).copied().unwrap_or([4; 4]);
            let above = path.parent().and_then(|above| left.get_mut(&above));
            let mut whole = [256 * MIB; 4];
            let above: &mut [u64; 4] = above.unwrap_or(&mut whole);
            let [max, min, huge, reserved] = [0, 1, 2, 3].map(|i| above[i] / 4 * quarters[i]);
            let own =
                [max, min.min(max), huge, reserved.min(huge)].map(|bytes| bytes & !(2 * MIB - 1));
            above[1] -= own[1];
            let [max, min, huge, reserved] = own.map(|bytes| Limit::At(Bytes(bytes)));
            let settings = [
                Setting::MemoryMax(max),
                Setting::MemoryMin(min),
                Setting::HugetlbMax(HUGE, huge),
                Setting::HugetlbRsvdMax(HUGE, reserved),
            ];
            let node = Node {
                enabled: ControllerSet::all(),
                ..settings.into_iter().collect()
            };
            tree.insert(path.clone(), node);
            left.insert(path, own);
        }
        tree
    })
}
