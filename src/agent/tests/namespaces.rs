//! Namespaces and the quotas of several of them: begun, counted, ended, and the same after a crash.

use serde_json::{Value, json};

use super::bench::{Bench, one};
use crate::model::kind::{CLUSTER_QUOTA, NAMESPACE, RESOURCE_QUOTA};
use crate::model::{Kind, Kinds};

fn config_map(name: &str, namespace: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": namespace}})
}

fn phase(bench: &mut Bench, name: &str) -> Option<String> {
    let namespace = bench.seen(NAMESPACE, "", name)?;
    namespace["status"]["phase"].as_str().map(str::to_owned)
}

fn kind(word: &str) -> Kind {
    Kinds::default().of_word(word).unwrap()
}

#[test]
fn a_namespace_begins_with_its_first_object() {
    let mut bench = Bench::new();
    assert_eq!(phase(&mut bench, "default").as_deref(), Some("Active"));
    assert_eq!(phase(&mut bench, "shop"), None);
    bench.no_process();
    let dry = crate::agent::Put {
        new: true,
        dry_run: true,
    };
    let map = config_map("a", "shop");
    bench
        .agent()
        .put_object(kind("cm"), map.clone(), dry)
        .unwrap();
    assert_eq!(phase(&mut bench, "shop"), None, "nothing was kept");
    bench.put(kind("cm"), &map, true).unwrap();
    bench.send_to("web", "a", &one("Never")).unwrap();
    let uid = |bench: &mut Bench, name| {
        bench.seen(NAMESPACE, "", name).unwrap()["metadata"]["uid"].clone()
    };
    let before = [
        uid(&mut bench, "shop"),
        uid(&mut bench, "web"),
        uid(&mut bench, "default"),
    ];
    bench.crash();
    for name in ["shop", "web", "default"] {
        assert_eq!(phase(&mut bench, name).as_deref(), Some("Active"));
    }
    let after = [
        uid(&mut bench, "shop"),
        uid(&mut bench, "web"),
        uid(&mut bench, "default"),
    ];
    assert_eq!(before, after);
    let refused = bench
        .put(kind("cm"), &config_map("a", "Not_A_Name"), true)
        .unwrap_err();
    assert_eq!(refused.code, 422);
    assert_eq!(phase(&mut bench, "Not_A_Name"), None);
}

#[test]
fn events_are_told_by_the_next_agent_too() {
    let mut bench = Bench::new();
    bench.no_process();
    bench.create("web", &one("Never"));
    let told = |bench: &mut Bench| {
        bench.until("a commit", |agent| !agent.events.has_pending());
        let (events, _) = bench.agent().handle.cache().list("events", None);
        let names = events
            .iter()
            .map(|seen| seen.object["metadata"]["name"].clone());
        names.collect::<Vec<_>>()
    };
    let before = told(&mut bench);
    assert!(!before.is_empty());
    bench.crash();
    let after = told(&mut bench);
    assert!(
        before.iter().all(|name| after.contains(name)),
        "{before:?} {after:?}"
    );
}

#[test]
fn a_namespace_takes_all_that_it_holds_with_it() {
    let mut bench = Bench::new();
    let quota =
        json!({"metadata": {"name": "q", "namespace": "shop"}, "spec": {"hard": {"pods": "1"}}});
    bench.put(RESOURCE_QUOTA, &quota, true).unwrap();
    bench
        .put(kind("cm"), &config_map("a", "shop"), true)
        .unwrap();
    bench
        .put(kind("cm"), &config_map("a", "other"), true)
        .unwrap();
    bench.next_process();
    let pod = bench.send_to("shop", "web", &one("Always")).unwrap();
    bench.until("it to run", |agent| super::bench::runs(agent, &pod, "c"));

    let refused = bench
        .agent()
        .delete_namespace("default", false)
        .unwrap_err();
    assert_eq!(
        refused.message,
        "namespaces \"default\" is forbidden: this namespace may not be deleted"
    );
    bench.agent().delete_namespace("shop", true).unwrap();
    assert_eq!(
        phase(&mut bench, "shop").as_deref(),
        Some("Active"),
        "only tried"
    );
    let told = bench.agent().delete_namespace("shop", false).unwrap();
    assert_eq!(told["status"]["phase"], "Terminating");
    assert!(bench.seen(RESOURCE_QUOTA, "shop", "q").is_none());
    assert!(bench.seen(kind("cm"), "shop", "a").is_none());
    assert!(bench.seen(kind("cm"), "other", "a").is_some());
    for refused in [
        bench.put(kind("cm"), &config_map("b", "shop"), true),
        bench
            .send_to("shop", "b", &one("Never"))
            .map(|_| json!(null)),
    ] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.code, 403);
        assert!(
            refused.message.ends_with(
                "\"b\" is forbidden: unable to create new content in namespace shop because it is being terminated"
            ),
            "{}",
            refused.message
        );
        assert_eq!(refused.causes[0].reason, "NamespaceTerminating");
    }
    bench.crash();
    assert_eq!(phase(&mut bench, "shop").as_deref(), Some("Terminating"));
    bench
        .agent()
        .delete_pod(&pod, Some(0), None, false)
        .unwrap();
    bench.until("it to go", |agent| !agent.pods.contains_key(&pod));
    assert_eq!(phase(&mut bench, "shop"), None);
    assert_eq!(bench.agent().events.list(Some("shop")), []);
    bench.crash();
    assert_eq!(phase(&mut bench, "shop"), None);
    assert_eq!(bench.agent().ledger.recount(), []);
    bench
        .put(kind("cm"), &config_map("b", "shop"), true)
        .unwrap();
    assert_eq!(phase(&mut bench, "shop").as_deref(), Some("Active"));
}

