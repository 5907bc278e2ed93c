//! What is told of pods in a line: how many of their containers are ready, one word, restarts.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ContainerState, ContainerStatus, Pod};

use crate::report::age::duration;

/// Every container's status: init containers and sidecars first.
pub fn init_statuses(pod: &Pod) -> &[ContainerStatus] {
    let status = pod.status.as_ref();
    let list = status.and_then(|status| status.init_container_statuses.as_ref());
    list.map_or(&[], Vec::as_slice)
}

/// The status of each app container.
pub fn app_statuses(pod: &Pod) -> &[ContainerStatus] {
    let status = pod.status.as_ref();
    let list = status.and_then(|status| status.container_statuses.as_ref());
    list.map_or(&[], Vec::as_slice)
}

/// The names of init containers that run beside the others.
fn sidecars(pod: &Pod) -> Vec<&str> {
    let init = pod.spec.iter().flat_map(|spec| &spec.init_containers);
    init.flatten()
        .filter(|container| container.restart_policy.as_deref() == Some("Always"))
        .map(|container| container.name.as_str())
        .collect()
}

/// How many of the containers that run for the pod's life are ready, and how many there are.
pub(super) fn readiness(pod: &Pod) -> (usize, usize) {
    let sidecars = sidecars(pod);
    let beside = init_statuses(pod)
        .iter()
        .filter(|status| sidecars.contains(&status.name.as_str()));
    let ready = app_statuses(pod)
        .iter()
        .chain(beside)
        .filter(|status| status.ready)
        .count();
    let apps = pod.spec.as_ref().map_or(0, |spec| spec.containers.len());
    (ready, apps + sidecars.len())
}

/// Restarts of all containers, with the age of the last one.
pub(super) fn restarts(pod: &Pod, now: Timestamp) -> String {
    let all = || app_statuses(pod).iter().chain(init_statuses(pod));
    let count: i64 = all().map(|status| i64::from(status.restart_count)).sum();
    let last = all()
        .filter_map(|status| status.last_state.as_ref()?.terminated.as_ref())
        .filter_map(|end| end.finished_at.as_ref())
        .max();
    match last {
        Some(last) if count > 0 => {
            let ago = now.duration_since(last.0).as_secs();
            format!("{count} ({} ago)", duration(ago))
        }
        _ => count.to_string(),
    }
}

/// One word for a pod, as `kubectl` finds it (Kubernetes 1.36 `printPod`): what keeps it from running
/// goes before its phase.
pub fn pod_status(pod: &Pod) -> String {
    let status = pod.status.as_ref();
    let phase = status.and_then(|status| status.phase.as_deref());
    let own = status.and_then(|status| status.reason.as_deref());
    let mut word = own
        .filter(|reason| !reason.is_empty())
        .or(phase)
        .unwrap_or("Unknown")
        .to_owned();
    if let Some(init) = init_word(pod) {
        word = init;
    } else {
        let mut any_running = false;
        for container in app_statuses(pod).iter().rev() {
            let Some(state) = &container.state else {
                continue;
            };
            if let Some(why) = why_not_running(state) {
                word = why;
            } else if container.ready && state.running.is_some() {
                any_running = true;
            }
        }
        if word == "Completed" && any_running {
            "Running".clone_into(&mut word);
        }
    }
    if pod.metadata.deletion_timestamp.is_some() && !matches!(phase, Some("Succeeded" | "Failed")) {
        "Terminating".clone_into(&mut word);
    }
    word
}

/// The word while init containers are at work; `None` once they are done.
fn init_word(pod: &Pod) -> Option<String> {
    let sidecars = sidecars(pod);
    let all = init_statuses(pod);
    let (index, status) = all.iter().enumerate().find(|(_, status)| {
        let state = status.state.as_ref();
        let end = state.and_then(|state| state.terminated.as_ref());
        let is_done = end.is_some_and(|end| end.exit_code == 0);
        let is_beside = sidecars.contains(&status.name.as_str()) && status.started.unwrap_or(false);
        !is_done && !is_beside
    })?;
    let is_starting = |reason: &str| matches!(reason, "PodInitializing" | "ContainerCreating");
    let why = status.state.as_ref().and_then(why_not_running);
    Some(match why {
        Some(reason) if !is_starting(&reason) => format!("Init:{reason}"),
        _ => format!("Init:{index}/{}", all.len()),
    })
}

/// Why a container does not run, in one word.
pub fn why_not_running(state: &ContainerState) -> Option<String> {
    let named = |reason: &Option<String>| reason.clone().filter(|reason| !reason.is_empty());
    if let Some(waiting) = &state.waiting {
        return named(&waiting.reason);
    }
    let end = state.terminated.as_ref()?;
    named(&end.reason).or_else(|| {
        Some(match end.signal {
            Some(signal) if signal != 0 => format!("Signal:{signal}"),
            _ => format!("ExitCode:{}", end.exit_code),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(text: &str) -> Pod {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_pods_word_is_that_of_kubectl() {
        for (status, word) in [
            (r#"{"phase":"Running"}"#, "Running"),
            (r#"{"phase":"Failed","reason":"Evicted"}"#, "Evicted"),
            (
                r#"{"phase":"Running","containerStatuses":[
                    {"name":"a","ready":false,"state":{"waiting":{"reason":"CrashLoopBackOff"}}},
                    {"name":"b","ready":true,"state":{"running":{}}}]}"#,
                "CrashLoopBackOff",
            ),
            (
                r#"{"phase":"Running","containerStatuses":[
                    {"name":"a","ready":false,"state":{"terminated":{"exitCode":0,"reason":"Completed"}}},
                    {"name":"b","ready":true,"state":{"running":{}}}]}"#,
                "Running",
            ),
            (
                r#"{"phase":"Failed","containerStatuses":[
                    {"name":"a","ready":false,"state":{"terminated":{"exitCode":137,"signal":9}}}]}"#,
                "Signal:9",
            ),
            (
                r#"{"phase":"Failed","containerStatuses":[
                    {"name":"a","ready":false,"state":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]}"#,
                "OOMKilled",
            ),
            (
                r#"{"phase":"Pending","initContainerStatuses":[
                    {"name":"side","ready":true,"started":true,"state":{"running":{}}},
                    {"name":"i","ready":false,"state":{"running":{}}}]}"#,
                "Init:1/2",
            ),
            (
                r#"{"phase":"Pending","initContainerStatuses":[
                    {"name":"i","ready":false,"state":{"terminated":{"exitCode":1,"reason":"Error"}}}]}"#,
                "Init:Error",
            ),
        ] {
            let text = format!(
                r#"{{"metadata":{{}},"spec":{{"containers":[],"initContainers":[
                    {{"name":"side","restartPolicy":"Always"}},{{"name":"i"}}]}},"status":{status}}}"#
            );
            assert_eq!(pod_status(&pod(&text)), word, "{status}");
        }
        let ending = r#"{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},
            "status":{"phase":"Running"}}"#;
        assert_eq!(pod_status(&pod(ending)), "Terminating");
    }
}
