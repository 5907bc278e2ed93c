//! Objects that kubectl makes of words. 1.20 sends them as JSON, 1.32 as protobuf.

use super::{Kubectl, each, rows};

/// What both make of words, and how it is called when it is made.
const WORDS: [(&str, &str); 11] = [
    ("namespace myspace", "namespace/myspace"),
    (
        "configmap special --from-literal=how=very",
        "configmap/special",
    ),
    (
        "secret generic access --from-literal=user=admin",
        "secret/access",
    ),
    ("service clusterip web --tcp=80:http", "service/web"),
    ("service nodeport door --tcp=80:8080", "service/door"),
    (
        "service externalname far --external-name=example.com",
        "service/far",
    ),
    ("serviceaccount build", "serviceaccount/build"),
    (
        "deployment nginx --image=nginx --replicas=0 --port=80",
        "deployment.apps/nginx",
    ),
    ("job once --image=busybox -- date", "job.batch/once"),
    (
        "ingress simple --rule=foo.com/bar=web:80",
        "ingress.networking.k8s.io/simple",
    ),
    (
        "quota small --hard=pods=1 --scopes=BestEffort",
        "resourcequota/small",
    ),
];

#[test]
fn objects_are_made_of_words() {
    each(|kubectl| {
        for (words, made) in WORDS {
            let text = kubectl.good(&format!("create {words}"), "");
            assert_eq!(text, format!("{made} created\n"));
        }
        let shows = |what: &str, path: &str, expected: &str| {
            let text = kubectl.good(&format!("get {what} -o jsonpath={path}"), "");
            assert_eq!(text, expected, "{what} {path}");
        };
        shows("configmap special", "{.data}", r#"{"how":"very"}"#);
        shows("secret access", "{.data.user}", "YWRtaW4=");
        shows(
            "service web",
            "{.spec.ports[0].port}{.spec.ports[0].targetPort}",
            "80http",
        );
        shows(
            "service door",
            "{.spec.type}{.spec.ports[0].targetPort}",
            "NodePort8080",
        );
        shows("deployment nginx", "{.spec.replicas}", "0");
        shows(
            "job once",
            "{.spec.template.spec.containers[0].command}",
            r#"["date"]"#,
        );
        shows(
            "quota small",
            "{.spec}",
            r#"{"hard":{"pods":"1"},"scopes":["BestEffort"]}"#,
        );
    });
}

#[test]
fn the_third_deployment_of_a_quota_of_two_is_refused() {
    each(|kubectl| {
        let hard = "count/deployments.apps=2,count/replicasets.apps=4,count/pods=3,count/secrets=4";
        let made = kubectl.good(&format!("create quota test --hard={hard}"), "");
        assert_eq!(made, "resourcequota/test created\n");
        let used = |row: &str| {
            let described = rows(&kubectl.good("describe quota test", ""));
            assert!(described.contains(&row.to_owned()), "{row}: {described:?}");
        };
        used("count/deployments.apps 0 2");
        for name in ["first", "second"] {
            let made = kubectl.good(&format!("create deployment {name} --image=nginx"), "");
            assert_eq!(made, format!("deployment.apps/{name} created\n"));
        }
        used("count/deployments.apps 2 2");
        let refused = kubectl.bad("create deployment third --image=nginx", "");
        let expected = "deployments.apps \"third\" is forbidden: exceeded quota: test, requested: count/deployments.apps=1, used: count/deployments.apps=2, limited: count/deployments.apps=2";
        assert!(refused.contains(expected), "{refused}");
        kubectl.good("create secret generic access --from-literal=user=admin", "");
        used("count/secrets 1 4");
        kubectl.good("delete deployment first", "");
        used("count/deployments.apps 1 2");
    });
}

#[test]
fn a_name_is_made_from_its_beginning() {
    each(|kubectl| {
        let object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: web-}\n";
        for _ in 0..2 {
            let made = kubectl.good("create -f -", object);
            let name = made.strip_prefix("configmap/web-").unwrap();
            assert_eq!(
                name.strip_suffix(" created\n").map(str::len),
                Some(5),
                "{made}"
            );
        }
    });
}

/// 1.20 asks for versions of some of these that are gone.
#[test]
fn newer_kinds_are_made_of_words() {
    let kubectl = Kubectl::new("1.32");
    for (words, made, path, value) in [
        (
            "cronjob often --image=busybox --schedule=@hourly -- date",
            "cronjob.batch/often",
            "{.spec.schedule}",
            "@hourly",
        ),
        (
            "role reader --verb=get,list --resource=pods,deployments.apps --resource-name=a",
            "role.rbac.authorization.k8s.io/reader",
            "{.rules}",
            r#"[{"apiGroups":[""],"resourceNames":["a"],"resources":["pods"],"verbs":["get","list"]},{"apiGroups":["apps"],"resourceNames":["a"],"resources":["deployments"],"verbs":["get","list"]}]"#,
        ),
        (
            "clusterrole health --verb=get --non-resource-url=/healthz",
            "clusterrole.rbac.authorization.k8s.io/health",
            "{.rules}",
            r#"[{"nonResourceURLs":["/healthz"],"verbs":["get"]}]"#,
        ),
        (
            "rolebinding readers --role=reader --user=ann --serviceaccount=default:sa",
            "rolebinding.rbac.authorization.k8s.io/readers",
            "{.roleRef.name}{.subjects[0].name}{.subjects[1].namespace}{.subjects[1].kind}",
            "readeranndefaultServiceAccount",
        ),
        (
            "clusterrolebinding all --clusterrole=health --group=g",
            "clusterrolebinding.rbac.authorization.k8s.io/all",
            "{.roleRef.kind}{.subjects[0].kind}",
            "ClusterRoleGroup",
        ),
        (
            "poddisruptionbudget some --selector=app=web --min-available=50%",
            "poddisruptionbudget.policy/some",
            "{.spec}",
            r#"{"minAvailable":"50%","selector":{"matchLabels":{"app":"web"}}}"#,
        ),
        (
            "priorityclass high --value=1000 --description=first --preemption-policy=Never",
            "priorityclass.scheduling.k8s.io/high",
            "{.value}{.description}{.preemptionPolicy}",
            "1000firstNever",
        ),
    ] {
        let told = kubectl.good(&format!("create {words}"), "");
        assert_eq!(told, format!("{made} created\n"));
        let shown = kubectl.good(&format!("get {made} -o jsonpath={path}"), "");
        assert_eq!(shown, value, "{words}");
    }
}
