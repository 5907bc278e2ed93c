//! `kubectl patch --subresource resize`, as the documentation of Kubernetes has it. Debian 12's kubectl is older
//! than subresources.

use super::Kubectl;

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: app
    image: i
    command: [sleep, inf]
    resources:
      requests: {cpu: 100m, memory: 64Mi}
      limits: {cpu: 100m, memory: 64Mi}
";

fn patch(cpu: &str) -> String {
    let list = format!(r#"{{"cpu":"{cpu}"}}"#);
    format!(
        r#"{{"spec":{{"containers":[{{"name":"app","resources":{{"requests":{list},"limits":{list}}}}}]}}}}"#
    )
}

fn resize(kubectl: &Kubectl, cpu: &str) -> (String, bool) {
    let patch = patch(cpu);
    kubectl.run(
        &format!("patch pod web --subresource resize --patch {patch}"),
        "",
    )
}

fn asked(kubectl: &Kubectl, path: &str) -> String {
    kubectl.good(&format!("get pod web -o jsonpath={path}"), "")
}

#[test]
fn a_pod_is_resized_by_kubectl() {
    let kubectl = Kubectl::new("1.32");
    kubectl.good("create -f -", POD);
    let (text, good) = resize(&kubectl, "250m");
    assert!(good, "{text}");
    assert_eq!(text, "pod/web patched\n");
    let limits = "{.spec.containers[0].resources.limits}";
    assert_eq!(asked(&kubectl, limits), r#"{"cpu":"250m","memory":"64Mi"}"#);
    let (refused, good) = resize(&kubectl, "64");
    assert!(
        !good && refused.contains("Insufficient cpu: 64 asked for"),
        "{refused}"
    );

    // Anything else is told, with its place.
    let words = r#"patch pod web --subresource resize --patch {"spec":{"containers":[{"name":"app","image":"j"}]}}"#;
    let refused = kubectl.bad(words, "");
    let told = "spec.containers[0].image: Forbidden: only cpu and memory resources are mutable";
    assert!(refused.contains(told), "{refused}");
    // Who changes the pod itself is told how it is done.
    let words = format!("patch pod web --patch {}", patch("300m"));
    let refused = kubectl.bad(&words, "");
    assert!(refused.contains("allot resize"), "{refused}");
    assert_eq!(asked(&kubectl, limits), r#"{"cpu":"250m","memory":"64Mi"}"#);
}
