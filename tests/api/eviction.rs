//! Who would be evicted, as the API and `allot` tell it, and eviction by hand.

use serde_json::{Value, json};

use crate::busy;
use crate::server::{PODS, Server, pod};

const EVICTION: &str = "/apis/allotd.dev/v1/eviction";

fn signal<'a>(report: &'a Value, name: &str) -> &'a Value {
    let mut signals = report["signals"].as_array().unwrap().iter();
    signals.find(|it| it["signal"] == name).unwrap()
}

#[test]
fn the_report_has_signals_and_the_order_of_pods() {
    let (server, _process) = busy::server();
    let mut idle = pod("idle", "100m");
    idle["spec"]["priority"] = json!(-5);
    assert_eq!(server.create(&idle).status, 201);
    let report = server.get(EVICTION).json();
    let memory = signal(&report, "memory.available");
    assert_eq!(memory["state"], "known");
    assert_eq!(memory["decidedBy"], "MemAvailable");
    assert!(
        memory["others"]["MemTotal less working set"].is_u64(),
        "{memory}"
    );
    assert!(memory["available"].as_u64() < memory["capacity"].as_u64());
    let threshold = &memory["thresholds"][0];
    assert_eq!(threshold["setting"], "100Mi");
    assert_eq!(threshold["amount"], 100 << 20);
    assert_eq!(
        (&threshold["kind"], &threshold["met"]),
        (&json!("hard"), &json!(false))
    );
    let tasks = signal(&report, "pid.available");
    assert!(tasks["available"].as_u64() > Some(1), "{tasks}");
    assert_eq!(tasks["thresholds"], json!([]));
    let disk = signal(&report, "nodefs.available");
    assert_eq!(disk["thresholds"][0]["setting"], "10%");

    let order = &report["orders"][0];
    assert_eq!(order["resource"], "memory");
    let pods = order["pods"].as_array().unwrap();
    assert_eq!(pods.len(), 1, "nothing runs in the other one: {order}");
    let web = &pods[0];
    assert_eq!(
        (&web["name"], &web["qos"]),
        (&json!("web"), &json!("Guaranteed"))
    );
    assert_eq!(web["request"], 64 << 20);
    assert_eq!(web["why"], "within its request");
    let frees = web["frees"].as_u64().unwrap();
    assert!((12 << 20..=16 << 20).contains(&frees), "{web}");
    let orders = report["orders"].as_array().unwrap();
    assert!(
        orders.iter().all(|order| order["resource"] != "pids"),
        "it has no threshold"
    );
}

#[test]
fn people_read_it_in_a_hundred_columns() {
    let (server, _process) = busy::server();
    let (text, code) = server.told("evict --dry-run");
    assert_eq!(code, Some(0), "{text}");
    assert!(text.starts_with("SIGNAL"), "{text}");
    for part in [
        "memory.available",
        "nodefs.inodesFree",
        "MemAvailable",
        "default/web  Guaranteed",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let (json, code) = server.told("evict --dry-run -o json");
    assert_eq!(code, Some(0), "{json}");
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(report["orders"][0]["pods"][0]["name"], "web");
    for words in [
        "evict",
        "evict web --dry-run",
        "evict --dry-run --grace-period 3",
    ] {
        let (text, code) = server.told(words);
        assert_eq!(code, Some(2), "{words}: {text}");
    }
}

#[test]
fn a_pod_is_evicted_by_hand() {
    let (server, _process) = busy::server();
    let path = "/apis/allotd.dev/v1/namespaces/default/pods/web/evict";
    for (body, status) in [
        ("{\"grace\": 3}", 400),
        ("[", 400),
        ("{\"graceSeconds\": -1}", 400),
    ] {
        assert_eq!(server.send("POST", path, "", body).status, status, "{body}");
    }
    let (text, code) = server.told("evict default/web --grace-period 0");
    assert_eq!((text.as_str(), code), ("pod/web evicted\n", Some(0)));
    let web = server.get(&format!("{PODS}/web")).json();
    assert_eq!(web["status"]["reason"], "Evicted", "{web}");
    assert_eq!(server.send("POST", path, "", "").status, 409);
    let (text, code) = server.told("evict other");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("\"other\" not found"), "{text}");
}

#[test]
fn the_node_says_that_it_has_enough_and_scrapers_how_much() {
    let server = Server::start();
    let node = server.get("/api/v1/nodes/node").json();
    let conditions = node["status"]["conditions"].as_array().unwrap();
    let told: Vec<_> = conditions
        .iter()
        .map(|it| (it["type"].as_str().unwrap(), it["status"].as_str().unwrap()))
        .collect();
    assert_eq!(
        told,
        [
            ("MemoryPressure", "False"),
            ("DiskPressure", "False"),
            ("PIDPressure", "False"),
            ("Ready", "True")
        ]
    );
    let text = server.get("/metrics").body;
    for start in [
        "allotd_eviction_signal_available{eviction_signal=\"memory.available\",path=\"\"} ",
        "allotd_eviction_signal_capacity{eviction_signal=\"pid.available\",path=\"\"} ",
        "allotd_eviction_signal_available{eviction_signal=\"nodefs.available\",path=\"/",
    ] {
        assert!(
            text.lines().any(|line| line.starts_with(start)),
            "{start}\n{text}"
        );
    }
}
