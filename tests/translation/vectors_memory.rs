//! What of a request is protected, and who may swap.

use allotd::cgroup::CgroupPath;
use allotd::model::policy::{MemoryReservationPolicy, SwapBehavior};
use allotd::model::{Node, Pod, Policy, QosClass};
use allotd::translation::memory::{protectable, swap_limit};
use allotd::translation::{Totals, levels};
use allotd::units::{Bytes, PageSize};
use serde_json::{Value, json};

use crate::vectors::{Row, each_row, number};
use crate::vectors_pod::pod;
use crate::{of_container, of_pod, pods, translated, value};

/// `memory.high` is never set here, so only `memory.min` and `memory.low` are compared.
#[test]
fn requests_are_protected_in_tiers() {
    let policy = |name: &Value| Policy {
        memory_reservation: match name.as_str().unwrap() {
            "TieredReservation" => MemoryReservationPolicy::Tiered,
            "None" => MemoryReservationPolicy::None,
            other => panic!("{other}"),
        },
        ..Policy::default()
    };
    each_row("pod_memory_qos_tiered", |name, input, expected| {
        let pod = translated(
            pod(input),
            &pods::big_node(),
            &policy(&input["memoryReservationPolicy"]),
        );
        for file in ["memory.min", "memory.low"] {
            let mut expected: u64 = match &expected["unified"][file] {
                Value::Null => 0,
                bytes => number(bytes),
            };
            if file == "memory.min" && expected > 0 {
                // Here protection stays below the limit, which a Guaranteed pod asks for in full.
                expected = protectable(Bytes(expected), PageSize::FOUR_KIB).0;
            }
            assert_eq!(of_pod(&pod, file), expected.to_string(), "{name} {file}");
        }
        Row::Compared
    });
    each_row("container_memory_qos", |name, input, expected| {
        if expected
            .get("memory.min")
            .or(expected.get("memory.low"))
            .is_none()
        {
            return Row::PassedOver("only memory.high, which is never set");
        }
        let amounts = |field: &str| match number::<u64>(&input[field]) {
            0 => json!({}),
            bytes => json!({"memory": bytes.to_string()}),
        };
        let resources = json!({
            "requests": amounts("memoryRequest"), "limits": amounts("memoryLimit"),
        });
        let pod = pods::pod(&json!({"containers": [{"resources": resources}]}));
        let pod = translated(pod, &pods::big_node(), &policy(&input["policy"]));
        assert_eq!(pod.share.qos.to_string(), input["qosClass"], "{name}");
        for file in ["memory.min", "memory.low"] {
            let expected = expected[file].as_str().unwrap_or("0");
            assert_eq!(of_container(&pod, "c0", file), expected, "{name} {file}");
        }
        Row::Compared
    });
    each_row("qos_memory_protection", |name, input, expected| {
        let policy = policy(&input["policy"]);
        let asking = |qos, field: &str| {
            let memory = number::<u64>(&input[field]).to_string();
            let resources = match qos {
                QosClass::Guaranteed => json!({"limits": {"cpu": "1", "memory": memory}}),
                _ => json!({"requests": {"cpu": "1", "memory": memory}}),
            };
            let pod = pods::pod(&json!({"containers": [{"resources": resources}]}));
            translated(pod, &pods::big_node(), &policy).share
        };
        let totals: Totals = [
            asking(QosClass::Guaranteed, "sumGuaranteedRequests"),
            asking(QosClass::Burstable, "sumBurstableRequests"),
        ]
        .iter()
        .collect();
        let tree = levels(&totals, &pods::big_node(), &policy).tree;
        let burstable = CgroupPath::top().child("burstable").unwrap();
        assert_eq!(
            value(&tree, &CgroupPath::top(), "memory.min"),
            expected["kubepods memory.min"]
        );
        assert_eq!(
            value(&tree, &burstable, "memory.low"),
            expected["burstable memory.low"],
            "{name}"
        );
        Row::Compared
    });
}

#[test]
fn swap_is_shared_in_proportion() {
    each_row("swap_limit", |name, input, expected| {
        let bytes = |field: &str| Bytes(number(&input[field]));
        let ours = swap_limit(
            bytes("memoryRequest"),
            bytes("nodeMemory"),
            bytes("nodeSwap"),
        );
        let expected = expected["memory.swap.max"].as_str().unwrap();
        // One row says why it is 0.
        let expected = expected.split_whitespace().next().unwrap();
        assert_eq!(ours.to_string(), expected, "{name}");
        Row::Compared
    });
    each_row("swap_behavior", |name, input, expected| {
        if input["controller"] == false || input["cgroup"] == "v1" {
            return Row::PassedOver("a file that the kernel lacks is the door's business");
        }
        let amounts = |field: &str| match &input[field] {
            Value::String(amount) => json!({"memory": amount}),
            _ => json!({}),
        };
        let mut resources = json!({"requests": {"memory": "1Gi"}, "limits": {"memory": "2Gi"}});
        if input.get("memoryRequest").is_some() {
            let (requests, limits) = (amounts("memoryRequest"), amounts("memoryLimit"));
            resources = json!({"requests": requests, "limits": limits});
        }
        if input["qos"] == "Burstable" {
            // Keeps the pod Burstable where memory alone would not.
            resources["requests"]["cpu"] = json!("1");
        } else if input["qos"] == "Guaranteed" {
            resources = json!({"limits": {"cpu": "1", "memory": "1Gi"}});
        }
        let pod = Pod {
            is_static: input["critical"] == true,
            ..pods::pod(&json!({"containers": [{"resources": resources}]}))
        };
        let node = Node {
            swap: Bytes(1 << 40),
            ..pods::big_node()
        };
        let policy = Policy {
            swap_behavior: SwapBehavior::LimitedSwap,
            ..Policy::default()
        };
        let limited = translated(pod.clone(), &node, &policy);
        assert_eq!(limited.share.qos.to_string(), input["qos"], "{name}");
        let swaps = of_container(&limited, "c0", "memory.swap.max") != "0";
        assert_eq!(swaps, expected == "LimitedSwap", "{name}");
        let not = translated(pod, &node, &Policy::default());
        assert_eq!(of_container(&not, "c0", "memory.swap.max"), "0", "{name}");
        Row::Compared
    });
}
