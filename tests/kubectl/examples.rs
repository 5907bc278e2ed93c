//! The examples of OpenShift's documentation of quotas and limit ranges, word for word, with what their
//! users see.

use super::{Kubectl, each, rows};

macro_rules! example {
    ($name:literal) => {
        include_str!(concat!("../data/examples/", $name))
    };
}

/// Several objects of a kind, named `a-1` and so on.
fn objects(kind: &str, names: std::ops::RangeInclusive<u32>, more: &str) -> String {
    let (group, kind) = kind
        .rsplit_once('/')
        .map_or(("v1", kind), |(group, kind)| (group, kind));
    let object =
        |n| format!("---\napiVersion: {group}\nkind: {kind}\nmetadata: {{name: a-{n}}}\n{more}");
    names.map(object).collect::<Vec<_>>().concat()
}

/// A pod of one container with these resources, and more in its spec.
fn pod(name: &str, resources: &str, more: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  containers:\n  - name: c\n    image: none\n    resources: {resources}\n{more}"
    )
}

fn claim(name: &str, class: &str, storage: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}}}\nspec:\n  accessModes: [ReadWriteOnce]\n  storageClassName: {class}\n  resources: {{requests: {{storage: {storage}}}}}\n"
    )
}

/// The lines of `describe quota`: resource, used, hard.
fn figures(kubectl: &Kubectl, quota: &str) -> Vec<String> {
    let described = kubectl.good(&format!("describe quota {quota} -n demoproject"), "");
    let lines = rows(&described);
    let head = lines
        .iter()
        .position(|line| line.starts_with("-------- ---- ----"));
    lines[head.unwrap() + 1..].to_vec()
}

/// What is refused, and in which words.
fn refused(kubectl: &Kubectl, object: &str, expected: &str) {
    let told = kubectl.bad(CREATE, object);
    assert!(told.contains(expected), "{told}\nis not\n{expected}");
}

const CREATE: &str = "create -n demoproject -f -";

#[test]
fn objects_are_counted() {
    each(|kubectl| {
        kubectl.good(CREATE, example!("core-object-counts.yaml"));
        kubectl.good(CREATE, &objects("ConfigMap", 1..=9, ""));
        kubectl.good(
            CREATE,
            &objects("Service", 1..=2, "spec: {ports: [{port: 80}]}\n"),
        );
        let replicas = "spec: {selector: {a: b}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: none}]}}}\n";
        kubectl.good(CREATE, &objects("ReplicationController", 1..=3, replicas));
        assert_eq!(
            figures(kubectl, "core-object-counts"),
            [
                "configmaps 9 10",
                "persistentvolumeclaims 0 4",
                "replicationcontrollers 3 20",
                "secrets 0 10",
                "services 2 10"
            ]
        );
        kubectl.good(CREATE, &objects("ConfigMap", 10..=10, ""));
        refused(
            kubectl,
            &objects("ConfigMap", 11..=11, ""),
            "configmaps \"a-11\" is forbidden: exceeded quota: core-object-counts, requested: configmaps=1, used: configmaps=10, limited: configmaps=10",
        );
        kubectl.good("delete configmap a-3 -n demoproject", "");
        kubectl.good(CREATE, &objects("ConfigMap", 11..=11, ""));
        let listed = rows(&kubectl.good("get quota -n demoproject", ""));
        assert!(
            listed[1].starts_with("core-object-counts configmaps: 10/10,"),
            "{listed:?}"
        );
    });
}

#[test]
fn image_streams_are_counted_and_bounded() {
    each(|kubectl| {
        kubectl.good(CREATE, example!("openshift-object-counts.yaml"));
        let stream = "image.openshift.io/v1/ImageStream";
        kubectl.good(CREATE, &objects(stream, 1..=10, ""));
        refused(
            kubectl,
            &objects(stream, 11..=11, ""),
            "exceeded quota: openshift-object-counts, requested: openshift.io/imagestreams=1, used: openshift.io/imagestreams=10, limited: openshift.io/imagestreams=10",
        );
        kubectl.good("delete quota openshift-object-counts -n demoproject", "");
        kubectl.good(CREATE, example!("openshift-resource-limits.yaml"));
        let tags = |count: u32| {
            let tag =
                |n| format!("  - {{name: t{n}, from: {{kind: DockerImage, name: \"a/b:{n}\"}}}}\n");
            let tags: Vec<_> = (1..=count).map(tag).collect();
            format!("spec:\n  tags:\n{}", tags.concat())
        };
        kubectl.good(CREATE, &objects(stream, 20..=20, &tags(20)));
        refused(
            kubectl,
            &objects(stream, 21..=21, &tags(21)),
            "requested usage of openshift.io/image-tags exceeds the maximum limit per openshift.io/ImageStream (21 > 20)",
        );
    });
}

