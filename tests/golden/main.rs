//! What people see, compared letter by letter with the files beside this one.
//!
//! `UPDATE=1 cargo test --test golden` writes them anew; look at the difference before you keep it.

#![allow(clippy::unwrap_used)]

use std::fmt::Display;
use std::path::{Path, PathBuf};

use allotd::cli::describe;
use allotd::cli::oom;
use allotd::cli::render::{Clock, Page};
use allotd::cli::tables::{self, Names, Shape};
use allotd::model::Kind;
use allotd::model::kind::{EVENT, NODE, POD};
use allotd::report::oom::OomKill;
use jiff::tz::TimeZone;
use k8s_openapi::List;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use serde::de::DeserializeOwned;
use serde_json::Value;

mod check;
mod explain;
mod top;

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn input<T: DeserializeOwned>(name: &str) -> T {
    let text = std::fs::read_to_string(dir().join("input").join(name)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Compares with a file, or writes it.
fn check(name: &str, actual: &dyn Display) {
    let path = dir().join(name);
    let actual = actual.to_string();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &actual).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(actual, expected, "{name}: UPDATE=1 writes it anew");
}

fn clock() -> Clock {
    Clock {
        now: "2026-01-01T12:00:00Z".parse().unwrap(),
        zone: TimeZone::UTC,
    }
}

const PLAIN: Shape = Shape {
    wide: false,
    namespace: false,
    no_headers: false,
    names: Names::Bare,
};

fn table(kind: Kind, input_name: &str, shape: Shape) -> Page {
    let input: Value = input(input_name);
    let objects = input.get("items").and_then(Value::as_array);
    let objects = objects.map_or(std::slice::from_ref(&input), Vec::as_slice);
    tables::page(kind, objects, shape, clock().now)
}

#[test]
fn get_pods() {
    check("get-pods.txt", &table(POD, "pods.json", PLAIN));
    let wide = Shape {
        wide: true,
        namespace: true,
        ..PLAIN
    };
    check("get-pods-wide.txt", &table(POD, "pods.json", wide));
    check("get-nodes-wide.txt", &table(NODE, "node.json", wide));
}

#[test]
fn get_events() {
    check("get-events.txt", &table(EVENT, "events.json", PLAIN));
}

#[test]
fn oom_kills() {
    let kills: Vec<OomKill> = input("oomkills.json");
    check("oom.txt", &oom::page(&kills, false, clock().now));
    check("oom-all.txt", &oom::page(&kills, true, clock().now));
}

#[test]
fn describe_pods() {
    let pods: List<Pod> = input("pods.json");
    let events: List<Event> = input("events.json");
    for pod in &pods.items {
        let name = pod.metadata.name.clone().unwrap();
        let own = if name == "simmemleak-hra99" {
            events.items.as_slice()
        } else {
            &[]
        };
        check(
            &format!("describe-pod-{name}.txt"),
            &describe::pod::page(pod, own, None, &clock()),
        );
    }
}

/// The node of the Kubernetes documentation. Its percentages there are those of capacity, as of old;
/// `kubectl` has long counted by what pods may have, and so do we: 680m of 1800m is 37%.
#[test]
fn describe_node() {
    let mut node: Node = input("node.json");
    let pods: List<Pod> = input("node-pods.json");
    check(
        "describe-node.txt",
        &describe::node::page(&node, &pods.items, &[], &clock()),
    );
    // Where nothing is kept back the two are the same.
    if let Some(status) = &mut node.status {
        status.allocatable = None;
    }
    let text = describe::node::page(&node, &pods.items, &[], &clock()).to_string();
    for row in ["680m (34%)", "400m (20%)", "920Mi (12%)", "1070Mi (14%)"] {
        assert!(text.contains(row), "{row}: {text}");
    }
}
