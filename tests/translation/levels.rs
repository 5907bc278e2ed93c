//! The cgroups above the pods.

use allotd::cgroup::CgroupPath;
use allotd::model::policy::MemoryReservationPolicy;
use allotd::model::{Node, Policy, QosClass, ResourceList};
use allotd::translation::{Level, LevelTree, Note, Share, Totals, levels, qos_path};
use allotd::units::PageSize;
use serde_json::{Value, json};

use crate::vectors::{Row, each_row, number};
use crate::{of_pod, pods, translated, value};

fn top(levels: &LevelTree, file: &str) -> String {
    value(&levels.tree, &CgroupPath::top(), file)
}

fn without_pods(node: &Node) -> LevelTree {
    levels(&Totals::default(), node, &Policy::default())
}

fn node(capacity: &Value, reserved: &[&Value]) -> Node {
    let mut sum = ResourceList::default();
    for amounts in reserved {
        sum.add(&pods::amounts(amounts));
    }
    Node {
        reserved: sum,
        ..pods::node(capacity)
    }
}

#[test]
fn the_top_gets_what_is_not_reserved() {
    // The eviction threshold of some rows lowers what may be asked for, not this limit.
    each_row("node_allocatable_enforcement", |name, input, expected| {
        let reserved = [&input["kubeReserved"], &input["systemReserved"]];
        let levels = without_pods(&node(&input["capacity"], &reserved));
        let memory = pods::amounts(expected).memory();
        let expected = memory.map_or("max".to_owned(), |bytes| bytes.to_string());
        assert_eq!(top(&levels, "memory.max"), expected, "{name}");
        Row::Compared
    });
    each_row("kubepods_cgroup_config", |name, input, expected| {
        let without_pids = |field: &str| {
            let mut amounts = input[field].clone();
            let pids = amounts.as_object_mut().unwrap().remove("pid").unwrap();
            (amounts, number::<u64>(&pids))
        };
        let (capacity, max_pids) = without_pids("capacity");
        let (kube, kube_pids) = without_pids("kubeReserved");
        let (system, system_pids) = without_pids("systemReserved");
        let node = Node {
            max_pids: Some(max_pids),
            reserved_pids: kube_pids + system_pids,
            allocatable: pods::amounts(&json!({"cpu": "15800m"})),
            ..node(&capacity, &[&kube, &system])
        };
        let levels = without_pods(&node);
        for file in ["memory.max", "pids.max"] {
            assert_eq!(top(&levels, file), expected[file].to_string(), "{name}");
        }
        // Upstream's weight, 618 or 932, grows with the cores; ours is 100 · 15800 : 200.
        assert_eq!(top(&levels, "cpu.weight"), "7900", "{name}");
        Row::Compared
    });
}

