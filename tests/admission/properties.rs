//! What holds for any pod.

use allotd::admission::{Situation, admit, readmit};
use allotd::model::{ContainerKind, Pod, ResourceList, ResourceName, Resources};
use allotd::units::{Format, Quantity};
use proptest::prelude::*;
use serde_json::json;

use crate::pods::{big_node, container, node, pod_of};

fn any_amount() -> impl Strategy<Value = Quantity> {
    let most = 10_i128.pow(38);
    prop_oneof![
        (-most..=most),
        (-2_000_000_000_000_i128..2_000_000_000_000),
        Just(0),
        (0..64_u32).prop_map(|shift| (1_i128 << shift) * 1_000_000_000),
    ]
    .prop_map(|nano| Quantity::from_nano(nano, Format::BinarySi).unwrap())
}

fn any_name() -> impl Strategy<Value = ResourceName> {
    prop_oneof![
        4 => Just("cpu".to_owned()),
        4 => Just("memory".to_owned()),
        1 => Just("ephemeral-storage".to_owned()),
        2 => Just("hugepages-2Mi".to_owned()),
        1 => Just("hugepages-1Gi".to_owned()),
        2 => Just("example.com/x".to_owned()),
        1 => Just("pods".to_owned()),
        1 => ".{0,20}",
    ]
    .prop_map(|name| ResourceName::from(name.as_str()))
}

fn any_list() -> impl Strategy<Value = ResourceList> {
    prop::collection::vec((any_name(), any_amount()), 0..4)
        .prop_map(|list| list.into_iter().collect())
}

fn any_resources() -> impl Strategy<Value = Resources> {
    (any_list(), any_list()).prop_map(|(requests, limits)| Resources { requests, limits })
}

fn any_kind() -> impl Strategy<Value = ContainerKind> {
    prop_oneof![
        Just(ContainerKind::App),
        Just(ContainerKind::Init),
        Just(ContainerKind::Sidecar)
    ]
}

prop_compose! {
    fn any_pod()(
        containers in prop::collection::vec((any_kind(), any_resources()), 0..5),
        own in prop::option::of(any_resources()),
        overhead in any_list(),
        name in prop_oneof![Just("web".to_owned()), ".{0,300}"],
    ) -> Pod {
        let containers = containers
            .into_iter()
            .enumerate()
            .map(|(index, (kind, resources))| container(&format!("c{index}"), kind, resources))
            .collect();
        Pod { name, resources: own, overhead, ..pod_of(containers) }
    }
}

/// A pod of small, right amounts.
fn usual_pod() -> impl Strategy<Value = Pod> {
    let one =
        (any_kind(), 0..2000_i64, prop::option::of(0..2000_i64)).prop_map(|(kind, cpu, more)| {
            let request = Quantity::from_milli(cpu);
            let limit = more.map(|more| (ResourceName::Cpu, Quantity::from_milli(cpu + more)));
            let resources = Resources {
                requests: [(ResourceName::Cpu, request)].into_iter().collect(),
                limits: limit.into_iter().collect(),
            };
            container("c", kind, resources)
        });
    prop::collection::vec(one, 1..5).prop_map(|mut containers| {
        for (index, container) in containers.iter_mut().enumerate() {
            container.name = format!("c{index}");
        }
        containers[0].kind = ContainerKind::App;
        pod_of(containers)
    })
}

proptest! {
    #[test]
    fn any_pod_gets_a_verdict(pod in any_pod(), used in any_list(), pods in any::<u64>()) {
        let node = big_node();
        let verdict = admit(pod.clone(), &Situation::new(&node, &used, pods));
        prop_assert_eq!(verdict.is_admitted(), verdict.reasons().is_empty());
        for reason in verdict.reasons() {
            prop_assert!(!reason.to_string().contains(char::is_control));
        }
        // Nothing that is admitted asks for what is negative or more than the node gives.
        if verdict.is_admitted() {
            for (name, amount) in verdict.effective().requests.iter() {
                prop_assert!(!amount.is_negative());
                let taken = used.get(name).unwrap_or(Quantity::ZERO);
                let most = node.allocatable.get(name).unwrap_or(Quantity::ZERO);
                prop_assert!(amount.is_zero() || taken.checked_add(amount).unwrap() <= most);
            }
        }
    }

    #[test]
    fn defaults_are_filled_in_once(pod in any_pod()) {
        let node = big_node();
        let nothing = ResourceList::default();
        let situation = Situation::new(&node, &nothing, 0);
        let once = admit(pod, &situation);
        let twice = admit(once.pod().clone(), &situation);
        prop_assert_eq!(once.pod(), twice.pod());
        prop_assert_eq!(once.reasons(), twice.reasons());
    }

    #[test]
    fn what_was_admitted_is_taken_up_again_unchanged(pod in usual_pod()) {
        let node = big_node();
        let nothing = ResourceList::default();
        let situation = Situation::new(&node, &nothing, 0);
        let admitted = admit(pod, &situation).into_admitted().unwrap();
        prop_assert_eq!(readmit(admitted.pod().clone()).unwrap(), admitted);
    }

    #[test]
    fn the_node_is_never_given_away_twice(pods in prop::collection::vec(usual_pod(), 0..12)) {
        let node = node(&json!({"cpu": "8", "pods": "7"}));
        let mut admitted = Vec::new();
        for pod in pods {
            let used = allotd::admission::fit::used(&admitted);
            let situation = Situation::new(&node, &used, admitted.len() as u64);
            admitted.extend(admit(pod, &situation).into_admitted().ok());
        }
        let used = allotd::admission::fit::used(&admitted);
        let cpu = used.get(&ResourceName::Cpu).unwrap_or(Quantity::ZERO);
        prop_assert!(cpu <= Quantity::from_units(8, Format::DecimalSi));
        prop_assert!(admitted.len() <= 7);
    }
}
