//! What a pod says of its security reaches the shim, and its volumes.

use std::fs;
use std::os::unix::fs::MetadataExt;

use serde_json::{Value, json};

use super::bench::{Bench, one, runs};
use crate::agent::request::PodKey;

#[test]
fn what_a_pod_says_of_its_security_reaches_the_shim() {
    let group = nix::unistd::getegid().as_raw();
    let mut bench = Bench::new();
    let mut spec = one("Always");
    spec["securityContext"] = json!({"runAsUser": 1000, "runAsNonRoot": true, "fsGroup": group});
    spec["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    spec["containers"][0]["securityContext"] = json!({"allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true, "capabilities": {"drop": ["NET_RAW"]}});
    bench.next_process();
    let key = bench.create("web", &spec);
    bench.until("it to run", |agent| {
        runs(agent, &PodKey::new("default", "web"), "c")
    });
    let attempt = bench.attempt(&key, "c", 0);
    let told = fs::read(attempt.join("spec.json")).unwrap();
    let told: Value = serde_json::from_slice(&told).unwrap();
    assert_eq!(
        told["security"],
        json!({"user": 1000, "group": null, "groups": [group], "mustNotBeRoot": true,
            "dropped": 1 << 13, "added": 0, "noNewPrivileges": true, "hasReadOnlyRoot": true})
    );
    let volume = attempt.join("../../.volumes/data").canonicalize().unwrap();
    assert_eq!(told["volumes"], json!([volume]));
    let volume = fs::metadata(volume).unwrap();
    assert_eq!((volume.gid(), volume.mode() & 0o7777), (group, 0o2777));
}

#[test]
fn what_cannot_be_honoured_is_refused_with_its_place() {
    let mut bench = Bench::new();
    for (context, field) in [
        (json!({"privileged": true}), "privileged"),
        (json!({"runAsNonRoot": true}), "runAsUser"),
        (
            json!({"capabilities": {"add": ["SYS_ADMIN"]}}),
            "capabilities.add",
        ),
    ] {
        let mut spec = one("Always");
        spec["containers"][0]["securityContext"] = context;
        let refusal = bench.send("web", &spec).unwrap_err();
        assert_eq!(refusal.code, 422, "{refusal:?}");
        let field = format!("spec.containers[0].securityContext.{field}");
        assert_eq!(refusal.causes[0].field, field);
    }
}
