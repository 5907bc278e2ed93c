//! The answers of Kubernetes' and OpenShift's own code (tests/data/limitrange.json).
//!
//! Two answers are not ours, and stand in the tests below with the reason: which LimitRange's violations
//! are told, and what the annotation says of several LimitRanges.

use std::collections::BTreeSet;

use allotd::admission::limit_range::{self, StreamCounts};
use allotd::admission::{Code, Reason};
use allotd::model::{LimitRange, LimitType, List, ResourceList};
use serde_json::{Value, json};

use super::{judge, pod, pods, range, range_of};

const VECTORS: &str = include_str!("../data/limitrange.json");

fn vectors(op: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    assert_eq!(all.len(), 110, "the table is not to be cut");
    all.into_iter()
        .filter(|vector| vector["input"]["op"] == op)
        .collect()
}

fn name(vector: &Value) -> &str {
    vector["name"].as_str().unwrap()
}

/// The familiar texts of violations, in a fixed order, each once; ours name the LimitRange behind them.
fn texts(reasons: &[Reason]) -> BTreeSet<String> {
    let ours = reasons
        .iter()
        .filter(|reason| reason.code == Code::LimitRange);
    ours.map(|reason| {
        let (text, rest) = reason.message.split_once("; LimitRange ").unwrap();
        assert!(!rest.is_empty());
        text.to_owned()
    })
    .collect()
}

/// What upstream says. It stops at the first LimitRange that is broken; we tell all.
fn expected_texts(expected: &Value) -> BTreeSet<String> {
    if let Some(all) = expected["all_limitrange_errors"].as_array() {
        return all
            .iter()
            .map(|text| text.as_str().unwrap().to_owned())
            .collect();
    }
    let Some(text) = expected["forbidden_reason"].as_str() else {
        return BTreeSet::new();
    };
    match text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
    {
        // No text has ", m" in it but before the next one: "minimum …", "maximum …".
        Some(several) => several
            .replace(", m", "\nm")
            .lines()
            .map(str::to_owned)
            .collect(),
        None => BTreeSet::from([text.to_owned()]),
    }
}

fn ranges(input: &Value) -> Vec<LimitRange> {
    let all = input["limitRanges"].as_array().unwrap();
    all.iter().map(range).collect()
}

