//! Accounts after crashes: no charge leaks, none is lost.

use serde_json::{Value, json};

use super::bench::{Bench, one};
use crate::model::Kinds;

fn put(bench: &mut Bench, kind: &str, object: &Value) -> Result<Value, String> {
    let kept = bench.put(Kinds::default().of_word(kind).unwrap(), object, true);
    kept.map_err(|refusal| refusal.message)
}

fn used(bench: &mut Bench) -> Value {
    assert_eq!(bench.agent().ledger.recount(), []);
    // What readers see, not what the ledger has.
    let (quotas, _) = bench.agent().handle.cache().list("resourcequotas", None);
    quotas[0].object["status"]["used"].clone()
}

fn named(name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "default"}})
}

#[test]
fn accounts_are_the_same_after_a_crash() {
    let mut bench = Bench::new();
    let mut quota = named("q");
    quota["spec"] =
        json!({"hard": {"pods": "2", "count/pods": "9", "requests.cpu": "1", "configmaps": "1"}});
    put(&mut bench, "quota", &quota).unwrap();
    put(&mut bench, "cm", &named("map")).unwrap();
    let (_, first) = bench.run("never", &one("Never"));
    let (always, _) = bench.run("always", &one("Always"));
    assert!(bench.send("third", &one("Never")).is_err());
    let expected =
        json!({"pods": "2", "count/pods": "2", "requests.cpu": "200m", "configmaps": "1"});
    assert_eq!(used(&mut bench), expected);
    bench.crash();
    assert_eq!(used(&mut bench), expected);
    assert!(bench.send("third", &one("Never")).is_err());

    // One that is over gives back what it used, not that it is there.
    bench.kill(first);
    bench.until("the end", |agent| agent.ledger.pods() == 1);
    let ended = json!({"pods": "1", "count/pods": "2", "requests.cpu": "100m", "configmaps": "1"});
    assert_eq!(used(&mut bench), ended);
    bench.crash();
    assert_eq!(used(&mut bench), ended);

    bench
        .agent()
        .delete_pod(&always, Some(0), None, false)
        .unwrap();
    bench.until("it to go", |agent| !agent.pods.contains_key(&always));
    let left = json!({"pods": "0", "count/pods": "1", "requests.cpu": "0", "configmaps": "1"});
    assert_eq!(used(&mut bench), left);
    let refused = put(&mut bench, "cm", &named("other")).unwrap_err();
    assert!(refused.contains("exceeded quota: q"), "{refused}");
}

#[test]
fn what_the_disk_refuses_is_not_charged() {
    let mut bench = Bench::new();
    let mut quota = named("q");
    quota["spec"] = json!({"hard": {"pods": "2", "configmaps": "1"}});
    put(&mut bench, "quota", &quota).unwrap();
    let full = bench.agent().store.full.clone();
    full.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(put(&mut bench, "cm", &named("map")).is_err());
    assert!(bench.send("web", &one("Never")).is_err());
    full.store(false, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(used(&mut bench), json!({"pods": "0", "configmaps": "0"}));
    put(&mut bench, "cm", &named("map")).unwrap();
}
