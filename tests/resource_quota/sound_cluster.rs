//! Which quotas of several namespaces are read and refused when they are made.

use allotd::admission::quota::validate_cluster;
use allotd::manifest::{Object, Strictness, convert, read};
use allotd::model::{ClusterResourceQuota, Namespace};
use serde_json::{Value, json};

use super::pods;

fn object(spec: &Value, status: &Value) -> Value {
    json!({"apiVersion": "quota.openshift.io/v1", "kind": "ClusterResourceQuota",
        "metadata": {"name": "team"}, "spec": spec, "status": status})
}

/// The quota that a text holds, and everything that is wrong with it.
fn converted(object: &Value) -> (ClusterResourceQuota, Vec<String>) {
    let manifest = read("-", object.to_string().as_bytes(), Strictness::Strict);
    let mut told: Vec<_> = manifest.problems.iter().map(ToString::to_string).collect();
    let Some(Object::ClusterResourceQuota(written)) = manifest.objects.first().map(|it| &it.object)
    else {
        return (ClusterResourceQuota::default(), told);
    };
    let read = convert::cluster_resource_quota(written);
    told.extend(read.problems.iter().map(ToString::to_string));
    let reasons = validate_cluster(&read.object);
    told.extend(reasons.iter().map(ToString::to_string));
    (read.object, told)
}

fn told(spec: &Value) -> Vec<String> {
    converted(&object(spec, &json!({}))).1
}

#[test]
fn the_quotas_of_the_openshift_documentation_are_sound() {
    for selector in [
        json!({"annotations": {"openshift.io/requester": "user-1"}}),
        json!({"annotations": {"openshift.io/requester": "user-1"}, "labels": null}),
        json!({"labels": {"matchLabels": {"name": "frontend"}}}),
        json!({"labels": {"matchExpressions": [{"key": "a.b/tier", "operator": "In", "values": ["x", ""]}]}}),
    ] {
        let quota = json!({"hard": {"pods": "10", "secrets": "20"}});
        assert_eq!(
            told(&json!({"selector": selector, "quota": quota})),
            [""; 0],
            "{selector}"
        );
    }
}

#[test]
fn a_quota_must_choose_and_everything_wrong_is_told_at_once() {
    let restrict = "must restrict the selected projects";
    for (spec, expected) in [
        (
            json!({}),
            format!("spec.selector: Required value: {restrict}"),
        ),
        (
            json!({"selector": {"annotations": {}}}),
            format!("spec.selector: Required value: {restrict}"),
        ),
        // As upstream, even beside annotations.
        (
            json!({"selector": {"labels": {}, "annotations": {"a": "b"}}}),
            format!("spec.selector.labels: Invalid value: \"{{}}\": {restrict}"),
        ),
    ] {
        assert_eq!(told(&spec), [expected], "{spec}");
    }
    assert_eq!(
        told(&json!({
            "selector": {
                "labels": {
                    "matchLabels": {"a b": "c", "d": "-"},
                    "matchExpressions": [
                        {"key": "a", "operator": "In"},
                        {"key": "a", "operator": "Exists", "values": ["b"]},
                        {"key": "a", "operator": "NotIn", "values": ["-"]},
                        {"key": "/", "operator": "DoesNotExist"},
                        {"key": "a", "operator": "Is"},
                    ],
                },
                "annotations": {"b c": "d"},
            },
            "quota": {
                "hard": {"pods": "0.5", "memory": "x"},
                "scopes": ["BestEffort", "Often"],
                "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In"}]},
            },
        }))
        .iter()
        .map(|text| text.split(": ").take(3).collect::<Vec<_>>().join(": "))
        .collect::<Vec<_>>(),
        [
            "spec.selector.labels.matchExpressions[4].operator: Invalid value: \"Is\"",
            "spec.quota.hard[memory]: quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$': \"x\" is not a quantity; write a number with \
             one of the suffixes n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as e3",
            "spec.quota.scopes[1]: Invalid value: \"Often\"",
            "spec.selector.labels.matchLabels: Invalid value: \"a b\"",
            "spec.selector.labels.matchLabels: Invalid value: \"-\"",
            "spec.selector.labels.matchExpressions[0].values: Required value: must be specified when \
             `operator` is 'In' or 'NotIn'",
            "spec.selector.labels.matchExpressions[1].values: Forbidden: may not be specified when \
             `operator` is 'Exists' or 'DoesNotExist'",
            "spec.selector.labels.matchExpressions[2].values[0]: Invalid value: \"-\"",
            "spec.selector.labels.matchExpressions[3].key: Invalid value: \"/\"",
            "spec.selector.labels.matchExpressions[3].key: Invalid value: \"/\"",
            "spec.selector.annotations: Invalid value: \"b c\"",
            "spec.quota.hard[pods]: Invalid value: \"500m\"",
            "spec.quota.scopeSelector.matchExpressions[0].values: Required value: must be at least one \
             value when `operator` is 'In' or 'NotIn' for scope selector",
        ]
    );
    let (_, nameless) = converted(&json!({
        "apiVersion": "quota.openshift.io/v1", "kind": "ClusterResourceQuota", "metadata": {"name": "A"},
        "spec": {"selector": {"annotations": {"a": "b"}}},
    }));
    assert_eq!(nameless.len(), 1, "{nameless:?}");
}

