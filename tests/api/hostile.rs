//! Clients that stop, trickle, shout or never read: each costs one connection for a bounded time.

use std::io::{Read, Write};
use std::time::Duration;

use allotd::server::Bounds;
use serde_json::json;

use super::server::{PODS, Server, pod};

/// Bounds that a test can wait for.
pub fn short() -> Bounds {
    Bounds {
        patience: Duration::from_millis(300),
        stall: Duration::from_millis(300),
        answer: Duration::from_secs(2),
        ..Bounds::default()
    }
}

/// Reads until the server closes; what takes longer than the stream's patience fails.
pub fn closed(stream: &mut std::os::unix::net::UnixStream) -> String {
    let mut text = Vec::new();
    match stream.read_to_end(&mut text) {
        Ok(_) => {}
        Err(error) => assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "never closed"),
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn half_a_request_and_silence_is_closed() {
    let server = Server::start_with(short());
    for half in ["", "GE", "GET /healthz HTTP/1.1\r\nHost: all"] {
        let mut stream = server.connect();
        stream.write_all(half.as_bytes()).unwrap();
        server.is_well();
        closed(&mut stream);
    }
}

#[test]
fn a_body_that_does_not_come_is_given_up() {
    let server = Server::start_with(short());
    let mut stream = server.connect();
    let head = format!("POST {PODS} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{{\"a");
    stream.write_all(head.as_bytes()).unwrap();
    server.is_well();
    let answer = closed(&mut stream);
    assert!(
        answer.contains("504") && answer.contains("\"reason\":\"Timeout\""),
        "{answer}"
    );
    server.is_well();
}

#[test]
fn a_body_that_trickles_is_given_up() {
    let server = Server::start_with(short());
    let mut stream = server.connect();
    let head = format!("POST {PODS} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut drops = stream.try_clone().unwrap();
    // It is never silent for long, and would take hours: only a bound on the whole ends it.
    let client = std::thread::spawn(move || {
        while drops.write_all(b" ").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    server.is_well();
    let answer = closed(&mut stream);
    assert!(answer.contains("\"reason\":\"Timeout\""), "{answer}");
    client.join().unwrap();
    server.is_well();
}

#[test]
fn of_more_clients_than_allowed_none_is_lost() {
    let server = Server::start_with(Bounds {
        connections: 4,
        ..Bounds::default()
    });
    std::thread::scope(|scope| {
        for n in 0..64 {
            let server = &server;
            scope.spawn(move || {
                // All together must fit the node.
                let mut object = pod(&format!("pod-{n}"), "10m");
                object["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!("16Mi");
                let answer = server.create(&object);
                assert_eq!(answer.status, 201, "{answer:?}");
            });
        }
    });
    let list = server.get(PODS).json();
    assert_eq!(list["items"].as_array().unwrap().len(), 64);
}

#[test]
fn more_connections_than_allowed_wait_their_turn() {
    let server = Server::start_with(Bounds {
        connections: 4,
        ..short()
    });
    let mut idle: Vec<_> = (0..40).map(|_| server.connect()).collect();
    // It is served once those before it were given up.
    server.is_well();
    for stream in &mut idle {
        closed(stream);
    }
    server.is_well();
}

#[test]
fn shouting_is_refused() {
    let server = Server::start();
    let huge = format!(
        "GET /healthz HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n",
        "x".repeat(1 << 20)
    );
    let many = format!("GET /healthz HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(5000));
    for bytes in [
        huge.as_bytes(),
        many.as_bytes(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".as_slice(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /api/v1/namespaces/default/pods HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /api/v1/namespaces/default/pods HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        &[0; 10_000],
    ] {
        let answer = server.raw(bytes);
        assert!(answer.status == 0 || answer.status >= 400, "{answer:?}");
        server.is_well();
    }
}

#[test]
fn a_client_that_goes_away_is_no_loss() {
    let server = Server::start();
    for n in 0..50 {
        let mut stream = server.connect();
        let body = pod(&format!("pod-{n}"), "10m").to_string();
        let request = format!(
            "POST {PODS} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        drop(stream);
    }
    // Each was kept as a whole or not at all.
    server.is_well();
    for item in server.get(PODS).json()["items"].as_array().unwrap() {
        assert_eq!(
            item["spec"]["containers"][0]["resources"]["limits"]["cpu"],
            "10m"
        );
    }
}

#[test]
fn a_client_that_never_reads_is_dropped() {
    let server = Server::start_with(Bounds {
        connections: 1,
        ..short()
    });
    // Answers of more than a socket's buffer takes, asked for in one go and never read.
    let mut object = pod("web", "10m");
    object["metadata"]["annotations"] = json!({"text": "x".repeat(200_000)});
    assert_eq!(server.create(&object).status, 201);
    let mut stream = server.connect();
    let request = format!("GET {PODS} HTTP/1.1\r\nHost: x\r\n\r\n").repeat(40);
    stream.write_all(request.as_bytes()).unwrap();
    // There is one place: who comes next is served only when this client has been dropped.
    server.is_well();
    let got = closed(&mut stream);
    assert!(got.len() < 40 * 200_000, "all of it was still written");
    server.is_well();
}

#[test]
fn stopping_does_not_wait_for_clients_that_do_nothing() {
    let server = Server::start_with(Bounds {
        stop: Duration::from_millis(100),
        ..Bounds::default()
    });
    let mut idle = server.connect();
    let mut half = server.connect();
    half.write_all(b"GET /healthz HT").unwrap();
    server.is_well();
    drop(server);
    closed(&mut idle);
    closed(&mut half);
}

#[test]
fn a_config_map_of_fifty_mebibytes_is_refused() {
    let server = Server::start();
    let text = "x".repeat(50 << 20);
    let map = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"big"}},"data":{{"a":"{text}"}}}}"#
    );
    let path = "/api/v1/namespaces/default/configmaps";
    let refused = server.send("POST", path, "", &map);
    assert_eq!(refused.status, 413, "{}", refused.head);
    // What is short enough for a request, but not for an object, names its bound.
    let map = map.replace(&text, &text[..2 << 20]);
    let refused = server.send("POST", path, "", &map);
    assert_eq!(refused.status, 413, "{}", refused.head);
    assert!(refused.body.contains("1048576"), "{}", refused.body);
    assert_eq!(server.get(&format!("{path}/big")).status, 404);
    server.is_well();
}

#[test]
fn hundreds_of_quotas_all_hold() {
    let server = Server::start();
    let path = "/api/v1/namespaces/default/resourcequotas";
    for n in 0..300 {
        let quota = format!(
            r#"{{"apiVersion":"v1","kind":"ResourceQuota","metadata":{{"name":"q{n}"}},"spec":{{"hard":{{"pods":"1"}}}}}}"#
        );
        let made = server.send("POST", path, "", &quota);
        assert_eq!(made.status, 201, "{made:?}");
    }
    assert_eq!(server.create(&pod("one", "100m")).status, 201);
    let refused = server.create(&pod("two", "100m"));
    assert_eq!(refused.status, 403);
    let causes = refused.json()["details"]["causes"].clone();
    assert_eq!(causes.as_array().unwrap().len(), 300);
    let list = server.get(path).json();
    let quotas = list["items"].as_array().unwrap();
    assert!(
        quotas
            .iter()
            .all(|quota| quota["status"]["used"]["pods"] == "1")
    );
    let proof = server.get("/apis/allotd.dev/v1/accounts").json();
    assert_eq!(
        (
            &proof["accounts"],
            proof["mismatches"].as_array().unwrap().len()
        ),
        (&301.into(), 0)
    );
}
