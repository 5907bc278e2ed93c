//! `allot get` and `describe` against a real agent.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::server::{PODS, Server};

fn keep(server: &Server, path: &str, object: &Value) {
    let answer = server.send("POST", path, "", &object.to_string());
    assert_eq!(answer.status, 201, "{answer:?}");
}

fn config_map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"text": "one\ntwo\u{1b}[31m\n"}})
}

const CORE: &str = "/api/v1/namespaces/default";

/// A server with one object of several kinds.
fn filled() -> Server {
    let server = Server::start();
    keep(
        &server,
        &format!("{CORE}/configmaps"),
        &config_map("settings"),
    );
    keep(
        &server,
        &format!("{CORE}/resourcequotas"),
        &json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"},
            "spec": {"hard": {"pods": "2"}}}),
    );
    keep(
        &server,
        &format!("{CORE}/services"),
        &json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"},
            "spec": {"type": "NodePort", "ports": [{"port": 80}]}}),
    );
    keep(
        &server,
        "/apis/apps/v1/namespaces/default/deployments",
        &json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"replicas": 3}}),
    );
    server
}

#[test]
fn several_kinds_are_listed_with_their_kind_in_front() {
    let server = filled();
    let first = |words: &str| -> Vec<String> {
        let (text, code) = server.told(words);
        assert_eq!(code, Some(0), "{words}: {text}");
        let words = text.lines().map(|line| line.split_whitespace().next());
        words
            .map(|word| word.unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(
        first("get all"),
        ["NAME", "service/front", "", "NAME", "deployment.apps/web"]
    );
    assert_eq!(
        first("get quota,limits,cm"),
        [
            "NAME",
            "resourcequota/few",
            "",
            "NAME",
            "configmap/settings"
        ]
    );
    assert_eq!(first("get cm"), ["NAME", "settings"]);
    assert_eq!(
        first("get deploy,svc -o name"),
        ["deployment.apps/web", "service/front"]
    );
    let (text, _) = server.told("get svc,deploy -o json");
    let list: Value = serde_json::from_str(&text).unwrap();
    let kinds: Vec<_> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["kind"])
        .collect();
    assert_eq!(kinds, ["Service", "Deployment"]);
    assert_eq!(
        server.told("get all -n empty"),
        (
            "No resources found in empty namespace.\n".to_owned(),
            Some(0)
        )
    );
    let (text, code) = server.told("get cm,gadgets");
    assert_eq!(code, Some(2));
    assert!(text.contains("\"gadgets\" is no kind"), "{text}");
}

/// A watch, its lines one by one.
struct Watching(Child, BufReader<std::process::ChildStdout>);

impl Watching {
    fn start(server: &Server, words: &str) -> Self {
        let mut child = server
            .allot(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self(child, out)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The cells of the next line without the age, which is the last.
    fn cells(&mut self) -> Vec<String> {
        let line = self.line();
        let mut cells: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        cells.pop();
        cells
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_watch_goes_on_with_a_line_for_each_change() {
    let server = filled();
    let path = format!("{CORE}/configmaps");
    let mut all = Watching::start(&server, "get cm -w");
    assert_eq!(all.line(), "NAME       DATA   AGE");
    assert_eq!(all.cells(), ["settings", "1"]);
    let mut one = Watching::start(&server, "get cm b -w -o name");
    keep(&server, &path, &config_map("a"));
    keep(&server, &path, &config_map("b"));
    assert_eq!(all.cells(), ["a", "1"]);
    assert_eq!(all.cells(), ["b", "1"]);
    assert_eq!(one.line(), "configmap/b");
    let mut changed = config_map("b");
    changed["data"] = json!({"x": "", "y": ""});
    let answer = server.send("PUT", &format!("{path}/b"), "", &changed.to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(all.cells(), ["b", "2"]);
    assert_eq!(one.line(), "configmap/b");
    server.send("DELETE", &format!("{path}/a"), "", "");
    assert_eq!(all.cells(), ["a", "1"]);
    // A quota changes with what it counts.
    let mut quotas = Watching::start(&server, "get quota -w --no-headers");
    assert_eq!(quotas.cells()[..3], ["few", "pods:", "0/2"]);
    keep(
        &server,
        PODS,
        &json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "image": "none"}]}}),
    );
    assert_eq!(quotas.cells()[..3], ["few", "pods:", "1/2"]);
    for (words, says) in [
        ("get all -w", "--watch follows one kind"),
        ("get cm a b -w", "--watch follows one object or all"),
        (
            "get appliedclusterquota -w",
            "--watch follows no appliedclusterresourcequotas",
        ),
    ] {
        let (text, code) = server.told(words);
        assert_eq!(code, Some(2), "{words}");
        assert!(text.contains(says), "{words}: {text}");
    }
}

/// Whoever watches is told when the daemon goes.
#[test]
fn a_watch_ends_with_the_daemon() {
    let server = filled();
    let mut all = Watching::start(&server, "get cm -w");
    all.line();
    all.line();
    drop(server);
    assert_eq!(all.line(), "");
    assert_eq!(all.0.wait().unwrap().code(), Some(1));
}

#[test]
fn the_node_names_the_cpus_that_are_off() {
    let server = Server::start();
    let (text, code) = server.told("describe node node");
    assert_eq!(code, Some(0), "{text}");
    let line = text.lines().find(|line| line.starts_with("Annotations:"));
    assert!(
        line.unwrap().ends_with("allotd.dev/offline-cpus: 2,6-7"),
        "{text}"
    );
}

#[test]
fn any_kind_is_described_and_no_secret_told() {
    let server = filled();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key",
        "annotations": {"owner": "me",
            "kubectl.kubernetes.io/last-applied-configuration": "{\"data\": \"aHVudGVyMg==\"}"}},
        "type": "Opaque", "data": {"password": "aHVudGVyMg=="}, "stringData": {"more": "hunter3"}});
    keep(&server, &format!("{CORE}/secrets"), &secret);
    let (text, code) = server.told("describe secret key");
    assert_eq!(code, Some(0), "{text}");
    assert!(
        !text.contains("hunter") && !text.contains("aHVudGVy"),
        "{text}"
    );
    assert_eq!(
        text,
        "Name:         key\nNamespace:    default\nLabels:       <none>\nAnnotations:  owner: me\n\n\
         Type:  Opaque\n\nData\n====\npassword:  7 bytes\nmore:      7 bytes\n\nEvents:  <none>\n"
    );
    let (text, _) = server.told("describe cm settings");
    assert!(
        text.contains("\nData\n====\ntext:\n----\none\ntwo\\u{1b}[31m\n"),
        "{text}"
    );
    let (text, _) = server.told("describe svc,deploy");
    for part in [
        "Name:         front\n",
        "Kind:         Service\nSpec:\n  type: NodePort\n",
        "API Version:  apps/v1\nKind:         Deployment\nSpec:\n  replicas: 3\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (text, _) = server.told("describe quota,limits");
    assert!(text.starts_with("Name:       few\n"), "{text}");
    let (text, code) = server.told("describe cm none");
    assert_eq!(code, Some(1), "{text}");
}
