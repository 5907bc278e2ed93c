//! Quotas and LimitRanges that the node keeps and obeys.

use serde_json::{Value, json};

use super::server::{Answer, PODS, Server, pod};

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const RANGES: &str = "/api/v1/namespaces/default/limitranges";

fn post(server: &Server, path: &str, object: &Value) -> Answer {
    server.send("POST", path, "", &object.to_string())
}

fn quota(name: &str, hard: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": name}, "spec": {"hard": hard},
    })
}

fn used(server: &Server, name: &str) -> Value {
    server.get(&format!("{QUOTAS}/{name}")).json()["status"]["used"].clone()
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

#[test]
fn a_quota_counts_from_its_first_moment() {
    let server = Server::start();
    assert_eq!(server.create(&pod("early", "500m")).status, 201);
    let made = post(
        &server,
        QUOTAS,
        &quota(
            "compute",
            &json!({"pods": "2", "requests.cpu": "1", "limits.memory": "1Gi"}),
        ),
    );
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(
        made.json()["status"]["used"],
        json!({"limits.memory": "64Mi", "pods": "1", "requests.cpu": "500m"})
    );
    let refused = server.create(&pod("greedy", "600m"));
    assert_eq!(refused.status, 403);
    assert_eq!(
        refused.json()["message"],
        "pods \"greedy\" is forbidden: exceeded quota: compute, requested: requests.cpu=600m, \
         used: requests.cpu=500m, limited: requests.cpu=1; left: requests.cpu=500m"
    );
    assert_eq!(server.create(&pod("fits", "500m")).status, 201);
    assert_eq!(used(&server, "compute")["requests.cpu"], "1");
    let third = server.create(&pod("third", "0")).json();
    assert_eq!(third["reason"], "Forbidden", "{third}");
    // What is deleted is free once it is gone.
    server.send(
        "DELETE",
        &format!("{PODS}/fits?gracePeriodSeconds=0"),
        "",
        "",
    );
    while server.get(&format!("{PODS}/fits")).status != 404 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(
        used(&server, "compute"),
        json!({"limits.memory": "64Mi", "pods": "1", "requests.cpu": "500m"})
    );
    // A pod that leaves out what is counted cannot be counted.
    let bare = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let refused = server.create(&bare).json();
    assert_eq!(
        refused["message"],
        "pods \"bare\" is forbidden: failed quota: compute: must specify limits.memory for: c; requests.cpu for: c"
    );
}

#[test]
fn the_seeds_gpu_quota_refuses_the_second_pod() {
    let server = Server::start();
    let patch = json!([{"op": "add", "path": "/status/capacity/nvidia.com~1gpu", "value": "4"}]);
    let typed = "Content-Type: application/json-patch+json\r\n";
    let patched = server.send(
        "PATCH",
        "/api/v1/nodes/node/status",
        typed,
        &patch.to_string(),
    );
    assert_eq!(patched.status, 200, "{patched:?}");
    let made = post(
        &server,
        QUOTAS,
        &quota("gpu-quota", &json!({"requests.nvidia.com/gpu": 1})),
    );
    assert_eq!(made.status, 201, "{made:?}");
    let gpu = |name: &str| {
        let mut object = pod(name, "100m");
        object["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = json!(1);
        object
    };
    assert_eq!(server.create(&gpu("gpu-pod-1")).status, 201);
    assert_eq!(
        used(&server, "gpu-quota"),
        json!({"requests.nvidia.com/gpu": "1"})
    );
    let refused = server.create(&gpu("gpu-pod-2")).json();
    let text = refused["message"].as_str().unwrap();
    assert!(
        text.starts_with(
            "pods \"gpu-pod-2\" is forbidden: exceeded quota: gpu-quota, requested: requests.nvidia.com/gpu=1, \
             used: requests.nvidia.com/gpu=1, limited: requests.nvidia.com/gpu=1"
        ),
        "{text}"
    );
}

#[test]
fn a_limit_range_fills_in_and_bounds() {
    let server = Server::start();
    let range = json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "resource-limits"},
        "spec": {"limits": [{
            "type": "Container",
            "max": {"cpu": "2", "memory": "1Gi"}, "min": {"cpu": "100m", "memory": "4Mi"},
            "default": {"cpu": "300m", "memory": "200Mi"},
            "defaultRequest": {"cpu": "200m", "memory": "100Mi"},
            "maxLimitRequestRatio": {"cpu": "10"},
        }]},
    });
    assert_eq!(post(&server, RANGES, &range).status, 201);
    let bare = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bare"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let created = server.create(&bare);
    assert_eq!(created.status, 201, "{created:?}");
    assert_eq!(
        created.json()["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "300m", "memory": "200Mi"}, "requests": {"cpu": "200m", "memory": "100Mi"}})
    );
    let refused = server.create(&pod("large", "3")).json();
    let text = refused["message"].as_str().unwrap();
    assert!(
        text.contains("maximum cpu usage per Container is 2, but limit is 3"),
        "{text}"
    );
    let again = post(&server, RANGES, &range);
    assert_eq!(again.status, 409, "{again:?}");
    let gone = server.send("DELETE", &format!("{RANGES}/resource-limits"), "", "");
    assert_eq!(gone.status, 200, "{gone:?}");
    assert_eq!(server.create(&pod("large", "3")).status, 201);
}

