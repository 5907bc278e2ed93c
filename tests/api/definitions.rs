//! Kinds that somebody defines: registered, served in all versions, counted, and gone with their definition.

use std::io::{Read, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use super::server::{Answer, Server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const TABS: &str = "/apis/stable.example.com/v1/namespaces/default/crontabs";
const OLD_TABS: &str = "/apis/stable.example.com/v1beta1/namespaces/default/crontabs";
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "crontabs.stable.example.com"},
        "spec": {
            "group": "stable.example.com", "scope": "Namespaced",
            "names": {"plural": "crontabs", "kind": "CronTab", "shortNames": ["ct"]},
            "versions": [
                {"name": "v1beta1", "served": true, "storage": false},
                {"name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object"}}},
            ],
        },
    })
}

fn tab(version: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("stable.example.com/{version}"), "kind": "CronTab",
        "metadata": {"name": name}, "spec": {"cronSpec": "* * * * */5"},
    })
}

fn post(server: &Server, path: &str, object: &Value) -> Answer {
    server.send("POST", path, "", &object.to_string())
}

fn keep(server: &Server, path: &str, object: &Value) -> Value {
    let answer = post(server, path, object);
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()
}

#[test]
fn objects_of_a_defined_kind_are_kept_and_counted() {
    let server = Server::start();
    assert_eq!(post(&server, TABS, &tab("v1", "a")).status, 404);
    let kept = keep(&server, DEFINITIONS, &definition());
    let status = &kept["status"];
    let conditions = status["conditions"].as_array().unwrap();
    for (condition, kind) in conditions.iter().zip(["NamesAccepted", "Established"]) {
        assert_eq!(
            (&condition["type"], &condition["status"]),
            (&json!(kind), &json!("True"))
        );
    }
    assert_eq!(conditions.len(), 2);
    assert_eq!(
        status["acceptedNames"],
        json!({"plural": "crontabs", "singular": "crontab", "kind": "CronTab",
            "listKind": "CronTabList", "shortNames": ["ct"]})
    );
    assert_eq!(status["storedVersions"], json!(["v1"]));
    let hard = json!({"count/crontabs.stable.example.com": "2"});
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
        "spec": {"hard": hard}});
    keep(&server, QUOTAS, &quota);
    let used = || server.get(&format!("{QUOTAS}/q")).json()["status"]["used"].clone();

    let kept = keep(&server, TABS, &tab("v1", "a"));
    assert_eq!(kept["metadata"]["generation"], 1);
    keep(&server, TABS, &tab("v1", "b"));
    let refused = post(&server, TABS, &tab("v1", "c"));
    assert_eq!(refused.status, 403);
    assert_eq!(
        refused.json()["message"],
        "crontabs.stable.example.com \"c\" is forbidden: exceeded quota: q, requested: \
         count/crontabs.stable.example.com=1, used: count/crontabs.stable.example.com=2, \
         limited: count/crontabs.stable.example.com=2; left: count/crontabs.stable.example.com=0"
    );
    let list = server.get(TABS).json();
    assert_eq!(list["kind"], "CronTabList");
    assert_eq!(list["items"].as_array().unwrap().len(), 2);
    let accept = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n";
    let table = server.send("GET", TABS, accept, "").json();
    assert_eq!(table["columnDefinitions"][1]["name"], "Age");

    let one = format!("{TABS}/a");
    for (kind, body, status) in [
        (
            "merge-patch",
            json!({"spec": {"replicas": 2}, "status": {"ready": true}}),
            200,
        ),
        (
            "json-patch",
            json!([{"op": "add", "path": "/spec/image", "value": "i"}]),
            200,
        ),
        (
            "strategic-merge-patch",
            json!({"spec": {"replicas": 3}}),
            415,
        ),
    ] {
        let typed = format!("Content-Type: application/{kind}+json\r\n");
        let patched = server.send("PATCH", &one, &typed, &body.to_string());
        assert_eq!(patched.status, status, "{kind}: {patched:?}");
    }
    let read = server.get(&one).json();
    let spec = json!({"cronSpec": "* * * * */5", "replicas": 2, "image": "i"});
    assert_eq!(read["spec"], spec);
    assert_eq!(
        read["status"],
        json!({"ready": true}),
        "what others say of it"
    );
    server.send("DELETE", &format!("{TABS}/b"), "", "");
    assert_eq!(used(), json!({"count/crontabs.stable.example.com": "1"}));

    let deleted = server.send(
        "DELETE",
        &format!("{DEFINITIONS}/crontabs.stable.example.com"),
        "",
        "",
    );
    assert_eq!(deleted.status, 200, "{deleted:?}");
    assert_eq!(used(), json!({"count/crontabs.stable.example.com": "0"}));
    assert_eq!(server.get(&one).status, 404);
    assert_eq!(server.get(TABS).status, 404);
    assert_eq!(server.get("/apis/stable.example.com").status, 404);
    keep(&server, DEFINITIONS, &definition());
    assert_eq!(server.get(TABS).json()["items"], json!([]));
    let proof = server.get("/apis/allotd.dev/v1/accounts").json();
    assert_eq!(proof["mismatches"], json!([]));
}

