//! What holds for every pod, node and policy.

use std::collections::BTreeMap;

use allotd::cgroup::{CgroupPath, InterfaceFile, Setting, Tree};
use allotd::model::effective::sum_of_containers;
use allotd::model::policy::{
    CpuManagerPolicy, CpuWeightFormula, MemoryReservationPolicy, OomPolicy, SwapBehavior,
};
use allotd::model::{
    ContainerKind, List, Node, Pod, Policy, QosClass, ResourceList, ResourceName, Resources,
};
use allotd::translation::{Level, Place, PodTree, Share, Totals, levels, ours, translate_pod};
use allotd::units::{Bytes, Format, Limit, Micros, PageSize, Quantity};
use proptest::prelude::*;
use proptest::sample::select;

use crate::pods;

const KINDS: [ContainerKind; 3] = [
    ContainerKind::App,
    ContainerKind::Init,
    ContainerKind::Sidecar,
];

fn quantity(units: u64) -> Quantity {
    Quantity::from_units(units, Format::DecimalSi)
}

/// Request and limit of one resource, each there or not; the request never above the limit.
fn amounts(most: u64) -> impl Strategy<Value = (Option<u64>, Option<u64>)> {
    let amount = prop_oneof![0..=most, 0..=most.min(1 << 24)];
    (
        proptest::option::of(amount.clone()),
        proptest::option::of(amount),
    )
        .prop_map(|(request, limit)| match (request, limit) {
            (Some(request), Some(limit)) => (Some(request.min(limit)), Some(limit)),
            other => other,
        })
}

fn resources(most_cpu: u64, most_memory: u64) -> impl Strategy<Value = Resources> {
    (amounts(most_cpu), amounts(most_memory)).prop_map(|(cpu, memory)| {
        let list = |cpu: Option<u64>, memory: Option<u64>| -> ResourceList {
            let milli = |milli| Quantity::from_milli(i64::try_from(milli).unwrap());
            let cpu = cpu.map(|cpu| (ResourceName::Cpu, milli(cpu)));
            let memory = memory.map(|memory| (ResourceName::Memory, quantity(memory)));
            cpu.into_iter().chain(memory).collect()
        };
        Resources {
            requests: list(cpu.0, memory.0),
            limits: list(cpu.1, memory.1),
        }
    })
}

fn pod() -> impl Strategy<Value = Pod> {
    let container = (select(KINDS.to_vec()), resources(300_000, 1 << 40));
    (
        prop::collection::vec(container, 0..6),
        resources(300_000, 1 << 40),
        proptest::option::of(resources(900_000, 1 << 43)),
        any::<bool>(),
        proptest::option::of(0..1_u64 << 30),
    )
        .prop_map(|(containers, app, whole, is_tight, overhead)| {
            // At least one app container.
            let all = containers.into_iter().chain([(ContainerKind::App, app)]);
            let all = all.enumerate().map(|(index, (kind, resources))| {
                pods::container(&format!("c{index}"), kind, resources)
            });
            let overhead = overhead.map(|bytes| (ResourceName::Memory, quantity(bytes)));
            let pod = Pod {
                resources: whole,
                overhead: overhead.into_iter().collect(),
                ..pods::pod_of(all.collect())
            };
            if is_tight { tight(pod) } else { pod }
        })
}

/// The pod with a memory limit at pod level that is just what its containers ask for.
fn tight(mut pod: Pod) -> Pod {
    let Some(asked) = sum_of_containers(&pod, List::Requests).get(&ResourceName::Memory) else {
        return pod;
    };
    for container in pod.init_containers.iter_mut().chain(&mut pod.containers) {
        let limits = &mut container.resources.limits;
        if limits
            .get(&ResourceName::Memory)
            .is_some_and(|limit| limit > asked)
        {
            limits.set(ResourceName::Memory, asked);
        }
    }
    let mut whole = Resources::default();
    whole.limits.set(ResourceName::Memory, asked);
    pod.resources = Some(whole);
    pod
}

