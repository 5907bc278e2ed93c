//! What is read, what is refused, and where.

use serde_json::{Value, json};

use super::*;

fn read_as(kind: ContainerKind, fields: &Value) -> (Probes, Vec<String>) {
    let mut container = json!({"name": "c", "command": ["serve"],
        "ports": [{"name": "web", "containerPort": 8080}]});
    for (name, value) in fields.as_object().unwrap() {
        container[name] = value.clone();
    }
    let container: v1::Container = serde_json::from_value(container).unwrap();
    let mut problems = Vec::new();
    let probes = probes(&container, kind, 30, "c", &mut problems);
    (probes, problems.iter().map(ToString::to_string).collect())
}

fn read(fields: &Value) -> (Probes, Vec<String>) {
    read_as(ContainerKind::App, fields)
}

#[test]
fn a_probe_is_read_with_defaults() {
    let (probes, problems) = read(&json!({
        "livenessProbe": {"exec": {"command": ["cat", "/tmp/ok"]}},
        "readinessProbe": {"httpGet": {"port": "web", "path": "healthz?full=1",
            "httpHeaders": [{"name": "X-Who", "value": "me"}]},
            "initialDelaySeconds": 1, "periodSeconds": 2, "timeoutSeconds": 3,
            "successThreshold": 4, "failureThreshold": 5},
        "startupProbe": {"tcpSocket": {"port": 80, "host": "::1"},
            "terminationGracePeriodSeconds": 7},
    }));
    assert_eq!(problems, [""; 0]);
    let liveness = Probe {
        action: Action::Exec(vec!["cat".to_owned(), "/tmp/ok".to_owned()]),
        initial_delay: 0,
        period: 10,
        timeout: 1,
        success_threshold: 1,
        failure_threshold: 3,
        grace_seconds: None,
    };
    assert_eq!(probes.liveness.as_ref(), Some(&liveness));
    let readiness = Probe {
        action: Action::Http(Http {
            address: Address {
                host: "127.0.0.1".to_owned(),
                port: 8080,
            },
            path: "/healthz?full=1".to_owned(),
            headers: vec![("X-Who".to_owned(), "me".to_owned())],
        }),
        initial_delay: 1,
        period: 2,
        timeout: 3,
        success_threshold: 4,
        failure_threshold: 5,
        grace_seconds: None,
    };
    assert_eq!(probes.readiness, Some(readiness));
    let startup = Probe {
        action: Action::Tcp(Address {
            host: "::1".to_owned(),
            port: 80,
        }),
        grace_seconds: Some(7),
        ..liveness
    };
    assert_eq!(probes.startup, Some(startup));
}

#[test]
fn hooks_are_read() {
    let (probes, problems) = read(&json!({"lifecycle": {
        "postStart": {"exec": {"command": ["true"]}}, "preStop": {"sleep": {"seconds": 30}}}}));
    assert_eq!(problems, [""; 0]);
    assert_eq!(probes.post_start, Some(Hook::Exec(vec!["true".to_owned()])));
    assert_eq!(probes.pre_stop, Some(Hook::Sleep(30)));
}