#[test]
fn requests_and_limits_of_all_pods_are_bounded() {
    each(|kubectl| {
        kubectl.good(CREATE, example!("compute-resources.yaml"));
        refused(
            kubectl,
            &pod("none", "{requests: {cpu: 100m, memory: 64Mi}}", ""),
            "failed quota: compute-resources: must specify limits.cpu for: c; limits.memory for: c\n",
        );
        let all = |cpu: &str| {
            format!(
                "{{requests: {{cpu: {cpu}, memory: 256Mi, ephemeral-storage: 256Mi}}, limits: {{cpu: {cpu}, memory: 512Mi, ephemeral-storage: 512Mi}}}}"
            )
        };
        kubectl.good(CREATE, &pod("one", &all("400m"), ""));
        kubectl.good(CREATE, &pod("two", &all("400m"), ""));
        assert_eq!(
            figures(kubectl, "compute-resources"),
            [
                "limits.cpu 800m 2",
                "limits.ephemeral-storage 1Gi 4Gi",
                "limits.memory 1Gi 2Gi",
                "pods 2 4",
                "requests.cpu 800m 1",
                "requests.ephemeral-storage 512Mi 2Gi",
                "requests.memory 512Mi 1Gi",
            ]
        );
        refused(
            kubectl,
            &pod("three", &all("300m"), ""),
            "pods \"three\" is forbidden: exceeded quota: compute-resources, requested: requests.cpu=300m, used: requests.cpu=800m, limited: requests.cpu=1",
        );
        kubectl.good(CREATE, &pod("three", &all("100m"), ""));
        kubectl.good(CREATE, &pod("four", &all("100m"), ""));
        refused(
            kubectl,
            &pod("five", &all("0"), ""),
            "used: limits.memory=2Gi,pods=4,requests.memory=1Gi",
        );
    });
}

#[test]
fn scopes_choose_which_pods_count() {
    each(|kubectl| {
        kubectl.good(CREATE, example!("besteffort.yaml"));
        kubectl.good(CREATE, example!("compute-resources-long-running.yaml"));
        kubectl.good(CREATE, example!("compute-resources-time-bound.yaml"));
        let limits = "{limits: {cpu: 400m, memory: 64Mi, ephemeral-storage: 64Mi}}";
        let bound = "  activeDeadlineSeconds: 3600\n";
        kubectl.good(CREATE, &pod("web", limits, ""));
        kubectl.good(CREATE, &pod("build-1", limits, bound));
        kubectl.good(CREATE, &pod("build-2", limits, bound));
        refused(
            kubectl,
            &pod("build-3", limits, bound),
            "exceeded quota: compute-resources-time-bound, requested: limits.cpu=400m,pods=1, used: limits.cpu=800m,pods=2, limited: limits.cpu=1,pods=2",
        );
        // The scope does not free a pod from saying what the quota bounds.
        refused(
            kubectl,
            &pod("best-1", "{}", ""),
            "failed quota: compute-resources-long-running: must specify limits.cpu for: c",
        );
        kubectl.good(
            "delete quota compute-resources-long-running -n demoproject",
            "",
        );
        kubectl.good(CREATE, &pod("best-1", "{}", ""));
        refused(
            kubectl,
            &pod("best-2", "{}", ""),
            "exceeded quota: besteffort, requested: pods=1, used: pods=1, limited: pods=1",
        );
        assert_eq!(figures(kubectl, "besteffort"), ["pods 1 1"]);
        let described = kubectl.good("describe quota besteffort -n demoproject", "");
        assert!(described.contains("BestEffort"), "{described}");
    });
}

#[test]
fn storage_is_bounded_by_class() {
    each(|kubectl| {
        kubectl.good(CREATE, example!("storage-consumption.yaml"));
        kubectl.good(CREATE, &claim("gold", "gold", "10Gi"));
        let used = "used: gold.storageclass.storage.k8s.io/requests.storage=10Gi, limited: gold.storageclass.storage.k8s.io/requests.storage=10Gi";
        refused(kubectl, &claim("more", "gold", "1Gi"), used);
        refused(
            kubectl,
            &claim("none", "bronze", "1Gi"),
            "bronze.storageclass.storage.k8s.io/persistentvolumeclaims=1,bronze.storageclass.storage.k8s.io/requests.storage=1Gi",
        );
        for n in 1..=5 {
            kubectl.good(CREATE, &claim(&format!("silver-{n}"), "silver", "4Gi"));
        }
        refused(
            kubectl,
            &claim("silver-6", "silver", "1"),
            "silver.storageclass.storage.k8s.io/persistentvolumeclaims=5",
        );
        kubectl.good(CREATE, &claim("other", "other", "20Gi"));
        refused(
            kubectl,
            &claim("last", "other", "1"),
            "requested: requests.storage=1, used: requests.storage=50Gi, limited: requests.storage=50Gi",
        );
    });
}