#[test]
fn all_versions_are_the_same_objects() {
    let server = Server::start();
    keep(&server, DEFINITIONS, &definition());
    let kept = keep(&server, OLD_TABS, &tab("v1beta1", "a"));
    assert_eq!(kept["apiVersion"], "stable.example.com/v1beta1");
    let mut watch = server.connect();
    let head = "HTTP/1.1\r\nHost: x\r\n\r\n";
    write!(watch, "GET {OLD_TABS}?watch=1 {head}").unwrap();
    for (path, version) in [(TABS, "v1"), (OLD_TABS, "v1beta1")] {
        let version = format!("stable.example.com/{version}");
        assert_eq!(
            server.get(&format!("{path}/a")).json()["apiVersion"],
            version
        );
        let list = server.get(path).json();
        assert_eq!(list["items"][0]["apiVersion"], version);
        assert_eq!(list["apiVersion"], version);
    }
    let mixed = post(&server, TABS, &tab("v1beta1", "b"));
    assert_eq!(mixed.status, 400, "{mixed:?}");
    let typed = "Content-Type: application/merge-patch+json\r\n";
    let patched = server.send("PATCH", &format!("{OLD_TABS}/a"), typed, "{\"spec\":null}");
    assert_eq!(patched.json()["apiVersion"], "stable.example.com/v1beta1");
    let deleted = server.send("DELETE", &format!("{OLD_TABS}/a"), "", "");
    assert_eq!(deleted.json()["apiVersion"], "stable.example.com/v1beta1");
    let mut told = String::new();
    let mut piece = [0; 4096];
    while !told.contains("DELETED") {
        let length = watch.read(&mut piece).unwrap();
        assert_ne!(length, 0, "{told}");
        told.push_str(&String::from_utf8_lossy(&piece[..length]));
    }
    assert!(
        told.contains("stable.example.com/v1beta1") && !told.contains("stable.example.com/v1\""),
        "{told}"
    );

    let group = server.get("/apis/stable.example.com").json();
    assert_eq!(group["preferredVersion"]["version"], "v1");
    assert_eq!(group["versions"].as_array().unwrap().len(), 2);
    for version in ["v1", "v1beta1"] {
        let list = server
            .get(&format!("/apis/stable.example.com/{version}"))
            .json();
        let own = &list["resources"][0];
        assert_eq!(own["name"], "crontabs");
        assert_eq!(own["singularName"], "crontab");
        assert_eq!(own["shortNames"], json!(["ct"]));
        assert_eq!(list["resources"].as_array().unwrap().len(), 1);
        let schema = server.get(&format!("/openapi/v3/apis/stable.example.com/{version}"));
        assert!(schema.body.contains("CronTab"), "{schema:?}");
    }
    // Another version to be kept in, and one that is not served any more.
    let mut changed = definition();
    changed["spec"]["versions"] = json!([{"name": "v2", "served": true, "storage": true}]);
    keep(&server, OLD_TABS, &tab("v1beta1", "a"));
    let path = format!("{DEFINITIONS}/crontabs.stable.example.com");
    let put = server.send("PUT", &path, "", &changed.to_string());
    assert_eq!(
        put.json()["status"]["storedVersions"],
        json!(["v2"]),
        "{put:?}"
    );
    assert_eq!(server.get(OLD_TABS).status, 404);
    let list = server.get("/apis/stable.example.com/v2/crontabs").json();
    assert_eq!(list["items"][0]["apiVersion"], "stable.example.com/v2");
    // Nobody makes one version of another where they differ.
    changed["spec"]["versions"] = definition()["spec"]["versions"].clone();
    changed["spec"]["conversion"] = json!({"strategy": "Webhook"});
    let put = server.send("PUT", &path, "", &changed.to_string()).json();
    assert_eq!(
        put["status"]["conditions"][2]["reason"], "NoConversion",
        "{put}"
    );
    assert_eq!(server.get(OLD_TABS).status, 404);
    assert_eq!(server.get(&format!("{TABS}/a")).status, 200);
}

