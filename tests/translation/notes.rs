//! Every rounding, clamp, floor and default is told, with its numbers.

use allotd::model::policy::{OomPolicy, SwapBehavior};
use allotd::model::{Node, Pod, Policy};
use allotd::units::{Bytes, Limit, Micros};
use serde_json::{Value, json};

use crate::{notes, of_container, of_pod, pods, translated};

fn one(requests: &Value, limits: &Value) -> Pod {
    pods::pod(&json!({"containers": [{
        "name": "app", "resources": {"requests": requests, "limits": limits},
    }]}))
}

#[test]
fn whole_pages() {
    let pod = translated(
        one(&json!({"memory": "50M"}), &json!({"memory": "100M"})),
        &pods::big_node(),
        &Policy::default(),
    );
    let expected = [
        "memory.min: 50000000 bytes are kept as 49999872: whole pages of 4096",
        "memory.max: 100000000 bytes are kept as 99999744: whole pages of 4096",
    ];
    assert_eq!(notes(&pod, Some("app")), expected);
    assert_eq!(notes(&pod, None), expected);
    assert_eq!(of_pod(&pod, "memory.max"), "100000000");
}

#[test]
fn a_quota_below_the_floor() {
    // kubernetes#23113; with a period of 5 ms the floor is higher.
    for (period, told) in [(100_000, "10m"), (5000, "200m")] {
        let policy = Policy {
            cpu_cfs_quota_period: Micros(period),
            ..Policy::default()
        };
        let limits = json!({"cpu": "5m"});
        let pod = translated(one(&limits, &limits), &pods::big_node(), &policy);
        let text = format!(
            "cpu.max: limit 5m is raised to {told}: the kernel takes no quota below 1000 µs"
        );
        for cgroup in [Some("app"), None] {
            assert_eq!(notes(&pod, cgroup), [text.as_str()]);
        }
    }
}

/// kubernetes#61192: as a property of a unit, in whole percent, a limit of 51m was stored as 5%, and the container's
/// 5100 µs did not fit below. No value goes through a property here: the pod has all that its container has, exactly.
#[test]
fn a_quota_of_no_whole_percent() {
    for milli in [51_u32, 55, 59, 60] {
        let limits = json!({"cpu": format!("{milli}m")});
        let pod = translated(one(&limits, &limits), &pods::big_node(), &Policy::default());
        let quota = format!("{} 100000", milli * 100);
        assert_eq!(of_container(&pod, "app", "cpu.max"), quota);
        assert_eq!(of_pod(&pod, "cpu.max"), quota);
        assert!(notes(&pod, Some("app")).is_empty());
    }
}

/// kubernetes#61293: without quotas none is left at any level, and weights stay.
#[test]
fn no_quota_where_quotas_are_off() {
    let policy = Policy {
        cpu_cfs_quota: false,
        ..Policy::default()
    };
    let limits = json!({"cpu": "1"});
    let pod = translated(one(&limits, &limits), &pods::big_node(), &policy);
    assert_eq!(of_container(&pod, "app", "cpu.max"), "max 100000");
    assert_eq!(of_pod(&pod, "cpu.max"), "max 100000");
    assert_eq!(of_pod(&pod, "cpu.weight"), "100");
    let told = ["cpu.max: the limit of 1 is not enforced: cpuCFSQuota is off"];
    assert_eq!(notes(&pod, Some("app")), told);
}

#[test]
fn requests_beyond_256_cpus() {
    let pod = translated(
        one(&json!({"cpu": "300"}), &json!({})),
        &pods::big_node(),
        &Policy::default(),
    );
    assert_eq!(of_container(&pod, "app", "cpu.weight"), "10000");
    let told = ["cpu.weight: a request of 300 weighs as 256: 10000 is the most"];
    assert_eq!(notes(&pod, Some("app")), told);
    assert_eq!(notes(&pod, None), told);
}

