//! The ledger: whatever comes, changes and goes, its accounts are what a count says.

use std::collections::BTreeMap;

use allotd::admission::{Demand, Holder, Ledger};
use allotd::model::{
    ClusterResourceQuota, EffectivePod, LabelSelector, LimitRange, LimitedResource, Namespace,
    NamespaceSelector, ResourceList, ResourceName, ResourceQuota,
};
use allotd::units::Quantity;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{NAMESPACE, demand, pod_of, pods, quota_of};

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A pod of this size, new or changed, that is over or not; only if it is admitted.
    Pod(u8, u8, u32, bool),
    /// An object that is merely counted.
    Object(u8, u8),
    Gone(u8, u8, bool),
    Quota(u8, u8, u32, u32),
    NoQuota(u8, u8),
    /// A namespace of a team.
    Namespace(u8, u8),
    NoNamespace(u8),
    /// A quota of all namespaces of a team.
    Cluster(u8, u8, u32, u32),
    NoCluster(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let of = 0..3_u8;
    let quota = || (0..3_u8, 0..3_u8, 0..60_u32, 0..8_u32);
    prop_oneof![
        6 => (of.clone(), 0..4_u8, 0..30_u32, any::<bool>()).prop_map(|(of, n, cpu, over)| Step::Pod(of, n, cpu, over)),
        3 => (of.clone(), 0..4_u8).prop_map(|(of, n)| Step::Object(of, n)),
        4 => (of.clone(), 0..4_u8, any::<bool>()).prop_map(|(of, n, pod)| Step::Gone(of, n, pod)),
        2 => quota().prop_map(|(of, n, cpu, count)| Step::Quota(of, n, cpu, count)),
        1 => (of.clone(), 0..3_u8).prop_map(|(of, n)| Step::NoQuota(of, n)),
        3 => (of.clone(), 0..3_u8).prop_map(|(of, team)| Step::Namespace(of, team)),
        1 => of.clone().prop_map(Step::NoNamespace),
        3 => quota().prop_map(|(team, n, cpu, count)| Step::Cluster(team, n, cpu, count)),
        1 => of.prop_map(Step::NoCluster),
    ]
}

fn space(n: u8) -> String {
    format!("n{n}")
}

fn holder_in(namespace: u8, resource: &str, n: u8) -> Holder {
    Holder {
        namespace: space(namespace),
        ..holder(resource, n)
    }
}

fn holder(resource: &str, n: u8) -> Holder {
    Holder {
        namespace: NAMESPACE.to_owned(),
        resource: resource.to_owned(),
        name: format!("o{n}"),
    }
}

fn bounds(cpu: u32, count: u32) -> Value {
    json!({"requests.cpu": format!("{cpu}00m"), "pods": count.to_string(),
        "count/pods": "7", "configmaps": count.to_string()})
}

fn cluster_quota(name: &str, team: &str, hard: &Value) -> ClusterResourceQuota {
    ClusterResourceQuota {
        selector: NamespaceSelector {
            labels: Some(LabelSelector {
                labels: team_of(team),
                ..LabelSelector::default()
            }),
            ..NamespaceSelector::default()
        },
        quota: ResourceQuota {
            namespace: String::new(),
            // What a status says is no account.
            ..quota_of(name, hard, &json!({"pods": "77"}))
        },
        namespaces: BTreeMap::from([("gone".to_owned(), ResourceList::default())]),
    }
}

fn team_of(team: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("team".to_owned(), team.to_owned())])
}

fn namespace(name: &str, team: &str) -> Namespace {
    Namespace::new(name, team_of(team), BTreeMap::new())
}

/// Every account that is above its bound, and by how much it is used.
fn excess(ledger: &Ledger) -> BTreeMap<(String, String, ResourceName), Quantity> {
    let own = (0..3).flat_map(|n| ledger.quotas(&format!("n{n}")));
    let cluster = (0..3).filter_map(|n| ledger.cluster_quota(&format!("q{n}")));
    let all = own.chain(cluster.map(|cluster| &cluster.quota));
    all.flat_map(|quota| {
        let above = quota.used.iter();
        let above = above.filter(|(name, used)| *used > quota.hard.get(name).unwrap());
        above.map(|(name, used)| {
            let account = (quota.namespace.clone(), quota.name.clone(), name.clone());
            (account, used)
        })
    })
    .collect()
}

/// Holds what is admitted; nothing else is held.
fn admit(ledger: &mut Ledger, holder: Holder, demand: Demand, of_node: Option<ResourceList>) {
    let before = excess(ledger);
    if ledger.judge(&holder, &demand, &[]).is_ok() {
        ledger.hold(holder, demand, of_node);
    }
    // What was admitted leaves no account above its bound that was not above before.
    for (account, used) in excess(ledger) {
        let was = before.get(&account);
        assert!(was.is_some_and(|was| used <= *was), "{account:?}: {used}");
    }
}

