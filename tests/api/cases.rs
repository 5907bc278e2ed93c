//! What users of Kubernetes have reported, and the behaviour we owe them. Each test has the number of the
//! report.

use serde_json::{Value, json};

use super::server::{Answer, PODS, Server};

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const RANGES: &str = "/api/v1/namespaces/default/limitranges";

fn keep(server: &Server, path: &str, object: &Value) {
    let answer = server.send("POST", path, "", &object.to_string());
    assert_eq!(answer.status, 201, "{answer:?}");
}

fn quota(hard: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard},
    })
}

fn range(item: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "lr"}, "spec": {"limits": [item]},
    })
}

fn pod(name: &str, resources: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]},
    })
}

fn used(server: &Server) -> Value {
    server.get(&format!("{QUOTAS}/q")).json()["status"]["used"].clone()
}

fn causes(refused: &Answer) -> Vec<String> {
    let status = refused.json();
    let causes = status["details"]["causes"].as_array().unwrap().iter();
    causes
        .map(|cause| {
            let text = |field: &str| cause[field].as_str().unwrap_or_default();
            format!("{} {} {}", text("reason"), text("field"), text("message"))
        })
        .collect()
}

/// kubernetes/kubernetes#25484: rejected pods still consume quota.
#[test]
fn k25484_what_is_refused_is_not_charged() {
    let server = Server::start();
    keep(
        &server,
        RANGES,
        &range(&json!({"type": "Container", "default": {"cpu": "300m"}})),
    );
    keep(
        &server,
        QUOTAS,
        &quota(&json!({"requests.cpu": "1500m", "pods": "5"})),
    );
    let invalid = pod("x", &json!({"requests": {"cpu": "500m"}}));
    for _ in 0..100 {
        assert!(server.create(&invalid).status >= 400);
    }
    assert_eq!(used(&server), json!({"requests.cpu": "0", "pods": "0"}));
    let right = pod("x", &json!({"requests": {"cpu": "200m"}}));
    assert_eq!(server.create(&right).status, 201);
    let once = json!({"requests.cpu": "200m", "pods": "1"});
    assert_eq!(used(&server), once);
    assert_eq!(server.create(&right).status, 409);
    assert_eq!(used(&server), once);
}

