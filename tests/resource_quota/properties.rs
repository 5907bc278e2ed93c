//! What holds for any quotas and any pods.

use allotd::admission::quota::recount;
use allotd::model::{Pod, ResourceQuota, Scope};
use proptest::prelude::*;
use serde_json::json;

use super::{demand, judge, pod_of, quota_of};

fn pod() -> impl Strategy<Value = Pod> {
    let milli = proptest::option::of(0..40_u32);
    (milli.clone(), milli, any::<bool>()).prop_map(|(cpu, memory, has_deadline)| {
        let mut requests = json!({});
        if let Some(cpu) = cpu {
            requests["cpu"] = json!(format!("{}m", cpu * 100));
        }
        if let Some(memory) = memory {
            requests["memory"] = json!(format!("{}Mi", memory * 100));
        }
        let mut pod = pod_of(&[json!({"requests": requests})]);
        pod.active_deadline_seconds = has_deadline.then_some(60);
        pod
    })
}

fn quotas() -> impl Strategy<Value = Vec<ResourceQuota>> {
    let one = (
        0..100_u32,
        proptest::option::of(0..200_u32),
        proptest::option::of(0..200_u32),
        0..12_u32,
        proptest::option::of(prop_oneof![
            Just(Scope::Terminating),
            Just(Scope::NotTerminating),
            Just(Scope::NotBestEffort),
        ]),
    );
    let one = one.prop_map(|(n, cpu, memory, pods, scope)| {
        let mut hard = json!({"pods": pods.to_string()});
        if let Some(cpu) = cpu {
            hard["requests.cpu"] = json!(format!("{}m", cpu * 100));
        }
        if let Some(memory) = memory {
            hard["memory"] = json!(format!("{}Mi", memory * 100));
        }
        ResourceQuota {
            scopes: scope.into_iter().collect(),
            ..quota_of(&format!("q{n}"), &hard, &json!({}))
        }
    });
    proptest::collection::vec(one, 0..4).prop_map(|mut quotas| {
        quotas.sort_by(|a, b| a.name.cmp(&b.name));
        quotas.dedup_by(|a, b| a.name == b.name);
        quotas
    })
}

proptest! {
    /// However pods come and go: no account passes its bound, and each says what a count says.
    #[test]
    fn accounts_are_true_and_never_above_hard(
        mut quotas in quotas(),
        steps in proptest::collection::vec((pod(), any::<proptest::sample::Index>(), any::<bool>()), 1..30),
    ) {
        let mut stored: Vec<(Pod, Vec<_>)> = Vec::new();
        for (pod, which, is_deletion) in steps {
            if is_deletion && !stored.is_empty() {
                let (_, charges) = stored.remove(which.index(stored.len()));
                for charge in charges {
                    let charge: allotd::admission::Charge = charge;
                    let own = quotas.iter_mut().filter(|quota| quota.name == charge.quota);
                    own.for_each(|quota| quota.release(&charge.amounts));
                }
            } else {
                let before = quotas.clone();
                let verdict = judge(pod, &quotas);
                for charge in verdict.charges() {
                    charge.apply(&mut quotas);
                }
                if verdict.is_admitted() {
                    stored.push((verdict.pod().clone(), verdict.charges().to_vec()));
                } else {
                    prop_assert_eq!(&quotas, &before);
                }
            }
            let demands: Vec<_> = stored.iter().map(|(pod, _)| demand(pod)).collect();
            for quota in &quotas {
                for (name, hard) in quota.hard.iter() {
                    let used = quota.used_of_hard().get(name).unwrap();
                    prop_assert!(used <= hard, "{name} of {quota:?}");
                }
                prop_assert_eq!(quota.used_of_hard(), recount(quota, &demands));
            }
        }
    }

    /// Adding and taking away again leaves an account as it was.
    #[test]
    fn a_charge_and_its_release_cancel_out(quotas in quotas(), used in pod(), pod in pod()) {
        let mut quotas = quotas;
        for quota in &mut quotas {
            quota.used = recount(quota, [&demand(&used)]);
        }
        let before = quotas.clone();
        let verdict = judge(pod, &quotas);
        for charge in verdict.charges() {
            charge.apply(&mut quotas);
            for quota in quotas.iter_mut().filter(|quota| quota.name == charge.quota) {
                quota.release(&charge.amounts);
            }
        }
        prop_assert_eq!(quotas, before);
    }

    /// A pod is admitted where each quota alone would admit it, in whatever order they are given.
    #[test]
    fn quotas_are_judged_alike_in_any_order(
        pod in pod(),
        (quotas, shuffled) in quotas().prop_flat_map(|quotas| {
            let shuffled = Just(quotas.clone()).prop_shuffle();
            (Just(quotas), shuffled)
        }),
    ) {
        let verdict = judge(pod.clone(), &quotas);
        prop_assert_eq!(&verdict, &judge(pod.clone(), &shuffled));
        let alone = quotas.iter().all(|quota| judge(pod.clone(), std::slice::from_ref(quota)).is_admitted());
        prop_assert_eq!(verdict.is_admitted(), alone);
    }
}
