//! What a node keeps and what it gives, held to the tests of Kubernetes 1.36.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

#[path = "support/pods.rs"]
mod pods;

use allotd::model::node::{EvictionThreshold, HardEviction, allocatable, reservation};
use allotd::model::{ResourceList, ResourceName};
use allotd::units::{Format, Quantity};
use pods::{amounts, data};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Capacity, all that is reserved, and the threshold.
fn input(row: &Value) -> (ResourceList, ResourceList, HardEviction) {
    let input = &row["input"];
    let mut reserved = amounts(&input["kubeReserved"]);
    reserved.add(&amounts(&input["systemReserved"]));
    let threshold = input["hardEviction memory.available"]
        .as_str()
        .unwrap_or("0");
    let eviction = HardEviction {
        memory: threshold.parse().unwrap(),
        ..HardEviction::NONE
    };
    (amounts(&input["capacity"]), reserved, eviction)
}

fn rows(array: &str) -> Vec<Value> {
    let data = data(include_str!("data/node.json"));
    let rows = data[array].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    rows.clone()
}

#[test]
fn pods_get_what_is_not_reserved() {
    for row in rows("node_allocatable_enforcement") {
        let (capacity, reserved, _) = input(&row);
        let given = allocatable(&capacity, &reserved, &HardEviction::NONE);
        if row["name"] == "case 7" {
            // Memory is reserved on a node that has none: upstream's unit leaves it out, and its
            // start-up check, which is part of this function here, refuses the configuration.
            let problem = "invalid Node Allocatable configuration. Resource \"memory\" has a reservation of \
                           150Mi but capacity of 0. Expected capacity >= reservation.";
            assert_eq!(given.unwrap_err(), [problem]);
        } else {
            assert_eq!(given.unwrap(), amounts(&row["expected"]), "{}", row["name"]);
        }
    }
}

#[test]
fn what_is_kept_is_the_reservation_and_the_threshold() {
    for row in rows("node_reservation_for_scheduling") {
        let (capacity, reserved, eviction) = input(&row);
        let mut expected = amounts(&row["expected"]);
        if row["name"] == "case 3" {
            // Upstream holds 5 % in 32 bits of floating point and keeps 8 bytes too many of 10Gi.
            let exact = expected.memory().unwrap().0 - 8;
            assert_eq!(exact, (150 << 20) + (10 << 30) / 20);
            expected.set(
                ResourceName::Memory,
                Quantity::from_units(exact, Format::BinarySi),
            );
        }
        assert_eq!(
            reservation(&capacity, &reserved, &eviction),
            expected,
            "{}",
            row["name"]
        );
    }
}

#[test]
fn allocatable_of_whole_nodes() {
    let rows = [
        (
            "reservations, an amount and a part",
            json!({"cpu": "16", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}),
            json!({"cpu": "1500m", "memory": "3Gi", "ephemeral-storage": "2Gi"}),
            ("500Mi", "10%"),
            json!({"cpu": "14500m", "memory": "29196Mi", "ephemeral-storage": "88Gi", "pods": "110"}),
        ),
        (
            "huge pages are no memory for others",
            json!({"memory": "8Gi", "hugepages-2Mi": "1Gi"}),
            json!({}),
            ("100Mi", "10%"),
            json!({"memory": "7068Mi", "hugepages-2Mi": "1Gi"}),
        ),
        (
            "huge pages of two sizes take all that is left",
            json!({"memory": "2Gi", "hugepages-2Mi": "1Gi", "hugepages-1Gi": "1Gi"}),
            json!({"memory": "1Mi"}),
            ("0", "0%"),
            json!({"memory": "0", "hugepages-2Mi": "1Gi", "hugepages-1Gi": "1Gi"}),
        ),
        (
            "a reservation of everything",
            json!({"cpu": "1", "example.com/x": "3"}),
            json!({"cpu": "1"}),
            ("100Mi", "10%"),
            json!({"cpu": "0", "example.com/x": "3"}),
        ),
        (
            "a part is rounded down",
            json!({"ephemeral-storage": "1009"}),
            json!({}),
            ("0", "7.5%"),
            json!({"ephemeral-storage": "934"}),
        ),
    ];
    for (name, capacity, reserved, (memory, disk), expected) in rows {
        let eviction = HardEviction {
            memory: memory.parse().unwrap(),
            disk: disk.parse().unwrap(),
        };
        let given = allocatable(&amounts(&capacity), &amounts(&reserved), &eviction);
        assert_eq!(given.unwrap(), amounts(&expected), "{name}");
    }
}