#[test]
fn an_end_that_the_disk_refused_is_taken_up_again() {
    let mut bench = Bench::new();
    bench.no_process();
    let pod = bench.send_to("shop", "web", &one("Never")).unwrap();
    bench.agent().delete_namespace("shop", false).unwrap();
    let full = bench.agent().store.full.clone();
    full.store(true, std::sync::atomic::Ordering::Relaxed);
    let refused = bench.agent().delete_namespace("shop", false).unwrap_err();
    assert_eq!(refused.code, 507);
    full.store(false, std::sync::atomic::Ordering::Relaxed);
    bench.until("it to go", |agent| !agent.pods.contains_key(&pod));
    bench.until("its end", |agent| {
        let key = crate::agent::ObjectKey::of(NAMESPACE, "", "shop");
        !agent.objects.contains_key(&key)
    });
}

fn cluster_quota() -> Value {
    json!({
        "metadata": {"name": "of-ann"},
        "spec": {
            "selector": {"annotations": {"openshift.io/requester": "ann"}},
            "quota": {"hard": {"pods": "2", "configmaps": "1"}},
        },
    })
}

fn namespace(name: &str, requester: &str) -> Value {
    json!({"metadata": {"name": name, "annotations": {"openshift.io/requester": requester}}})
}

/// What readers see of the quota's status: all together, then each.
fn used(bench: &mut Bench) -> Value {
    assert_eq!(bench.agent().ledger.recount(), []);
    let quota = bench.seen(CLUSTER_QUOTA, "", "of-ann").unwrap();
    let mut used = vec![quota["status"]["total"]["used"].clone()];
    for part in quota["status"]["namespaces"].as_array().unwrap() {
        used.push(json!({part["namespace"].as_str().unwrap(): part["status"]["used"]}));
    }
    json!(used)
}

#[test]
fn what_several_namespaces_use_together_is_bounded() {
    let mut bench = Bench::new();
    bench.no_process();
    bench.put(NAMESPACE, &namespace("a", "ann"), true).unwrap();
    bench.put(NAMESPACE, &namespace("b", "bob"), true).unwrap();
    bench.send_to("b", "one", &one("Never")).unwrap();
    bench.put(CLUSTER_QUOTA, &cluster_quota(), true).unwrap();
    bench.put(NAMESPACE, &namespace("b", "ann"), false).unwrap();
    bench.send_to("a", "one", &one("Never")).unwrap();
    let full = json!([
        {"pods": "2", "configmaps": "0"},
        {"a": {"pods": "1", "configmaps": "0"}},
        {"b": {"pods": "1", "configmaps": "0"}},
    ]);
    assert_eq!(used(&mut bench), full);
    let refused = bench.send_to("a", "two", &one("Never")).unwrap_err();
    assert_eq!(
        refused.message,
        "pods \"two\" is forbidden: exceeded quota: of-ann, requested: pods=1, used: pods=2, limited: pods=2; left: pods=0"
    );
    bench.send_to("c", "two", &one("Never")).unwrap();
    bench.crash();
    assert_eq!(used(&mut bench), full);
    assert!(bench.send_to("b", "two", &one("Never")).is_err());

    // A namespace that is chosen no more takes what it uses with it.
    bench.put(NAMESPACE, &namespace("b", "bob"), false).unwrap();
    let left = json!([{"pods": "1", "configmaps": "0"}, {"a": {"pods": "1", "configmaps": "0"}}]);
    assert_eq!(used(&mut bench), left);
    bench.put(kind("cm"), &config_map("m", "a"), true).unwrap();
    assert!(bench.put(kind("cm"), &config_map("n", "a"), true).is_err());
    bench.agent().delete_namespace("a", false).unwrap();
    bench.until("its end", |agent| {
        agent
            .ledger
            .cluster_quota("of-ann")
            .unwrap()
            .namespaces
            .is_empty()
    });
    assert_eq!(used(&mut bench), json!([{"pods": "0", "configmaps": "0"}]));
}

#[test]
fn a_namespace_that_is_not_there_yet_is_counted_from_its_first_object() {
    let mut bench = Bench::new();
    let mut quota = cluster_quota();
    quota["spec"]["selector"] =
        json!({"labels": {"matchLabels": {"kubernetes.io/metadata.name": "new"}}});
    quota["spec"]["quota"]["hard"] = json!({"configmaps": "1"});
    bench.put(CLUSTER_QUOTA, &quota, true).unwrap();
    bench
        .put(kind("cm"), &config_map("one", "new"), true)
        .unwrap();
    assert_eq!(
        used(&mut bench),
        json!([{"configmaps": "1"}, {"new": {"configmaps": "1"}}])
    );
    quota["metadata"]["name"] = json!("none");
    quota["spec"]["selector"] =
        json!({"labels": {"matchLabels": {"kubernetes.io/metadata.name": "newer"}}});
    quota["spec"]["quota"]["hard"] = json!({"configmaps": "0"});
    bench.put(CLUSTER_QUOTA, &quota, true).unwrap();
    let refused = bench
        .put(kind("cm"), &config_map("one", "newer"), true)
        .unwrap_err();
    assert!(
        refused.message.contains("exceeded quota: none"),
        "{}",
        refused.message
    );
    assert_eq!(phase(&mut bench, "newer"), None);
}
