//! Pods and containers: all files, scores and paths. Where a decision of ours differs from upstream the
//! test says so and holds our value.

use std::collections::BTreeMap;

use allotd::model::{EffectivePod, Pod, PodUid, Policy, QosClass, ResourceList, ResourceName};
use allotd::translation::cpu::weight;
use allotd::translation::hugetlb::bounds;
use allotd::translation::{oom_score, pod_path};
use allotd::units::{Bytes, HugePageSize, Limit, Micros};
use serde_json::{Value, json};

use crate::vectors::{Row, each_row, number};
use crate::{of_container, of_pod, pods, translated};

/// The pod of a row. Names that are prose there are no names of containers, so they are left out.
pub fn pod(input: &Value) -> Pod {
    let mut spec = input["pod"].clone();
    for field in ["containers", "initContainers"] {
        for container in spec[field].as_array_mut().into_iter().flatten() {
            let container = container.as_object_mut().unwrap();
            container.retain(|key, name| key != "name" || !name.to_string().contains(' '));
        }
    }
    let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
    Pod {
        priority_class: text("priorityClassName"),
        priority: number(spec.get("priority").unwrap_or(&json!(0))),
        ..pods::pod(&spec)
    }
}

/// A number, or `max` where there is none.
fn or_max(value: &Value) -> String {
    value.as_u64().map_or("max".to_owned(), |n| n.to_string())
}

#[test]
fn pods_get_the_files_of_the_kubelet() {
    each_row("pod_cgroup_config", |name, input, expected| {
        let policy = Policy {
            cpu_cfs_quota: input["enforceCPULimits"].as_bool().unwrap(),
            cpu_cfs_quota_period: Micros(number(&input["cpuPeriodUs"])),
            ..Policy::default()
        };
        let pod = translated(pod(input), &pods::big_node(), &policy);
        assert_eq!(pod.share.qos.to_string(), expected["qosClass"], "{name}");

        // The same shares, on our one curve; upstream's pod level is linear.
        let weight = weight(number(&expected["cpuShares"]), policy.cpu_weight_formula);
        assert_eq!(of_pod(&pod, "cpu.weight"), weight.to_string(), "{name}");

        // Here a limited sidecar before an unlimited init container does not make the pod limited.
        let quirk = name.contains("cumulative quirk");
        let (quota, memory) = if quirk {
            ("max".to_owned(), "max".to_owned())
        } else {
            // Upstream's quota -1 is none.
            (or_max(&expected["cpuQuota"]), or_max(&expected["memory"]))
        };
        let max = format!("{quota} {}", policy.cpu_cfs_quota_period);
        assert_eq!(of_pod(&pod, "cpu.max"), max, "{name}");
        assert_eq!(of_pod(&pod, "memory.max"), memory, "{name}");

        // Sizes that upstream does not name are written as 0 as well.
        let huge = expected["hugePageLimit"]["2097152"].as_u64().unwrap_or(0);
        for file in ["hugetlb.2MB.max", "hugetlb.2MB.rsvd.max"] {
            assert_eq!(of_pod(&pod, file), huge.to_string(), "{name}");
        }
        assert_eq!(of_pod(&pod, "hugetlb.1GB.rsvd.max"), "0", "{name}");
        Row::Compared
    });
}

