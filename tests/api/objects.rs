//! Pods and the node, from creation to the end.

use serde_json::json;

use super::server::{PODS, Server, pod};

#[test]
fn a_pod_is_created_read_listed_and_deleted() {
    let server = Server::start();
    let created = server.create(&pod("web", "500m"));
    assert_eq!(created.status, 201, "{created:?}");
    let uid = created.json()["metadata"]["uid"].clone();
    assert!(uid.as_str().is_some_and(|uid| uid.len() == 36), "{uid}");

    let read = server.get(&format!("{PODS}/web")).json();
    assert_eq!(read["metadata"]["uid"], uid);
    assert_eq!(read["status"]["qosClass"], "Guaranteed");
    // What defaulting filled in is there for all to see.
    let requests = &read["spec"]["containers"][0]["resources"]["requests"];
    assert_eq!(requests, &json!({"cpu": "500m", "memory": "64Mi"}));
    let version = |object: &serde_json::Value| -> u64 {
        let text = object["metadata"]["resourceVersion"].as_str().unwrap();
        text.parse().unwrap()
    };
    assert!(version(&read) > 0);

    for path in [PODS, "/api/v1/pods"] {
        let list = server.get(path).json();
        assert_eq!(list["kind"], "PodList");
        assert_eq!(list["items"][0]["metadata"]["name"], "web");
        assert!(version(&list) >= version(&read));
    }
    let other = server.get("/api/v1/namespaces/other/pods").json();
    assert_eq!(other["items"], json!([]));

    let deleted = server.send(
        "DELETE",
        &format!("{PODS}/web?gracePeriodSeconds=0"),
        "",
        "",
    );
    assert_eq!(deleted.status, 200, "{deleted:?}");
    let gone = || server.get(&format!("{PODS}/web")).status == 404;
    while !gone() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn a_deletion_asks_for_the_uid_it_means() {
    let server = Server::start();
    assert_eq!(server.create(&pod("web", "1")).status, 201);
    let body = json!({"preconditions": {"uid": "another"}}).to_string();
    let refused = server.send("DELETE", &format!("{PODS}/web"), "", &body);
    assert_eq!(refused.status, 409, "{refused:?}");
    assert_eq!(server.get(&format!("{PODS}/web")).status, 200);
}

#[test]
fn a_deletion_that_is_only_tried_deletes_nothing() {
    let server = Server::start();
    assert_eq!(server.create(&pod("web", "1")).status, 201);
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}});
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    let made = server.send("POST", quotas, "", &quota.to_string());
    assert_eq!(made.status, 201, "{made:?}");
    // As kubectl says it, and as curl says it.
    let in_the_body = json!({"kind": "DeleteOptions", "dryRun": ["All"]}).to_string();
    for path in [format!("{PODS}/web"), format!("{quotas}/q")] {
        for (query, body, status) in [
            ("", in_the_body.as_str(), 200),
            ("?dryRun=All", "", 200),
            ("", "{\"dryRun\":[\"maybe\"]}", 400),
            ("?dryRun=All", "{\"preconditions\":{\"uid\":\"x\"}}", 409),
            ("", "{\"preconditions\":{\"resourceVersion\":\"1\"}}", 400),
        ] {
            let tried = server.send("DELETE", &format!("{path}{query}"), "", body);
            assert_eq!(tried.status, status, "{query} {body}: {tried:?}");
            let still = server.get(&path);
            assert_eq!(still.status, 200, "{still:?}");
            assert_eq!(still.json()["metadata"]["deletionTimestamp"], json!(null));
        }
    }
    // Where trying is not possible, nothing is done either.
    let patch = json!([{"op": "add", "path": "/status/capacity/example.com~1foo", "value": "3"}]);
    let typed = "Content-Type: application/json-patch+json\r\n";
    let status = "/api/v1/nodes/node/status?dryRun=All";
    let refused = server.send("PATCH", status, typed, &patch.to_string());
    assert_eq!(refused.status, 400, "{refused:?}");
    let node = server.get("/api/v1/nodes/node/status").json();
    assert_eq!(node["status"]["capacity"]["example.com/foo"], json!(null));
}

