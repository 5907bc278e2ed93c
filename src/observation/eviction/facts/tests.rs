//! What signals show: the cases of others, and what must hold for any figures.

use proptest::prelude::*;

use super::*;
use crate::model::eviction::Threshold;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

fn figures(state: &State) -> &Figures {
    match state {
        State::Known(figures) => figures,
        other => panic!("{other:?}"),
    }
}

fn is_met(reading: &Reading, least: &str) -> bool {
    let threshold = Threshold {
        signal: reading.signal,
        least: least.parse().unwrap(),
        grace: None,
        reclaim: crate::model::node::EvictionThreshold::NONE,
    };
    reading.meets(&threshold, false).unwrap()
}

fn reading(signal: Signal, state: State) -> Reading {
    let place = String::new();
    Reading {
        signal,
        place,
        state,
    }
}

/// kubernetes#43916: 20 GiB of active page cache are no shortage of memory.
#[test]
fn page_cache_that_can_go_is_no_shortage() {
    let node = |anon: u64, active_file: u64, available: u64| Memory {
        total: Some(32 * GIB),
        available: Some(available),
        in_use: Some(anon + active_file),
        inactive_file: Some(0),
    };
    let healthy = reading(Signal::Memory, memory(&node(6 * GIB, 20 * GIB, 22 * GIB)));
    assert!(!is_met(&healthy, "1Gi"));
    let shown = figures(&healthy.state);
    assert_eq!(shown.decides, "MemAvailable");
    assert_eq!(
        shown.others,
        [("MemTotal less working set".to_owned(), 6 * GIB)],
        "the kubelet's figure is told too"
    );
    // By the kubelet's figure it would be met below 7 GiB; by the kernel's it is not.
    assert!(!is_met(&healthy, "7Gi"));
    let short = node(31 * GIB + 512 * MIB, 0, 300 * MIB);
    assert!(is_met(&reading(Signal::Memory, memory(&short)), "1Gi"));
}

/// kubernetes#114332: the very numbers of the report.
#[test]
fn use_above_capacity_is_unknown_and_never_negative() {
    let impossible = Memory {
        total: Some(32_879_017_984),
        available: Some(19 * GIB),
        in_use: Some(80_342_220_800),
        inactive_file: Some(10_048_954_368),
    };
    let State::Unknown(why) = memory(&impossible) else {
        panic!("known");
    };
    assert!(why.contains("32879017984"), "{why}");
    for (total, available) in [
        (Some(5), Some(6)),
        (None, Some(1)),
        (Some(1), None),
        (Some(0), Some(0)),
    ] {
        let odd = Memory {
            total,
            available,
            ..Memory::default()
        };
        assert!(matches!(memory(&odd), State::Unknown(_)), "{odd:?}");
    }
}

#[test]
fn what_pods_have_left_is_their_limit_less_what_they_hold() {
    let mut pods = PodsMemory {
        limit: 4 * GIB,
        current: 4 * GIB,
        reclaimable: 3 * GIB,
        inactive_file: GIB,
    };
    let state = allocatable(&pods, Some(8 * GIB));
    assert_eq!(figures(&state).available, 3 * GIB);
    assert_eq!(figures(&state).others[0].1, GIB);
    pods.limit = GIB / 2;
    assert_eq!(figures(&allocatable(&pods, None)).available, 0, "lowered");
    assert!(matches!(allocatable(&pods, Some(GIB)), State::Unknown(_)));
}

/// kubernetes#107111: the lower bound binds, whichever it is.
#[test]
fn the_nearest_bound_of_tasks_binds() {
    let node = |pid_max, threads_max, pods| Tasks {
        in_use: Some(29_500),
        pid_max: Some(pid_max),
        threads_max: Some(threads_max),
        pods,
    };
    for (tasks_of, binding, left, met) in [
        (node(4_194_304, 30_000, None), "threads-max", 500, true),
        (node(30_000, 4_194_304, None), "pid_max", 500, true),
        (node(32_768, 127_811, None), "pid_max", 3268, true),
        (node(4_194_304, 127_811, None), "threads-max", 98_311, false),
        (
            node(4_194_304, 127_811, Some((1990, 2000))),
            "pids.max of pods",
            10,
            true,
        ),
        (
            node(4_194_304, 127_811, Some((2001, 2000))),
            "pids.max of pods",
            0,
            true,
        ),
    ] {
        let reading = reading(Signal::Pids, tasks(&tasks_of));
        let figures = figures(&reading.state);
        assert_eq!(
            (figures.decides.as_str(), figures.available),
            (binding, left)
        );
        assert_eq!(is_met(&reading, "10%"), met, "{tasks_of:?}");
    }
    for odd in [
        Tasks::default(),
        node(29_499, 50_000, None),
        Tasks {
            in_use: Some(5),
            ..Tasks::default()
        },
    ] {
        assert!(matches!(tasks(&odd), State::Unknown(_)), "{odd:?}");
    }
}