#[test]
fn huge_pages_are_taken_out_of_memory_and_bounded_at_the_top() {
    let capacity =
        json!({"cpu": "4", "memory": "8Gi", "hugepages-2Mi": "1Gi", "hugepages-1Gi": "2Gi"});
    let reserved = json!({"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "64Mi"});
    let levels = without_pods(&node(&capacity, &[&reserved]));
    assert_eq!(top(&levels, "memory.max"), (4_u64 << 30).to_string());
    for file in ["hugetlb.2MB.max", "hugetlb.2MB.rsvd.max"] {
        assert_eq!(top(&levels, file), (960 << 20).to_string());
    }
    assert_eq!(top(&levels, "hugetlb.1GB.max"), (2_u64 << 30).to_string());
    let burstable = qos_path(QosClass::Burstable);
    assert_eq!(value(&levels.tree, &burstable, "hugetlb.1GB.max"), "max");
    let of_top = &levels.cgroups[0];
    assert_eq!(of_top.level, Level::Top);
    let texts: Vec<String> = of_top.notes.iter().map(Note::to_string).collect();
    let bytes = "8589934592 bytes less 1073741824 reserved and 3221225472 in huge pages";
    assert!(
        texts.contains(&format!("memory.max: {bytes}")),
        "{texts:#?}"
    );
}

#[test]
fn a_controller_without_files_is_not_enabled() {
    let levels = without_pods(&pods::node(&json!({"cpu": "4", "memory": "8Gi"})));
    for (path, cgroup) in levels.tree.iter() {
        assert_eq!(cgroup.enabled.to_string(), "cpu memory pids", "{path}");
    }
}

#[test]
fn a_node_of_unknown_size_has_no_bounds() {
    let levels = without_pods(&pods::node(&json!({})));
    for file in ["memory.max", "pids.max"] {
        assert_eq!(top(&levels, file), "max");
    }
}

fn share(qos: &str, memory: &str, policy: &Policy) -> Share {
    let resources = match qos {
        "Guaranteed" => json!({"limits": {"cpu": "1", "memory": memory}}),
        _ => json!({"requests": {"cpu": "1", "memory": memory}}),
    };
    let pod = pods::pod(&json!({"containers": [{"resources": resources}]}));
    let pod = translated(pod, &pods::big_node(), policy);
    assert_eq!(pod.share.qos.to_string(), qos);
    pod.share
}

/// Protection is worth no more than the least of it on the way up, so every level carries the sum
/// (kubernetes/enhancements#5977).
#[test]
fn protection_sums_upwards() {
    let policy = |memory_reservation| Policy {
        memory_reservation,
        ..Policy::default()
    };
    for (reservation, expected) in [
        // Top min, top low, burstable min, burstable low, in MiB. A Guaranteed pod of 128 protects 120.
        (MemoryReservationPolicy::Hard, [304, 0, 64, 0]),
        (MemoryReservationPolicy::Tiered, [240, 64, 0, 64]),
        (MemoryReservationPolicy::None, [0, 0, 0, 0]),
    ] {
        let policy = policy(reservation);
        let mut totals = Totals::default();
        let first = share("Guaranteed", "128Mi", &policy);
        totals.add(&first);
        totals.add(&share("Guaranteed", "128Mi", &policy));
        totals.add(&share("Burstable", "64Mi", &policy));
        let sums = |totals: &Totals| {
            let tree = levels(totals, &pods::big_node(), &policy).tree;
            let burstable = qos_path(QosClass::Burstable);
            [
                value(&tree, &CgroupPath::top(), "memory.min"),
                value(&tree, &CgroupPath::top(), "memory.low"),
                value(&tree, &burstable, "memory.min"),
                value(&tree, &burstable, "memory.low"),
            ]
        };
        let expected = expected.map(|mib: u64| (mib << 20).to_string());
        assert_eq!(sums(&totals), expected, "{reservation:?}");
        totals.remove(&first);
        let min = number::<u64>(&json!(expected[0])).saturating_sub(120 << 20);
        assert_eq!(sums(&totals)[0], min.to_string(), "{reservation:?}");
    }
}

/// Overhead of a pod that asks for nothing protects nothing and weighs nothing, as upstream.
#[test]
fn overhead_of_a_best_effort_pod_counts_nowhere() {
    let spec = json!({"containers": [{}], "overhead": {"cpu": "100m", "memory": "64Mi"}});
    let pod = translated(pods::pod(&spec), &pods::big_node(), &Policy::default());
    assert_eq!(of_pod(&pod, "cpu.weight"), "1");
    assert_eq!(of_pod(&pod, "memory.min"), "0");
    let totals: Totals = std::iter::once(&pod.share).collect();
    let with = levels(&totals, &pods::big_node(), &Policy::default());
    assert_eq!(with.tree, without_pods(&pods::big_node()).tree);
}

/// What all pods protect together stays below the limit of all pods, and that is told.
#[test]
fn protection_at_the_top_stays_below_its_limit() {
    let share = share("Burstable", "8Gi", &Policy::default());
    let node = Node {
        page_size: PageSize::FOUR_KIB,
        ..pods::node(&json!({"cpu": "4", "memory": "8Gi"}))
    };
    let totals: Totals = std::iter::once(&share).collect();
    let levels = levels(&totals, &node, &Policy::default());
    assert_eq!(
        top(&levels, "memory.min"),
        ((8_u64 << 30) - (16 << 20)).to_string()
    );
    let notes: Vec<String> = levels.cgroups[0]
        .notes
        .iter()
        .map(Note::to_string)
        .collect();
    let told = "memory.min: 8573157376 of 8589934592 bytes are protected: the limit of 8589934592 \
                less a margin of 16777216";
    assert!(notes.contains(&told.to_owned()), "{notes:#?}");
}