#[test]
fn a_list_holds_what_is_selected() {
    let server = Server::start();
    for (name, app) in [("a", "web"), ("b", "db")] {
        let mut object = pod(name, "100m");
        object["metadata"]["labels"] = json!({"app": app});
        assert_eq!(server.create(&object).status, 201);
    }
    let names = |path: &str| {
        let list = server.get(path).json();
        let items = list["items"].as_array().unwrap().clone();
        let name = |item: &serde_json::Value| item["metadata"]["name"].as_str().unwrap().to_owned();
        items.iter().map(name).collect::<Vec<_>>()
    };
    for (query, expected) in [
        ("labelSelector=app%3Dweb", &["a"][..]),
        ("labelSelector=app+notin+(web)", &["b"]),
        ("labelSelector=app%3Dnone", &[]),
        ("fieldSelector=metadata.name%3Db", &["b"]),
        ("fieldSelector=status.phase%21%3DPending", &[]),
        ("limit=1", &["a"]),
        ("limit=1&continue=default/a", &["b"]),
        ("limit=2", &["a", "b"]),
    ] {
        assert_eq!(names(&format!("{PODS}?{query}")), expected, "{query}");
        assert_eq!(names(&format!("/api/v1/pods?{query}")), expected, "{query}");
    }
    let first = server.get(&format!("{PODS}?limit=1")).json();
    assert_eq!(first["metadata"]["continue"], "default/a");
    assert_eq!(first["metadata"]["remainingItemCount"], 1);
    let events = "/api/v1/events?fieldSelector=involvedObject.name%3D";
    assert!(!names(&format!("{events}a")).is_empty());
    assert!(names(&format!("{events}none")).is_empty());
    assert!(names("/api/v1/nodes?fieldSelector=metadata.name%3Dother").is_empty());
    let quotas = "/api/v1/resourcequotas?labelSelector=x";
    assert!(names(quotas).is_empty());
    for list in [PODS, "/api/v1/nodes", "/api/v1/events", "/api/v1/secrets"] {
        let wrong = server.get(&format!("{list}?labelSelector=a%3E1"));
        assert_eq!(wrong.status, 400, "{wrong:?}");
    }
}

#[test]
fn a_dry_run_changes_nothing() {
    let server = Server::start();
    let path = format!("{PODS}?dryRun=All");
    let tried = server.send("POST", &path, "", &pod("web", "1").to_string());
    assert_eq!(tried.status, 201, "{tried:?}");
    assert_eq!(server.get(&format!("{PODS}/web")).status, 404);
    let refused = server.send("POST", &path, "", &pod("web", "5").to_string());
    assert_eq!(refused.status, 403, "{refused:?}");
    assert_eq!(server.get("/api/v1/events").json()["items"], json!([]));
    let wrong = server.send("POST", &format!("{PODS}?dryRun=maybe"), "", "{}");
    assert_eq!(wrong.status, 400, "{wrong:?}");
}

