//! Bodies in protobuf: they take the way of JSON, and what cannot be read is told.

use serde_json::json;

#[path = "../support/protobuf.rs"]
mod data;

use self::data::{Row, row};
use super::server::{Answer, Server};

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn send(server: &Server, method: &str, path: &str, body: &[u8]) -> Answer {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: allotd\r\nConnection: close\r\n\
         Content-Type: application/vnd.kubernetes.protobuf\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    server.raw(&[head.as_bytes(), body].concat())
}

#[test]
fn an_object_in_protobuf_is_kept_like_one_in_json() {
    let server = Server::start();
    let Row { body, object, .. } = row("kubectl 1.32 create quota");
    let tried = send(&server, "POST", &format!("{QUOTAS}?dryRun=All"), &body);
    assert_eq!(tried.status, 201, "{tried:?}");
    let made = send(&server, "POST", QUOTAS, &body);
    assert_eq!(made.status, 201, "{made:?}");
    let kept = server.get(&format!("{QUOTAS}/test")).json();
    assert_eq!(kept["spec"], object["spec"]);
    let again = send(&server, "POST", QUOTAS, &body);
    assert_eq!(again.status, 409, "{again:?}");
    let same = send(&server, "PUT", &format!("{QUOTAS}/test"), &body);
    assert_eq!(same.status, 200, "{same:?}");
    // DeleteOptions whose dryRun is ["All"].
    let options = b"k8s\0\x0a\x13\x0a\x02v1\x12\x0dDeleteOptions\x12\x05\x2a\x03All";
    let tried = send(&server, "DELETE", &format!("{QUOTAS}/test"), options);
    assert_eq!(tried.status, 200, "{tried:?}");
    assert_eq!(server.get(&format!("{QUOTAS}/test")).status, 200);
}

#[test]
fn what_cannot_be_read_is_told_and_not_guessed() {
    let server = Server::start();
    let quota = row("kubectl 1.32 create quota").body;
    let cut = &quota[..quota.len() - 10];
    let role = b"k8s\0\x0a\x26\x0a\x1crbac.authorization.k8s.io/v1\x12\x06Ranges\x12\0";
    let unknown = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x07\x0a\x05\xfa\x01\x02\x68\x69";
    for (path, body, status, message) in [
        (
            QUOTAS,
            cut,
            400,
            "the body: byte 26: 129 bytes are to follow, 123 do",
        ),
        (
            CONFIG_MAPS,
            &quota[..],
            400,
            "the body is a v1 ResourceQuota, the path is for v1 ConfigMap",
        ),
        (
            CONFIG_MAPS,
            &role[..],
            415,
            "the body: \"rbac.authorization.k8s.io/v1\" \"Ranges\" is not read as protobuf here: application/json is right",
        ),
        (
            CONFIG_MAPS,
            &unknown[..],
            400,
            "the body: byte 25: metadata: field 31 of ObjectMeta is not known here",
        ),
        (
            CONFIG_MAPS,
            b"",
            400,
            "the body: document 1: holds no object: an object has apiVersion, kind and metadata.name",
        ),
    ] {
        let answer = send(&server, "POST", path, body);
        assert_eq!(
            (answer.status, &answer.json()["message"]),
            (status, &json!(message))
        );
    }
    let refused = send(&server, "POST", CONFIG_MAPS, unknown).json();
    assert_eq!(refused["details"]["causes"][0]["field"], "metadata");
    server.is_well();
}
