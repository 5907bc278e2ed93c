//! Clients that follow a log: those that read are served as long as it grows, others are dropped.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use allotd::cgroup::{ModelKernel, Pid};
use allotd::server::Bounds;
use serde_json::json;

use super::hostile::{closed, short};
use super::server::{PODS, Server, pod};

/// A line of the log.
const LINE: usize = 80;

/// A process that does nothing until it is dropped.
struct Idle(Child);

impl Idle {
    fn start() -> Self {
        let mut sleep = Command::new("sleep");
        // It must not keep the tests' own output open.
        sleep
            .arg("3600")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self(sleep.spawn().unwrap())
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).unwrap()
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server with a container that runs and has written a log of this many lines.
fn server(bounds: Bounds, lines: usize) -> (Server, Idle) {
    let process = Idle::start();
    let mut kernel = ModelKernel::default();
    kernel.spawn(Pid(process.pid()));
    let server = Server::start_on(bounds, kernel);
    let created = server.create(&pod("web", "10m")).json();
    let uid = created["metadata"]["uid"].as_str().unwrap().to_owned();
    let attach = "/apis/allotd.dev/v1/namespaces/default/pods/web/attach";
    let body = json!({"container": "c", "pid": process.pid()}).to_string();
    let attached = server.send("POST", attach, "", &body);
    assert_eq!(attached.status, 200, "{attached:?}");
    let dir = server.logs().join(format!("default_web_{uid}/c"));
    std::fs::create_dir_all(&dir).unwrap();
    let line = format!(
        "2026-01-01T00:00:00.000000000Z stdout F {}\n",
        "x".repeat(LINE)
    );
    std::fs::write(dir.join("0.log"), line.repeat(lines)).unwrap();
    (server, process)
}

/// Asks for the log and whatever comes after it.
fn follow(server: &Server) -> std::os::unix::net::UnixStream {
    let mut stream = server.connect();
    let request =
        format!("GET {PODS}/web/log?follow=true HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

#[test]
fn a_follower_that_never_reads_is_dropped() {
    let one = Bounds {
        connections: 1,
        ..short()
    };
    let lines = 100_000;
    let (server, _process) = server(one, lines);
    let mut stream = follow(&server);
    // There is one place: who comes next is served only when this client has been dropped.
    server.is_well();
    let got = closed(&mut stream);
    assert!(got.starts_with("HTTP/1.1 200"), "{got:.200}");
    assert!(got.len() < lines * LINE, "all of it was still written");
}

#[test]
fn a_follower_that_reads_is_served_beyond_every_bound() {
    let (server, process) = server(short(), 10);
    let mut stream = follow(&server);
    // Nothing comes for longer than any other answer may take.
    std::thread::sleep(short().answer * 2);
    drop(process);
    let got = closed(&mut stream);
    assert_eq!(got.matches(&"x".repeat(LINE)).count(), 10, "{got:.200}");
    assert!(got.ends_with("0\r\n\r\n"), "cut off: {got:.200}");
}

#[test]
fn followers_that_go_away_leave_their_places() {
    let few = Bounds {
        connections: 2,
        ..Bounds::default()
    };
    let (server, _process) = server(few, 10);
    for _ in 0..10 {
        drop(follow(&server));
    }
    server.is_well();
}