#[test]
fn objects_are_counted_and_changed() {
    let server = Server::start();
    let maps = "/api/v1/namespaces/default/configmaps";
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let hard = json!({"configmaps": "2", "count/jobs.batch": "1", "services.loadbalancers": "0"});
    assert_eq!(
        post(&server, QUOTAS, &quota("object-counts", &hard)).status,
        201
    );
    assert_eq!(post(&server, maps, &config_map("one")).status, 201);
    assert_eq!(post(&server, maps, &config_map("two")).status, 201);
    let refused = post(&server, maps, &config_map("three")).json();
    assert_eq!(
        refused["message"],
        "configmaps \"three\" is forbidden: exceeded quota: object-counts, requested: configmaps=1, \
         used: configmaps=2, limited: configmaps=2; left: configmaps=0"
    );
    let job =
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {}});
    assert_eq!(post(&server, jobs, &job).status, 201);
    let balancer = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "lb"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
    });
    let refused = post(&server, "/api/v1/namespaces/default/services", &balancer);
    assert_eq!(refused.status, 403, "{refused:?}");
    assert_eq!(used(&server, "object-counts")["count/jobs.batch"], "1");

    let merge = "Content-Type: application/merge-patch+json\r\n";
    let one = format!("{maps}/one");
    let patched = server.send("PATCH", &one, merge, r#"{"data": {"a": null, "c": "d"}}"#);
    assert_eq!(patched.json()["data"], json!({"c": "d"}), "{patched:?}");
    // A change from an old version is refused, one from the present is not.
    let mut old = patched.json();
    let mut new = old.clone();
    new["data"]["c"] = json!("e");
    assert_eq!(server.send("PUT", &one, "", &new.to_string()).status, 200);
    old["data"]["c"] = json!("f");
    let conflict = server.send("PUT", &one, "", &old.to_string());
    assert_eq!(conflict.status, 409, "{conflict:?}");
    assert_eq!(
        server.send("DELETE", &format!("{maps}/two"), "", "").status,
        200
    );
    assert_eq!(used(&server, "object-counts")["configmaps"], "1");
    let list = server.get(maps).json();
    assert_eq!(
        (&list["kind"], list["items"].as_array().unwrap().len()),
        (&json!("ConfigMapList"), 1)
    );
}

#[test]
fn what_is_wrong_with_a_policy_is_told() {
    let server = Server::start();
    let with = |field: &str, value: Value| {
        let mut object = quota("q", &json!({"pods": "1"}));
        object["spec"][field] = value;
        object
    };
    let long = "x".repeat(2 << 20);
    let mut large = config_map("large");
    large["data"]["a"] = json!(long);
    for (path, object, code) in [
        (QUOTAS, with("scopes", json!(["Nonsense"])), 422),
        (QUOTAS, with("hard", json!({"pods": "-1"})), 422),
        (QUOTAS, with("hard", json!({"requests.memory": "1K"})), 422),
        (QUOTAS, with("hards", json!({})), 400),
        (QUOTAS, quota("../x", &json!({})), 422),
        (QUOTAS, config_map("a"), 400),
        (
            RANGES,
            json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "r"},
            "spec": {"limits": [{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}]}}),
            422,
        ),
        ("/api/v1/namespaces/default/configmaps", large, 413),
        ("/api/v1/namespaces/default/gadgets", config_map("a"), 404),
    ] {
        let answer = post(&server, path, &object);
        assert_eq!(
            answer.status,
            code,
            "{path} {}: {answer:?}",
            &object.to_string()[..80]
        );
        assert_eq!(answer.json()["kind"], "Status");
    }
    // All at once.
    let mut object = with("scopes", json!(["Nonsense"]));
    object["spec"]["hard"]["pods"] = json!("-1");
    let wrong = post(&server, QUOTAS, &object).json();
    let causes = wrong["details"]["causes"].as_array().unwrap();
    let fields: Vec<_> = causes.iter().map(|cause| cause["field"].clone()).collect();
    assert_eq!(fields, ["spec.scopes[0]", "spec.hard[pods]"], "{wrong}");
    assert_eq!(server.get(QUOTAS).json()["items"], json!([]));
}

