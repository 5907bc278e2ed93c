//! Watches: every change once, in order, and clear words for whoever cannot be served.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use allotd::server::Bounds;
use serde_json::{Value, json};

use crate::server::{PODS, Server, pod};

/// A client that follows changes.
struct Watch(BufReader<UnixStream>);

impl Watch {
    fn start(server: &Server, path: &str, headers: &str) -> Self {
        let mut stream = server.connect();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n").unwrap();
        let mut watch = Self(BufReader::new(stream));
        let head = watch.line();
        assert!(head.contains(" 200 "), "{head}");
        while watch.line() != "\r\n" {}
        watch
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line
    }

    /// The next event; `None` once the server has said all.
    fn next(&mut self) -> Option<Value> {
        let length = usize::from_str_radix(self.line().trim(), 16).unwrap_or(0);
        if length == 0 {
            return None;
        }
        let event = self.line();
        assert_eq!(event.len(), length, "one event for each chunk");
        self.line();
        Some(serde_json::from_str(&event).unwrap())
    }

    /// Type and name of the next event.
    fn told(&mut self) -> (String, String) {
        let event = self.next().unwrap();
        let name = event["object"]["metadata"]["name"].as_str();
        let what = event["type"].as_str().unwrap().to_owned();
        (what, name.unwrap_or_default().to_owned())
    }
}

fn quota(hard: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
        "spec": {"hard": {"pods": hard}}})
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";

#[test]
fn changes_are_told_from_the_list_on() {
    let server = Server::start();
    assert_eq!(
        server
            .send("POST", QUOTAS, "", &quota("3").to_string())
            .status,
        201
    );
    let list = server.get(QUOTAS).json();
    let version = list["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut quotas = Watch::start(
        &server,
        &format!("{QUOTAS}?watch=true&resourceVersion={version}"),
        "",
    );
    let mut labelled = Watch::start(
        &server,
        &format!("{PODS}?watch=1&labelSelector=app%3Dweb"),
        "",
    );
    let mut web = pod("web", "100m");
    web["metadata"]["labels"] = json!({"app": "web"});
    assert_eq!(server.create(&web).status, 201);
    assert_eq!(server.create(&pod("other", "100m")).status, 201);
    for used in ["1", "2"] {
        let event = quotas.next().unwrap();
        assert_eq!(event["type"], "MODIFIED");
        assert_eq!(event["object"]["status"]["used"]["pods"], used);
    }
    assert_eq!(labelled.told(), ("ADDED".to_owned(), "web".to_owned()));
    // It has another label from now on: to this client it is gone.
    let patch = json!({"metadata": {"labels": {"app": "db"}}});
    let typed = "Content-Type: application/merge-patch+json\r\n";
    let changed = server.send("PATCH", &format!("{PODS}/web"), typed, &patch.to_string());
    assert_eq!(changed.status, 200, "{changed:?}");
    loop {
        match labelled.told() {
            (what, _) if what == "MODIFIED" => {}
            (what, name) => {
                assert_eq!((&*what, &*name), ("DELETED", "web"));
                break;
            }
        }
    }
    drop(server);
    assert!(
        quotas.next().is_none(),
        "a daemon that stops ends its watches"
    );
}

#[test]
fn a_watch_may_begin_with_the_list() {
    let server = Server::start();
    assert_eq!(
        server
            .send("POST", QUOTAS, "", &quota("3").to_string())
            .status,
        201
    );
    let path = format!(
        "{QUOTAS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    );
    let mut watch = Watch::start(&server, &path, "");
    assert_eq!(watch.told(), ("ADDED".to_owned(), "q".to_owned()));
    let bookmark = watch.next().unwrap();
    assert_eq!(bookmark["type"], "BOOKMARK");
    let annotations = &bookmark["object"]["metadata"]["annotations"];
    assert_eq!(annotations["k8s.io/initial-events-end"], "true");
}

#[test]
fn a_watch_ends_in_time() {
    let server = Server::start();
    let mut watch = Watch::start(&server, &format!("{PODS}?watch=1&timeoutSeconds=1"), "");
    assert!(watch.next().is_none());
}

#[test]
fn rows_of_tables_are_told_too() {
    let server = Server::start();
    let table = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json\r\n";
    assert_eq!(
        server
            .send("POST", QUOTAS, "", &quota("3").to_string())
            .status,
        201
    );
    let list = server.send("GET", QUOTAS, table, "").json();
    assert_eq!(list["kind"], "Table");
    assert_eq!(list["columnDefinitions"][1]["name"], "Request");
    assert_eq!(list["rows"][0]["cells"][1], "pods: 0/3");
    let mut watch = Watch::start(&server, &format!("{QUOTAS}?watch=1"), table);
    let row = watch.next().unwrap();
    assert_eq!(row["object"]["rows"][0]["cells"][0], "q");
    assert!(row["object"]["columnDefinitions"].is_array());
    assert_eq!(
        server.send("DELETE", &format!("{QUOTAS}/q"), "", "").status,
        200
    );
    let gone = watch.next().unwrap();
    assert_eq!(gone["type"], "DELETED");
    assert!(gone["object"]["columnDefinitions"].is_null(), "told once");
}

#[test]
fn watchers_that_never_read_keep_nobody_waiting() {
    let bounds = Bounds {
        followers: 8,
        ..Bounds::default()
    };
    let server = Server::start_with(bounds);
    let silent: Vec<_> = (0..8)
        .map(|_| Watch::start(&server, &format!("{MAPS}?watch=1"), ""))
        .collect();
    let more = server.get(&format!("{MAPS}?watch=1"));
    assert_eq!(more.status, 429, "{more:?}");
    let big = "x".repeat(100_000);
    for n in 0..100 {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("big-{n}")}, "data": {"x": big}});
        assert_eq!(server.send("POST", MAPS, "", &map.to_string()).status, 201);
    }
    assert_eq!(server.get(PODS).status, 200);
    drop(silent);
    // Their places are free again.
    let begin = std::time::Instant::now();
    while server
        .get(&format!("{PODS}?watch=1&timeoutSeconds=0"))
        .status
        != 200
    {
        assert!(begin.elapsed().as_secs() < 30);
    }
}
