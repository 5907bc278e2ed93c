//! What a pod says of its security reaches the shim, and its volumes.

use std::fs;
use std::os::unix::fs::MetadataExt;

use serde_json::{Value, json};

use super::bench::{Bench, one, runs};
use crate::agent::request::PodKey;
use crate::config::Config;

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
        (json!({"runAsNonRoot": true, "runAsUser": 0}), "runAsUser"),
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

fn allow_root(config: &mut Config) {
    config.allow_root_containers = true;
}

/// What the store keeps of a pod's container.
fn context(bench: &mut Bench, key: &PodKey) -> Value {
    let spec = bench.entry(key).record.object.spec.clone().unwrap();
    serde_json::to_value(&spec.containers[0].security_context).unwrap()
}

#[test]
fn who_a_silent_pod_is_stands_in_it_and_outlives_other_settings() {
    let mut bench = Bench::new();
    let (key, pid) = bench.run("web", &one("Always"));
    let filled =
        json!({"runAsUser": 65534, "runAsGroup": 65534, "allowPrivilegeEscalation": false});
    assert_eq!(context(&mut bench, &key), filled);
    let told = fs::read(bench.attempt(&key, "c", 0).join("spec.json")).unwrap();
    let told: Value = serde_json::from_slice(&told).unwrap();
    let security = &told["security"];
    let expected = json!([65534, 65534, true]);
    assert_eq!(
        json!([
            security["user"],
            security["group"],
            security["noNewPrivileges"]
        ]),
        expected
    );
    let defaults = &bench.entry(&key).record.defaults;
    let defaults = defaults.iter().filter(|row| row.is_of_security());
    let rows: Vec<_> = defaults
        .map(|row| format!("{} {} {}", row.resource, row.amount, row.rule))
        .collect();
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert!(rows[0].starts_with("runAsUser 65534 default of the node"));

    bench.settings(|config| config.default_run_as_user = 12);
    bench.crash();
    assert_eq!(context(&mut bench, &key), filled);
    assert_eq!(bench.processes(&key, "c"), [pid]);
    // A new one is the other user.
    let (other, _) = bench.run("other", &one("Always"));
    assert_eq!(context(&mut bench, &other)["runAsUser"], 12);
}

#[test]
fn a_pod_that_was_let_be_root_stays_it_under_a_stricter_agent() {
    let mut bench = Bench::with(allow_root);
    let (silent, pid) = bench.run("silent", &one("Always"));
    assert_eq!(context(&mut bench, &silent), Value::Null);
    let mut spec = one("Always");
    spec["containers"][0]["securityContext"] = json!({"runAsUser": 0,
        "allowPrivilegeEscalation": true, "capabilities": {"drop": ["ALL"], "add": ["CHOWN"]}});
    let given = spec["containers"][0]["securityContext"].clone();
    let (root, root_pid) = bench.run("root", &spec);

    bench.settings(|_| {});
    bench.crash();
    assert!(bench.agent().stranded.is_empty());
    assert!(bench.agent().problems.is_empty());
    for (key, pid, given) in [(&silent, pid, Value::Null), (&root, root_pid, given)] {
        assert_eq!(context(&mut bench, key), given);
        assert!(runs(bench.agent(), key, "c"));
        assert_eq!(bench.processes(key, "c"), [pid]);
    }
    // Other amounts, and other labels, are no new pod.
    let mut object = bench.entry(&root).record.object.clone();
    let more = serde_json::from_value(json!({"limits": {"cpu": "200m", "memory": "64Mi"},
        "requests": {"cpu": "200m", "memory": "64Mi"}}));
    object.spec.as_mut().unwrap().containers[0].resources = more.unwrap();
    bench.agent().resize_pod(&object, false).unwrap();
    let labels = [("a".to_owned(), "b".to_owned())].into_iter().collect();
    object = bench.entry(&root).record.object.clone();
    object.metadata.labels = Some(labels);
    let put = crate::agent::request::Put {
        new: false,
        dry_run: false,
    };
    bench.agent().put_pod(Box::new(object), put).unwrap();

    let refusal = bench.send("another", &spec).unwrap_err();
    assert_eq!((refusal.code, refusal.reason.as_str()), (403, "Forbidden"));
    let fields: Vec<_> = refusal.causes.iter().map(|it| it.field.as_str()).collect();
    let place = "spec.containers[0].securityContext";
    let expected = ["runAsUser", "allowPrivilegeEscalation", "capabilities.add"]
        .map(|field| format!("{place}.{field}"));
    assert_eq!(fields, expected);
    let begins = format!(
        "pods \"another\" is forbidden: [{place}.runAsUser: must not run as root: \
         allowRootContainers is false on this node"
    );
    assert!(refusal.message.starts_with(&begins), "{}", refusal.message);

    // Nor has a reload of the settings any effect on who is there.
    let mut config = bench.agent().config.clone();
    config.allow_root_containers = true;
    let told = bench.agent().reload(Ok(Box::new(config))).unwrap().told();
    assert!(told.ends_with("changed: allowRootContainers"), "{told}");
    bench.create("another", &spec);
}

#[test]
fn a_dry_run_is_refused_and_filled_in_alike() {
    let mut bench = Bench::new();
    let mut pod = json!({"metadata": {"name": "web"}, "spec": one("Always")});
    let mut try_it = |pod: &Value| {
        let object = Box::new(serde_json::from_value(pod.clone()).unwrap());
        bench.agent().create_pod(object, true)
    };
    let kept = try_it(&pod).unwrap();
    let user = kept
        .object
        .pointer("/spec/containers/0/securityContext/runAsUser");
    assert_eq!(user, Some(&json!(65534)));
    pod["spec"]["securityContext"] = json!({"runAsUser": 0});
    let refusal = try_it(&pod).err().unwrap();
    assert_eq!(refusal.code, 403);
    assert_eq!(refusal.causes.len(), 1);
    assert_eq!(refusal.causes[0].field, "spec.securityContext.runAsUser");
}
