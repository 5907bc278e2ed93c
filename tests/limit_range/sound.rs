//! Which LimitRanges are refused when they are made, and which are merely odd.

use allotd::admission::limit_range::{in_force, validate};
use allotd::admission::lint::limit_ranges;
use allotd::model::LimitRange;
use serde_json::{Value, json};

use super::{NAMESPACE, range_of};

fn told(items: &Value) -> Vec<String> {
    let reasons = validate(&range_of("abc", items));
    reasons.iter().map(ToString::to_string).collect()
}

/// What everybody is told of them.
fn warnings(ranges: &[&LimitRange]) -> Vec<String> {
    let findings = limit_ranges(ranges).into_iter();
    let told = findings.filter(|finding| finding.lint.is_always_told());
    told.map(|finding| finding.to_string()).collect()
}

#[test]
fn the_limit_ranges_of_the_openshift_documentation_are_sound() {
    for items in [
        json!([
            {"type": "Pod", "max": {"cpu": "2", "memory": "1Gi"}, "min": {"cpu": "200m", "memory": "6Mi"}},
            {"type": "Container", "max": {"cpu": "2", "memory": "1Gi"}, "min": {"cpu": "100m", "memory": "4Mi"},
             "default": {"cpu": "300m", "memory": "200Mi"},
             "defaultRequest": {"cpu": "200m", "memory": "100Mi"}, "maxLimitRequestRatio": {"cpu": "10"}},
        ]),
        json!([
            {"type": "openshift.io/Image", "max": {"storage": "1Gi"}},
            {"type": "openshift.io/ImageStream",
             "max": {"openshift.io/image-tags": 20, "openshift.io/images": 30}},
            {"type": "Pod", "max": {"cpu": "2", "memory": "1Gi", "ephemeral-storage": "1Gi"},
             "min": {"cpu": "1", "memory": "1Gi"}},
        ]),
        json!([{"type": "PersistentVolumeClaim", "min": {"storage": "2Gi"}, "max": {"storage": "50Gi"}}]),
    ] {
        assert_eq!(told(&items), [""; 0]);
        assert_eq!(warnings(&[&range_of("abc", &items)]), [""; 0]);
    }
}

#[test]
fn every_contradiction_is_told_at_once() {
    assert_eq!(
        told(&json!([
            {"type": "Container", "max": {"cpu": "1", "example.com/gpu": "2"}, "min": {"cpu": "2"},
             "default": {"cpu": "3"}, "defaultRequest": {"cpu": "4", "example.com/gpu": "1"},
             "maxLimitRequestRatio": {"memory": "500m"}},
            {"type": "Container"},
            {"type": "container"},
            {"type": "PersistentVolumeClaim", "max": {"cpu": "1"}},
        ])),
        [
            "spec.limits[0].maxLimitRequestRatio[memory]: Invalid value: \"500m\": ratio 500m is less than 1",
            "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1",
            "spec.limits[0].defaultRequest[cpu]: Invalid value: \"4\": default request value 4 is greater than max value 1",
            "spec.limits[0].defaultRequest[cpu]: Invalid value: \"4\": default request value 4 is greater than default limit value 3",
            "spec.limits[0].default[cpu]: Invalid value: \"3\": default value 3 is greater than max value 1",
            "spec.limits[0].defaultRequest[example.com/gpu]: Invalid value: \"1\": default value 2 must equal to defaultRequest value 1 in example.com/gpu",
            "spec.limits[1].type: Duplicate value: \"Container\"",
            "spec.limits[2].type: Invalid value: \"container\": must be a standard limit type or fully qualified",
            "spec.limits[3].limits: Required value: either minimum or maximum storage value is required, but neither was provided",
        ]
    );
    assert_eq!(
        told(&json!([
            {"type": "Container", "min": {"cpu": "2"}, "default": {"cpu": "1"}, "defaultRequest": {"cpu": "1"}},
        ])),
        [
            "spec.limits[0].defaultRequest[cpu]: Invalid value: \"1\": min value 2 is greater than default request value 1",
            "spec.limits[0].default[cpu]: Invalid value: \"1\": min value 2 is greater than default value 1",
        ]
    );
}

#[test]
fn amounts_must_be_possible() {
    assert_eq!(
        told(&json!([
            {"type": "Container", "min": {"cpu": "-1"},
             "default": {"example.com/gpu": "500m", "hugepages-2Mi": "3Mi"}},
        ])),
        [
            "spec.limits[0].min[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
            "spec.limits[0].default[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi",
            "spec.limits[0].default[example.com/gpu]: Invalid value: \"500m\": must be an integer",
        ]
    );
}

#[test]
fn names_and_sizes_are_bounded() {
    let nameless = LimitRange::default();
    let reasons: Vec<_> = validate(&nameless)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        reasons,
        [
            "metadata.name: Required value",
            "metadata.namespace: Required value"
        ]
    );
    let items: Vec<_> = (0..65)
        .map(|n| json!({"type": format!("x.y/t{n}")}))
        .collect();
    assert_eq!(
        told(&json!(items)),
        ["spec.limits: Too many: 65: must have at most 64 items"]
    );
    let names: serde_json::Map<_, _> = (0..65).map(|n| (format!("x.y/r{n}"), json!("1"))).collect();
    assert_eq!(
        told(&json!([{"type": "Container", "max": names}])),
        ["spec.limits[0].max: Too many: 65: must have at most 64 items"]
    );
}

/// The quotient is compared exactly, at the ends of what an amount can be too.
#[test]
fn ratios_are_exact() {
    let ratio = |max: &str, min: &str, ratio: &str| {
        told(
            &json!([{"type": "Pod", "max": {"memory": max}, "min": {"memory": min},
                      "maxLimitRequestRatio": {"memory": ratio}}]),
        )
    };
    assert_eq!(ratio("3", "2", "1500m"), [""; 0]);
    assert_eq!(ratio("1e26", "1m", "100000e21"), [""; 0]);
    assert_eq!(
        ratio("3", "2", "1501m"),
        [
            "spec.limits[0].maxLimitRequestRatio[memory]: Invalid value: \"1501m\": ratio 1501m is greater \
          than max/min = 1.500000"
        ]
    );
    assert_eq!(ratio("2", "1", "1e28").len(), 1);
}

#[test]
fn what_no_container_can_keep_is_a_warning() {
    let a = range_of("a", &json!([{"type": "Container", "max": {"cpu": "100m"}}]));
    let b = range_of("b", &json!([{"type": "Container", "min": {"cpu": "200m"}}]));
    let both = [b, a];
    assert_eq!(
        warnings(&in_force(&both, NAMESPACE)),
        [
            "LimitRange b: min 200m of cpu is greater than max 100m of LimitRange a, so no Container can keep both",
            "LimitRange b: a container that gives no amounts itself is refused: minimum cpu usage per Container is 200m, but request is 100m",
        ]
    );
    let ratio = range_of(
        "r",
        &json!([{"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "100m"},
                 "maxLimitRequestRatio": {"cpu": "4"}}]),
    );
    assert_eq!(
        warnings(&[&ratio]),
        [
            "LimitRange r: a container that gives no amounts itself is refused: cpu max limit to request \
          ratio per Container is 4, but provided ratio is 10.000000"
        ]
    );
    // A bound that asks containers to give an amount is meant.
    let strict = range_of(
        "s",
        &json!([{"type": "Container", "maxLimitRequestRatio": {"cpu": "4"}}]),
    );
    assert_eq!(warnings(&[&strict]), [""; 0]);
}
