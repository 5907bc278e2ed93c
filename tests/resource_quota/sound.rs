//! Which quotas are refused when they are made, and which are merely odd.

use allotd::admission::quota::validate;
use allotd::manifest::convert;
use allotd::model::ResourceQuota;
use serde_json::{Value, json};

use super::vectors::vectors;

/// Everything that is wrong with a quota of this spec: what cannot be read, then what is not allowed.
fn told(spec: &Value) -> Vec<String> {
    let object = json!({"metadata": {"name": "q", "namespace": "demo"}, "spec": spec});
    let read = convert::resource_quota(&serde_json::from_value(object).unwrap());
    let remarks = read.problems.iter().map(ToString::to_string);
    let reasons = validate(&read.object);
    let reasons = reasons.iter().map(ToString::to_string);
    remarks.chain(reasons).collect()
}

#[test]
fn what_kubernetes_takes_and_refuses() {
    let vectors = vectors(&["validate_resourcequota"]);
    assert_eq!(vectors.len(), 22);
    let mut own = 0;
    for vector in vectors {
        let (input, expected) = (&vector["input"], &vector["expected"]);
        let told = told(&input["spec"]);
        if vector["name"]
            == "validate ResourceQuota: ephemeral-storage with NotTerminating is rejected"
        {
            // OpenShift's documentation has this very quota; upstream forgot the resource
            // (kubernetes#102996).
            own += 1;
            assert_eq!(told, [""; 0]);
            continue;
        }
        assert_eq!(
            expected["valid"],
            json!(told.is_empty()),
            "{vector}: {told:?}"
        );
        if let Some(text) = expected["detail_contains"].as_str() {
            let found = told.iter().any(|told| told.contains(text));
            assert!(found, "{vector}: {told:?}");
        }
    }
    assert_eq!(own, 1);
}

#[test]
fn the_quotas_of_the_openshift_documentation_are_sound() {
    for spec in [
        json!({"hard": {"configmaps": "10", "persistentvolumeclaims": "4", "replicationcontrollers": "20",
                        "secrets": "10", "services": "10"}}),
        json!({"hard": {"openshift.io/imagestreams": "10"}}),
        json!({"hard": {"pods": "4", "requests.cpu": "1", "requests.memory": "1Gi",
                        "requests.ephemeral-storage": "2Gi", "limits.cpu": "2", "limits.memory": "2Gi",
                        "limits.ephemeral-storage": "4Gi"}}),
        json!({"hard": {"pods": "1"}, "scopes": ["BestEffort"]}),
        json!({"hard": {"pods": "4", "limits.cpu": "4", "limits.memory": "2Gi",
                        "limits.ephemeral-storage": "4Gi"}, "scopes": ["NotTerminating"]}),
        json!({"hard": {"pods": "2", "limits.cpu": "1", "limits.memory": "1Gi",
                        "limits.ephemeral-storage": "1Gi"}, "scopes": ["Terminating"]}),
        json!({"hard": {"persistentvolumeclaims": "10", "requests.storage": "50Gi",
                        "gold.storageclass.storage.k8s.io/requests.storage": "10Gi",
                        "bronze.storageclass.storage.k8s.io/persistentvolumeclaims": "0"}}),
        json!({"hard": {"count/deployments.extensions": "2", "count/pods": "3", "count/secrets": "4"}}),
        json!({"hard": {"requests.nvidia.com/gpu": 1}}),
    ] {
        assert_eq!(told(&spec), [""; 0], "{spec}");
    }
}

