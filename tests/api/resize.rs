//! `allot resize` and the resize subresource against a real agent.

use serde_json::json;

use super::server::{PODS, Server, pod};

fn resources(server: &Server) -> serde_json::Value {
    let pod = server.get(&format!("{PODS}/web")).json();
    pod["spec"]["containers"][0]["resources"].clone()
}

#[test]
fn a_pod_is_resized_from_the_command_line() {
    let server = Server::start();
    assert_eq!(server.create(&pod("web", "500m")).status, 201);
    let before = resources(&server);
    for (words, code, told) in [
        (
            "resize web --cpu 1 --dry-run",
            0,
            "pod/web can be resized (dry run)",
        ),
        ("resize web", 2, "--cpu <AMOUNT>"),
        ("resize web app --cpu", 2, "a value is required"),
        (
            "resize web other --cpu 1",
            2,
            "pod web has no container \"other\": one of ",
        ),
        ("resize nobody --cpu 1", 1, "pods \"nobody\" not found"),
        ("resize web --cpu a-lot", 3, "limits[cpu]"),
        ("resize web --cpu 100", 3, "Insufficient cpu: 100 asked for"),
        ("resize web --cpu :2", 3, "Pod QOS Class may not change"),
        (
            "resize web --memory=-1",
            3,
            "must be greater than or equal to 0",
        ),
    ] {
        let (text, status) = server.told(words);
        assert_eq!(
            (status, text.contains(told)),
            (Some(code), true),
            "{words}: {text}"
        );
        assert_eq!(resources(&server), before, "{words}");
    }
    let (text, status) = server.told("resize web --cpu 1 --memory 128Mi");
    assert_eq!(status, Some(0), "{text}");
    let amounts = json!({"cpu": "1", "memory": "128Mi"});
    assert_eq!(
        resources(&server),
        json!({"requests": amounts, "limits": amounts})
    );
    assert_eq!(server.get("/apis/allotd.dev/v1/drifts").json(), json!([]));
}

#[test]
fn the_resize_of_a_pod_is_a_resource_of_its_own() {
    let server = Server::start();
    assert_eq!(server.create(&pod("web", "500m")).status, 201);
    let place = format!("{PODS}/web/resize");
    let read = server.get(&place).json();
    assert_eq!(read["metadata"]["name"], "web");
    let kind = "Content-Type: application/strategic-merge-patch+json\r\n";
    let name = read["spec"]["containers"][0]["name"].clone();
    let patch = |cpu: &str| {
        let list = json!({"cpu": cpu});
        let own = json!({"name": name, "resources": {"requests": list, "limits": list}});
        json!({"spec": {"containers": [own]}}).to_string()
    };
    let tried = server.send("PATCH", &format!("{place}?dryRun=All"), kind, &patch("1"));
    assert_eq!(tried.status, 200, "{tried:?}");
    assert_eq!(resources(&server)["limits"]["cpu"], "500m");
    let patched = server.send("PATCH", &place, kind, &patch("1"));
    assert_eq!(patched.status, 200, "{patched:?}");
    assert_eq!(resources(&server)["limits"]["cpu"], "1");
    // In a version that is not the newest.
    let stale = server.send("PUT", &place, "", &read.to_string());
    assert_eq!(stale.status, 409, "{stale:?}");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    let at = "/api/v1/namespaces/default/configmaps";
    assert_eq!(server.send("POST", at, "", &map.to_string()).status, 201);
    let other = server.send("PUT", &format!("{at}/m/resize"), "", &map.to_string());
    assert_eq!(other.status, 404, "{other:?}");
}
