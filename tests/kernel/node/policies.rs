//! Policies in front of a real kernel: what is refused never reaches it, what is admitted is there after
//! a kill of the agent, and a namespace that goes takes its cgroups along.

use std::fs;

use serde_json::json;

use super::command_line::{allot, done};
use super::daemon::{Daemon, cgroup_of, file, get, wait};
use crate::Outcome;

tests![quotas_hold_and_namespaces_end_across_kills_of_the_agent];

const POLICIES: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {team: red}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: lr, namespace: shop}
spec: {limits: [{type: Container, default: {cpu: 200m, memory: 32Mi}, defaultRequest: {cpu: 100m, memory: 16Mi}}]}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: q, namespace: shop}
spec: {hard: {pods: 2, limits.memory: 64Mi}}
---
apiVersion: quota.openshift.io/v1
kind: ClusterResourceQuota
metadata: {name: red}
spec:
  selector: {labels: {matchLabels: {team: red}}}
  quota: {hard: {requests.cpu: 150m}}
";

fn pod(name: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop}}
spec: {{terminationGracePeriodSeconds: 1, containers: [{{name: c, command: [sleep, inf]}}]}}
"
    )
}

fn quotas_hold_and_namespaces_end_across_kills_of_the_agent() -> Outcome {
    let daemon = Daemon::start()?;
    fs::write("/tmp/policies.yaml", POLICIES)?;
    fs::write("/tmp/one.yaml", pod("one"))?;
    fs::write("/tmp/two.yaml", pod("two"))?;
    done("apply -f policies.yaml")?;
    done("apply -f one.yaml")?;
    let path = "/api/v1/namespaces/shop/pods/one";
    let cgroup = cgroup_of(&get(path)?);
    // What the LimitRange gave is what the kernel has.
    assert_eq!(file(&cgroup.join("c"), "memory.max")?, "33554432");
    assert_eq!(file(&cgroup.join("c"), "cpu.max")?, "20000 100000");
    let expected = "exceeded quota: red, requested: requests.cpu=100m, used: requests.cpu=100m, limited: requests.cpu=150m";
    let refused = allot("apply -f two.yaml")?;
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.err.contains(expected), "{refused:?}");

    daemon.kill()?;
    let daemon = Daemon::spawn(&[])?;
    Daemon::wait_until_it_answers()?;
    let refused = allot("apply -f two.yaml")?;
    assert!(refused.err.contains(expected), "{refused:?}");
    let proof = done("quota verify")?;
    assert!(proof.ends_with(": 0 differ\n"), "{proof}");
    let charged = done("quota explain shop")?;
    assert!(charged.contains("pods/one"), "{charged}");
    fs::write(
        "/tmp/red.yaml",
        POLICIES
            .rsplit("---")
            .next()
            .unwrap_or_default()
            .replace("150m", "200m"),
    )?;
    done("apply -f red.yaml")?;
    done("apply -f two.yaml")?;
    let pods = get("/api/v1/namespaces/shop/pods")?;
    let pods = pods["items"].as_array().ok_or("no list")?;
    let cgroups: Vec<_> = pods.iter().map(cgroup_of).collect();
    assert_eq!(cgroups.len(), 2);
    assert!(cgroups.iter().all(|cgroup| cgroup.is_dir()));

    // The end of a namespace goes on in the next agent.
    let (status, _) = super::daemon::request("DELETE", "/api/v1/namespaces/shop", None)?;
    assert_eq!(status, 200);
    daemon.kill()?;
    let _daemon = Daemon::spawn(&[])?;
    Daemon::wait_until_it_answers()?;
    wait("the namespace to go", || {
        Ok(allot("get namespace shop")?.err.contains("not found"))
    })?;
    assert!(cgroups.iter().all(|cgroup| !cgroup.exists()));
    let used = get("/apis/quota.openshift.io/v1/clusterresourcequotas/red")?;
    assert_eq!(
        used["status"]["total"]["used"],
        json!({"requests.cpu": "0"})
    );
    assert_eq!(
        done("quota verify")?,
        "2 accounts counted anew over 2 objects: 0 differ\n"
    );
    Ok(())
}