#[test]
fn every_contradiction_is_told_at_once() {
    assert_eq!(
        told(&json!({
            "hard": {"cpu": "-1", "pods": "500m", "storage": "1Gi", "requests.hugepages-2Mi": "1Gi",
                     "requests.example.com/gpu": "1500m", "memory": "x", "a b": "1"},
            "scopes": ["BestEffort", "NotBestEffort", "Sometimes"],
            "scopeSelector": {"matchExpressions": [
                {"scopeName": "Terminating", "operator": "In", "values": ["a"]},
                {"scopeName": "PriorityClass", "operator": "In"},
                {"scopeName": "PriorityClass", "operator": "Is", "values": ["a"]},
            ]},
        })),
        [
            "spec.hard[memory]: quantities must match the regular expression \
             '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$': \"x\" is not a quantity; write a number with \
             one of the suffixes n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as e3",
            "spec.scopes[2]: Invalid value: \"Sometimes\": unsupported scope: it is one of Terminating, \
             NotTerminating, BestEffort, NotBestEffort, PriorityClass, CrossNamespacePodAffinity, \
             VolumeAttributesClass",
            "spec.scopeSelector.matchExpressions[2].operator: Invalid value: \"Is\": unsupported operator: \
             it is one of In, NotIn, Exists, DoesNotExist",
            "spec.hard[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
            "spec.hard[pods]: Invalid value: \"500m\": must be an integer",
            "spec.hard[a b]: Invalid value: \"a b\": name part must consist of alphanumeric characters, \
             '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName', or \
             'my.name', or '123-abc')",
            "spec.hard[requests.example.com/gpu]: Invalid value: \"1500m\": must be an integer",
            "spec.hard[storage]: Invalid value: \"storage\": must be a standard resource for quota",
            "spec.scopes: Invalid value: \"BestEffort\": unsupported scope applied to resource cpu, \
             requests.hugepages-2Mi",
            "spec.scopes: Invalid value: \"NotBestEffort\": unsupported scope applied to resource \
             requests.hugepages-2Mi",
            "spec.scopes: Invalid value: \"NotBestEffort\": conflicting scopes: nothing is both BestEffort \
             and NotBestEffort",
            "spec.scopeSelector.matchExpressions[0].scopeName: Invalid value: \"Terminating\": \
             unsupported scope applied to resource requests.hugepages-2Mi",
            "spec.scopeSelector.matchExpressions[1].scopeName: Invalid value: \"PriorityClass\": \
             unsupported scope applied to resource requests.hugepages-2Mi",
            "spec.scopeSelector.matchExpressions[0].operator: Invalid value: \"In\": must be 'Exists' when \
             scope is any of Terminating, NotTerminating, BestEffort, NotBestEffort, \
             CrossNamespacePodAffinity",
            "spec.scopeSelector.matchExpressions[1].values: Required value: must be at least one value \
             when `operator` is 'In' or 'NotIn' for scope selector",
        ]
    );
}

#[test]
fn bare_extended_resources_count_nothing_and_that_is_told() {
    let quota = super::quota_of(
        "q",
        &json!({"nvidia.com/gpu": "4", "limits.nvidia.com/gpu": "4", "requests.nvidia.com/gpu": "4",
                "count/jobs.batch": "1", "openshift.io/imagestreams": "1", "cpu": "1",
                "gold.storageclass.storage.k8s.io/requests.storage": "1Gi"}),
        &json!({}),
    );
    let bare = "counts nothing; requests.nvidia.com/gpu counts what is asked for";
    assert_eq!(
        super::warnings(&quota),
        [
            format!("ResourceQuota q: limits.nvidia.com/gpu {bare}"),
            format!("ResourceQuota q: nvidia.com/gpu {bare}"),
        ]
    );
}

#[test]
fn names_and_sizes_are_bounded() {
    let nameless: Vec<_> = validate(&ResourceQuota::default())
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        nameless,
        [
            "metadata.name: Required value",
            "metadata.namespace: Required value"
        ]
    );
    let hard: serde_json::Map<_, _> = (0..1001)
        .map(|n| (format!("count/r{n}"), json!("1")))
        .collect();
    assert_eq!(
        told(&json!({"hard": hard})),
        ["spec.hard: Too many: 1001: must have at most 1000 items"]
    );
}