#[test]
fn containers_get_the_files_of_the_kubelet() {
    each_row("container_resources", |name, input, expected| {
        if input["cgroup"] == "cgroupV1" {
            return Row::PassedOver("there is no cgroup v1 here");
        }
        let policy = Policy {
            oom_policy: serde_json::from_value(match input["singleProcessOOMKill"] {
                Value::Bool(true) => json!("process"),
                _ => json!("group"),
            })
            .unwrap(),
            ..Policy::default()
        };
        // The rows spell a container's resources in three ways.
        let own = if input["container"].is_object() {
            input["container"].clone()
        } else if input.get("limits").is_some() {
            json!({"requests": input["requests"], "limits": input["limits"]})
        } else {
            let named = |pairs: [(&str, &Value); 2]| -> Value {
                let given = pairs.into_iter().filter(|(_, amount)| amount.is_string());
                given
                    .map(|(name, amount)| (name.to_owned(), amount.clone()))
                    .collect()
            };
            let none = Value::Null;
            json!({
                "requests": named([("cpu", &input["cpuRequest"]), ("memory", &none)]),
                "limits": named([("cpu", &input["cpuLimit"]), ("memory", &input["memoryLimit"])]),
            })
        };
        let mut spec = json!({"containers": [{"resources": own}]});
        if input["pod"].is_object() {
            spec["resources"] = input["pod"].clone();
        }
        let capacity = input["memoryCapacity"].as_u64().unwrap_or(1 << 40);
        let node = pods::node(&json!({"cpu": "64", "memory": capacity.to_string()}));
        let pod = translated(pods::pod(&spec), &node, &policy);

        let weight = weight(number(&expected["cpuShares"]), policy.cpu_weight_formula);
        assert_eq!(
            of_container(&pod, "c0", "cpu.weight"),
            weight.to_string(),
            "{name}"
        );
        // A memory limit of 0 is none. Rows that do not name a quota do not enforce one.
        if let Some(quota) = expected["cpuQuota"].as_u64() {
            let quota = Some(quota).filter(|n| *n > 0).map(Micros);
            let max = format!("{} {}", Limit::from(quota), expected["cpuPeriod"]);
            assert_eq!(of_container(&pod, "c0", "cpu.max"), max, "{name}");
        }
        if let Some(memory) = expected["memoryLimitInBytes"].as_u64() {
            let memory = Limit::from(Some(memory).filter(|n| *n > 0));
            assert_eq!(
                of_container(&pod, "c0", "memory.max"),
                memory.to_string(),
                "{name}"
            );
        }
        if let Some(score) = expected["oomScoreAdj"].as_i64() {
            let (_, ours) = pod.oom_scores[0];
            assert_eq!(i64::from(ours), score, "{name}");
        }
        if let Some(group) = input.get("singleProcessOOMKill") {
            let written = if group == true { "0" } else { "1" };
            let upstream = expected["unified"]["memory.oom.group"].as_str();
            assert_eq!(upstream.unwrap_or("0"), written, "{name}");
            assert_eq!(
                of_container(&pod, "c0", "memory.oom.group"),
                written,
                "{name}"
            );
        }
        Row::Compared
    });
}

#[test]
fn huge_pages_are_bounded_for_every_size() {
    let sizes = [HugePageSize::TWO_MIB, HugePageSize::ONE_GIB];
    each_row("container_hugepage_limits", |name, input, expected| {
        assert_eq!(input["nodePageSizes"], json!(["2MB", "1GB"]));
        // Admission refuses the misspelt names of some rows, so this looks at the amounts alone.
        let pod = pods::pod(&json!({
            "resources": {"limits": input["podLimits"]},
            "containers": [{"resources": {"limits": input["containerLimits"]}}],
        }));
        let container = EffectivePod::of(&pod).containers.remove(0);
        let ours: BTreeMap<String, u64> = bounds(&container.resources.limits, &sizes)
            .map(|(size, bytes)| (size.kernel_name(), bytes.0))
            .collect();
        assert_eq!(json!(ours), *expected, "{name}");
        Row::Compared
    });
    each_row("pod_hugepage_limits", |name, input, expected| {
        let mut sum = ResourceList::default();
        for request in input["requests"].as_array().unwrap() {
            let resource = ResourceName::from(request["resource"].as_str().unwrap());
            let amount = request["quantity"].as_str().unwrap().parse().unwrap();
            sum.add(&[(resource, amount)].into_iter().collect());
        }
        let sizes: Vec<_> = [2 << 20, 4 << 20]
            .into_iter()
            .filter_map(HugePageSize::new)
            .collect();
        for (size, bytes) in bounds(&sum, &sizes) {
            let of = &expected["hugePageLimitBytesByPageSizeBytes"][size.bytes().to_string()];
            assert_eq!(bytes.0, of.as_u64().unwrap_or(0), "{name} {size}");
        }
        Row::Compared
    });
    each_row("hugepage_unit_from_bytes", |name, input, expected| {
        let size = HugePageSize::new(number(&input["bytes"]));
        let unit = size.map(HugePageSize::kernel_name);
        assert_eq!(json!(unit), expected["unit"], "{name}");
        Row::Compared
    });
}