#[test]
fn names_are_made_where_asked() {
    let server = Server::start();
    let mut web = pod("", "100m");
    web["metadata"] = json!({"generateName": "web-"});
    let of_kind = |kind: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"generateName": "web-"}});
    for (path, object) in [
        (PODS, web),
        (
            "/api/v1/namespaces/default/configmaps",
            of_kind("ConfigMap"),
        ),
        (
            "/api/v1/namespaces/default/resourcequotas",
            of_kind("ResourceQuota"),
        ),
        ("/api/v1/namespaces", of_kind("Namespace")),
    ] {
        let mut names = Vec::new();
        for _ in 0..5 {
            let created = server.send("POST", path, "", &object.to_string());
            assert_eq!(created.status, 201, "{created:?}");
            let name = created.json()["metadata"]["name"]
                .as_str()
                .unwrap()
                .to_owned();
            assert!(name.starts_with("web-") && name.len() == 9, "{name}");
            assert_eq!(server.get(&format!("{path}/{name}")).status, 200);
            names.push(name);
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 5);
        let tried = server.send(
            "POST",
            &format!("{path}?dryRun=All"),
            "",
            &object.to_string(),
        );
        assert_eq!(tried.status, 201, "{tried:?}");
        let name = tried.json()["metadata"]["name"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(server.get(&format!("{path}/{name}")).status, 404);
        // A name that is given is taken; without a prefix nothing can be made.
        let mut both = object.clone();
        both["metadata"]["name"] = json!("own");
        let created = server.send("POST", path, "", &both.to_string());
        assert_eq!(created.json()["metadata"]["name"], "own", "{created:?}");
        let mut none = object.clone();
        none["metadata"] = json!({"generateName": ""});
        let refused = server.send("POST", path, "", &none.to_string());
        assert_eq!(refused.status, 400, "{refused:?}");
        let mut long = object.clone();
        long["metadata"] = json!({"generateName": "x".repeat(70)});
        let created = server.send("POST", path, "", &long.to_string());
        assert_eq!(created.status, 201, "{created:?}");
        let name = created.json()["metadata"]["name"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(name.len(), 63, "{name}");
    }
}

#[test]
fn the_command_line_tells_the_name_that_was_made() {
    let server = Server::start();
    let file = tempfile::NamedTempFile::new().unwrap();
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: web-}\n";
    std::fs::write(file.path(), map).unwrap();
    let allot = |word: &str| {
        let mut command = assert_cmd::Command::new(assert_cmd::cargo::cargo_bin!("allot"));
        command.arg("--socket").arg(server.socket());
        command.args([word, "-f"]).arg(file.path()).assert()
    };
    let made = allot("create").success();
    let made = String::from_utf8_lossy(&made.get_output().stdout).into_owned();
    let name = made.strip_prefix("configmap/web-").unwrap();
    assert_eq!(
        name.strip_suffix(" created\n").map(str::len),
        Some(5),
        "{made}"
    );
    for word in ["apply", "delete"] {
        let refused = allot(word).code(2);
        let told = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
        let expected =
            "metadata.name: is missing: of metadata.generateName only create makes names";
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn unknown_fields_are_refused_warned_of_or_passed_over() {
    let server = Server::start();
    let mut object = pod("web", "1");
    object["spec"]["containers"][0]["resources"]["limit"] = json!({});
    let send = |validation: &str| {
        let path = format!("{PODS}?dryRun=All&fieldValidation={validation}");
        server.send("POST", &path, "", &object.to_string())
    };
    let refused = send("Strict");
    assert_eq!(refused.status, 400, "{refused:?}");
    let cause = &refused.json()["details"]["causes"][0];
    assert_eq!(cause["field"], "spec.containers[0].resources.limit");
    let warned = send("Warn");
    assert_eq!(warned.status, 201, "{warned:?}");
    assert!(
        warned
            .head
            .contains("warning: 299 - \"spec.containers[0].resources.limit"),
        "{warned:?}"
    );
    let ignored = send("Ignore");
    assert_eq!(ignored.status, 201, "{ignored:?}");
    assert!(!ignored.head.contains("warning:"), "{ignored:?}");
    let wrong = send("Wern");
    assert_eq!(wrong.status, 400, "{wrong:?}");
    assert!(wrong.body.contains("Strict, Warn or Ignore"), "{wrong:?}");
}

#[test]
fn warnings_are_few_and_fit_a_header() {
    let server = Server::start();
    let mut object = pod("web", "1");
    for n in 0..5000 {
        object["spec"][format!("\"é\\\r\nX: y{n}{}", "x".repeat(300))] = json!(1);
    }
    let path = format!("{PODS}?dryRun=All&fieldValidation=Warn");
    let warned = server.send("POST", &path, "", &object.to_string());
    assert_eq!(warned.status, 201, "{}", warned.head);
    assert_eq!(warned.head.matches("warning: 299 - ").count(), 21);
    assert!(warned.head.contains("warnings more"), "{}", warned.head);
    assert!(!warned.head.contains("\nX: "), "{}", warned.head);
    assert!(warned.head.contains('é'), "{}", warned.head);
}

#[test]
fn the_node_advertises_what_it_is_told() {
    let server = Server::start();
    let node = server.get("/api/v1/nodes/node").json();
    assert_eq!(node["status"]["capacity"]["cpu"], "4");
    let patch = json!([{"op": "add", "path": "/status/capacity/example.com~1foo", "value": "3"}]);
    let typed = "Content-Type: application/json-patch+json\r\n";
    let status = "/api/v1/nodes/node/status";
    let patched = server.send("PATCH", status, typed, &patch.to_string());
    assert_eq!(patched.status, 200, "{patched:?}");
    let list = server.get("/api/v1/nodes").json();
    assert_eq!(
        list["items"][0]["status"]["allocatable"]["example.com/foo"],
        "3"
    );
    let untyped = server.send("PATCH", status, "", &patch.to_string());
    assert_eq!(untyped.status, 415, "{untyped:?}");
}

#[test]
fn of_many_at_once_exactly_those_win_that_may() {
    let server = Server::start();
    let statuses = |name: &(dyn Fn(usize) -> String + Sync), cpu: &str| -> Vec<u16> {
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..64)
                .map(|n| {
                    let (server, object) = (&server, pod(&name(n), cpu));
                    scope.spawn(move || server.create(&object).status)
                })
                .collect();
            clients
                .into_iter()
                .map(|client| client.join().unwrap())
                .collect()
        })
    };
    let count = |statuses: &[u16], status| statuses.iter().filter(|s| **s == status).count();
    let same = statuses(&|_| "one".to_owned(), "100m");
    assert_eq!((count(&same, 201), count(&same, 409)), (1, 63), "{same:?}");
    // 100m are reserved by default and 100m taken: twelve of 300m, and 200m over.
    let race = statuses(&|n| format!("racer-{n}"), "300m");
    assert_eq!((count(&race, 201), count(&race, 403)), (12, 52), "{race:?}");
    let list = server.get(PODS).json();
    assert_eq!(list["items"].as_array().unwrap().len(), 13);
}

#[test]
fn health_and_version_are_there() {
    let server = Server::start();
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(server.get(path).body, "ok");
        let told = server.get(&format!("{path}?verbose"));
        let check = path.trim_matches('/');
        assert_eq!(told.body, format!("[+]owner ok\n{check} check passed\n"));
        let head = server.send("HEAD", path, "", "");
        assert_eq!((head.status, head.body.as_str()), (200, ""), "{head:?}");
    }
    assert!(server.get("/version").json()["gitVersion"].is_string());
    assert_eq!(
        server.get("/configz").json()["allotdconfig"]["nodeName"],
        "node"
    );
}
