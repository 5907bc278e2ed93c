//! Plans carried out on the model kernel: what is read back, held, failed and left for later.

use super::*;

#[test]
fn a_bound_below_what_is_in_use_waits_and_nobody_dies() {
    let mut owner = Owner::with(&pod(&[max(256)], &[max(256)]));
    owner.kernel.spawn_in(&path("pod/a"), Pid(1)).unwrap();
    owner.kernel.grow(Pid(1), Bytes(200_003_584));
    owner.kernel.set_cache(&path("pod/a"), Bytes(20 * MIB));
    let wanted = pod(&[max(256)], &[max(128)]);
    let outcome = owner.pass(&wanted);
    assert_eq!(
        text(&outcome.held),
        [
            "memory.max of pod/a stays 268435456: 134217728 is wanted but 200003584 bytes are in use, \
          67883008 in the way: 2097152 must be free below the new bound"
        ]
    );
    assert!(outcome.failed.is_empty() && !outcome.is_complete());
    assert!(owner.kernel.is_alive(Pid(1)));
    assert_eq!(
        owner
            .kernel
            .node(&path("pod/a"))
            .get(InterfaceFile::MemoryMax),
        Some(max(256))
    );

    owner.kernel.exit(Pid(1));
    assert_eq!(
        owner.plan(&wanted).to_string(),
        "changed  write pod/a memory.max = 134217728, was 268435456\n"
    );
    assert!(owner.pass(&wanted).is_complete());
    assert!(owner.plan(&wanted).is_empty());
}

#[test]
fn a_page_cache_is_no_reason_to_wait() {
    let before = pod(&[max(256)], &[max(256)]);
    let wanted = pod(&[max(128)], &[max(128)]);
    let mut owner = Owner::with(&before);
    owner.kernel.set_cache(&path("pod/a"), Bytes(256 * MIB));
    assert!(owner.pass(&wanted).is_complete());

    // A kernel without memory.reclaim: what could be reclaimed cannot be told from what could not.
    let mut owner = Owner {
        kernel: ModelKernel::default().without_reclaim(),
        applied: Tree::default(),
    };
    owner.pass(&before);
    owner.kernel.set_cache(&path("pod/a"), Bytes(256 * MIB));
    let held = owner.pass(&wanted).held;
    assert_eq!(
        held.iter().map(|held| held.in_use).collect::<Vec<_>>(),
        [Some(Bytes(256 * MIB)); 2]
    );
}

#[test]
fn huge_pages_in_use_hold_their_bound() {
    let mut owner = Owner::with(&pod(&[huge(8)], &[huge(8)]));
    owner.kernel.spawn_in(&path("pod/a"), Pid(1)).unwrap();
    owner
        .kernel
        .take_huge_pages(Pid(1), HugePageSize::TWO_MIB, Bytes(6 * MIB));
    let outcome = owner.pass(&pod(&[huge(8)], &[huge(4)]));
    assert_eq!(
        text(&outcome.held),
        ["hugetlb.2MB.max of pod/a stays 8388608: 4194304 is wanted but more is in use"]
    );
    assert!(outcome.failed.is_empty());
}

/// Report runtime-spec#1050: both bounds of huge pages are set, so that `mmap` fails and no touch kills; where the
/// kernel has no bound of reservations the other one is set, and what is missing is told.
#[test]
fn huge_pages_are_bounded_when_they_are_reserved_too() {
    let rsvd =
        |mib: u64| Setting::HugetlbRsvdMax(HugePageSize::TWO_MIB, Limit::At(Bytes(mib * MIB)));
    let wanted = pod(&[huge(4), rsvd(4)], &[huge(4), rsvd(4)]);
    for has_rsvd in [true, false] {
        let mut owner = Owner::default();
        let file = rsvd(0).file();
        if !has_rsvd {
            owner.kernel = ModelKernel::default().without_file(file);
        }
        let outcome = owner.pass(&wanted);
        assert!(outcome.held.is_empty());
        for at in ["pod", "pod/a"] {
            let enforced = outcome.enforced.get(&path(at)).unwrap();
            assert_eq!(enforced.get(huge(0).file()), Some(huge(4)), "{at}");
            assert_eq!(enforced.get(file), has_rsvd.then_some(rsvd(4)), "{at}");
        }
        let missing: Vec<_> = outcome.missing().into_keys().collect();
        let told = ["the kernel has no hugetlb.2MB.rsvd.max"];
        assert_eq!(missing, if has_rsvd { &told[..0] } else { &told[..] });
    }
}