/// kubernetes#21546: bytes are left and inodes are not; and a file system without a bound of inodes.
#[test]
fn inodes_are_watched_beside_bytes_on_each_file_system() {
    let disk = |place: &str, has_files, inodes, inodes_free| Disk {
        place: place.to_owned(),
        has_files,
        space: Ok(Space {
            bytes: 100 * GIB,
            bytes_available: 40 * GIB,
            inodes,
            inodes_free,
        }),
    };
    let facts = Facts {
        disks: vec![
            disk("/state", true, 13_107_200, 0),
            disk("/logs", false, 0, 0),
        ],
        ..Facts::default()
    };
    let shown: Vec<_> = readings(&facts)
        .into_iter()
        .filter(|reading| reading.signal.pressure() == crate::model::eviction::Pressure::Disk)
        .map(|reading| {
            let met = reading.figures().map(|_| is_met(&reading, "10%"));
            (reading.signal.name(), reading.place, met)
        })
        .collect();
    let row = |name, place: &str, met| (name, place.to_owned(), met);
    assert_eq!(
        shown,
        [
            row("nodefs.available", "/state", Some(false)),
            row("nodefs.inodesFree", "/state", Some(true)),
            row("imagefs.available", "/state", Some(false)),
            row("imagefs.inodesFree", "/state", Some(true)),
            row("containerfs.available", "/state", Some(false)),
            row("containerfs.inodesFree", "/state", Some(true)),
            row("nodefs.available", "/logs", Some(false)),
            row("nodefs.inodesFree", "/logs", None),
        ]
    );
    let full = Space {
        bytes_available: 2,
        bytes: 1,
        inodes: 1,
        inodes_free: 2,
    };
    let odd = Disk {
        space: Ok(full),
        ..disk("/x", true, 0, 0)
    };
    assert!(matches!(
        (space(&odd), inodes_of(&odd)),
        (State::Unknown(_), State::Unknown(_))
    ));
}

#[test]
fn the_comparison_is_strict_and_a_part_is_of_the_capacity() {
    let at = |available| {
        reading(
            Signal::Memory,
            memory(&Memory {
                total: Some(1000),
                available: Some(available),
                ..Memory::default()
            }),
        )
    };
    assert!(is_met(&at(99), "100") && !is_met(&at(100), "100"));
    assert!(is_met(&at(74), "7.5%") && !is_met(&at(75), "7.5%"));
}

proptest! {
    /// Whatever the kernel shows, what is called known lies between nothing and the capacity.
    #[test]
    fn what_is_known_can_be_true(
        memory in any::<[Option<u64>; 4]>(),
        pods in any::<Option<[u64; 4]>>(),
        space in any::<[u64; 4]>(),
        tasks in any::<[Option<u64>; 3]>(),
        of_pods in any::<Option<(u64, u64)>>(),
    ) {
        let [total, available, in_use, inactive_file] = memory;
        let [bytes, bytes_available, inodes, inodes_free] = space;
        let [in_use_tasks, pid_max, threads_max] = tasks;
        let facts = Facts {
            at: Duration::ZERO,
            memory: Memory { total, available, in_use, inactive_file },
            pods: pods.map(|[limit, current, reclaimable, inactive_file]| PodsMemory { limit, current, reclaimable, inactive_file }),
            disks: vec![Disk {
                place: "/".to_owned(),
                has_files: true,
                space: Ok(Space { bytes, bytes_available, inodes, inodes_free }),
            }],
            tasks: Tasks { in_use: in_use_tasks, pid_max, threads_max, pods: of_pods },
            slow: None,
        };
        for reading in readings(&facts) {
            if let Some(figures) = reading.figures() {
                prop_assert!(figures.available <= figures.capacity, "{reading:?}");
            }
        }
    }
}