#[test]
fn unknown_fields_and_wrong_values_are_told_by_place() {
    for (spec, expected) in [
        (
            json!({"selector": {"label": {}}}),
            "spec.selector.label: \"label\" is not a field",
        ),
        (json!({"hard": {}}), "spec.hard: \"hard\" is not a field"),
        (json!({"quota": {"hard": []}}), "spec.quota.hard"),
        (
            json!({"selector": {"annotations": {"a": 1}}}),
            "spec.selector.annotations[a]: is the number 1",
        ),
    ] {
        let told = told(&spec);
        assert!(told[0].contains(expected), "{spec}: {told:?}");
    }
}

#[test]
fn what_the_status_says_of_each_namespace_counts_and_its_total_does_not() {
    let used = |n: &str| json!({"used": {"pods": n}});
    let spec = json!({"selector": {"annotations": {"a": "b"}}, "quota": {"hard": {"pods": "9", "nvidia.com/gpu": "1"}}});
    let part = |name: &str, n: &str| json!({"namespace": name, "status": used(n)});
    let status = json!({"total": used("7"), "namespaces": [part("n1", "1"), part("n2", "2")]});
    let (quota, problems) = converted(&object(&spec, &status));
    assert_eq!(problems, [""; 0]);
    assert_eq!(
        quota.quota.used,
        pods::amounts(&json!({"pods": "3", "nvidia.com/gpu": "0"}))
    );
    let share = quota.share_of("n2");
    assert_eq!(share.used, pods::amounts(&json!({"pods": "2"})));
    assert_eq!(share.hard, quota.quota.hard);
    assert_eq!(
        super::warnings(&quota.quota),
        [
            "ClusterResourceQuota team: nvidia.com/gpu counts nothing; requests.nvidia.com/gpu counts what is asked for"
        ]
    );
    let twice = json!({"namespaces": [part("n1", "1"), part("n1", "2")]});
    assert_eq!(
        converted(&object(&spec, &twice)).1,
        ["status.namespaces[1].namespace: \"n1\" is given twice"]
    );
}

#[test]
fn labels_and_annotations_must_both_match() {
    let spec = json!({"selector": {
        "annotations": {"openshift.io/requester": "alice"},
        "labels": {"matchLabels": {"tier": "web"}},
    }});
    let (quota, _) = converted(&object(&spec, &json!({})));
    for (labels, annotations, expected) in [
        (
            json!({"tier": "web", "x": "y"}),
            json!({"openshift.io/requester": "alice"}),
            true,
        ),
        (
            json!({"tier": "web"}),
            json!({"openshift.io/requester": "bob"}),
            false,
        ),
        (
            json!({"tier": "db"}),
            json!({"openshift.io/requester": "alice"}),
            false,
        ),
        (json!(null), json!(null), false),
    ] {
        let written =
            json!({"metadata": {"name": "n", "labels": labels, "annotations": annotations}});
        let namespace = convert::namespace(&serde_json::from_value(written).unwrap());
        assert_eq!(
            quota.selector.selects(&namespace),
            expected,
            "{namespace:?}"
        );
    }
    let by_name =
        json!({"selector": {"labels": {"matchLabels": {"kubernetes.io/metadata.name": "demo"}}}});
    let (quota, _) = converted(&object(&by_name, &json!({})));
    assert!(quota.selector.selects(&Namespace::named("demo")));
}