#[test]
fn what_is_wrong_with_a_definition_is_told() {
    let server = Server::start();
    keep(&server, DEFINITIONS, &definition());
    let with = |pointer: &str, value: Value| {
        let mut other = definition();
        other["metadata"]["name"] = json!("tabs.stable.example.com");
        other["spec"]["names"] = json!({"plural": "tabs", "kind": "Tab"});
        *other.pointer_mut(pointer).unwrap() = value;
        other
    };
    for (object, status, text) in [
        (definition(), 409, "already exists"),
        (
            with("/metadata/name", json!("tabs")),
            422,
            "metadata.name: Invalid value: \"tabs\": must be spec.names.plural",
        ),
        (
            with("/spec/group", json!("apps")),
            422,
            "spec.group: Forbidden: apps is a group that allotd serves itself",
        ),
        (
            with("/spec/group", json!("x.k8s.io")),
            422,
            "metadata.annotations[api-approved.kubernetes.io]: Required",
        ),
        (
            with("/spec/names", json!({"plural": "tabs", "kind": "CronTab"})),
            422,
            "spec.names.kind: Invalid value: \"CronTab\": is already in use by crontabs.stable.example.com",
        ),
        (
            with(
                "/spec/names",
                json!({"plural": "tabs", "kind": "Tab", "shortNames": ["ct"]}),
            ),
            422,
            "spec.names.shortNames[0]: Invalid value: \"ct\": is already in use",
        ),
        (
            with("/spec/names", json!("tabs")),
            422,
            "spec.names.plural: Required value",
        ),
        (
            with("/spec/versions", json!({})),
            422,
            "spec.versions: Invalid value: it is no list",
        ),
        (
            with("/spec", json!(null)),
            422,
            "spec.scope: Required value",
        ),
    ] {
        let refused = post(&server, DEFINITIONS, &object);
        assert_eq!(refused.status, status, "{refused:?}");
        let message = refused.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(text), "{text}: {message}");
    }
    let tried = post(
        &server,
        &format!("{DEFINITIONS}?dryRun=All"),
        &with("/spec/scope", json!("Cluster")),
    );
    assert_eq!(tried.status, 201, "{tried:?}");
    assert_eq!(
        server.get("/apis/stable.example.com/v1/tabs").status,
        404,
        "only tried"
    );
    keep(&server, DEFINITIONS, &with("/spec/scope", json!("Cluster")));
    assert_eq!(
        server
            .get("/apis/stable.example.com/v1/namespaces/default/tabs")
            .status,
        404
    );
    assert_eq!(server.get("/apis/stable.example.com/v1/tabs").status, 200);
    for n in 2..=256 {
        let mut more = definition();
        let group = format!("g{n}.example.com");
        more["metadata"]["name"] = json!(format!("crontabs.{group}"));
        more["spec"]["group"] = json!(group);
        let made = post(&server, DEFINITIONS, &more);
        let expected = if n < 256 { 201 } else { 507 };
        assert_eq!(made.status, expected, "{n}: {made:?}");
        assert!(
            n < 256 || made.body.contains("256 kinds are defined already"),
            "{made:?}"
        );
    }
    let groups = server.get("/apis").json();
    assert!(groups["groups"].as_array().unwrap().len() > 254);
}

#[test]
fn the_command_line_finds_defined_kinds() {
    let server = Server::start();
    let allot = |words: &str, input: &str| {
        let mut child = server
            .allot(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (
            String::from_utf8(text).unwrap(),
            output.status.code().unwrap(),
        )
    };
    let both = json!({"apiVersion": "v1", "kind": "List", "items": [definition(), tab("v1", "a")]});
    let both = both.to_string();
    let lines = |what: &str| {
        format!("customresourcedefinition/crontabs.stable.example.com {what}\ncrontab/a {what}\n")
    };
    assert_eq!(allot("apply -f -", &both), (lines("created"), 0));
    assert_eq!(allot("apply -f -", &both), (lines("unchanged"), 0));
    for word in [
        "ct",
        "crontabs",
        "CronTab",
        "crontabs.stable.example.com",
        "cm,ct",
    ] {
        let (text, code) = allot(&format!("get {word} -o name"), "");
        assert_eq!(
            (text.as_str(), code),
            ("crontab.stable.example.com/a\n", 0),
            "{word}"
        );
    }
    let (text, code) = allot("describe ct a", "");
    assert!(code == 0 && text.contains("cronSpec:"), "{text}");
    let (text, code) = allot("get gadgets", "");
    assert!(
        code == 2 && text.contains("\"gadgets\" is no kind"),
        "{text}"
    );
    let (text, code) = allot("delete ct a", "");
    assert_eq!((text.as_str(), code), ("crontab/a deleted\n", 0));
    let (text, code) = allot("delete crd crontabs.stable.example.com", "");
    assert_eq!(code, 0, "{text}");
    let (text, code) = allot("get ct", "");
    assert!(code == 2 && text.contains("\"ct\" is no kind"), "{text}");
    let (text, code) = allot("check -f -", &both);
    assert!(code == 0 && text.contains("2 objects"), "{text}");
    let alone = tab("v1", "a").to_string();
    let (text, code) = allot("check -f -", &alone);
    assert!(
        code == 3 && text.contains("CustomResourceDefinition"),
        "{text}"
    );
}
