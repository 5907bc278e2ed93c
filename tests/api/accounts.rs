//! `allot quota`: who is charged what, and that the accounts are true.

use serde_json::{Value, json};

use super::server::{PODS, Server};

fn keep(server: &Server, path: &str, object: &Value) {
    let answer = server.send("POST", path, "", &object.to_string());
    assert_eq!(answer.status, 201, "{answer:?}");
}

#[test]
fn each_charge_is_told_and_the_accounts_are_proved() {
    let server = Server::start();
    keep(
        &server,
        "/api/v1/namespaces",
        &json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "other", "labels": {"team": "red"}},
        }),
    );
    keep(
        &server,
        "/api/v1/namespaces",
        &json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "shop", "labels": {"team": "red"}},
        }),
    );
    keep(
        &server,
        "/api/v1/namespaces/shop/resourcequotas",
        &json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "compute"},
            "spec": {"hard": {"requests.cpu": "2", "pods": "3", "configmaps": "4"}},
        }),
    );
    keep(
        &server,
        "/apis/quota.openshift.io/v1/clusterresourcequotas",
        &json!({
            "apiVersion": "quota.openshift.io/v1", "kind": "ClusterResourceQuota", "metadata": {"name": "red"},
            "spec": {"selector": {"labels": {"matchLabels": {"team": "red"}}}, "quota": {"hard": {"configmaps": "5"}}},
        }),
    );
    for (namespace, name) in [("shop", "a"), ("shop", "b"), ("other", "a")] {
        keep(
            &server,
            &format!("/api/v1/namespaces/{namespace}/configmaps"),
            &json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            }),
        );
    }
    keep(
        &server,
        &PODS.replace("default", "shop"),
        &json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}]},
        }),
    );
    let (text, code) = server.told("quota explain shop");
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(
        text,
        "\
ResourceQuota compute
OBJECT         configmaps   pods   requests.cpu
configmaps/a   1            -      -
configmaps/b   1            -      -
pods/web       -            1      100m
used           2            1      100m
hard           4            3      2

ClusterResourceQuota red
OBJECT               configmaps
configmaps/a         1
configmaps/b         1
(other namespaces)   1
used                 3
hard                 5
"
    );
    let (text, code) = server.told("quota verify");
    // The node, two quotas, two namespaces of one; three namespaces and what is in them.
    assert_eq!(text, "5 accounts counted anew over 9 objects: 0 differ\n");
    assert_eq!(code, Some(0));
    let (text, code) = server.told("quota explain none");
    assert_eq!(
        (text.as_str(), code),
        ("No quota counts namespace none.\n", Some(0))
    );
    let (text, code) = server.told("-n shop quota explain other");
    assert!(
        text.contains("the namespace is other, but --namespace says shop"),
        "{text}"
    );
    assert_eq!(code, Some(2));
    let (text, _) = server.told("quota verify -o json");
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        report,
        json!({"objects": 9, "accounts": 5, "mismatches": []})
    );
}
