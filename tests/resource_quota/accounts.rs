//! An account is a function of what exists.

use allotd::admission::Demand;
use allotd::admission::quota::{StorageClaim, in_force, judge, recount, share};
use allotd::model::{Operator, Pod, ResourceQuota, Scope, ScopeTerm};
use serde_json::json;

use super::{NAMESPACE, demand, pod_of, pods, quota_of};

fn cpu(amount: &str) -> Pod {
    pod_of(&[json!({"requests": {"cpu": amount}})])
}

/// kubernetes#127132: what shrank is free once it is seen to be, and what grows is charged once.
#[test]
fn a_resize_is_charged_by_its_growth() {
    let mut quotas = [quota_of("q", &json!({"requests.cpu": "3"}), &json!({}))];
    let (a, b) = (demand(&cpu("1500m")), demand(&cpu("1500m")));
    quotas[0].used = recount(&quotas[0], [&a, &b]);

    // Less is asked for, and more is in force: the larger counts.
    let small = demand(&cpu("500m"));
    let shrinking = small.clone().raised_to(&a);
    assert_eq!(recount(&quotas[0], [&shrinking, &b]), quotas[0].used);
    quotas[0].used = recount(&quotas[0], [&small, &b]);
    assert_eq!(quotas[0].used, pods::amounts(&json!({"requests.cpu": "2"})));

    let grown = judge(&a, Some(&small), &in_force(&quotas, NAMESPACE), &[]).unwrap();
    assert_eq!(
        grown[0].amounts,
        pods::amounts(&json!({"requests.cpu": "1"}))
    );
    grown[0].apply(&mut quotas);
    assert_eq!(quotas[0].used, pods::amounts(&json!({"requests.cpu": "3"})));

    let more = demand(&cpu("1600m"));
    let refused = judge(&more, Some(&a), &in_force(&quotas, NAMESPACE), &[]).unwrap_err();
    assert_eq!(
        refused[0].message,
        "exceeded quota: q, requested: requests.cpu=100m, used: requests.cpu=3, limited: \
         requests.cpu=3; left: requests.cpu=0"
    );
}

/// kubernetes#117663: a pod that is over holds nothing, and is counted where stored pods are.
#[test]
fn a_pod_that_is_over_is_merely_stored() {
    let hard = json!({"pods": "1", "count/pods": "3", "requests.cpu": "1"});
    let mut quotas = [quota_of("q", &hard, &json!({}))];
    let ended = vec![Demand::of_ended_pod(&cpu("1")); 3];
    quotas[0].used = recount(&quotas[0], &ended);
    assert_eq!(
        quotas[0].used,
        pods::amounts(&json!({"pods": "0", "count/pods": "3", "requests.cpu": "0"}))
    );
    let refused = judge(&demand(&cpu("1")), None, &in_force(&quotas, NAMESPACE), &[]);
    assert_eq!(
        refused.unwrap_err()[0].message,
        "exceeded quota: q, requested: count/pods=1, used: count/pods=3, limited: count/pods=3; \
         left: count/pods=0"
    );
    quotas[0].release(&share(&quotas[0], &ended[0]));
    let judged = judge(&demand(&cpu("1")), None, &in_force(&quotas, NAMESPACE), &[]);
    assert_eq!(judged.unwrap().len(), 1);
}

#[test]
fn nothing_falls_below_zero() {
    let mut quota = quota_of("q", &json!({"pods": "1"}), &json!({"pods": "1"}));
    quota.release(&pods::amounts(&json!({"pods": "3", "secrets": "1"})));
    assert_eq!(quota.used, pods::amounts(&json!({"pods": "0"})));
}

/// More is already used than there is: only what asks for more of that is refused.
#[test]
fn a_quota_that_was_lowered_refuses_only_more_of_the_same() {
    let quotas = [quota_of(
        "q",
        &json!({"requests.cpu": "1", "pods": "10"}),
        &json!({"requests.cpu": "2", "pods": "2"}),
    )];
    let in_force = in_force(&quotas, NAMESPACE);
    assert!(judge(&demand(&cpu("0")), None, &in_force, &[]).is_ok());
    assert!(judge(&demand(&cpu("1m")), None, &in_force, &[]).is_err());
    let (two, one) = (demand(&cpu("2")), demand(&cpu("1")));
    assert_eq!(judge(&one, Some(&two), &in_force, &[]), Ok(vec![]));
}

#[test]
fn classes_are_matched_by_each_operator() {
    let term = |operator, values: &[&str]| ScopeTerm {
        scope: Scope::VolumeAttributesClass,
        operator,
        values: values.iter().map(ToString::to_string).collect(),
    };
    let claim = |classes: &[&str]| StorageClaim {
        attributes_classes: classes.iter().map(ToString::to_string).collect(),
        ..StorageClaim::default()
    };
    // Every class that it has or is to have counts.
    for (operator, values, none, gold, both) in [
        (Operator::Exists, &[][..], false, true, true),
        (Operator::DoesNotExist, &[], true, false, false),
        (Operator::In, &["silver"], false, false, true),
        (Operator::NotIn, &["silver"], true, true, false),
    ] {
        let quota = ResourceQuota {
            selector: vec![term(operator, values)],
            ..quota_of("q", &json!({"persistentvolumeclaims": "1"}), &json!({}))
        };
        for (classes, expected) in [
            (&[][..], none),
            (&["gold"], gold),
            (&["gold", "silver", ""], both),
        ] {
            let demand = claim(classes).demand();
            assert_eq!(demand.matches(&quota), expected, "{operator} {classes:?}");
        }
        // A pod has no such class, and a quota by class is not for it.
        assert!(!demand(&cpu("1")).matches(&quota));
    }
}

#[test]
fn any_object_can_be_counted() {
    for (resource, usage) in [
        ("jobs.batch", json!({"count/jobs.batch": "1"})),
        (
            "configmaps",
            json!({"count/configmaps": "1", "configmaps": "1"}),
        ),
        (
            "imagestreams.image.openshift.io",
            json!({"count/imagestreams.image.openshift.io": "1", "openshift.io/imagestreams": "1"}),
        ),
    ] {
        assert_eq!(Demand::of_object(resource).usage(), &pods::amounts(&usage));
    }
}
