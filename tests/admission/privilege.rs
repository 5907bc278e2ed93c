//! Who a pod may be on a node where no container may be root, and who it is that does not say.

use allotd::admission::{Code, Situation, Verdict, admit, readmit};
use allotd::manifest::convert;
use allotd::model::security::NonRoot;
use allotd::model::{Pod, PodUid, ResourceList};
use serde_json::{Value, json};

use crate::pods::big_node;

/// CAP_NET_BIND_SERVICE may be asked for.
const RULE: NonRoot = NonRoot {
    user: 65_534,
    group: 65_533,
    allowed: 1 << 10,
};

fn pod(spec: &Value) -> Pod {
    let object = json!({"metadata": {"name": "web"}, "spec": spec});
    let object = serde_json::from_value(object).unwrap();
    let read = convert::pod(&object, &PodUid::new("u").unwrap());
    assert_eq!(read.problems, []);
    read.object
}

fn judge(spec: &Value, rule: Option<&NonRoot>) -> Verdict {
    let (node, nothing) = (big_node(), ResourceList::default());
    let situation = Situation {
        non_root: rule,
        ..Situation::new(&node, &nothing, 0)
    };
    admit(pod(spec), &situation)
}

/// A pod of an init container, a sidecar and a container with these contexts.
fn spec(of_pod: &Value, contexts: [&Value; 3]) -> Value {
    let container = |name: &str, context: &Value| json!({"name": name, "command": ["sleep"], "securityContext": context});
    let [init, sidecar, main] = contexts;
    let mut sidecar = container("sidecar", sidecar);
    sidecar["restartPolicy"] = json!("Always");
    json!({"securityContext": of_pod, "initContainers": [container("init", init), sidecar],
        "containers": [container("main", main)]})
}

/// User, group and whether nothing can be gained, of each container.
fn users(verdict: &Verdict) -> Vec<(Option<u32>, Option<u32>, bool)> {
    let all = verdict.pod().all_containers();
    all.map(|(.., it)| {
        let security = &it.security;
        (security.user, security.group, security.no_new_privileges)
    })
    .collect()
}

fn told(verdict: &Verdict) -> Vec<String> {
    let secured = verdict.secured().iter();
    secured
        .map(|it| format!("{} {} {}", it.container, it.given.field(), it.given.value()))
        .collect()
}

#[test]
fn whoever_names_no_user_is_the_default_one_and_gains_nothing() {
    let none = &Value::Null;
    let nobody = (Some(65_534), Some(65_533), true);
    let verdict = judge(&spec(none, [none; 3]), Some(&RULE));
    assert_eq!(verdict.reasons(), []);
    assert_eq!(users(&verdict), [nobody; 3]);
    assert_eq!(verdict.secured().len(), 9);
    assert_eq!(
        told(&verdict)[6..],
        [
            "main runAsUser 65534",
            "main runAsGroup 65533",
            "main allowPrivilegeEscalation false"
        ]
    );

    // The pod's own words hold, and those of a container before them.
    let of_pod = json!({"runAsUser": 7});
    let (group, own) = (json!({"runAsGroup": 0}), json!({"runAsUser": 8}));
    let verdict = judge(&spec(&of_pod, [none, &group, &own]), Some(&RULE));
    assert_eq!(verdict.reasons(), []);
    let expected = [
        (Some(7), None, true),
        (Some(7), Some(0), true),
        (Some(8), None, true),
    ];
    assert_eq!(users(&verdict), expected);

    // A group that is named is kept, be it root's, as under "restricted"; so is what was said already.
    let own = json!({"runAsGroup": 0, "runAsNonRoot": true, "allowPrivilegeEscalation": false});
    let verdict = judge(&spec(none, [&own; 3]), Some(&RULE));
    assert_eq!(verdict.reasons(), []);
    assert_eq!(users(&verdict), [(Some(65_534), Some(0), true); 3]);
    assert_eq!(told(&verdict)[2], "main runAsUser 65534");
}

#[test]
fn where_root_is_allowed_nothing_is_filled_in_or_refused() {
    let none = &Value::Null;
    let own = json!({"runAsUser": 0, "allowPrivilegeEscalation": true,
        "capabilities": {"add": ["CHOWN"]}});
    let verdict = judge(&spec(none, [none, none, &own]), None);
    assert_eq!(verdict.reasons(), []);
    assert_eq!(verdict.secured(), []);
    let expected = [
        (None, None, false),
        (None, None, false),
        (Some(0), None, false),
    ];
    assert_eq!(users(&verdict), expected);
}

#[test]
fn a_container_that_the_node_starts_nothing_in_is_left_alone() {
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    let verdict = judge(&spec, Some(&RULE));
    assert_eq!((verdict.reasons(), verdict.secured()), (&[][..], &[][..]));
    assert_eq!(users(&verdict), [(None, None, false)]);
}

#[test]
fn root_and_what_leads_to_it_are_refused_with_their_places() {
    let none = &Value::Null;
    let root = json!({"runAsUser": 0});
    let gains = json!({"allowPrivilegeEscalation": true});
    let asks = |names: &[&str]| json!({"capabilities": {"add": names}});
    let (bind, chown) = (asks(&["NET_BIND_SERVICE"]), asks(&["KILL", "CHOWN"]));
    let (of_pod, own) = ("spec.securityContext", "spec.containers[0].securityContext");
    for (at_pod, contexts, expected) in [
        // Of all that inherit it, told once.
        (
            &root,
            [none; 3],
            &[(format!("{of_pod}.runAsUser"), "must not run as root: ")][..],
        ),
        (&root, [&json!({"runAsUser": 5}); 3], &[]),
        (
            none,
            [&root, none, &root],
            &[
                (
                    "spec.initContainers[0].securityContext.runAsUser".to_owned(),
                    "allowRootContainers is false on this node; set runAsUser to another user",
                ),
                (
                    format!("{own}.runAsUser"),
                    "or leave it out to run as 65534",
                ),
            ],
        ),
        (
            none,
            [none, &gains, none],
            &[(
                "spec.initContainers[1].securityContext.allowPrivilegeEscalation".to_owned(),
                "must not be true: programs of the host such as su",
            )],
        ),
        (none, [none, none, &bind], &[]),
        (
            none,
            [none, none, &chown],
            &[(
                format!("{own}.capabilities.add"),
                "must not ask for CHOWN, KILL: allowRootContainers is false on this node, and its \
                 allowedCapabilities are: NET_BIND_SERVICE",
            )],
        ),
    ] {
        let spec = spec(at_pod, contexts);
        let verdict = judge(&spec, Some(&RULE));
        let reasons = verdict.reasons();
        assert_eq!(reasons.len(), expected.len(), "{reasons:?}");
        for (reason, (field, text)) in reasons.iter().zip(expected) {
            assert_eq!((&reason.code, &reason.field), (&Code::PodSecurity, field));
            assert!(reason.message.contains(text), "{reason}");
        }
        // Who is there already stays.
        assert!(readmit(pod(&spec)).is_ok());
    }
}

#[test]
fn what_nobody_may_ask_for_is_told_once() {
    let spec = json!({"containers": [{"name": "c", "command": ["sleep"],
        "securityContext": {"capabilities": {"add": ["SYS_ADMIN", "CHOWN"]}}}]});
    let verdict = judge(&spec, Some(&RULE));
    let codes: Vec<_> = verdict.reasons().iter().map(|it| &it.code).collect();
    assert_eq!(codes, [&Code::Invalid]);
}
