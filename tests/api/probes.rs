//! What clients see of probes: defaults, refusals with their place, and whether a pod is ready.

use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use allotd::cgroup::{ModelKernel, Pid};
use allotd::server::Bounds;
use serde_json::{Value, json};

use super::server::{PODS, Server};

fn pod(container: &Value) -> Value {
    let mut full = json!({"name": "c", "image": "i"});
    for (name, value) in container.as_object().unwrap() {
        full[name] = value.clone();
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"containers": [full]}})
}

#[test]
fn probes_come_back_with_their_defaults() {
    let server = Server::start();
    let probe = json!({"httpGet": {"port": 8080}, "periodSeconds": 5});
    let hooks = json!({"preStop": {"sleep": {"seconds": 3}}});
    let fields = json!({"command": ["x"], "livenessProbe": probe, "lifecycle": hooks});
    assert_eq!(server.create(&pod(&fields)).status, 201);
    let seen = server.get(&format!("{PODS}/web")).json();
    let container = &seen["spec"]["containers"][0];
    assert_eq!(
        container["livenessProbe"],
        json!({"httpGet": {"path": "/", "port": 8080, "scheme": "HTTP"}, "failureThreshold": 3,
            "periodSeconds": 5, "successThreshold": 1, "timeoutSeconds": 1})
    );
    assert_eq!(container["lifecycle"], hooks);
}

#[test]
fn what_is_wrong_is_refused_with_its_place() {
    let server = Server::start();
    let probe = json!({"httpGet": {"port": 0}, "successThreshold": 2});
    let answer = server.create(&pod(&json!({"livenessProbe": probe})));
    assert_eq!(answer.status, 422, "{answer:?}");
    let causes = answer.json()["details"]["causes"].clone();
    let fields = causes.as_array().unwrap().iter();
    let fields: Vec<_> = fields.map(|cause| cause["field"].clone()).collect();
    let place = "spec.containers[0].livenessProbe";
    assert_eq!(
        fields,
        [
            json!(format!("{place}.httpGet.port")),
            json!(format!("{place}.successThreshold"))
        ]
    );
}

#[test]
fn a_pod_is_ready_once_its_probe_says_so() {
    let mut process = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = i32::try_from(process.id()).unwrap();
    let mut kernel = ModelKernel::default();
    kernel.spawn(Pid(pid));
    let server = Server::start_on(Bounds::default(), kernel);
    // Nobody listens there yet.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let probe = json!({"tcpSocket": {"port": address.port()}, "periodSeconds": 1,
        "failureThreshold": 1});
    assert_eq!(
        server
            .create(&pod(&json!({"readinessProbe": probe})))
            .status,
        201
    );
    let attach = "/apis/allotd.dev/v1/namespaces/default/pods/web/attach";
    let body = json!({"container": "c", "pid": pid}).to_string();
    assert_eq!(server.send("POST", attach, "", &body).status, 200);
    let accept = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n";
    let ready = || {
        let table = server
            .send("GET", &format!("{PODS}/web"), accept, "")
            .json();
        let seen = server.get(&format!("{PODS}/web")).json();
        let conditions = seen["status"]["conditions"].as_array().unwrap();
        let condition = conditions.iter().find(|one| one["type"] == "Ready");
        let condition = condition.unwrap()["status"].clone();
        (table["rows"][0]["cells"][1].clone(), condition)
    };
    let wait = |expected: (Value, Value)| {
        let start = Instant::now();
        while ready() != expected {
            assert!(start.elapsed() < Duration::from_secs(30), "{:?}", ready());
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    assert_eq!(ready(), (json!("0/1"), json!("False")));
    let listener = TcpListener::bind(address).unwrap();
    wait((json!("1/1"), json!("True")));
    drop(listener);
    wait((json!("0/1"), json!("False")));
    process.kill().unwrap();
    process.wait().unwrap();
}
