//! Every refusal is a `Status`, whoever in the house says it.

use serde_json::json;

use super::server::{Answer, PODS, Server, pod};

fn assert_status(answer: &Answer, code: u16, reason: &str) {
    assert_eq!(answer.status, code, "{answer:?}");
    let body = answer.json();
    for (field, expected) in [
        ("kind", json!("Status")),
        ("apiVersion", json!("v1")),
        ("status", json!("Failure")),
        ("code", json!(code)),
        ("reason", json!(reason)),
    ] {
        assert_eq!(body[field], expected, "{body}");
    }
    assert!(
        body["message"]
            .as_str()
            .is_some_and(|text| !text.is_empty()),
        "{body}"
    );
}

#[test]
fn whatever_is_wrong_with_a_request_is_told_as_a_status() {
    let server = Server::start();
    assert_eq!(server.create(&pod("web", "1")).status, 201);
    let long = "x".repeat(5 << 20);
    let web = pod("web", "1").to_string();
    let other = pod("other", "9").to_string();
    let elsewhere = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web", "namespace": "elsewhere"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let bad = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "../x"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    for (method, path, body, code, reason) in [
        ("GET", "/nothing", "", 404, "NotFound"),
        ("GET", "/api/v1/nodes/other", "", 404, "NotFound"),
        (
            "GET",
            "/api/v1/namespaces/default/pods/none",
            "",
            404,
            "NotFound",
        ),
        (
            "DELETE",
            "/api/v1/namespaces/default/pods/none",
            "",
            404,
            "NotFound",
        ),
        ("PUT", PODS, "", 405, "MethodNotAllowed"),
        ("BREW", "/healthz", "", 405, "MethodNotAllowed"),
        ("POST", PODS, "", 400, "BadRequest"),
        ("POST", PODS, "{", 400, "BadRequest"),
        ("POST", PODS, "[]", 400, "BadRequest"),
        ("POST", PODS, "\u{0}\u{1}", 400, "BadRequest"),
        ("POST", PODS, &long, 413, "RequestEntityTooLarge"),
        ("POST", PODS, &elsewhere.to_string(), 400, "BadRequest"),
        ("POST", PODS, &web, 409, "AlreadyExists"),
        ("POST", PODS, &other, 403, "OutOfcpu"),
        ("POST", PODS, &bad.to_string(), 422, "Invalid"),
        (
            "DELETE",
            "/api/v1/namespaces/default/pods/web?gracePeriodSeconds=soon",
            "",
            400,
            "BadRequest",
        ),
        (
            "DELETE",
            "/api/v1/namespaces/default/pods/web",
            "[",
            400,
            "BadRequest",
        ),
        (
            "GET",
            "/api/v1/namespaces/default/pods/web/log?tailLines=-1",
            "",
            400,
            "BadRequest",
        ),
        ("GET", "/api/v1/namespaces/%ff/pods", "", 400, "BadRequest"),
        ("DELETE", "/api/v1/nodes/node", "", 405, "MethodNotAllowed"),
        (
            "GET",
            "/api/v1/pods?watch=1&resourceVersion=x",
            "",
            400,
            "BadRequest",
        ),
        (
            "GET",
            "/api/v1/pods?watch=1&resourceVersion=999",
            "",
            410,
            "Expired",
        ),
        (
            "GET",
            "/api/v1/pods?resourceVersion=999",
            "",
            504,
            "Timeout",
        ),
        ("GET", "/api/v1/pods?continue=x", "", 400, "BadRequest"),
    ] {
        let answer = server.send(method, path, "", body);
        assert_status(&answer, code, reason);
    }
    assert_eq!(
        server.get(PODS).json()["items"].as_array().unwrap().len(),
        1
    );
}

#[test]
fn what_says_that_it_is_neither_json_nor_yaml_is_not_read() {
    let server = Server::start();
    let body = pod("web", "1").to_string();
    for (given, status) in [
        ("application/vnd.kubernetes.protobuf", 400),
        ("application/cbor", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/json; charset=utf-8", 201),
        ("Application/YAML", 201),
        ("application/x-www-form-urlencoded", 201),
    ] {
        let headers = format!("Content-Type: {given}\r\n");
        let answer = server.send("POST", &format!("{PODS}?dryRun=All"), &headers, &body);
        assert_eq!(answer.status, status, "{given}: {answer:?}");
        if status == 415 {
            assert_status(&answer, 415, "UnsupportedMediaType");
        }
    }
}

#[test]
fn a_refusal_names_the_object_and_every_cause() {
    let server = Server::start();
    let none = server.get(&format!("{PODS}/none")).json();
    assert_eq!(none["message"], "pods \"none\" not found");
    assert_eq!(none["details"], json!({"name": "none", "kind": "pods"}));
    let mut object = pod("web", "5");
    object["spec"]["containers"][0]["resources"]["limits"]["memory"] = json!("5Gi");
    let refused = server.create(&object).json();
    assert_eq!(refused["details"]["name"], "web");
    let causes = refused["details"]["causes"].as_array().unwrap();
    let reasons: Vec<_> = causes.iter().map(|cause| cause["reason"].clone()).collect();
    assert_eq!(reasons, ["OutOfcpu", "OutOfmemory"], "{refused}");
}
