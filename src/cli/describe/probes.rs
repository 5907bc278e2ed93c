//! Probes and hooks of a container, in the words of `kubectl describe`.

use k8s_openapi::api::core::v1::{
    Container, ExecAction, HTTPGetAction, LifecycleHandler, Probe, TCPSocketAction,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use crate::cli::render::Page;

/// Writes a line for each probe, and for each hook.
pub(super) fn write(page: &mut Page, container: &Container) {
    for (name, probe) in [
        ("Liveness:", &container.liveness_probe),
        ("Readiness:", &container.readiness_probe),
        ("Startup:", &container.startup_probe),
    ] {
        if let Some(probe) = probe {
            page.texts(2, &[name, &shown_probe(probe)]);
        }
    }
    let hooks = container.lifecycle.as_ref();
    for (name, hook) in [
        (
            "Post Start:",
            hooks.and_then(|hooks| hooks.post_start.as_ref()),
        ),
        ("Pre Stop:", hooks.and_then(|hooks| hooks.pre_stop.as_ref())),
    ] {
        if let Some(hook) = hook {
            page.texts(2, &[name, &shown_hook(hook)]);
        }
    }
}

fn shown_probe(probe: &Probe) -> String {
    let Probe {
        exec,
        http_get,
        tcp_socket,
        ..
    } = probe;
    let action = action(exec.as_ref(), http_get.as_ref(), tcp_socket.as_ref());
    let number = |number: Option<i32>, default: i32| number.unwrap_or(default);
    format!(
        "{} delay={}s timeout={}s period={}s #success={} #failure={}",
        action.unwrap_or_else(|| "unknown".to_owned()),
        number(probe.initial_delay_seconds, 0),
        number(probe.timeout_seconds, 1),
        number(probe.period_seconds, 10),
        number(probe.success_threshold, 1),
        number(probe.failure_threshold, 3),
    )
}

fn shown_hook(hook: &LifecycleHandler) -> String {
    let LifecycleHandler {
        exec,
        http_get,
        tcp_socket,
        sleep,
    } = hook;
    let sleep = sleep.as_ref();
    action(exec.as_ref(), http_get.as_ref(), tcp_socket.as_ref())
        .or_else(|| sleep.map(|sleep| format!("sleep {}s", sleep.seconds)))
        .unwrap_or_else(|| "unknown".to_owned())
}

fn action(
    exec: Option<&ExecAction>,
    http: Option<&HTTPGetAction>,
    tcp: Option<&TCPSocketAction>,
) -> Option<String> {
    let host = |host: &Option<String>| host.clone().unwrap_or_default();
    if let Some(exec) = exec {
        let words = exec.command.as_deref().unwrap_or_default().join(" ");
        return Some(format!("exec [{words}]"));
    }
    if let Some(http) = http {
        let scheme = http.scheme.as_deref().unwrap_or("HTTP").to_lowercase();
        let path = http.path.as_deref().unwrap_or_default();
        let slash = if path.starts_with('/') { "" } else { "/" };
        let (host, port) = (host(&http.host), port(&http.port));
        return Some(format!("http-get {scheme}://{host}:{port}{slash}{path}"));
    }
    let tcp = tcp?;
    Some(format!(
        "tcp-socket {}:{}",
        host(&tcp.host),
        port(&tcp.port)
    ))
}

fn port(port: &IntOrString) -> String {
    match port {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(name) => name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn probes_and_hooks_are_shown_as_kubectl_shows_them() {
        let probe = |probe: Value| shown_probe(&serde_json::from_value(probe).unwrap());
        for (given, expected) in [
            (
                json!({"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}}),
                "http-get http://:8080/healthz delay=0s timeout=1s period=10s #success=1 #failure=3",
            ),
            (
                json!({"exec": {"command": ["cat", "/tmp/ok"]}, "initialDelaySeconds": 1,
                    "timeoutSeconds": 2, "periodSeconds": 3, "successThreshold": 4,
                    "failureThreshold": 5}),
                "exec [cat /tmp/ok] delay=1s timeout=2s period=3s #success=4 #failure=5",
            ),
            (
                json!({"tcpSocket": {"host": "h", "port": "web"}}),
                "tcp-socket h:web delay=0s timeout=1s period=10s #success=1 #failure=3",
            ),
        ] {
            assert_eq!(probe(given), expected);
        }
        let hook = json!({"sleep": {"seconds": 5}});
        assert_eq!(
            shown_hook(&serde_json::from_value(hook).unwrap()),
            "sleep 5s"
        );
    }
}
