//! Quotas within admission: all reasons at once, all quotas or none, LimitRanges first.

use allotd::admission::{Situation, admit};
use allotd::model::{LimitRange, LimitRangeItem, LimitType, ResourceList, ResourceQuota, Scope};
use serde_json::json;

use super::{NAMESPACE, judge, pod_of, pods, quota_of, refusals};

#[test]
fn a_refusal_names_all_quotas_and_all_figures() {
    let quotas = [
        quota_of(
            "small",
            &json!({"requests.cpu": "3", "limits.memory": "1Gi", "pods": "1", "secrets": "1"}),
            &json!({"requests.cpu": "1", "pods": "1"}),
        ),
        quota_of("large", &json!({"pods": "10"}), &json!({"pods": "9"})),
        quota_of(
            "full",
            &json!({"count/pods": "2"}),
            &json!({"count/pods": "4"}),
        ),
    ];
    let verdict = judge(pod_of(&[json!({"requests": {"cpu": "2500m"}})]), &quotas);
    assert_eq!(
        refusals(&verdict),
        [
            "exceeded quota: full, requested: count/pods=1, used: count/pods=4, limited: count/pods=2; \
             left: count/pods=0",
            "failed quota: small: must specify limits.memory for: c0",
            "exceeded quota: small, requested: pods=1,requests.cpu=2500m, used: pods=1,requests.cpu=1, \
             limited: pods=1,requests.cpu=3; left: pods=0,requests.cpu=2",
        ]
    );
    assert_eq!(verdict.charges(), []);
}

#[test]
fn what_must_be_given_is_told_by_key() {
    let hard =
        json!({"memory": "1Gi", "limits.cpu": "1", "requests.cpu": "1", "hugepages-2Mi": "0"});
    let verdict = judge(
        pod_of(&[
            json!({"requests": {"cpu": "0"}, "limits": {"cpu": "0"}}),
            json!({"requests": {"memory": "0"}}),
        ]),
        &[quota_of("q", &hard, &json!({}))],
    );
    assert_eq!(
        refusals(&verdict),
        ["failed quota: q: must specify limits.cpu for: c1; memory for: c0; requests.cpu for: c1"]
    );
}

/// kubernetes#96634: one reply with everything that is wrong, whoever would have found it.
#[test]
fn policies_and_the_node_are_told_together() {
    let mut item = LimitRangeItem::new(LimitType::Container);
    item.max = pods::amounts(&json!({"cpu": "1"}));
    let ranges = [LimitRange {
        namespace: NAMESPACE.to_owned(),
        name: "core".to_owned(),
        items: vec![item],
    }];
    let quotas = [quota_of(
        "q",
        &json!({"requests.memory": "1Gi", "limits.memory": "1Gi", "pods": "0"}),
        &json!({}),
    )];
    let node = pods::node(&json!({"cpu": "1", "memory": "1Gi", "pods": "10"}));
    let used = ResourceList::default();
    let situation = Situation {
        limit_ranges: &ranges,
        quotas: &quotas,
        ..Situation::new(&node, &used, 0)
    };
    let verdict = admit(pod_of(&[json!({"limits": {"cpu": "2"}})]), &situation);
    assert_eq!(
        refusals(&verdict),
        [
            "spec.containers[0].resources.limits[cpu]: maximum cpu usage per Container is 1, \
             but limit is 2; LimitRange core (container c0)",
            "failed quota: q: must specify limits.memory for: c0; requests.memory for: c0",
            "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0; left: pods=0",
            "Node didn't have enough resource: cpu, requested: 2000, used: 0, capacity: 1000; \
             Insufficient cpu: 2 asked for, 1 left of 1",
        ]
    );
    let codes: Vec<_> = verdict
        .reasons()
        .iter()
        .map(|reason| reason.code.to_string())
        .collect();
    assert_eq!(
        codes,
        ["LimitRange", "FailedQuota", "ExceededQuota", "OutOfcpu"]
    );
}

#[test]
fn what_a_limit_range_fills_in_is_counted() {
    let mut item = LimitRangeItem::new(LimitType::Container);
    item.default = pods::amounts(&json!({"memory": "200Mi"}));
    let ranges = [LimitRange {
        namespace: NAMESPACE.to_owned(),
        name: "core".to_owned(),
        items: vec![item],
    }];
    let mut quotas = [quota_of(
        "q",
        &json!({"limits.memory": "500Mi"}),
        &json!({}),
    )];
    let node = pods::big_node();
    let used = ResourceList::default();
    let mut outcomes = Vec::new();
    for _ in 0..3 {
        let situation = Situation {
            limit_ranges: &ranges,
            quotas: &quotas,
            ..Situation::new(&node, &used, 0)
        };
        let verdict = admit(pod_of(&[json!({})]), &situation);
        outcomes.push(verdict.is_admitted());
        for charge in verdict.charges() {
            charge.apply(&mut quotas);
        }
    }
    assert_eq!(outcomes, [true, true, false]);
    assert_eq!(
        quotas[0].used,
        pods::amounts(&json!({"limits.memory": "400Mi"}))
    );
}

#[test]
fn a_pod_that_is_refused_for_any_other_reason_charges_nothing() {
    let quotas = [quota_of("q", &json!({"pods": "5"}), &json!({}))];
    let wrong = json!({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}});
    let verdict = judge(pod_of(&[wrong]), &quotas);
    assert!(!verdict.is_admitted());
    assert_eq!(verdict.charges(), []);

    let sound = judge(pod_of(&[json!({})]), &quotas);
    assert_eq!(sound.charges().len(), 1);
    let node = pods::node(&json!({"pods": "0"}));
    let used = ResourceList::default();
    let situation = Situation {
        quotas: &quotas,
        ..Situation::new(&node, &used, 0)
    };
    let verdict = admit(pod_of(&[json!({})]), &situation);
    assert!(!verdict.is_admitted());
    assert_eq!(verdict.charges(), []);
}

#[test]
fn quotas_of_other_namespaces_and_other_scopes_say_nothing() {
    let none = |quota: ResourceQuota| {
        let verdict = judge(pod_of(&[json!({})]), &[quota]);
        assert!(verdict.is_admitted());
        assert_eq!(verdict.charges(), []);
    };
    let full = || quota_of("q", &json!({"pods": "0"}), &json!({}));
    none(ResourceQuota {
        namespace: "elsewhere".to_owned(),
        ..full()
    });
    for scope in [
        Scope::Terminating,
        Scope::NotBestEffort,
        Scope::CrossNamespacePodAffinity,
    ] {
        none(ResourceQuota {
            scopes: vec![scope],
            ..full()
        });
    }
    for scope in [Scope::NotTerminating, Scope::BestEffort] {
        let quota = ResourceQuota {
            scopes: vec![scope],
            ..full()
        };
        assert!(!judge(pod_of(&[json!({})]), &[quota]).is_admitted());
    }
}

#[test]
fn two_spellings_of_one_size_of_huge_page_are_one_key() {
    let quotas = [quota_of(
        "q",
        &json!({"requests.hugepages-2048Ki": "4Mi"}),
        &json!({}),
    )];
    let pages = json!({"requests": {"cpu": "1", "hugepages-2Mi": "6Mi"},
                       "limits": {"cpu": "1", "hugepages-2Mi": "6Mi"}});
    assert_eq!(
        refusals(&judge(pod_of(&[pages]), &quotas)),
        [
            "exceeded quota: q, requested: requests.hugepages-2Mi=6Mi, used: requests.hugepages-2Mi=0, \
          limited: requests.hugepages-2Mi=4Mi; left: requests.hugepages-2Mi=4Mi"
        ]
    );
}
