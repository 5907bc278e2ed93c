//! The kinds that the node keeps without acting on them.

use allotd::model::Kind;
use allotd::model::kind::{CLUSTER_QUOTA, DEFINITION, KEPT};
use serde_json::{Map, Value, json};

use super::server::Server;

const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";

#[test]
fn every_kind_is_kept_and_counted() {
    let server = Server::start();
    let counted: Vec<_> = KEPT.iter().filter(|kind| kind.namespaced).collect();
    let keys = counted
        .iter()
        .map(|kind| format!("count/{}", kind.resource()));
    let hard: Map<_, _> = keys.map(|key| (key, json!("1"))).collect();
    assert!(hard.contains_key("count/deploymentconfigs.apps.openshift.io"));
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "one-of-each"},
        "spec": {"hard": hard},
    });
    let made = server.send("POST", QUOTAS, "", &quota.to_string());
    assert_eq!(made.status, 201, "{made:?}");
    // These want more than a name, and are tested elsewhere.
    let named = |kind: &Kind| ![CLUSTER_QUOTA, DEFINITION].contains(kind);
    for kind in KEPT.into_iter().filter(named) {
        let within = if kind.namespaced {
            "namespaces/default/"
        } else {
            ""
        };
        let path = format!("/{}/{within}{}", kind.root(), kind.plural);
        let object = |name: &str| json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": name}});
        let name = if kind.group.starts_with("rbac.") {
            "system:node"
        } else {
            "one"
        };
        // A quota is counted as well, and there is one already.
        if kind.plural != "resourcequotas" {
            let made = server.send("POST", &path, "", &object(name).to_string());
            assert_eq!(made.status, 201, "{path}: {made:?}");
            assert_eq!(server.get(&format!("{path}/{name}")).status, 200);
        }
        let second = server.send("POST", &path, "", &object("two").to_string());
        let expected = if kind.namespaced { 403 } else { 201 };
        assert_eq!(second.status, expected, "{path}: {second:?}");
        let slash = server.send("POST", &path, "", &object("a/b").to_string());
        assert_eq!(slash.status, 422, "{path}: {slash:?}");
    }
    let read = server.get(&format!("{QUOTAS}/one-of-each")).json();
    let used: Vec<&Value> = read["status"]["used"]
        .as_object()
        .unwrap()
        .values()
        .collect();
    assert_eq!(used, vec!["1"; counted.len()]);
}
