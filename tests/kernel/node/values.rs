//! The values that pods get, as the kernel shows them.

use std::path::Path;

use serde_json::json;

use super::daemon::{
    Anything, Daemon, TOP, cgroup_of, create, delete, file, get, pod, read_pod, request, send,
};
use crate::Outcome;

tests![
    the_seeds_frontend_has_its_values,
    pod_level_resources_bound_the_pod,
    extended_resources_are_advertised_and_never_overcommitted,
    what_is_wrong_is_told_and_changes_nothing,
    the_node_tells_what_it_has,
];

fn holds(cgroup: &Path, files: &[(&str, &str)]) -> Anything<()> {
    for (name, expected) in files {
        let found = file(cgroup, name)?;
        assert_eq!(&found, expected, "{name} of {}", cgroup.display());
    }
    Ok(())
}

/// The pod `frontend` of the Kubernetes page on managing resources.
fn frontend() -> serde_json::Value {
    let container = |name: &str| {
        json!({
            "name": name,
            "image": format!("images.my-company.example/{name}:v4"),
            "resources": {
                "requests": {"memory": "64Mi", "cpu": "250m"},
                "limits": {"memory": "128Mi", "cpu": "500m"},
            },
        })
    };
    pod(
        "frontend",
        &json!({"containers": [container("app"), container("log-aggregator")]}),
    )
}

fn the_seeds_frontend_has_its_values() -> Outcome {
    let _daemon = Daemon::start()?;
    let pod = create(&frontend())?;
    let cgroup = cgroup_of(&pod);
    for container in ["app", "log-aggregator"] {
        holds(
            &cgroup.join(container),
            &[
                ("cpu.weight", "35"),
                ("cpu.max", "50000 100000"),
                ("memory.max", "134217728"),
                ("memory.min", "67108864"),
                ("memory.oom.group", "1"),
                ("hugetlb.2MB.max", "0"),
                ("hugetlb.2MB.rsvd.max", "0"),
                ("pids.max", "max"),
            ],
        )?;
    }
    holds(
        &cgroup,
        &[
            ("cpu.weight", "59"),
            ("cpu.max", "100000 100000"),
            ("memory.max", "268435456"),
            ("memory.min", "134217728"),
        ],
    )?;
    let top = Path::new(TOP);
    holds(
        &top.join("burstable"),
        &[
            ("cpu.weight", "59"),
            ("memory.min", "134217728"),
            ("memory.max", "max"),
        ],
    )?;
    holds(
        &top.join("besteffort"),
        &[("cpu.weight", "1"), ("memory.min", "0")],
    )?;
    holds(
        top,
        &[
            ("memory.min", "134217728"),
            ("hugetlb.2MB.max", "134217728"),
        ],
    )?;
    // One CPU, 100m of it reserved: nine to one against the system's weight of 100.
    holds(top, &[("cpu.weight", "900")])?;
    let enforced = read_pod("frontend")?["status"]["conditions"]
        .as_array()
        .and_then(|list| {
            list.iter()
                .find(|c| c["type"] == "allotd.dev/Enforced")
                .cloned()
        })
        .ok_or("no condition")?;
    assert_eq!(enforced["status"], "True", "{enforced}");
    assert_eq!(get("/apis/allotd.dev/v1/diff")?["drift"], false);
    delete("frontend", 0)?;
    assert!(!cgroup.exists());
    holds(top, &[("memory.min", "0")])?;
    holds(
        &top.join("burstable"),
        &[("cpu.weight", "1"), ("memory.min", "0")],
    )?;
    Ok(())
}

fn pod_level_resources_bound_the_pod() -> Outcome {
    let _daemon = Daemon::start()?;
    let pod = create(&pod(
        "pod-resources-demo",
        &json!({
            "resources": {
                "limits": {"cpu": "900m", "memory": "200Mi"},
                "requests": {"cpu": "900m", "memory": "100Mi"},
            },
            "containers": [
                {
                    "name": "pod-resources-demo-ctr-1",
                    "image": "nginx",
                    "resources": {
                        "limits": {"cpu": "0.5", "memory": "100Mi"},
                        "requests": {"cpu": "0.5", "memory": "50Mi"},
                    },
                },
                {"name": "pod-resources-demo-ctr-2", "image": "fedora", "command": ["sleep", "inf"]},
            ],
        }),
    ))?;
    let cgroup = cgroup_of(&pod);
    holds(
        &cgroup,
        &[
            ("cpu.max", "90000 100000"),
            ("memory.max", "209715200"),
            ("memory.min", "104857600"),
        ],
    )?;
    holds(
        &cgroup.join("pod-resources-demo-ctr-1"),
        &[
            ("cpu.max", "50000 100000"),
            ("memory.max", "104857600"),
            ("memory.min", "52428800"),
        ],
    )?;
    holds(
        &cgroup.join("pod-resources-demo-ctr-2"),
        &[
            ("cpu.max", "90000 100000"),
            ("memory.max", "209715200"),
            ("memory.min", "0"),
        ],
    )?;
    Ok(())
}