/// kubernetes#107057: one container without a limit may use anything, so the pod has none, resource
/// by resource.
#[test]
fn one_container_without_a_limit() {
    let spec = |place: &str| {
        let mut spec = json!({"containers": [
            {"name": "a", "resources": {"limits": {"cpu": "100m", "memory": "64Mi"}}},
        ]});
        let free = json!({"name": "b", "resources": {"limits": {"memory": "64Mi"}}});
        match place {
            "containers" => spec[place].as_array_mut().unwrap().push(free),
            _ => spec[place] = json!([free]),
        }
        spec
    };
    for (place, memory) in [("containers", 128_u64), ("initContainers", 64)] {
        let pod = translated(
            pods::pod(&spec(place)),
            &pods::big_node(),
            &Policy::default(),
        );
        assert_eq!(of_pod(&pod, "cpu.max"), "max 100000", "{place}");
        assert_eq!(
            of_pod(&pod, "memory.max"),
            (memory << 20).to_string(),
            "{place}"
        );
        assert_eq!(of_container(&pod, "a", "cpu.max"), "10000 100000");
        let told = "cpu.max: container b has no cpu limit: the pod has none".to_owned();
        assert!(notes(&pod, None).contains(&told), "{place}");
    }
    // Where nobody has a limit there is nothing to say.
    let pod = translated(
        one(&json!({}), &json!({})),
        &pods::big_node(),
        &Policy::default(),
    );
    assert_eq!(notes(&pod, None), Vec::<String>::new());
}

#[test]
fn protection_beside_a_limit() {
    let limits = json!({"cpu": "1", "memory": "128Mi"});
    let pod = translated(one(&limits, &limits), &pods::big_node(), &Policy::default());
    let told = [
        "memory.min: 125829120 of 134217728 bytes are protected: the limit of 134217728 less \
                 a margin of 8388608",
    ];
    assert_eq!(notes(&pod, Some("app")), told);
    assert_eq!(notes(&pod, None), told);
}

/// Containers may together ask for all that their pod may use; then each gives up a part.
#[test]
fn protection_within_a_limit_of_the_pod() {
    let half = json!({"requests": {"memory": "80Mi"}, "limits": {"memory": "160Mi"}});
    let budget = json!({"cpu": "1", "memory": "160Mi"});
    let pod = pods::pod(&json!({
        "resources": {"requests": budget, "limits": budget},
        "containers": [{"name": "a", "resources": half}, {"name": "b", "resources": half}],
    }));
    let pod = translated(pod, &pods::big_node(), &Policy::default());
    assert_eq!(of_pod(&pod, "memory.min"), (150 << 20).to_string());
    assert_eq!(
        of_container(&pod, "a", "memory.min"),
        (75 << 20).to_string()
    );
    let told = "memory.min: 78643200 of 83886080 bytes are protected: the containers ask for \
                167772160, the pod protects 157286400";
    assert!(notes(&pod, Some("b")).contains(&told.to_owned()));
}