/// devantler-tech/platform#2807: usage only ever goes up.
#[test]
fn p2807_usage_is_a_function_of_what_exists() {
    let server = Server::start();
    let small = |n: u32| pod(&format!("p{n}"), &json!({"requests": {"cpu": "100m"}}));
    assert_eq!(server.create(&small(0)).status, 201);
    // What a client says is used is no account.
    let mut lying = quota(&json!({"requests.cpu": "1", "pods": "4"}));
    lying["status"] = json!({"used": {"pods": "99"}});
    let made = server.send("POST", QUOTAS, "", &lying.to_string());
    assert_eq!(
        made.json()["status"]["used"],
        json!({"requests.cpu": "100m", "pods": "1"})
    );
    for n in 1..4 {
        assert_eq!(server.create(&small(n)).status, 201);
    }
    assert_eq!(used(&server)["pods"], "4");
    for n in 0..4 {
        server.send(
            "DELETE",
            &format!("{PODS}/p{n}?gracePeriodSeconds=0"),
            "",
            "",
        );
    }
    let started = std::time::Instant::now();
    while used(&server)["pods"] != "0" {
        assert!(started.elapsed().as_secs() < 60, "{}", used(&server));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(used(&server), json!({"requests.cpu": "0", "pods": "0"}));
    let proof = server.get("/apis/allotd.dev/v1/accounts").json();
    assert_eq!(proof["mismatches"], json!([]));
}

/// kubernetes/kubernetes#51430: a default limit acts as a hidden maximum.
#[test]
fn k51430_a_default_limit_is_told_where_it_hurts() {
    let server = Server::start();
    let item = json!({
        "type": "Container", "default": {"memory": "512Mi"}, "defaultRequest": {"memory": "256Mi"},
    });
    keep(&server, RANGES, &range(&item));
    let resources = |name: &str, resources: &Value| {
        let kept = server.create(&pod(name, resources));
        assert_eq!(kept.status, 201, "{kept:?}");
        kept.json()["spec"]["containers"][0]["resources"].clone()
    };
    assert_eq!(
        resources("none", &json!({})),
        json!({"limits": {"memory": "512Mi"}, "requests": {"memory": "256Mi"}})
    );
    assert_eq!(
        resources("limit", &json!({"limits": {"memory": "1Gi"}})),
        json!({"limits": {"memory": "1Gi"}, "requests": {"memory": "1Gi"}})
    );
    let refused = server.create(&pod("request", &json!({"requests": {"memory": "600Mi"}})));
    assert_eq!(refused.status, 422);
    let causes = causes(&refused);
    assert_eq!(causes.len(), 1, "{causes:?}");
    for part in [
        "spec.containers[0].resources.requests",
        "600Mi",
        "512Mi",
        "LimitRange lr",
    ] {
        assert!(causes[0].contains(part), "{causes:?}");
    }
}

/// kubernetes/kubernetes#51430, where a maximum is below the request.
#[test]
fn k51430_a_maximum_is_named_as_such() {
    let server = Server::start();
    let item = json!({
        "type": "Container", "default": {"memory": "512Mi"}, "defaultRequest": {"memory": "256Mi"},
        "max": {"memory": "550Mi"},
    });
    keep(&server, RANGES, &range(&item));
    let asked = json!({"requests": {"memory": "600Mi"}, "limits": {"memory": "600Mi"}});
    let refused = server.create(&pod("large", &asked));
    let expected = "maximum memory usage per Container is 550Mi, but limit is 600Mi";
    assert!(refused.body.contains(expected), "{refused:?}");
}

/// kubernetes/kubernetes#28741: memory given in milli-bytes is accepted.
#[test]
fn k28741_bytes_are_whole() {
    let server = Server::start();
    let refused = server.create(&pod("a", &json!({"limits": {"memory": "512m"}})));
    assert_eq!(refused.status, 422, "{refused:?}");
    for hint in ["512M", "512Mi"] {
        assert!(refused.body.contains(hint), "{refused:?}");
    }
    let of_memory = |name: &str, memory: &str| {
        let kept = server.create(&pod(name, &json!({"limits": {"memory": memory}})));
        assert_eq!(kept.status, 201, "{kept:?}");
        let explained = format!("/apis/allotd.dev/v1/namespaces/default/pods/{name}/explain");
        server.get(&explained).body
    };
    // What the kernel is given: whole pages below the bytes.
    assert!(of_memory("b", "0.1Gi").contains("107374183"));
    assert!(of_memory("c", "500e6").contains("500000000"));
    let too_much = server.create(&pod("d", &json!({"limits": {"memory": "9Ei"}})));
    assert_eq!(too_much.status, 403, "{too_much:?}");
    let tiny = server.create(&pod("e", &json!({"requests": {"cpu": "0.0001"}})));
    assert_eq!(
        tiny.json()["spec"]["containers"][0]["resources"]["requests"]["cpu"],
        "1m"
    );
}

/// kubernetes/kubernetes#96634: nothing is created and nobody says why.
#[test]
fn k96634_a_refusal_names_every_rule_and_is_remembered() {
    let server = Server::start();
    keep(
        &server,
        RANGES,
        &range(&json!({"type": "Pod", "max": {"memory": "64Mi"}})),
    );
    keep(
        &server,
        QUOTAS,
        &quota(&json!({"requests.cpu": "1", "limits.memory": "1Gi", "pods": "0"})),
    );
    let asked = pod("web", &json!({"requests": {"memory": "128Mi"}}));
    let refused = server.create(&asked);
    assert_eq!(
        (refused.status, refused.json()["reason"].as_str()),
        (403, Some("Forbidden"))
    );
    let causes = causes(&refused);
    for part in [
        "must specify limits.memory",
        "requests.cpu",
        "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0",
        "maximum memory usage per Pod is 64Mi",
    ] {
        assert!(
            causes.iter().any(|cause| cause.contains(part)),
            "{part}: {causes:?}"
        );
    }
    for _ in 0..2 {
        assert_eq!(server.create(&asked).status, 403);
    }
    // An event is told with the next commit, which nobody waits for.
    let started = std::time::Instant::now();
    let told = loop {
        let events = server.get("/api/v1/namespaces/default/events").json();
        let told = events["items"].as_array().unwrap().clone();
        assert!(told.len() <= 1, "{told:?}");
        if told.first().is_some_and(|event| event["count"] == 3) {
            break told;
        }
        assert!(started.elapsed().as_secs() < 60, "{told:?}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    assert_eq!(told[0]["involvedObject"]["name"], "web");
    let status = server.get("/apis/allotd.dev/v1/status").json();
    assert_eq!(status["tallies"]["refused"], 3);
    assert_eq!(status["tallies"]["causes"]["ExceededQuota"], 3, "{status}");
    let metrics = server.get("/metrics").body;
    assert!(
        metrics.contains("allotd_pod_refusal_causes_total{cause=\"ExceededQuota\"} 3"),
        "{metrics}"
    );
}

/// goharbor/harbor#23789: a thousand charges of one quota at once, each of which another owner would try again and
/// again: exactly those that fit are taken, each once, and another namespace waits for none of them.
#[test]
fn h23789_a_thousand_charges_at_once_are_counted_exactly() {
    const CLIENTS: usize = 8;
    const EACH: usize = 125;
    let server = Server::start();
    keep(
        &server,
        QUOTAS,
        &quota(&json!({"requests.storage": "500Mi"})),
    );
    let claim = |name: String| {
        json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
        })
    };
    let claims = |namespace: &str| format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims");
    let before: u64 = revision(&server);
    let (admitted, slowest) = std::thread::scope(|scope| {
        let server = &server;
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                scope.spawn(move || {
                    let send = |number: usize| {
                        let claim = claim(format!("c{client}-{number}")).to_string();
                        server.send("POST", &claims("default"), "", &claim).status
                    };
                    let answers: Vec<_> = (0..EACH).map(send).collect();
                    assert!(
                        answers.iter().all(|it| [201, 403].contains(it)),
                        "{answers:?}"
                    );
                    answers.iter().filter(|status| **status == 201).count()
                })
            })
            .collect();
        // Somebody else, meanwhile.
        let others = (0..20).map(|number| {
            let start = std::time::Instant::now();
            let claim = claim(format!("o{number}")).to_string();
            let answer = server.send("POST", &claims("other"), "", &claim);
            assert_eq!(answer.status, 201, "{answer:?}");
            start.elapsed()
        });
        let slowest = others.max().unwrap();
        let admitted: usize = clients.into_iter().map(|it| it.join().unwrap()).sum();
        (admitted, slowest)
    });
    assert_eq!(admitted, 500);
    assert_eq!(used(&server), json!({"requests.storage": "500Mi"}));
    // Eight are before it in the one queue there is, not a thousand with their further tries.
    assert!(slowest.as_secs() < 5, "{slowest:?}");
    // What is refused costs no commit, and no charge is committed twice.
    let commits = revision(&server) - before;
    assert!(commits <= 530, "{commits} commits");
    let accounts = server.get("/apis/allotd.dev/v1/accounts").json();
    assert_eq!(accounts["mismatches"], json!([]), "{accounts}");
}

fn revision(server: &Server) -> u64 {
    let list = server.get(PODS).json();
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap();
    revision.parse().unwrap()
}