fn take(ledger: &mut Ledger, step: Step) {
    match step {
        Step::Pod(of, n, cpu, over) => {
            let pod = pod_of(&[json!({"requests": {"cpu": format!("{cpu}00m")}})]);
            let new = if over {
                Demand::of_ended_pod(&pod)
            } else {
                demand(&pod)
            };
            let requests = EffectivePod::of(&pod).requests;
            admit(
                ledger,
                holder_in(of, "pods", n),
                new,
                (!over).then_some(requests),
            );
        }
        Step::Object(of, n) => {
            let new = Demand::of_object("configmaps");
            admit(ledger, holder_in(of, "configmaps", n), new, None);
        }
        Step::Gone(of, n, pod) => {
            let resource = if pod { "pods" } else { "configmaps" };
            ledger.release(&holder_in(of, resource, n));
        }
        Step::Quota(of, n, cpu, count) => ledger.put_quota(ResourceQuota {
            namespace: space(of),
            // What a status says is no account.
            ..quota_of(
                &format!("q{n}"),
                &bounds(cpu, count),
                &json!({"pods": "77"}),
            )
        }),
        Step::NoQuota(of, n) => ledger.remove_quota(&space(of), &format!("q{n}")),
        Step::Namespace(of, team) => {
            ledger.put_namespace(namespace(&space(of), &team.to_string()));
        }
        Step::NoNamespace(of) => ledger.remove_namespace(&space(of)),
        Step::Cluster(team, n, cpu, count) => ledger.put_cluster_quota(cluster_quota(
            &format!("q{n}"),
            &team.to_string(),
            &bounds(cpu, count),
        )),
        Step::NoCluster(n) => ledger.remove_cluster_quota(&format!("q{n}")),
    }
}

proptest! {
    #[test]
    fn every_account_is_what_a_count_says(steps in proptest::collection::vec(step(), 0..120)) {
        let mut ledger = Ledger::default();
        for step in steps {
            take(&mut ledger, step);
            prop_assert_eq!(ledger.recount(), []);
        }
    }
}

#[test]
fn a_namespace_joins_and_leaves_with_all_it_uses() {
    let mut ledger = Ledger::default();
    ledger.put_cluster_quota(cluster_quota("team", "red", &json!({"configmaps": "3"})));
    let put = |ledger: &mut Ledger, of: u8, n: u8| {
        let holder = holder_in(of, "configmaps", n);
        let judged = ledger.judge(&holder, &Demand::of_object("configmaps"), &[]);
        if judged.is_ok() {
            ledger.hold(holder, Demand::of_object("configmaps"), None);
        }
        judged.map_err(|reasons| reasons[0].message.clone())
    };
    let used = |ledger: &Ledger| {
        let quota = ledger.cluster_quota("team").unwrap();
        let part = |part: &ResourceList| part.get(&"configmaps".into()).unwrap().to_string();
        let parts: Vec<_> = quota.namespaces.iter().collect();
        let parts: Vec<_> = parts
            .iter()
            .map(|(name, of)| format!("{name}={}", part(of)))
            .collect();
        format!("{} of {}", part(&quota.quota.used), parts.join(" "))
    };
    // Of a namespace that is not known, nobody knows that it is selected.
    put(&mut ledger, 1, 0).unwrap();
    assert_eq!(used(&ledger), "0 of ");
    ledger.put_namespace(namespace("n1", "red"));
    ledger.put_namespace(namespace("n2", "red"));
    put(&mut ledger, 2, 0).unwrap();
    put(&mut ledger, 2, 1).unwrap();
    assert_eq!(used(&ledger), "3 of n1=1 n2=2");
    assert_eq!(
        put(&mut ledger, 1, 1).unwrap_err(),
        "exceeded quota: team, requested: configmaps=1, used: configmaps=3, limited: configmaps=3; \
         left: configmaps=0"
    );
    // A label less, and there is room; a label more, and the bound is passed by who joins.
    ledger.put_namespace(namespace("n2", "blue"));
    assert_eq!(used(&ledger), "1 of n1=1");
    put(&mut ledger, 1, 1).unwrap();
    ledger.put_namespace(namespace("n2", "red"));
    assert_eq!(used(&ledger), "4 of n1=2 n2=2");
    put(&mut ledger, 2, 2).unwrap_err();
    ledger.remove_namespace("n1");
    assert_eq!(used(&ledger), "2 of n2=2");
    assert_eq!(ledger.recount(), []);
}