#[test]
fn all_that_is_wrong_with_reservations_is_told() {
    let problems = allocatable(
        &amounts(&json!({"cpu": "4", "memory": "32Gi", "hugepages-2Mi": "1Gi"})),
        &amounts(&json!({"cpu": "-1", "memory": "40Gi", "hugepages-2Mi": "2Mi"})),
        &HardEviction::NONE,
    );
    assert_eq!(
        problems.unwrap_err(),
        [
            "a reservation of -1 cpu is negative: 0 or more is right",
            "cannot reserve \"hugepages-2Mi\" resource",
            "invalid Node Allocatable configuration. Resource \"memory\" has a reservation of 40Gi but \
             capacity of 32Gi. Expected capacity >= reservation.",
        ]
    );
}

#[test]
fn thresholds_are_read_and_printed() {
    for text in [
        "0", "100Mi", "1500M", "0%", "10%", "7.5%", "99.999%", "0.001%",
    ] {
        let threshold: EvictionThreshold = text.parse().unwrap();
        assert_eq!(threshold.to_string(), text);
    }
    for text in [
        "", "%", "-1Mi", "-5%", "+5%", "100%", "101%", "1k%", "0.0001%", "5%%", "5 %", "ten",
    ] {
        assert!(text.parse::<EvictionThreshold>().is_err(), "{text}");
    }
}

#[test]
fn settings_of_eviction_are_read_or_all_faults_are_told() {
    let settings = |list: &[(&str, &str)]| {
        let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        HardEviction::read(&list.iter().map(own).collect())
    };
    assert_eq!(settings(&[]), Ok(HardEviction::NONE));
    let read = settings(&[("memory.available", "5%"), ("nodefs.available", "1Gi")]).unwrap();
    assert_eq!(
        (read.memory.to_string(), read.disk.to_string()),
        ("5%".to_owned(), "1Gi".to_owned())
    );
    let faults = settings(&[
        ("imagefs.free", "5%"),
        ("pid.available", "5%"),
        ("memory.available", "5x"),
        ("nodefs.available", "200%"),
    ]);
    assert_eq!(faults.unwrap_err().len(), 3);
}

proptest! {
    #[test]
    fn nothing_below_zero_and_nothing_above_capacity(
        memory in 0..u64::MAX,
        huge in 0..u64::MAX,
        reserved in 0..u64::MAX,
        thousandths in 0..100_000_u32,
    ) {
        let units = |units| Quantity::from_units(units, Format::BinarySi);
        let two_mib = ResourceName::from("hugepages-2Mi");
        let capacity: ResourceList =
            [(ResourceName::Memory, units(memory)), (two_mib, units(huge))].into_iter().collect();
        let reserved = [(ResourceName::Memory, units(reserved))].into_iter().collect();
        let eviction = HardEviction { memory: EvictionThreshold::Percent { thousandths }, ..HardEviction::NONE };
        let kept = reservation(&capacity, &reserved, &eviction).get(&ResourceName::Memory).unwrap();
        match allocatable(&capacity, &reserved, &eviction) {
            Ok(given) => {
                let given = given.get(&ResourceName::Memory).unwrap();
                let exact = units(memory).checked_sub(kept).unwrap().checked_sub(units(huge)).unwrap();
                prop_assert_eq!(given, exact.max(Quantity::ZERO));
            }
            Err(problems) => {
                prop_assert_eq!(problems.len(), 1);
                prop_assert!(kept > units(memory));
            }
        }
    }

    #[test]
    fn a_part_is_exact_to_the_unit(capacity in 0..u64::MAX, thousandths in 0..100_000_u32) {
        let part = EvictionThreshold::Percent { thousandths };
        let part = part.of(Quantity::from_units(capacity, Format::BinarySi));
        let exact = u128::from(capacity) * u128::from(thousandths) / 100_000;
        prop_assert_eq!(u128::from(part.to_u64_ceil().unwrap()), exact);
    }
}
