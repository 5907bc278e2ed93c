//! Any sequence of changes, refusals of the disk and crashes leaves the accounts true.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::bench::{Bench, one};
use crate::agent::PodKey;
use crate::model::Kind;
use crate::model::kind::{CLUSTER_QUOTA, CONFIG_MAP, NAMESPACE, RESOURCE_QUOTA};
use crate::units::Quantity;

/// Something that happens, in one of two namespaces.
#[derive(Clone, Debug)]
enum Step {
    Map(bool, u8),
    NoMap(bool, u8),
    Pod(bool, u8),
    NoPod(bool, u8),
    Quota(bool, u8),
    NoQuota(bool),
    ClusterQuota(u8),
    NoClusterQuota,
    Team(bool, bool),
    NoNamespace(bool),
    Disk(bool),
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    let of = any::<bool>;
    prop_oneof![
        4 => (of(), 0..4_u8).prop_map(|(of, n)| Step::Map(of, n)),
        2 => (of(), 0..4_u8).prop_map(|(of, n)| Step::NoMap(of, n)),
        4 => (of(), 0..3_u8).prop_map(|(of, n)| Step::Pod(of, n)),
        2 => (of(), 0..3_u8).prop_map(|(of, n)| Step::NoPod(of, n)),
        2 => (of(), 0..4_u8).prop_map(|(of, n)| Step::Quota(of, n)),
        1 => of().prop_map(Step::NoQuota),
        2 => (0..6_u8).prop_map(Step::ClusterQuota),
        1 => Just(Step::NoClusterQuota),
        2 => (of(), of()).prop_map(|(of, team)| Step::Team(of, team)),
        1 => of().prop_map(Step::NoNamespace),
        2 => prop_oneof![1 => Just(true), 2 => Just(false)].prop_map(Step::Disk),
        2 => Just(Step::Crash),
    ]
}

fn space(of: bool) -> &'static str {
    if of { "a" } else { "b" }
}

fn hard(n: u8) -> Value {
    json!({"pods": n.to_string(), "configmaps": n.to_string(), "requests.cpu": format!("{n}50m")})
}

/// Puts an object there, or in the place of the one that is. Whether it is refused does not matter here.
fn put(bench: &mut Bench, kind: Kind, object: &Value) {
    let (space, name) = (
        &object["metadata"]["namespace"],
        &object["metadata"]["name"],
    );
    let (space, name) = (space.as_str().unwrap_or_default(), name.as_str().unwrap());
    let new = bench.seen(kind, space, name).is_none();
    let _ = bench.put(kind, object, new);
}

fn delete(bench: &mut Bench, kind: Kind, namespace: &str, name: &str) {
    let key = crate::agent::ObjectKey::of(kind, namespace, name);
    let _ = bench.agent().delete_object(&key, None, false);
}

fn take(bench: &mut Bench, step: &Step) {
    let maps = CONFIG_MAP;
    match *step {
        Step::Map(of, n) => {
            let map = json!({"metadata": {"name": format!("m{n}"), "namespace": space(of)}});
            put(bench, maps, &map);
        }
        Step::NoMap(of, n) => delete(bench, maps, space(of), &format!("m{n}")),
        Step::Pod(of, n) => {
            let _ = bench.send_to(space(of), &format!("p{n}"), &one("Never"));
        }
        Step::NoPod(of, n) => {
            let key = PodKey::new(space(of), &format!("p{n}"));
            let _ = bench.agent().delete_pod(&key, Some(0), None, false);
        }
        Step::Quota(of, n) => put(
            bench,
            RESOURCE_QUOTA,
            &json!({"metadata": {"name": "q", "namespace": space(of)}, "spec": {"hard": hard(n)}}),
        ),
        Step::NoQuota(of) => delete(bench, RESOURCE_QUOTA, space(of), "q"),
        Step::ClusterQuota(n) => put(
            bench,
            CLUSTER_QUOTA,
            &json!({"metadata": {"name": "c"}, "spec": {
                "selector": {"labels": {"matchLabels": {"team": "red"}}},
                "quota": {"hard": hard(n)},
            }}),
        ),
        Step::NoClusterQuota => delete(bench, CLUSTER_QUOTA, "", "c"),
        Step::Team(of, red) => {
            let team = if red { "red" } else { "blue" };
            let labels = json!({"team": team});
            put(
                bench,
                NAMESPACE,
                &json!({"metadata": {"name": space(of), "labels": labels}}),
            );
        }
        Step::NoNamespace(of) => delete(bench, NAMESPACE, "", space(of)),
        Step::Disk(full) => bench.agent().store.full.store(full, Ordering::Relaxed),
        Step::Crash => bench.crash(),
    }
}

/// What readers see of all accounts.
fn told(bench: &mut Bench) -> BTreeMap<String, Value> {
    let mut told = BTreeMap::new();
    for kind in [RESOURCE_QUOTA, CLUSTER_QUOTA] {
        let cache = bench.agent().handle.cache();
        let (quotas, _) = cache.list(&kind.resource(), None);
        for quota in quotas {
            let metadata = &quota.object["metadata"];
            let key = format!("{} {}", metadata["namespace"], metadata["name"]);
            told.insert(key, quota.object["status"].clone());
        }
    }
    told
}

/// The accounts above their bounds.
fn excess(told: &BTreeMap<String, Value>) -> BTreeMap<(String, String), Quantity> {
    let mut over = BTreeMap::new();
    for (key, status) in told {
        let total = status.get("total").unwrap_or(status);
        for (name, hard) in total["hard"].as_object().unwrap() {
            let amount = |value: &Value| value.as_str().unwrap().parse::<Quantity>().unwrap();
            let used = amount(&total["used"][name]);
            if used > amount(hard) {
                over.insert((key.clone(), name.clone()), used);
            }
        }
    }
    over
}

/// Waits until what is about to go is gone.
fn settle(bench: &mut Bench) {
    if bench.agent().store.full.load(Ordering::Relaxed) {
        return;
    }
    bench.until("it to settle", |agent| {
        let pods = agent
            .pods
            .values()
            .all(|entry| entry.record.deletion.is_none());
        let is_ending = |object: &Value| object["status"]["phase"] == "Terminating";
        let (namespaces, _) = agent.handle.cache().list("namespaces", None);
        pods && !namespaces.iter().any(|seen| is_ending(&seen.object))
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_changes_and_crashes_falsifies_an_account(steps in prop::collection::vec(step(), 1..40)) {
        let mut bench = Bench::new();
        bench.no_process();
        for step in &steps {
            settle(&mut bench);
            let before = told(&mut bench);
            take(&mut bench, step);
            let after = told(&mut bench);
            prop_assert_eq!(bench.agent().ledger.recount(), [], "{:?}", step);
            match step {
                Step::Crash => {
                    settle(&mut bench);
                    prop_assert_eq!(&told(&mut bench), &before, "a crash changes no account");
                }
                // These may leave an account above its bound; nothing else.
                Step::Quota(..) | Step::ClusterQuota(_) | Step::Team(..) => {}
                _ => {
                    let was = excess(&before);
                    for (account, used) in excess(&after) {
                        prop_assert!(was.get(&account).is_some_and(|was| used <= *was), "{:?}: {}", step, used);
                    }
                }
            }
        }
    }
}