fn extended_resources_are_advertised_and_never_overcommitted() -> Outcome {
    let _daemon = Daemon::start()?;
    let wants = |name: &str, count: u32| {
        pod(
            name,
            &json!({"containers": [{
                "name": "c",
                "image": "i",
                "resources": {
                    "requests": {"cpu": "10m", "example.com/foo": count},
                    "limits": {"example.com/foo": count},
                },
            }]}),
        )
    };
    let (code, answer) = send(&wants("early", 1))?;
    assert_eq!(
        (code, &answer["reason"]),
        (403, &json!("OutOfexample.com/foo")),
        "{answer}"
    );
    let patch = r#"[{"op": "add", "path": "/status/capacity/example.com~1foo", "value": "1"}]"#;
    let (code, body) = request("PATCH", "/api/v1/nodes/vm/status", Some(patch))?;
    assert_eq!(code, 200, "{body}");
    let node = get("/api/v1/nodes/vm")?;
    assert_eq!(node["status"]["allocatable"]["example.com/foo"], "1");
    let (code, answer) = send(&wants("two", 2))?;
    assert_eq!(code, 403, "{answer}");
    assert!(
        answer["message"].as_str().unwrap_or("").contains(
            "Node didn't have enough resource: example.com/foo, requested: 2, used: 0, capacity: 1"
        ),
        "{answer}"
    );
    create(&wants("one", 1))?;
    let (code, answer) = send(&wants("another", 1))?;
    assert_eq!(code, 403, "{answer}");
    delete("one", 0)?;
    create(&wants("another", 1))?;
    Ok(())
}

fn what_is_wrong_is_told_and_changes_nothing() -> Outcome {
    let _daemon = Daemon::start()?;
    let one = |container: serde_json::Value| pod("bad", &json!({"containers": [container]}));
    let with = |resources: serde_json::Value| {
        one(json!({"name": "c", "image": "i", "resources": resources}))
    };
    let mut climbing = one(json!({"name": "c", "image": "i"}));
    climbing["metadata"]["name"] = json!("../x");
    let many: Vec<_> = (0..10_000)
        .map(|n| json!({"name": format!("c{n}"), "image": "i"}))
        .collect();
    for (what, pod, code, told) in [
        (
            "negative",
            with(json!({"limits": {"cpu": "-1"}})),
            422,
            "must be greater than or equal to 0",
        ),
        (
            "overflow",
            with(json!({"limits": {"memory": "1e40"}})),
            422,
            "limits[memory]",
        ),
        ("typo", with(json!({"limit": {"cpu": "1"}})), 400, "limits"),
        (
            "request above limit",
            with(json!({"requests": {"cpu": 2}, "limits": {"cpu": 1}})),
            422,
            "must be less than or equal to cpu limit of 1",
        ),
        ("climbing name", climbing, 422, "metadata.name"),
        (
            "many containers",
            pod("bad", &json!({"containers": many})),
            422,
            "10000",
        ),
        (
            "too much cpu",
            with(json!({"requests": {"cpu": 64}})),
            403,
            "Node didn't have enough resource: cpu, requested: 64000, used: 0, capacity: 900",
        ),
    ] {
        let (answered, answer) = send(&pod)?;
        let message = answer["message"].as_str().unwrap_or("");
        assert_eq!(answered, code, "{what}: {message}");
        assert!(message.contains(told), "{what}: {message}");
    }
    for (what, body, code) in [
        ("binary", "\u{0}\u{1}\u{2}garbage", 400),
        ("no object", "{}", 400),
        (
            "another kind",
            r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"}}"#,
            400,
        ),
    ] {
        let (answered, answer) = request("POST", "/api/v1/namespaces/default/pods", Some(body))?;
        assert_eq!(answered, code, "{what}: {answer}");
    }
    assert_eq!(get("/api/v1/pods")?["items"], json!([]));
    assert_eq!(request("GET", "/api/v1/nowhere", None)?.0, 404);
    assert_eq!(
        request("DELETE", "/api/v1/namespaces/default/pods/none", None)?.0,
        404
    );
    Ok(())
}

fn the_node_tells_what_it_has() -> Outcome {
    let _daemon = Daemon::start()?;
    let node = get("/api/v1/nodes/vm")?;
    let status = &node["status"];
    assert_eq!(status["capacity"]["cpu"], "1");
    assert_eq!(status["allocatable"]["cpu"], "900m");
    assert_eq!(status["capacity"]["hugepages-2Mi"], "128Mi");
    assert_eq!(status["capacity"]["pods"], "110");
    assert_eq!(request("GET", "/api/v1/nodes/other", None)?.0, 404);
    Ok(())
}