/// Amounts of a list, to be compared with JSON.
fn shown(list: &ResourceList) -> Value {
    let amounts = list.iter();
    amounts
        .map(|(name, amount)| (name.to_string(), json!(amount.to_string())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[test]
fn what_is_refused() {
    let (mut checked, mut whole, mut claims) = (0, 0, 0);
    for vector in vectors("admit") {
        let (input, expected) = (&vector["input"], &vector["expected"]);
        let ranges = ranges(input);
        let in_force = limit_range::in_force(&ranges, super::NAMESPACE);
        let reasons = if input.get("pvc").is_some() {
            claims += 1;
            let request = &input["pvc"]["spec"]["resources"]["requests"];
            let request = pods::amounts(request).get(&"storage".into());
            limit_range::claim(request, &in_force)
        } else if expected.get("pod_after").is_none() {
            // Upstream's test of the bounds alone, without any default.
            assert_eq!(input["apply_limitrange_defaulting"], json!(false));
            assert_eq!(input["apply_pod_defaulting"], json!(false));
            checked += 1;
            limit_range::pod(&pod(&input["pod"]), &in_force, &[])
        } else {
            whole += 1;
            judge(pod(&input["pod"]), &ranges).reasons().to_vec()
        };
        assert_eq!(texts(&reasons), expected_texts(expected), "{vector}");
        assert_eq!(
            expected["admitted_by_limitrange"],
            json!(texts(&reasons).is_empty()),
            "{vector}"
        );
        for text in expected["spec_validation_errors_422_first"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let text = text.as_str().unwrap();
            let found = reasons
                .iter()
                .any(|reason| reason.to_string().starts_with(text));
            assert!(found, "{text:?} is not among {reasons:?}");
        }
    }
    assert_eq!((checked, whole, claims), (46, 32, 7));
}

#[test]
fn what_is_filled_in() {
    let mut pods = 0;
    for vector in vectors("admit") {
        let (input, expected) = (&vector["input"], &vector["expected"]);
        let Some(after) = expected.get("pod_after") else {
            continue;
        };
        pods += 1;
        let verdict = judge(pod(&input["pod"]), &ranges(input));
        let own = verdict.pod();
        for (field, containers) in [
            ("containers", &own.containers),
            ("initContainers", &own.init_containers),
        ] {
            for container in containers {
                let after = &after[field][&container.name];
                for list in [List::Requests, List::Limits] {
                    let expected = pods::amounts(&after[list.to_string()]);
                    assert_eq!(
                        container.resources.list(list),
                        &expected,
                        "{vector}, {list}"
                    );
                }
            }
        }
        if let Some(after) = after.get("podResources") {
            assert_eq!(own.resources, Some(pods::resources(after)), "{vector}");
        }
        let told = own.annotations.get(limit_range::ANNOTATION);
        let expected = match name(&vector) {
            // Upstream's second LimitRange overwrites what its first one said.
            "two LimitRanges with disjoint resources merge" => Some(
                "LimitRanger plugin set: cpu, memory request for container foo-0; \
                 cpu, memory limit for container foo-0",
            ),
            _ => expected["annotation"].as_str(),
        };
        assert_eq!(told.map(String::as_str), expected, "{vector}");
    }
    assert_eq!(pods, 32);
}

#[test]
fn what_is_derived() {
    let mut items = 0;
    for vector in vectors("admit") {
        let after = &vector["expected"]["limitRanges_after_defaulting"];
        for (given, after) in ranges(&vector["input"])
            .iter()
            .zip(after.as_array().into_iter().flatten())
        {
            let after = after["limits"].as_array().unwrap();
            assert_eq!(given.items.len(), after.len());
            for (item, after) in given.items.iter().zip(after) {
                items += 1;
                for (list, field) in [
                    (List::Limits, "default"),
                    (List::Requests, "defaultRequest"),
                ] {
                    let derived: ResourceList = item
                        .defaults(list)
                        .into_iter()
                        .map(|(name, (amount, _))| (name.clone(), amount))
                        .collect();
                    assert_eq!(derived, pods::amounts(&after[field]), "{vector}");
                }
            }
        }
    }
    assert_eq!(items, 35);
}

#[test]
fn what_is_sound() {
    let vectors = vectors("validate_limitrange");
    assert_eq!(vectors.len(), 15);
    for vector in vectors {
        let expected = &vector["expected"];
        let reasons = limit_range::validate(&range_of("abc", &vector["input"]["limits"]));
        assert_eq!(expected["valid"], json!(reasons.is_empty()), "{reasons:?}");
        if let Some(text) = expected["detail_contains"].as_str() {
            let found = reasons.iter().any(|reason| {
                reason.message.contains(text) && expected["field"] == json!(reason.field)
            });
            assert!(found, "{vector}: {reasons:?}");
        }
    }
}

#[test]
fn images() {
    let mut sizes = 0;
    for vector in vectors("admit_image") {
        let ranges = [range_of("abc", &vector["input"]["limits"])];
        let ranges = limit_range::in_force(&ranges, super::NAMESPACE);
        // One vector is about an image whose size the table does not say.
        let Some(size) = vector["input"]["image_size"].as_str() else {
            continue;
        };
        sizes += 1;
        let reason = limit_range::image(size.parse().unwrap(), &ranges);
        let text = reason.map(|reason| reason.message);
        let expected = vector["expected"]["forbidden_reason"].as_str();
        let expected = expected.map(|text| format!("{text}; LimitRange abc"));
        assert_eq!(text, expected, "{vector}");
    }
    assert_eq!(sizes, 3);
}

#[test]
fn image_streams() {
    let vectors = vectors("imagestream_limits");
    assert_eq!(vectors.len(), 6);
    for vector in vectors {
        let ranges: Vec<_> = vector["input"]["limitRanges"]
            .as_array()
            .unwrap()
            .iter()
            .map(|items| range_of("abc", items))
            .collect();
        let ranges = limit_range::in_force(&ranges, super::NAMESPACE);
        let limits = limit_range::stream_limits(&ranges);
        assert_eq!(shown(&limits), vector["expected"]["max"], "{vector}");
    }
}

#[test]
fn an_image_stream_may_keep_what_it_has() {
    let items = json!([{
        "type": "openshift.io/ImageStream",
        "max": {"openshift.io/images": "5", "openshift.io/image-tags": "3"},
    }]);
    let range = range_of("abc", &items);
    assert_eq!(range.items[0].kind, LimitType::ImageStream);
    let told = |images, tags, before: (u64, u64)| -> Vec<String> {
        let now = StreamCounts { images, tags };
        let before = StreamCounts {
            images: before.0,
            tags: before.1,
        };
        let reasons = limit_range::stream(now, before, &[&range]);
        reasons.into_iter().map(|reason| reason.message).collect()
    };
    let six = "requested usage of openshift.io/images exceeds the maximum limit per \
               openshift.io/ImageStream (6 > 5); LimitRange abc";
    let four = "requested usage of openshift.io/image-tags exceeds the maximum limit per \
                openshift.io/ImageStream (4 > 3); LimitRange abc";
    assert_eq!(told(5, 3, (0, 0)), [""; 0]);
    assert_eq!(told(6, 4, (0, 0)), [six, four]);
    assert_eq!(told(6, 4, (6, 3)), [four]);
    assert_eq!(told(6, 3, (7, 3)), [""; 0]);
}
