//! `allot explain` of whole inputs, as text.

use assert_cmd::Command;

use super::{check, dir, input};
use allotd::cli::explain::text;
use allotd::report::explain::{Explanation, PodExplanation};

/// The text for an input, with the exit code in the last line.
fn explained(name: &str) -> String {
    let output = Command::cargo_bin("allot")
        .unwrap()
        .args(["explain", "-f", name])
        .current_dir(dir().join("input"))
        .output()
        .unwrap();
    format!(
        "{}{}exit {}\n",
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
        output.status.code().unwrap()
    )
}

#[test]
fn inputs_are_explained() {
    for name in [
        "frontend",
        "pod-level",
        "hugepages",
        "refused",
        "typo",
        "rounding",
        "policies",
        "cluster-quota",
        "unsound",
    ] {
        let text = explained(&format!("{name}.yaml"));
        check(&format!("explain-{name}.txt"), &text);
    }
}

/// Every quota of the input is in the answer, with what the pods before and the admitted ones use.
#[test]
fn quotas_are_told_with_the_admitted_pods_counted_in() {
    let output = Command::cargo_bin("allot")
        .unwrap()
        .args(["explain", "-o", "json", "-f", "policies.yaml"])
        .current_dir(dir().join("input"))
        .output()
        .unwrap();
    let answer: Explanation = serde_json::from_slice(&output.stdout).unwrap();
    let admitted: Vec<_> = answer.pods.iter().map(|pod| pod.admitted).collect();
    assert_eq!(admitted, [true, true, true, false, false, false]);
    assert_eq!(
        serde_json::to_value(&answer.quotas).unwrap(),
        serde_json::json!([
            {
                "namespace": "shop",
                "name": "compute",
                "hard": {"limits.memory": "1Gi", "pods": "4", "requests.cpu": "1"},
                "used": {"limits.memory": "400Mi", "pods": "3", "requests.cpu": "700m"},
            },
            {
                "namespace": "shop",
                "name": "stored",
                "hard": {"count/pods": "10", "requests.nvidia.com/gpu": "0"},
                "used": {"count/pods": "3", "requests.nvidia.com/gpu": "0"},
            },
            {
                "namespace": "shop",
                "name": "jobs",
                "hard": {"pods": "0"},
                "used": {"pods": "0"},
            },
        ])
    );
}

#[test]
fn a_running_pod_is_shown_with_what_the_kernel_holds() {
    let pod: PodExplanation = input("running.json");
    check("explain-running.txt", &text::body(&pod));
}