#[test]
fn limit_ranges_fill_in_and_bound() {
    each(|kubectl| {
        kubectl.good(CREATE, example!("core-resource-limits.yaml"));
        kubectl.good(CREATE, example!("pvcs.json"));
        let listed = rows(&kubectl.good("get limits -n demoproject", ""));
        assert!(
            listed[1].starts_with("core-resource-limits 20"),
            "{listed:?}"
        );
        let described = kubectl.good("describe limits core-resource-limits -n demoproject", "");
        let described = rows(&described);
        for row in [
            "Pod cpu 200m 2 - - -",
            "Pod memory 6Mi 1Gi - - -",
            "Container cpu 100m 2 200m 300m 10",
            "Container memory 4Mi 1Gi 100Mi 200Mi -",
        ] {
            assert!(described.contains(&row.to_owned()), "{described:?}");
        }
        kubectl.good(CREATE, &pod("plain", "{}", ""));
        let filled = "jsonpath={.spec.containers[0].resources}";
        let filled = kubectl.good(&format!("get pod plain -n demoproject -o {filled}"), "");
        for part in ["200m", "300m", "100Mi", "200Mi"] {
            assert!(filled.contains(part), "{filled}");
        }
        refused(
            kubectl,
            &pod("small", "{requests: {cpu: 50m}}", ""),
            "minimum cpu usage per Container is 100m, but request is 50m",
        );
        refused(
            kubectl,
            &pod("ratio", "{requests: {cpu: 100m}, limits: {cpu: 1500m}}", ""),
            "cpu max limit to request ratio per Container is 10, but provided ratio is 15.000000",
        );
        refused(
            kubectl,
            &pod(
                "large",
                "{requests: {memory: 2Gi}, limits: {memory: 2Gi}}",
                "",
            ),
            "maximum memory usage per Container is 1Gi, but limit is 2Gi",
        );
        refused(
            kubectl,
            &claim("tiny", "gold", "1Gi"),
            "minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi",
        );
        refused(
            kubectl,
            &claim("huge", "gold", "51Gi"),
            "maximum storage usage per PersistentVolumeClaim is 50Gi, but request is 51Gi",
        );
        kubectl.good("delete limits core-resource-limits -n demoproject", "");
        kubectl.good(CREATE, &pod("small", "{requests: {cpu: 50m}}", ""));
    });
}

const ADVERTISE: &str = r#"[{"op": "add", "path": "/status/capacity/nvidia.com~1gpu", "value": "2"}, {"op": "add", "path": "/status/capacity/example.com~1foo", "value": "5"}]"#;

#[test]
fn the_second_pod_of_a_quota_of_one_gpu_is_refused() {
    each(|kubectl| {
        let status = "/api/v1/nodes/node/status";
        let typed = "Content-Type: application/json-patch+json\r\n";
        let advertised = kubectl.server.send("PATCH", status, typed, ADVERTISE);
        assert_eq!(advertised.status, 200, "{advertised:?}");
        let described = rows(&kubectl.good("describe node node", ""));
        for row in [
            "nvidia.com/gpu: 2",
            "example.com/foo: 5",
            "nvidia.com/gpu 0 0",
        ] {
            assert!(described.contains(&row.to_owned()), "{described:?}");
        }
        let made = kubectl.good("create -f -", example!("gpu-quota.yaml"));
        assert_eq!(made, "resourcequota/gpu-quota created\n");
        let figures = || {
            let described = kubectl.good("describe quota gpu-quota -n nvidia", "");
            rows(&described).last().unwrap().clone()
        };
        assert_eq!(figures(), "requests.nvidia.com/gpu 0 1");
        let made = kubectl.good("create -f -", example!("gpu-pod.yaml"));
        assert!(
            made.starts_with("pod/gpu-pod-") && made.ends_with(" created\n"),
            "{made}"
        );
        assert_eq!(figures(), "requests.nvidia.com/gpu 1 1");
        let told = kubectl.bad("create -f -", example!("gpu-pod.yaml"));
        let expected = "is forbidden: exceeded quota: gpu-quota, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=1, limited: requests.nvidia.com/gpu=1";
        assert!(
            told.starts_with(
                "Error from server (Forbidden): error when creating \"STDIN\": pods \"gpu-pod-"
            ),
            "{told}"
        );
        assert!(told.contains(expected), "{told}");
        // Deleting waits, by a watch, until the pod is gone; then the device is free.
        let name = made.trim_end_matches(" created\n");
        kubectl.good(&format!("delete {name} -n nvidia"), "");
        assert_eq!(figures(), "requests.nvidia.com/gpu 0 1");
        kubectl.good("create -f -", example!("gpu-pod.yaml"));
    });
}