#[test]
fn what_is_not_right_is_told_with_its_place() {
    let probe = |kind: &str, more: Value| {
        let mut probe = json!({"exec": {"command": ["true"]}});
        for (name, value) in more.as_object().unwrap() {
            probe[name] = value.clone();
        }
        json!({kind: probe})
    };
    let live = "livenessProbe";
    for (fields, expected) in [
        (
            json!({live: {}}),
            "c.livenessProbe: Required value: must specify a handler type",
        ),
        (
            probe(live, json!({"tcpSocket": {"port": 1}})),
            "c.livenessProbe: Forbidden: may not specify more than 1 handler type",
        ),
        (
            json!({live: {"exec": {}}}),
            "c.livenessProbe.exec.command: Required value",
        ),
        (
            json!({live: {"exec": {"command": ["x".repeat(70_000)]}}}),
            "c.livenessProbe.exec.command: Too long: may not have more than 65536 bytes",
        ),
        (
            json!({"command": [], live: {"exec": {"command": ["true"]}}}),
            "c.livenessProbe.exec.command: Forbidden: a container without a command",
        ),
        (
            json!({live: {"grpc": {"port": 1}}}),
            "c.livenessProbe.grpc: Forbidden: no gRPC",
        ),
        (
            probe(live, json!({"periodSeconds": -1})),
            "c.livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            probe(live, json!({"successThreshold": 2})),
            "c.livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ),
        (
            probe("startupProbe", json!({"successThreshold": 2})),
            "c.startupProbe.successThreshold: Invalid value: 2: must be 1",
        ),
        (
            probe(
                "readinessProbe",
                json!({"terminationGracePeriodSeconds": 1}),
            ),
            "c.readinessProbe.terminationGracePeriodSeconds: Invalid value: 1: must not be set for readinessProbes",
        ),
        (
            probe(live, json!({"terminationGracePeriodSeconds": 0})),
            "c.livenessProbe.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0",
        ),
    ] {
        refused(&fields, expected);
    }
}

#[test]
fn what_is_not_right_of_requests_and_hooks_is_told_with_its_place() {
    let http = |http: Value| json!({"livenessProbe": {"httpGet": http}});
    let hook = |hook: Value| json!({"lifecycle": {"preStop": hook}});
    for (fields, expected) in [
        (
            http(json!({"port": 65536})),
            "c.livenessProbe.httpGet.port: Invalid value: 65536: must be between 1 and 65535, inclusive",
        ),
        (
            http(json!({"port": "other"})),
            "c.livenessProbe.httpGet.port: Invalid value: \"other\": must be a number, or the name of one of the container's ports",
        ),
        (
            http(json!({"port": 1, "scheme": "HTTPS"})),
            "c.livenessProbe.httpGet.scheme: Forbidden: no TLS",
        ),
        (
            http(json!({"port": 1, "scheme": "ftp"})),
            "c.livenessProbe.httpGet.scheme: Unsupported value: \"ftp\"",
        ),
        (
            http(json!({"port": 1, "path": "/a b"})),
            "c.livenessProbe.httpGet.path: Invalid value: \"/a b\"",
        ),
        (
            http(json!({"port": 1, "host": "a/b"})),
            "c.livenessProbe.httpGet.host: Invalid value: \"a/b\"",
        ),
        (
            http(json!({"port": 1, "httpHeaders": [{"name": "a b", "value": ""}]})),
            "c.livenessProbe.httpGet.httpHeaders[0].name: Invalid value: \"a b\"",
        ),
        (
            http(json!({"port": 1, "httpHeaders": [{"name": "a", "value": "b\r\nc: d"}]})),
            "c.livenessProbe.httpGet.httpHeaders[0].value: Invalid value",
        ),
        (
            hook(json!({"sleep": {"seconds": 31}})),
            "c.lifecycle.preStop.sleep: Invalid value: 31: must not be greater than terminationGracePeriodSeconds, 30",
        ),
        (
            hook(json!({"sleep": {"seconds": -1}})),
            "c.lifecycle.preStop.sleep.seconds: Invalid value: -1",
        ),
        (
            hook(json!({"tcpSocket": {"port": 1}})),
            "c.lifecycle.preStop.tcpSocket: Forbidden",
        ),
        (hook(json!({})), "c.lifecycle.preStop: Required value"),
    ] {
        refused(&fields, expected);
    }
}

fn refused(fields: &Value, expected: &str) {
    let (_, problems) = read(fields);
    assert_eq!(problems.len(), 1, "{problems:?} of {fields}");
    assert!(problems[0].starts_with(expected), "{problems:?}");
}

#[test]
fn init_containers_have_none_but_for_sidecars() {
    let fields = json!({"startupProbe": {"tcpSocket": {"port": 1}},
        "lifecycle": {"preStop": {"sleep": {"seconds": 1}}}});
    let (_, problems) = read_as(ContainerKind::Init, &fields);
    assert_eq!(
        problems,
        [
            format!("c.startupProbe: {FOR_SIDECARS}"),
            format!("c.lifecycle.preStop: {FOR_SIDECARS}")
        ]
    );
    assert_eq!(read_as(ContainerKind::Sidecar, &fields).1, [""; 0]);
}

#[test]
fn defaults_are_filled_in_once() {
    let spec = json!({"containers": [{"name": "c",
        "livenessProbe": {"httpGet": {"port": 80}, "periodSeconds": 5},
        "lifecycle": {"preStop": {"httpGet": {"port": 81, "path": "/bye"}}}}]});
    let mut spec: v1::PodSpec = serde_json::from_value(spec).unwrap();
    fill_in(&mut spec);
    let first = spec.clone();
    fill_in(&mut spec);
    assert_eq!(spec, first);
    let seen = serde_json::to_value(&spec).unwrap();
    assert_eq!(
        seen["containers"][0]["livenessProbe"],
        json!({"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, "failureThreshold": 3,
            "periodSeconds": 5, "successThreshold": 1, "timeoutSeconds": 1})
    );
    assert_eq!(
        seen["containers"][0]["lifecycle"]["preStop"]["httpGet"],
        json!({"path": "/bye", "port": 81, "scheme": "HTTP"})
    );
}
