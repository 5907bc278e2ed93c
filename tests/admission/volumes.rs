//! Volumes and mounts: what is refused, in which words and at which path.

use allotd::manifest::convert::{self, placeholder_uid};
use serde_json::{Value, json};

use crate::refusals;

/// What is wrong with a pod of one container with these mounts, and with these volumes.
fn told(volumes: &Value, mounts: &Value) -> Vec<String> {
    let pod = json!({
        "metadata": {"name": "web"},
        "spec": {
            "containers": [{"name": "c", "image": "i", "volumeMounts": mounts}],
            "volumes": volumes,
        },
    });
    let pod = serde_json::from_value(pod).unwrap();
    let read = convert::pod(&pod, &placeholder_uid("default", "web").unwrap());
    let unread = read.problems.iter().map(ToString::to_string);
    unread.chain(refusals(read.object)).collect()
}

#[test]
fn sound_volumes_are_taken() {
    let volumes = json!([
        {"name": "disk", "emptyDir": {"sizeLimit": "1Gi"}},
        {"name": "mem", "emptyDir": {"medium": "Memory", "sizeLimit": "0"}},
        {"name": "host", "hostPath": {"path": "/x"}},
    ]);
    let mounts = json!([
        {"name": "disk", "mountPath": "/tmp"},
        {"name": "mem", "mountPath": "/procs", "readOnly": true},
        {"name": "host", "mountPath": "/mnt"},
    ]);
    assert_eq!(told(&volumes, &mounts), [""; 0]);
}

#[test]
fn each_rule_is_told_where_it_is_broken() {
    let one = json!([{"name": "v", "emptyDir": {}}]);
    let at = |path: &str| json!([{"name": "v", "mountPath": path}]);
    let mount = "spec.containers[0].volumeMounts[0]";
    for (volumes, mounts, expected) in [
        (
            json!([{"name": "V_", "emptyDir": {}}]),
            json!([]),
            "spec.volumes[0].name: Invalid value: \"V_\": ".to_owned(),
        ),
        (
            json!([{"name": "v", "hostPath": {"path": "/"}}, {"name": "v", "emptyDir": {}}]),
            json!([]),
            "spec.volumes[1].name: Duplicate value: \"v\"".to_owned(),
        ),
        (
            json!([{"name": "v", "emptyDir": {"medium": "HugePages"}}]),
            json!([]),
            "spec.volumes[0].emptyDir.medium: Unsupported value: \"HugePages\"".to_owned(),
        ),
        (
            json!([{"name": "v", "emptyDir": {"sizeLimit": "-1"}}]),
            json!([]),
            "spec.volumes[0].emptyDir.sizeLimit: Invalid value: \"-1\": must be greater than or equal to 0".to_owned(),
        ),
        (
            json!([{"name": "v", "emptyDir": {"sizeLimit": "1 GB"}}]),
            json!([]),
            "spec.volumes[0].emptyDir.sizeLimit: ".to_owned(),
        ),
        (
            one.clone(),
            json!([{"name": "w", "mountPath": "/tmp"}]),
            format!("{mount}.name: Not found: \"w\""),
        ),
        (one.clone(), at(""), format!("{mount}.mountPath: Required value")),
        (
            one.clone(),
            at("tmp"),
            format!("{mount}.mountPath: Invalid value: \"tmp\": must be an absolute path"),
        ),
        (
            one.clone(),
            at("/tmp/../etc"),
            format!("{mount}.mountPath: Invalid value: \"/tmp/../etc\": must not contain '.' or '..'"),
        ),
        (
            one.clone(),
            at("//"),
            format!("{mount}.mountPath: Invalid value: \"//\": must not hide /"),
        ),
        (
            one.clone(),
            at("/proc/sys"),
            format!("{mount}.mountPath: Invalid value: \"/proc/sys\": must not hide /"),
        ),
        (
            one.clone(),
            json!([{"name": "v", "mountPath": "/tmp", "subPath": "a"}]),
            format!("{mount}.subPath: Forbidden: is not supported"),
        ),
        (
            one.clone(),
            json!([{"name": "v", "mountPath": "/tmp"}, {"name": "v", "mountPath": "/tmp/"}]),
            "spec.containers[0].volumeMounts[1].mountPath: Invalid value: \"/tmp/\": must be unique"
                .to_owned(),
        ),
    ] {
        let told = told(&volumes, &mounts);
        assert_eq!(told.len(), 1, "{volumes} {mounts}: {told:?}");
        assert!(told[0].contains(&expected), "{expected}: {told:?}");
    }
}

#[test]
fn all_faults_of_a_volume_are_told_together() {
    let volume = json!([{"name": "V!", "emptyDir": {"medium": "HugePages", "sizeLimit": "-1Ki"}}]);
    let found = told(&volume, &json!([{"name": "w", "mountPath": "tmp"}]));
    let faults = [
        "volumes[0].name: Invalid value: \"V!\"",
        "volumes[0].emptyDir.medium: Unsupported value: \"HugePages\"",
        "volumes[0].emptyDir.sizeLimit: Invalid value: \"-1Ki\": must be greater than or equal to 0",
        "volumeMounts[0].name: Not found: \"w\"",
        "volumeMounts[0].mountPath: Invalid value: \"tmp\"",
    ];
    assert_eq!(found.len(), faults.len(), "{found:?}");
    for (found, fault) in found.iter().zip(faults) {
        assert!(found.contains(fault), "{fault}: {found}");
    }
}

#[test]
fn numbers_are_bounded() {
    let many = |number: usize| -> Value {
        let volume = |index| json!({"name": format!("v{index}"), "emptyDir": {}});
        (0..number).map(volume).collect()
    };
    assert_eq!(told(&many(256), &json!([])), [""; 0]);
    let refused = told(&many(257), &json!([]));
    assert_eq!(
        refused,
        ["spec.volumes: Too many: 257: must have at most 256 items"]
    );
}