fn policy() -> impl Strategy<Value = Policy> {
    let reservations = [
        MemoryReservationPolicy::Hard,
        MemoryReservationPolicy::Tiered,
        MemoryReservationPolicy::None,
    ];
    (
        select(reservations.to_vec()),
        any::<[bool; 4]>(),
        any::<u32>(),
        proptest::option::of(any::<u64>()),
    )
        .prop_map(
            |(memory_reservation, [linear, cfs, swap, group], period, pids)| Policy {
                cpu_weight_formula: if linear {
                    CpuWeightFormula::Linear
                } else {
                    CpuWeightFormula::Quadratic
                },
                cpu_cfs_quota: cfs,
                cpu_manager: CpuManagerPolicy::None,
                cpu_cfs_quota_period: Micros(period.into()),
                memory_reservation,
                swap_behavior: if swap {
                    SwapBehavior::LimitedSwap
                } else {
                    SwapBehavior::NoSwap
                },
                pod_pids_limit: pids.into(),
                oom_policy: if group {
                    OomPolicy::Group
                } else {
                    OomPolicy::Process
                },
            },
        )
}

fn node() -> impl Strategy<Value = Node> {
    (12_u32..17, any::<u64>(), proptest::option::of(any::<u64>())).prop_map(
        |(shift, swap, max_pids)| Node {
            page_size: PageSize::new(1 << shift).unwrap(),
            swap: Bytes(swap),
            max_pids,
            ..pods::big_node()
        },
    )
}

/// Pods that admission refuses are no input of translation.
fn translated(pod: Pod, node: &Node, policy: &Policy) -> Option<PodTree> {
    let admitted = allotd::admission::readmit(pod).ok()?;
    Some(translate_pod(&admitted, node, policy))
}

fn bytes(tree: &Tree, path: &CgroupPath, file: InterfaceFile, page: PageSize) -> Limit<Bytes> {
    match tree.get(path).unwrap().get(file).unwrap().kept(page) {
        Setting::MemoryMin(bytes) | Setting::MemoryLow(bytes) | Setting::MemoryMax(bytes) => bytes,
        other => panic!("{other}"),
    }
}

/// The kernel's ranges (Linux 6.12).
fn is_in_range(setting: Setting) -> bool {
    match setting {
        Setting::CpuWeight(weight) => (1..=10_000).contains(&weight.get()),
        Setting::CpuMax(max) => {
            let quota = max
                .quota
                .value()
                .is_none_or(|q| (1000..1 << 44).contains(&q.0));
            quota && (1000..=1_000_000).contains(&max.period.0)
        }
        Setting::PidsMax(tasks) => tasks.value().is_none_or(|tasks| tasks <= 4_194_304),
        // The kernel takes any number of bytes.
        _ => true,
    }
}

