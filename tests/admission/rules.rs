//! What is refused, in which words and at which path.

use allotd::admission::Code;
use allotd::model::{ContainerKind, Pod, Resources};
use allotd::units::Quantity;
use serde_json::json;

use crate::pods::{container, pod_of, resources};
use crate::{judge, refusals};

fn small() -> Pod {
    pod_of(vec![container(
        "c0",
        ContainerKind::App,
        Resources::default(),
    )])
}

#[test]
fn names_of_a_pod() {
    type Change = fn(&mut Pod);
    let cases: [(Change, &str, Code); 8] = [
        (|pod| pod.name.clear(), "metadata.name", Code::Required),
        (|pod| pod.name = "A".into(), "metadata.name", Code::Invalid),
        (|pod| pod.name = "..".into(), "metadata.name", Code::Invalid),
        (
            |pod| pod.name = "a".repeat(254),
            "metadata.name",
            Code::Invalid,
        ),
        (
            |pod| pod.namespace = "a.b".into(),
            "metadata.namespace",
            Code::Invalid,
        ),
        (
            |pod| pod.namespace = "a".repeat(64),
            "metadata.namespace",
            Code::Invalid,
        ),
        (
            |pod| drop(pod.labels.insert("a/b/c".into(), String::new())),
            "metadata.labels",
            Code::Invalid,
        ),
        (
            |pod| drop(pod.annotations.insert("a".into(), "x".repeat(1 << 18))),
            "metadata.annotations",
            Code::TooLong,
        ),
    ];
    for (change, field, code) in cases {
        let mut pod = small();
        change(&mut pod);
        let found: Vec<_> = judge(pod)
            .reasons()
            .iter()
            .map(|r| (r.field.clone(), r.code.clone()))
            .collect();
        assert_eq!(found, [(field.to_owned(), code)]);
    }
    assert_eq!(refusals(small()), Vec::<String>::new());
}

#[test]
fn annotations_are_read_strictly() {
    for (key, good, bad) in [
        (
            "allotd.dev/pids-limit",
            &["1", "100", "4194304", "max"][..],
            &[
                "0",
                "-1",
                "+5",
                "",
                "Max",
                "1.5",
                "4194305",
                "99999999999999999999",
                "1k",
            ][..],
        ),
        (
            "allotd.dev/oom-policy",
            &["group", "process", "c0=process", "group, c0 = process"],
            &[
                "",
                "Group",
                "none",
                "other=group",
                "c0=all",
                "group,",
                "group,process",
            ],
        ),
        (
            "allotd.dev/cpu-burst",
            &["0", "250m", "0.5", "2"],
            &[
                "", "-1", "0.5m", "max", "1,", "1,2", "other=1", "c0=1", "c0=",
            ],
        ),
    ] {
        for (values, right) in [(good, true), (bad, false)] {
            for value in values {
                let mut pod = small();
                pod.annotations.insert(key.to_owned(), (*value).to_owned());
                let verdict = judge(pod);
                let fields: Vec<_> = verdict.reasons().iter().map(|r| r.field.clone()).collect();
                let expected = if right {
                    vec![]
                } else {
                    vec![format!("metadata.annotations[{key}]")]
                };
                assert_eq!(fields, expected, "{key}={value}");
            }
        }
    }
}

#[test]
fn a_burst_is_at_most_the_limit() {
    for (burst, problem) in [
        ("500m", None),
        ("100m, c0=500m", None),
        (
            "501m",
            Some(
                "gives 501m to container c0, whose cpu limit is 500m: at most the limit can be saved up",
            ),
        ),
        (
            "c0=1",
            Some(
                "gives 1 to container c0, whose cpu limit is 500m: at most the limit can be saved up",
            ),
        ),
        (
            "c1=1",
            Some("names container c1, which has no cpu limit: there is nothing to go beyond"),
        ),
    ] {
        let limited = resources(&json!({"limits": {"cpu": "500m"}}));
        let mut pod = pod_of(vec![
            container("c0", ContainerKind::App, limited),
            container("c1", ContainerKind::App, Resources::default()),
        ]);
        let annotation = "allotd.dev/cpu-burst".to_owned();
        pod.annotations.insert(annotation, burst.to_owned());
        let expected: Vec<_> = problem
            .map(|problem| format!("metadata.annotations[allotd.dev/cpu-burst]: Invalid value: {burst:?}: {problem}"))
            .into_iter()
            .collect();
        assert_eq!(refusals(pod), expected);
    }
}

