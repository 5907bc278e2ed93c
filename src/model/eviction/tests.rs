//! How the settings of eviction are read, and what is said of wrong ones.

use super::*;

fn texts(list: &[(&str, &str)]) -> BTreeMap<String, String> {
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    list.iter().map(own).collect()
}

type Texts<'a> = &'a [(&'a str, &'a str)];

fn read(hard: Texts, soft: Texts, grace: Texts, reclaim: Texts) -> Result<Eviction, Vec<String>> {
    Eviction::read(&Written {
        hard: &texts(hard),
        soft: &texts(soft),
        soft_grace: &texts(grace),
        reclaim: &texts(reclaim),
    })
}

#[test]
fn thresholds_are_read_memory_first_and_hard_before_soft() {
    let read = read(
        &[
            ("pid.available", "5%"),
            ("memory.available", "100Mi"),
            ("nodefs.inodesFree", "0%"),
        ],
        &[("memory.available", "300Mi")],
        &[("memory.available", "1m30s")],
        &[("memory.available", "50Mi")],
    )
    .unwrap();
    let shown: Vec<_> = read
        .thresholds
        .iter()
        .map(|it| {
            (
                it.signal.name(),
                it.least.to_string(),
                it.grace,
                it.reclaim.to_string(),
            )
        })
        .collect();
    let text = str::to_owned;
    assert_eq!(
        shown,
        [
            ("memory.available", text("100Mi"), None, text("50Mi")),
            (
                "memory.available",
                text("300Mi"),
                Some(Duration::from_secs(90)),
                text("50Mi")
            ),
            (
                "allocatableMemory.available",
                text("100Mi"),
                None,
                text("50Mi")
            ),
            ("pid.available", text("5%"), None, text("0")),
        ]
    );
}

#[test]
fn every_setting_that_is_wrong_is_named_with_what_would_be_right() {
    for (settings, expected) in [
        (
            read(&[("memory.free", "1Gi")], &[], &[], &[]),
            "evictionHard.memory.free is not known: memory.available, nodefs",
        ),
        (
            read(&[("allocatableMemory.available", "1Gi")], &[], &[], &[]),
            "is not known",
        ),
        (
            read(&[("memory.available", "100%")], &[], &[], &[]),
            "evictionHard.memory.available: 100% is no part",
        ),
        (
            read(&[("pid.available", "100m")], &[], &[], &[]),
            "evictionHard.pid.available: 100m is no whole amount",
        ),
        (
            read(&[], &[("memory.available", "1Gi")], &[], &[]),
            "evictionSoftGracePeriod.memory.available is missing",
        ),
        (
            read(&[], &[], &[("memory.available", "1m")], &[]),
            "has no evictionSoft.memory.available",
        ),
        (
            read(
                &[],
                &[("memory.available", "1Gi")],
                &[("memory.available", "soon")],
                &[],
            ),
            "evictionSoftGracePeriod.memory.available: \"soon\" is no duration: 30s",
        ),
        (
            read(&[], &[], &[], &[("memory.available", "-1")]),
            "evictionMinimumReclaim.memory.available: -1 is negative",
        ),
    ] {
        let problems = settings.unwrap_err();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains(expected), "{problems:?}");
    }
}