/// The containers that run at the same time: all sidecars and apps, or one init container beside the
/// sidecars before it.
fn phases(pod: &Pod) -> Vec<Vec<String>> {
    let mut sidecars = Vec::new();
    let mut phases = Vec::new();
    for container in &pod.init_containers {
        if container.kind == ContainerKind::Sidecar {
            sidecars.push(container.name.clone());
        } else {
            let beside = sidecars.iter().chain([&container.name]);
            phases.push(beside.cloned().collect());
        }
    }
    let apps = pod.containers.iter().map(|container| &container.name);
    phases.push(sidecars.iter().chain(apps).cloned().collect());
    phases
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 65_536, ..ProptestConfig::default() })]

    #[test]
    fn the_kernel_takes_every_value(pod in pod(), node in node(), policy in policy()) {
        let translated = translated(pod, &node, &policy);
        prop_assume!(translated.is_some());
        let pod = translated.unwrap();
        let totals: Totals = std::iter::once(&pod.share).collect();
        let levels = levels(&totals, &node, &policy);
        for (path, cgroup) in pod.tree.iter().chain(levels.tree.iter()) {
            prop_assert!(ours(path), "{}", path);
            for setting in cgroup.settings.values() {
                prop_assert!(is_in_range(*setting), "{} {}", path, setting);
            }
            // Nothing is left to chance but `cpu.max` of the top, swap above the containers, and what nobody asked
            // for: a burst, and CPUs under the policy none.
            let level = Place::of(path).unwrap().level();
            for file in InterfaceFile::all(&node.huge_page_sizes()) {
                let is_left = match file {
                    InterfaceFile::CpuMax => level == Level::Top,
                    InterfaceFile::MemorySwapMax => level != Level::Container,
                    InterfaceFile::CpuMaxBurst
                    | InterfaceFile::CpusetCpus
                    | InterfaceFile::CpusetMems => true,
                    _ => false,
                };
                prop_assert_eq!(cgroup.get(file).is_none(), is_left, "{} {}", path, file);
            }
            prop_assert_eq!(cgroup.enabled.is_empty(), level == Level::Container);
        }
        for (_, score) in &pod.oom_scores {
            prop_assert!((-1000..=1000).contains(score));
        }
    }

    #[test]
    fn protection_stays_below_limits_and_within_the_pods(pod in pod(), node in node(), policy in policy()) {
        let page = node.page_size;
        let phases = phases(&pod);
        let translated = translated(pod, &node, &policy);
        prop_assume!(translated.is_some());
        let pod = translated.unwrap();
        for (path, _) in pod.tree.iter() {
            let min = bytes(&pod.tree, path, InterfaceFile::MemoryMin, page);
            let max = bytes(&pod.tree, path, InterfaceFile::MemoryMax, page);
            prop_assert!(min < max || min == Limit::At(Bytes::ZERO), "{}: {} {}", path, min, max);
        }
        let path = &pod.cgroups[0].path;
        for file in [InterfaceFile::MemoryMin, InterfaceFile::MemoryLow] {
            let of = |path: &CgroupPath| bytes(&pod.tree, path, file, page).value().unwrap().0;
            for phase in &phases {
                let sum: u64 = phase.iter().map(|name| of(&path.child(name).unwrap())).sum();
                prop_assert!(sum <= of(path), "{} of {:?}: {} > {}", file, phase, sum, of(path));
            }
        }
    }

    #[test]
    fn sums_forget_what_leaves(shares in prop::collection::vec(share(), 0..20), order in any::<u64>()) {
        let mut kept: BTreeMap<usize, &Share> = shares.iter().enumerate().collect();
        let mut totals: Totals = shares.iter().collect();
        for (index, share) in shares.iter().enumerate() {
            if order >> index & 1 == 1 {
                totals.remove(share);
                kept.remove(&index);
            }
        }
        prop_assert_eq!(totals, kept.into_values().collect());
    }
}

fn share() -> impl Strategy<Value = Share> {
    let classes = [
        QosClass::Guaranteed,
        QosClass::Burstable,
        QosClass::BestEffort,
    ];
    (select(classes.to_vec()), any::<[u64; 3]>()).prop_map(|(qos, [cpu, min, low])| Share {
        qos,
        cpu: allotd::units::MilliCpu(cpu),
        protection: allotd::translation::memory::Protection {
            min: Bytes(min),
            low: Bytes(low),
        },
    })
}

/// The generator is worth nothing if admission refuses what it makes.
#[test]
fn many_of_the_generated_pods_are_admitted() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let make = |_| pod().new_tree(&mut runner).unwrap().current();
    let pods: Vec<Pod> = (0..400).map(make).collect();
    let admitted_pods: Vec<_> = pods
        .into_iter()
        .filter_map(|pod| allotd::admission::readmit(pod).ok())
        .collect();
    let of = |qos| admitted_pods.iter().filter(|pod| pod.qos() == qos).count();
    assert!(admitted_pods.len() > 100, "{}", admitted_pods.len());
    assert!(of(QosClass::Burstable) > 50);
    let whole = admitted_pods
        .iter()
        .filter(|pod| pod.pod().resources.is_some());
    assert!(whole.count() > 20);
}
