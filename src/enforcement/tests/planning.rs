//! Plans as text: their steps, order and causes.

use super::*;

#[test]
fn a_plan_reads_from_top_to_bottom() {
    let mut owner = Owner::with(&tree(&[
        ("", &[]),
        ("pod", &[max(128), min(64)]),
        ("pod/a", &[max(128), min(64)]),
        ("old", &[]),
        ("old/a", &[]),
    ]));
    let weight = Setting::CpuWeight(CpuWeight::MAX);
    owner
        .kernel
        .as_another(&Op::Write(path("pod/a"), min(1)))
        .unwrap();
    let wanted = tree(&[
        ("", &[]),
        ("pod", &[max(64), min(64), weight]),
        ("pod/a", &[max(64), min(64), Setting::MemoryOomGroup(true)]),
        ("pod/b", &[max(32)]),
    ]);
    assert_eq!(
        owner.plan(&wanted).to_string(),
        "\
unwanted kill old
unwanted remove old
new      create pod/b
new      write pod cpu.weight = 10000, was 100
new      write pod/a memory.oom.group = 1, was 0
new      write pod/b memory.max = 33554432
changed  write pod/a memory.max = 67108864, was 134217728
changed  write pod memory.max = 67108864, was 134217728
drift    write pod/a memory.min = 67108864, was 1048576
"
    );
    let outcome = owner.pass(&wanted);
    assert!(outcome.is_complete());
    assert_eq!(
        text(&outcome.repaired),
        ["memory.min of pod/a was 1048576, is 67108864 again"]
    );
    assert_eq!(outcome.removed, [path("old")]);
    assert_eq!(
        outcome
            .enforced
            .get(&path("pod/b"))
            .unwrap()
            .get(InterfaceFile::MemoryMax),
        Some(max(32))
    );
    assert!(owner.plan(&wanted).is_empty());
    assert_eq!(owner.plan(&wanted).to_string(), "");
}

/// Report cgroups-rs#128: what is not set is not written, whatever is there; no limit is written as `max`.
#[test]
fn what_is_not_set_is_left_alone() {
    let swap = |limit| Setting::MemorySwapMax(limit);
    let found = tree(&[
        ("", &[]),
        (
            "pod",
            &[
                max(8),
                swap(Limit::At(Bytes::ZERO)),
                Setting::PidsMax(Limit::At(7)),
            ],
        ),
    ]);
    let steps = |settings: &[Setting]| {
        let wanted = tree(&[("", &[]), ("pod", settings)]);
        plan(&path("pod"), &wanted, &found, &Tree::default(), PAGE).to_string()
    };
    assert_eq!(steps(&[]), "");
    assert_eq!(
        steps(&[swap(Limit::Max)]),
        "new      write pod memory.swap.max = max, was 0\n"
    );
    assert_eq!(steps(&[swap(Limit::At(Bytes::ZERO))]), "");
}

#[test]
fn a_plan_for_one_pod_leaves_the_others_alone() {
    let wanted = tree(&[
        ("", &[]),
        ("pod", &[max(8)]),
        ("pod/a", &[]),
        ("pod-b", &[max(8)]),
    ]);
    let found = tree(&[("", &[]), ("pod/x", &[]), ("pod-c", &[])]);
    let steps =
        |scope: &str| plan(&path(scope), &wanted, &found, &Tree::default(), PAGE).to_string();
    assert_eq!(
        steps("pod"),
        "\
unwanted kill pod/x
unwanted remove pod/x
new      create pod
new      enable cpu memory pids hugetlb cpuset in pod
new      create pod/a
new      write pod memory.max = 8388608
"
    );
    assert_eq!(
        steps("pod-c"),
        "unwanted kill pod-c\nunwanted remove pod-c\n"
    );
    assert_eq!(steps("pod-d"), "");
}

#[test]
fn the_top_and_what_is_above_a_wanted_cgroup_are_never_unwanted() {
    let found = tree(&[("", &[]), ("pod", &[]), ("pod/a", &[])]);
    let wanted = tree(&[("pod/a", &[])]);
    assert!(plan(&path(""), &wanted, &found, &Tree::default(), PAGE).is_empty());
    let nothing = plan(&path(""), &Tree::default(), &found, &Tree::default(), PAGE);
    assert_eq!(
        nothing.to_string(),
        "unwanted kill pod\nunwanted remove pod\n"
    );
}

#[test]
fn what_somebody_removed_or_disabled_is_drift() {
    let wanted = pod(&[max(64)], &[max(64)]);
    let mut owner = Owner::with(&wanted);
    owner.kernel.as_another(&Op::Remove(path("pod/a"))).unwrap();
    owner
        .kernel
        .disable(&path("pod"), Controller::Memory)
        .unwrap();
    assert_eq!(
        owner.plan(&wanted).to_string(),
        "\
drift    enable memory in pod
drift    create pod/a
drift    write pod/a memory.max = 67108864
"
    );
    assert_eq!(
        text(&owner.pass(&wanted).repaired),
        [
            "memory in pod was disabled, is enabled again",
            "pod/a was removed, is there again",
            "memory.max of pod/a was missing, is 67108864 again",
        ]
    );
    assert!(owner.plan(&wanted).is_empty());
}

#[test]
fn a_diff_names_every_wanted_file_and_every_unwanted_cgroup() {
    let wanted = tree(&[
        ("", &[]),
        ("pod", &[max(8), min(4)]),
        ("pod/a", &[max(8)]),
        ("pod/b", &[]),
    ]);
    let mut found = tree(&[
        ("", &[]),
        ("pod", &[max(8), min(2)]),
        ("pod/x", &[]),
        ("pod/x/y", &[]),
    ]);
    found.get_mut(&path("pod")).unwrap().enabled = ControllerSet::default();
    let rows: Vec<_> = diff(&path(""), &wanted, &found, PAGE)
        .into_iter()
        .map(|row| {
            let cell = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
            let (file, wanted, kernel) = (cell(row.file), cell(row.wanted), cell(row.kernel));
            format!("{} {file} {wanted} | {kernel} | {}", row.path, row.verdict)
        })
        .collect();
    assert_eq!(
        rows,
        [
            "/ cgroup.subtree_control cpu memory pids hugetlb cpuset | cpu memory pids hugetlb cpuset | same",
            "pod cgroup.subtree_control cpu memory pids hugetlb cpuset |  | drift",
            "pod memory.min 4194304 | 2097152 | drift",
            "pod memory.max 8388608 | 8388608 | same",
            "pod/a memory.max 8388608 | - | missing",
            "pod/b - - | - | missing",
            "pod/x - - | - | unwanted",
            "pod/x/y - - | - | unwanted",
        ]
    );
}