#[test]
fn who_may_swap_and_why_not() {
    let node = Node {
        swap: Bytes(40 << 30),
        ..pods::node(&json!({"cpu": "64", "memory": "400Gi"}))
    };
    let policy = Policy {
        swap_behavior: SwapBehavior::LimitedSwap,
        ..Policy::default()
    };
    let told = |pod| {
        let pod = translated(pod, &node, &policy);
        let swap = of_container(&pod, "app", "memory.swap.max");
        let is_swap = |note: &String| note.starts_with("memory.swap.max");
        let notes = notes(&pod, Some("app")).into_iter().filter(is_swap);
        (swap, notes.collect::<Vec<_>>())
    };
    let memory = |amount: &str| json!({"memory": amount});
    // kubernetes#118764
    assert_eq!(
        told(one(&memory("512Mi"), &json!({}))),
        (
            "53687091".to_owned(),
            vec![
                "memory.swap.max: 536870912 of 429496729600 bytes of memory, so as much of \
                 42949672960 of swap"
                    .to_owned(),
                "memory.swap.max: 53687091 bytes are kept as 53686272: whole pages of 4096"
                    .to_owned(),
            ]
        )
    );
    let full = json!({"cpu": "1", "memory": "1Gi"});
    let cpu = json!({"cpu": "1"});
    let critical = Pod {
        is_static: true,
        ..one(&memory("1Gi"), &json!({}))
    };
    for (pod, why) in [
        (one(&json!({}), &json!({})), "the pod is BestEffort"),
        (one(&full, &full), "the pod is Guaranteed"),
        (one(&cpu, &json!({})), "there is no memory request"),
        (
            one(&memory("1Gi"), &memory("1Gi")),
            "request and limit are both 1073741824 bytes",
        ),
        (critical, "the pod is critical"),
    ] {
        let told = told(pod);
        assert_eq!(
            told,
            (
                "0".to_owned(),
                vec![format!("memory.swap.max: no swap: {why}")]
            )
        );
    }
}

#[test]
fn a_pods_own_bound_of_tasks() {
    let policy = Policy {
        pod_pids_limit: Limit::At(4096),
        ..Policy::default()
    };
    let asking = |tasks: &str| {
        let mut pod = one(&json!({}), &json!({}));
        let key = "allotd.dev/pids-limit".to_owned();
        pod.annotations.insert(key, tasks.to_owned());
        translated(pod, &pods::big_node(), &policy)
    };
    let capped = asking("8192");
    assert_eq!(
        notes(&capped, None),
        ["pids.max: allotd.dev/pids-limit 8192 is capped at podPidsLimit 4096"]
    );
    let lowered = asking("64");
    assert_eq!(of_pod(&lowered, "pids.max"), "64");
    assert_eq!(notes(&lowered, None), Vec::<String>::new());
}

/// kubernetes#117070 and tech.preferred.jp, kubernetes-single-process-oom-kill: whether a worker may die alone is for
/// the workload to say, container by container, and the node's default is for those that say nothing.
#[test]
fn what_an_oom_kill_takes() {
    let groups = |choice: &str, oom_policy| {
        let containers = ["a", "b", "c"].map(|name| json!({"name": name}));
        let mut pod = pods::pod(&json!({"containers": containers}));
        if !choice.is_empty() {
            let key = "allotd.dev/oom-policy".to_owned();
            pod.annotations.insert(key, choice.to_owned());
        }
        let policy = Policy {
            oom_policy,
            ..Policy::default()
        };
        let pod = translated(pod, &pods::big_node(), &policy);
        assert_eq!(of_pod(&pod, "memory.oom.group"), "0");
        ["a", "b", "c"].map(|name| of_container(&pod, name, "memory.oom.group"))
    };
    for (choice, by_group, by_process) in [
        ("", ["1", "1", "1"], ["0", "0", "0"]),
        ("process", ["0", "0", "0"], ["0", "0", "0"]),
        ("a=process,b=group", ["0", "1", "1"], ["0", "1", "0"]),
        ("c=process, group", ["1", "1", "0"], ["1", "1", "0"]),
    ] {
        assert_eq!(groups(choice, OomPolicy::Group), by_group, "{choice}");
        assert_eq!(groups(choice, OomPolicy::Process), by_process, "{choice}");
    }
}

#[test]
fn more_tasks_than_the_kernel_can_count() {
    let policy = Policy {
        pod_pids_limit: Limit::At(4_194_305),
        ..Policy::default()
    };
    let pod = translated(one(&json!({}), &json!({})), &pods::big_node(), &policy);
    assert_eq!(of_pod(&pod, "pids.max"), "max");
    assert_eq!(
        notes(&pod, None),
        ["pids.max: 4194305 tasks become max: the kernel takes no bound above 4194304"]
    );
}