/// A pod's own bound is an annotation here; upstream plans `spec.resources.limits.pid` (KEP-6063).
#[test]
fn tasks_are_bounded_by_the_lesser_of_node_and_pod() {
    each_row("pod_pids_max", |name, input, expected| {
        let node = Some(number(&input["podPidsLimit"])).filter(|n| *n > 0);
        let policy = Policy {
            pod_pids_limit: node.into(),
            ..Policy::default()
        };
        let mut pod = pods::pod(&json!({"containers": [{}]}));
        if let Some(own) = input["spec.resources.limits.pid"].as_u64() {
            pod.annotations
                .insert("allotd.dev/pids-limit".into(), own.to_string());
        }
        let pod = translated(pod, &pods::big_node(), &policy);
        // "Not written" upstream: `max` is what an untouched cgroup has.
        assert_eq!(
            of_pod(&pod, "pids.max"),
            or_max(&expected["pids.max"]),
            "{name}"
        );
        assert_eq!(of_container(&pod, "c0", "pids.max"), "max", "{name}");
        Row::Compared
    });
}

#[test]
fn scores_are_those_of_the_kubelet() {
    // Some of these pods would never be admitted to such a node, so admission is left out.
    let scores = |pod: &Pod, capacity| -> BTreeMap<String, i32> {
        let effective = EffectivePod::of(pod);
        let scores = oom_score::scores(pod, QosClass::of(pod), &effective, capacity);
        scores.into_iter().collect()
    };
    each_row("oom_score_adj", |name, input, expected| {
        let ours = scores(&pod(input), Bytes(number(&input["memoryCapacity"])));
        assert_eq!(json!(ours), *expected, "{name}");
        Row::Compared
    });
    let spec = json!({"containers": [{"name": "c", "resources": {"requests": {"memory": "1Gi"}}}]});
    let critical = Pod {
        priority: Pod::CRITICAL_PRIORITY,
        priority_class: "system-node-critical".into(),
        ..pods::pod(&spec)
    };
    assert_eq!(scores(&critical, Bytes(8 << 30))["c"], -997);
    let pretender = Pod {
        priority: 0,
        ..critical
    };
    assert_eq!(scores(&pretender, Bytes(8 << 30))["c"], 875);
    // A node of unknown size: the pod goes before any whose part is known.
    assert_eq!(scores(&pretender, Bytes::ZERO)["c"], 999);
}

#[test]
fn pods_lie_where_the_kubelet_puts_them() {
    each_row("pod_cgroup_path", |name, input, expected| {
        let qos = match input["qosClass"].as_str().unwrap() {
            "Guaranteed" => QosClass::Guaranteed,
            "Burstable" => QosClass::Burstable,
            "BestEffort" => QosClass::BestEffort,
            other => panic!("{other}"),
        };
        let uid = PodUid::new(input["uid"].as_str().unwrap()).unwrap();
        // The top takes the place of `kubepods`; systemd's names are of no use below a delegated unit.
        let path = format!("/kubepods/{}", pod_path(qos, &uid));
        assert_eq!(path, expected["cgroupfs"].as_str().unwrap(), "{name}");
        Row::Compared
    });
}