/// Either all quotas that count an object are charged, or none is.
#[test]
fn both_kinds_of_quota_must_have_room() {
    let mut ledger = Ledger::default();
    ledger.put_namespace(namespace(NAMESPACE, "red"));
    ledger.put_quota(quota_of("own", &json!({"pods": "5"}), &json!({})));
    ledger.put_cluster_quota(cluster_quota("team", "red", &json!({"pods": "0"})));
    let pod = demand(&pod_of(&[json!({})]));
    let reasons = ledger.judge(&holder("pods", 1), &pod, &[]).unwrap_err();
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    ledger.put_cluster_quota(cluster_quota("team", "red", &json!({"pods": "1"})));
    let charges = ledger.judge(&holder("pods", 1), &pod, &[]).unwrap();
    let accounts: Vec<_> = charges
        .iter()
        .map(|charge| (charge.namespace.as_str(), charge.quota.as_str()))
        .collect();
    assert_eq!(accounts, [(NAMESPACE, "own"), ("", "team")]);
    let node = pods::big_node();
    let situation = ledger.situation(&node, NAMESPACE, &[]);
    assert_eq!(situation.cluster_quotas.len(), 1);
    ledger.hold(holder("pods", 1), pod, None);
    let again = allotd::admission::admit(
        pod_of(&[json!({})]),
        &ledger.situation(&node, NAMESPACE, &[]),
    );
    let reasons: Vec<_> = again.reasons().iter().map(ToString::to_string).collect();
    assert_eq!(
        reasons,
        ["exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1; left: pods=0"]
    );
    // What needs a quota has one in either.
    let limited = LimitedResource {
        resource: "pods".to_owned(),
        match_contains: vec!["requests.cpu".to_owned()],
        ..LimitedResource::default()
    };
    let cpu = demand(&pod_of(&[json!({"requests": {"cpu": "1"}})]));
    let judge = |ledger: &Ledger| {
        let judged = ledger.judge(&holder("pods", 1), &cpu, std::slice::from_ref(&limited));
        judged.map_err(|reasons| reasons[0].message.clone())
    };
    assert_eq!(
        judge(&ledger).unwrap_err(),
        "insufficient quota to consume: requests.cpu"
    );
    ledger.put_cluster_quota(cluster_quota("team", "red", &json!({"requests.cpu": "1"})));
    assert!(judge(&ledger).is_ok());
}

#[test]
fn amounts_at_the_end_of_the_range_are_counted_anew() {
    let mut ledger = Ledger::default();
    let most = "9223372036854775807";
    ledger.put_quota(quota_of("q", &json!({"limits.memory": most}), &json!({})));
    let pod = pod_of(&[json!({"limits": {"memory": most}, "requests": {"memory": "1"}})]);
    ledger.put_namespace(namespace(NAMESPACE, "red"));
    ledger.put_cluster_quota(cluster_quota(
        "team",
        "red",
        &json!({"limits.memory": most}),
    ));
    for n in 0..3 {
        ledger.hold(holder("pods", n), demand(&pod), None);
    }
    for n in 0..3 {
        ledger.release(&holder("pods", n));
        assert_eq!(ledger.recount(), []);
    }
    let team = &ledger.cluster_quota("team").unwrap().quota;
    for quota in [ledger.quota(NAMESPACE, "q").unwrap(), team] {
        let mut used = quota.used.iter();
        assert!(used.all(|(_, amount)| amount.is_zero()), "{quota:?}");
    }
}

#[test]
fn each_is_charged_what_it_uses_and_the_node_what_its_pods_ask_for() {
    let mut ledger = Ledger::default();
    ledger.put_quota(quota_of(
        "q",
        &json!({"pods": "9", "requests.cpu": "9"}),
        &json!({}),
    ));
    ledger.put_limit_range(LimitRange {
        namespace: NAMESPACE.to_owned(),
        name: "r".to_owned(),
        ..LimitRange::default()
    });
    let pod = pod_of(&[json!({"requests": {"cpu": "2"}})]);
    let requests = EffectivePod::of(&pod).requests;
    ledger.hold(holder("pods", 1), demand(&pod), Some(requests.clone()));
    ledger.hold(holder("pods", 2), Demand::of_ended_pod(&pod), None);
    ledger.hold(
        holder("configmaps", 1),
        Demand::of_object("configmaps"),
        None,
    );
    let quota = ledger.quota(NAMESPACE, "q").unwrap();
    let shares = ledger.shares(quota, NAMESPACE);
    assert_eq!(shares.len(), 1, "{shares:?}");
    let charged: ResourceList = shares[0].1.clone();
    assert_eq!(charged, quota.used);
    assert_eq!((ledger.pods(), ledger.of_node()), (1, &requests));
    let node = pods::big_node();
    let situation = ledger.situation(&node, NAMESPACE, &[]);
    assert_eq!(
        (situation.quotas.len(), situation.limit_ranges.len()),
        (1, 1)
    );
    let elsewhere = ledger.situation(&node, "elsewhere", &[]);
    assert_eq!(
        (elsewhere.quotas.len(), elsewhere.limit_ranges.len()),
        (0, 0)
    );
}

#[test]
fn what_has_no_namespace_is_counted_by_no_quota() {
    let mut ledger = Ledger::default();
    let mut all = cluster_quota("all", "red", &json!({"count/persistentvolumes": "0"}));
    all.selector = NamespaceSelector::default();
    ledger.put_cluster_quota(all);
    let volume = Demand::of_object("persistentvolumes");
    let holder = |namespace: &str| Holder {
        namespace: namespace.to_owned(),
        resource: "persistentvolumes".to_owned(),
        name: "v".to_owned(),
    };
    assert!(ledger.judge(&holder(""), &volume, &[]).is_ok());
    assert!(
        ledger.judge(&holder("new"), &volume, &[]).is_err(),
        "a namespace not known yet is chosen"
    );
}