#[test]
fn a_missing_controller_is_told_once_and_the_rest_is_done() {
    let mut owner = Owner {
        kernel: ModelKernel::with_controllers([Controller::Memory].into_iter().collect())
            .without_file(InterfaceFile::MemorySwapMax),
        applied: Tree::default(),
    };
    let swap = Setting::MemorySwapMax(Limit::At(Bytes::ZERO));
    let wanted = pod(&[max(64), huge(0), swap], &[max(64)]);
    let outcome = owner.pass(&wanted);
    let missing: Vec<_> = outcome
        .missing()
        .into_iter()
        .map(|(why, ops)| {
            format!(
                "{}: {why}",
                ops.iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            )
        })
        .collect();
    assert_eq!(
        missing,
        [
            "enable cpu memory pids hugetlb cpuset in pod: \
             controller cpu pids hugetlb cpuset is not enabled in cgroup.subtree_control",
            "write pod hugetlb.2MB.max = 0: \
             controller hugetlb is not enabled in cgroup.subtree_control",
            "enable cpu memory pids hugetlb cpuset in /: \
             the kernel has no controller cpu pids hugetlb cpuset on cgroup2",
            "write pod memory.swap.max = 0: the kernel has no memory.swap.max",
        ]
    );
    assert_eq!(outcome.failed.len(), 4);
    for at in ["pod", "pod/a"] {
        let enforced = outcome.enforced.get(&path(at)).unwrap();
        assert_eq!(enforced.settings.len(), 1, "{at}");
        assert_eq!(
            enforced.get(InterfaceFile::MemoryMax),
            Some(max(64)),
            "{at}"
        );
    }
}

#[test]
fn what_lies_below_a_cgroup_that_cannot_be_made_is_skipped_and_told() {
    let mut owner = Owner::default();
    owner
        .kernel
        .fail(ErrorKind::Interrupted, |op| *op == Op::Create(path("pod")));
    let wanted = tree(&[
        ("", &[]),
        ("pod", &[max(8)]),
        ("pod/a", &[max(8)]),
        ("pod-b", &[max(8)]),
    ]);
    let outcome = owner.pass(&wanted);
    assert_eq!(
        text(&outcome.failed),
        [
            "cannot create pod: the test lets it fail",
            "cannot enable cpu memory pids hugetlb cpuset in pod: pod could not be created",
            "cannot create pod/a: pod could not be created",
            "cannot write pod/a memory.max = 8388608: pod could not be created",
            "cannot write pod memory.max = 8388608: pod could not be created",
        ]
    );
    assert_eq!(
        outcome
            .enforced
            .get(&path("pod-b"))
            .unwrap()
            .get(InterfaceFile::MemoryMax),
        Some(max(8))
    );
    owner.kernel.heal();
    assert!(owner.pass(&wanted).is_complete());
}

#[test]
fn a_cgroup_whose_processes_have_not_ended_is_pending() {
    let wanted = tree(&[("", &[])]);
    let mut owner = Owner::with(&pod(&[], &[]));
    owner
        .kernel
        .fail(ErrorKind::Busy, |op| matches!(op, Op::Remove(_)));
    let outcome = owner.pass(&wanted);
    assert_eq!(
        (outcome.pending, outcome.failed),
        (vec![path("pod")], vec![])
    );
    owner.kernel.heal();

    // It is tried twice in one pass, at the end again.
    owner.kernel.fail_nth(ErrorKind::Busy, 1);
    let outcome = owner.pass(&wanted);
    assert_eq!(
        (outcome.pending, outcome.removed),
        (vec![], vec![path("pod")])
    );
}

#[test]
fn a_value_that_does_not_read_back_is_a_failure() {
    let wanted = tree(&[("", &[max(8)]), ("pod", &[max(8)])]);
    let mut owner = Owner::default();
    owner
        .kernel
        .ignore(|op| matches!(op, Op::Write(..) | Op::Enable(..)));
    let outcome = owner.pass(&wanted);
    assert_eq!(
        text(&outcome.failed),
        [
            "cannot enable cpu memory pids hugetlb cpuset in /: \
             cpu memory pids hugetlb cpuset reads back as not enabled",
            "cannot write / memory.max = 8388608: it reads back max",
            "cannot enable cpu memory pids hugetlb cpuset in pod: \
             cpu memory pids hugetlb cpuset reads back as not enabled",
            "cannot write pod memory.max = 8388608: it cannot be read back",
        ]
    );
    assert!(
        outcome
            .enforced
            .iter()
            .all(|(_, node)| *node == Node::default())
    );
}

#[test]
fn a_pod_costs_its_operations_and_one_look_for_each_cgroup() {
    let mut owner = Owner::with(&tree(&[("", &[])]));
    owner.kernel.take_performed();
    owner.kernel.take_looks();
    owner.pass(&pod(
        &[max(64), min(32), huge(0)],
        &[max(64), min(32), huge(0)],
    ));
    // Two directories, one list of controllers, six values.
    assert_eq!(owner.kernel.take_performed().len(), 9);
    assert_eq!(owner.kernel.take_looks(), 2);
}