#[test]
fn containers_are_needed_named_and_counted() {
    let one = |name: &str, kind| container(name, kind, Resources::default());
    assert_eq!(
        refusals(pod_of(vec![])),
        ["spec.containers: Required value"]
    );
    assert_eq!(
        refusals(pod_of(vec![one("i", ContainerKind::Init)])),
        ["spec.containers: Required value"]
    );
    let twice = vec![
        one("a", ContainerKind::Sidecar),
        one("a", ContainerKind::App),
        one("", ContainerKind::App),
        one("A", ContainerKind::App),
    ];
    let found = refusals(pod_of(twice));
    assert_eq!(
        found[..2],
        [
            "spec.containers[0].name: Duplicate value: \"a\" (container a)",
            "spec.containers[1].name: Required value",
        ]
    );
    assert!(
        found[2].starts_with(
            "spec.containers[2].name: Invalid value: \"A\": a lowercase RFC 1123 label"
        )
    );
    let many = |n: usize| {
        (0..n)
            .map(|i| one(&format!("c{i}"), ContainerKind::App))
            .collect()
    };
    assert_eq!(refusals(pod_of(many(512))), Vec::<String>::new());
    assert_eq!(
        refusals(pod_of(many(513))),
        ["spec.containers: Too many: 513: must have at most 512 items"]
    );
}

#[test]
fn what_the_kernel_cannot_start_is_refused() {
    let mut pod = small();
    let container = &mut pod.containers[0];
    container.command = vec![String::new(), "a\0b".into(), "x".repeat(131_072)];
    container.env = vec![
        (String::new(), "1".into()),
        ("A=B".into(), "1".into()),
        ("Ä".into(), "1".into()),
        ("OK 1-a.b".into(), "a\0".into()),
    ];
    container.working_dir = Some("../etc".into());
    pod.active_deadline_seconds = Some(0);
    let fields: Vec<_> = judge(pod)
        .reasons()
        .iter()
        .map(|r| {
            (
                r.field.strip_prefix("spec.").unwrap().to_owned(),
                r.code.to_string(),
            )
        })
        .collect();
    let expected = [
        ("containers[0].command[0]", "Required"),
        ("containers[0].command[1]", "Invalid"),
        ("containers[0].command[2]", "TooLong"),
        ("containers[0].env[0].name", "Required"),
        ("containers[0].env[1].name", "Invalid"),
        ("containers[0].env[2].name", "Invalid"),
        ("containers[0].env[3].value", "Invalid"),
        ("containers[0].workingDir", "Invalid"),
        ("activeDeadlineSeconds", "Invalid"),
    ];
    assert_eq!(
        fields,
        expected.map(|(field, code)| (field.to_owned(), code.to_owned()))
    );
}

#[test]
fn all_reasons_are_told_at_once() {
    let mut pod = small();
    pod.name = "A".into();
    pod.containers[0].resources = resources(&json!({
        "requests": {"cpu": "5000", "memory": "2Gi"},
        "limits": {"memory": "1Gi"},
    }));
    let codes: Vec<_> = judge(pod)
        .reasons()
        .iter()
        .map(|r| r.code.to_string())
        .collect();
    assert_eq!(codes, ["Invalid", "Invalid", "OutOfcpu"]);
}

#[test]
fn an_admitted_pod_is_taken_up_again_without_asking_what_is_free() {
    let mut pod = small();
    let cpu: Quantity = "5000".parse().unwrap();
    pod.containers[0]
        .resources
        .limits
        .set(allotd::model::ResourceName::Cpu, cpu);
    assert!(!judge(pod.clone()).is_admitted());
    let again = allotd::admission::readmit(pod.clone()).unwrap();
    assert_eq!(
        again
            .effective()
            .requests
            .get(&allotd::model::ResourceName::Cpu),
        Some(cpu)
    );
    pod.name.clear();
    assert_eq!(allotd::admission::readmit(pod).unwrap_err().len(), 1);
}