#[test]
fn of_many_racing_for_the_last_unit_one_wins() {
    let server = Server::start();
    let maps = "/api/v1/namespaces/default/configmaps";
    for round in 1..=4 {
        let hard = json!({"count/configmaps": round.to_string()});
        let made = match round {
            1 => post(&server, QUOTAS, &quota("q", &hard)),
            _ => server.send(
                "PUT",
                &format!("{QUOTAS}/q"),
                "",
                &quota("q", &hard).to_string(),
            ),
        };
        assert!(made.status < 300, "{made:?}");
        let won = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..64)
                .map(|n| {
                    let (server, object) = (&server, config_map(&format!("map-{round}-{n}")));
                    scope.spawn(move || post(server, maps, &object).status)
                })
                .collect();
            let statuses = clients.into_iter().map(|client| client.join().unwrap());
            statuses.filter(|status| *status == 201).count()
        });
        assert_eq!(won, 1, "round {round}");
        assert_eq!(used(&server, "q")["count/configmaps"], round.to_string());
    }
}

#[test]
fn discovery_names_what_is_served() {
    let server = Server::start();
    let core = server.get("/api/v1").json();
    let names: Vec<_> = core["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["name"].as_str().unwrap())
        .collect();
    for name in [
        "pods",
        "nodes",
        "resourcequotas",
        "limitranges",
        "namespaces",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
    for group in server.get("/apis").json()["groups"].as_array().unwrap() {
        let version = group["preferredVersion"]["groupVersion"].as_str().unwrap();
        let list = server.get(&format!("/apis/{version}")).json();
        assert_eq!(list["groupVersion"], version);
        assert_eq!(
            server
                .get(&format!("/apis/{}", group["name"].as_str().unwrap()))
                .status,
            200
        );
        assert_ne!(list["resources"], json!([]));
        for resource in list["resources"].as_array().unwrap() {
            if resource["name"].as_str().unwrap().contains('/') {
                continue;
            }
            let all = server.get(&format!(
                "/apis/{version}/{}",
                resource["name"].as_str().unwrap()
            ));
            assert_eq!(all.status, 200, "{resource}");
        }
    }
    assert_eq!(server.get("/apis/none").status, 404);
}

fn warnings(answer: &Answer) -> Vec<String> {
    let lines = answer.head.lines();
    let warnings = lines.filter_map(|line| line.strip_prefix("warning: 299 - "));
    warnings.map(str::to_owned).collect()
}

#[test]
fn what_is_hardly_meant_is_warned_of_where_it_is_sent() {
    let server = Server::start();
    let told = warnings(&post(
        &server,
        QUOTAS,
        &quota("q", &json!({"nvidia.com/gpu": "1"})),
    ));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("spec.hard[nvidia.com/gpu]"), "{told:?}");
    let range = |name: &str, bound: &str, memory: &str| {
        json!({
            "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name},
            "spec": {"limits": [{"type": "Container", bound: {"memory": memory}}]},
        })
    };
    assert!(warnings(&post(&server, RANGES, &range("a", "max", "1Gi"))).is_empty());
    let told = warnings(&post(&server, RANGES, &range("b", "min", "2Gi")));
    assert!(
        told.iter().any(|text| text.contains("LimitRange a")),
        "{told:?}"
    );
    server.send("DELETE", &format!("{RANGES}/b"), "", "");
    let mut small = pod("small", "100m");
    small["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!("512Ki");
    let made = server.create(&small);
    assert_eq!(made.status, 201, "{made:?}");
    let told = warnings(&made);
    assert!(
        told.iter().any(|text| text.contains("container c")),
        "{told:?}"
    );
    let dry = server.send("POST", &format!("{PODS}?dryRun=All"), "", &{
        small["metadata"]["name"] = json!("dry");
        small.to_string()
    });
    assert_eq!(warnings(&dry), told);
}
