//! Kinds that somebody defined, across crashes: never an object without its kind, never one left behind.

use serde_json::{Value, json};

use super::bench::Bench;
use crate::model::Kind;
use crate::model::kind::{DEFINITION, RESOURCE_QUOTA};
use crate::store::{Change, Expect};

/// The record of an object comes before that of its definition: `a` is before `c`.
fn definition(storage: &str) -> Value {
    let versions = ["v1", "v2"];
    let versions =
        versions.map(|name| json!({"name": name, "served": true, "storage": name == storage}));
    json!({
        "metadata": {"name": "apples.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "apples", "kind": "Apple"}, "versions": versions},
    })
}

fn apple(name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "default"}, "spec": {"size": 3}})
}

fn apples(bench: &mut Bench) -> Option<Kind> {
    bench.agent().handle.kinds().of_word("apples")
}

fn used(bench: &mut Bench) -> Value {
    assert_eq!(bench.agent().ledger.recount(), []);
    bench.seen(RESOURCE_QUOTA, "default", "q").unwrap()["status"]["used"].clone()
}

#[test]
fn a_defined_kind_and_its_objects_survive() {
    let mut bench = Bench::new();
    let quota = json!({"metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"count/apples.example.com": "2"}}});
    bench.put(RESOURCE_QUOTA, &quota, true).unwrap();
    bench.put(DEFINITION, &definition("v1"), true).unwrap();
    let kind = apples(&mut bench).unwrap();
    bench.put(kind, &apple("a"), true).unwrap();
    bench.crash();
    assert_eq!(bench.agent().problems.len(), 0);
    assert_eq!(apples(&mut bench), Some(kind));
    let seen = bench.seen(kind, "default", "a").unwrap();
    assert_eq!(seen["spec"]["size"], 3);
    assert_eq!(used(&mut bench), json!({"count/apples.example.com": "1"}));
    bench.put(kind, &apple("b"), true).unwrap();
    assert_eq!(bench.put(kind, &apple("c"), true).unwrap_err().code, 403);

    // What was kept in a version is of the other one from now on, after a crash too.
    bench.put(DEFINITION, &definition("v2"), false).unwrap();
    for _ in 0..2 {
        let seen = bench.seen(kind, "default", "a").unwrap();
        assert_eq!(seen["apiVersion"], "example.com/v2");
        bench.crash();
    }
    // Whoever asked before still knows the other version; it is served, and the objects are the same.
    bench.put(kind, &apple("a"), false).unwrap();

    let key = crate::agent::ObjectKey::of(DEFINITION, "", "apples.example.com");
    bench.agent().delete_object(&key, None, false).unwrap();
    for _ in 0..2 {
        assert_eq!(apples(&mut bench), None);
        assert!(bench.seen(kind, "default", "a").is_none());
        assert_eq!(used(&mut bench), json!({"count/apples.example.com": "0"}));
        // It was asked for while the kind was known.
        assert_eq!(bench.put(kind, &apple("d"), true).unwrap_err().code, 404);
        bench.crash();
    }
    bench.put(DEFINITION, &definition("v1"), true).unwrap();
    bench.crash();
    assert!(bench.seen(kind, "default", "a").is_none());
}

#[test]
fn what_the_disk_refuses_is_not_known() {
    let mut bench = Bench::new();
    let full = bench.agent().store.full.clone();
    let set = |full_now| full.store(full_now, std::sync::atomic::Ordering::Relaxed);
    set(true);
    let refused = bench.put(DEFINITION, &definition("v1"), true).unwrap_err();
    assert_eq!(refused.code, 507);
    assert_eq!(apples(&mut bench), None);
    set(false);
    bench.put(DEFINITION, &definition("v1"), true).unwrap();
    let kind = apples(&mut bench).unwrap();
    bench.put(kind, &apple("a"), true).unwrap();
    set(true);
    let key = crate::agent::ObjectKey::of(DEFINITION, "", "apples.example.com");
    let refused = bench.agent().delete_object(&key, None, false).unwrap_err();
    assert_eq!(refused.code, 507);
    assert!(bench.seen(kind, "default", "a").is_some());
    assert_eq!(apples(&mut bench), Some(kind));
    set(false);
}

#[test]
fn an_object_of_no_known_kind_is_told_and_goes_with_its_definition() {
    let mut bench = Bench::new();
    let mut lost = apple("lost");
    lost["apiVersion"] = json!("example.com/v1");
    lost["kind"] = json!("Apple");
    let record = "objects/apples.example.com/default/lost";
    let change = Change::Put(record.to_owned(), lost.to_string().into(), Expect::Any);
    bench.agent().commit(vec![change]).unwrap();
    bench.crash();
    let problem = format!("record {record} cannot be used: kind Apple is not known");
    assert_eq!(bench.agent().problems.get(record), Some(&problem));
    bench.put(DEFINITION, &definition("v1"), true).unwrap();
    bench.crash();
    assert_eq!(bench.agent().problems.get(record), None, "now it is");
    let kind = apples(&mut bench).unwrap();
    assert!(bench.seen(kind, "default", "lost").is_some());
    // One that cannot be used goes as well.
    let change = Change::Put(record.to_owned(), b"{".to_vec(), Expect::Any);
    bench.agent().commit(vec![change]).unwrap();
    bench.crash();
    assert!(bench.agent().problems.contains_key(record));
    let key = crate::agent::ObjectKey::of(DEFINITION, "", "apples.example.com");
    bench.agent().delete_object(&key, None, false).unwrap();
    assert!(!bench.agent().problems.contains_key(record));
    assert!(bench.agent().store.get(record).unwrap().is_none());
}

#[test]
fn a_namespace_takes_defined_objects_with_it() {
    let mut bench = Bench::new();
    bench.put(DEFINITION, &definition("v1"), true).unwrap();
    let kind = apples(&mut bench).unwrap();
    let mut object = apple("a");
    object["metadata"]["namespace"] = json!("garden");
    bench.put(kind, &object, true).unwrap();
    bench.agent().delete_namespace("garden", false).unwrap();
    assert!(bench.seen(kind, "garden", "a").is_none());
    assert_eq!(apples(&mut bench), Some(kind));
}
