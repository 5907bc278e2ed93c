//! `securityContext` of pod and container, put together; what of it cannot be honoured is told as a
//! problem, for a program that runs with less protection than its author meant must not run.

use k8s_openapi::api::core::v1;

use super::Remark;
use crate::model::security::{MAX_ID, Said, Security, capability};

/// What holds for all containers of a pod.
#[derive(Default)]
pub(super) struct OfPod<'a> {
    context: Option<&'a v1::PodSecurityContext>,
    groups: Vec<u32>,
    /// `fsGroup`
    pub fs_group: Option<u32>,
}

/// Reads what a pod says for all of its containers.
pub(super) fn of_pod<'a>(spec: &'a v1::PodSpec, problems: &mut Vec<Remark>) -> OfPod<'a> {
    if spec.host_users == Some(false) {
        let message = "no user namespace is made for a program of the host: leave it out";
        problems.push(Remark::new("spec.hostUsers", message));
    }
    let Some(context) = &spec.security_context else {
        return OfPod::default();
    };
    let place = "spec.securityContext";
    let mut refuse = |field: &str, message: &str| {
        problems.push(Remark::new(format!("{place}.{field}"), message));
    };
    if context.sysctls.as_ref().is_some_and(|all| !all.is_empty()) {
        refuse(
            "sysctls",
            "a program of the host has the host's: set them there",
        );
    }
    let policy = context.supplemental_groups_policy.as_deref();
    if policy.is_some_and(|policy| !policy.is_empty() && policy != "Strict") {
        refuse(
            "supplementalGroupsPolicy",
            "Strict is right: no group is taken from the host's /etc/group",
        );
    }
    alike(
        place,
        context.se_linux_options.as_ref(),
        context.seccomp_profile.as_ref(),
        context.app_armor_profile.as_ref(),
        context.windows_options.as_ref(),
        problems,
    );
    let mut id = |field: &str, id: Option<i64>| read_id(place, field, id, problems);
    let fs_group = id("fsGroup", context.fs_group);
    let groups = context.supplemental_groups.iter().flatten().enumerate();
    let mut groups: Vec<_> = groups
        .filter_map(|(index, group)| id(&format!("supplementalGroups[{index}]"), Some(*group)))
        .chain(fs_group)
        .collect();
    groups.sort_unstable();
    groups.dedup();
    OfPod {
        context: Some(context),
        groups,
        fs_group,
    }
}

/// What holds for a container at this place: its own words before the pod's.
pub(super) fn of_container(
    pod: &OfPod<'_>,
    container: &v1::Container,
    place: &str,
    problems: &mut Vec<Remark>,
) -> Security {
    let place = &format!("{place}.securityContext");
    let none = v1::SecurityContext::default();
    let own = container.security_context.as_ref().unwrap_or(&none);
    let mut refuse = |field: &str, message: &str| {
        problems.push(Remark::new(format!("{place}.{field}"), message));
    };
    if own.privileged == Some(true) {
        let message = "privileged containers are not run: leave it out; without drop a program of root \
                       has all capabilities anyway";
        refuse("privileged", message);
    }
    let mount = own.proc_mount.as_deref();
    if mount.is_some_and(|mount| !mount.is_empty() && mount != "Default") {
        refuse("procMount", "Default is right: /proc is the host's");
    }
    alike(
        place,
        own.se_linux_options.as_ref(),
        own.seccomp_profile.as_ref(),
        own.app_armor_profile.as_ref(),
        own.windows_options.as_ref(),
        problems,
    );
    let (dropped, added) = capabilities(own.capabilities.as_ref(), place, problems);
    let context = pod.context;
    let own_user = read_id(place, "runAsUser", own.run_as_user, problems);
    let own_group = read_id(place, "runAsGroup", own.run_as_group, problems);
    let mut of_pod = |field: &str, id: Option<i64>| {
        // What is wrong with it is told once, not for each container.
        let mut ignored = Vec::new();
        let first = place.starts_with("spec.containers[0].");
        let into = if first { &mut *problems } else { &mut ignored };
        read_id("spec.securityContext", field, id, into)
    };
    let user = of_pod("runAsUser", context.and_then(|pod| pod.run_as_user));
    let group = of_pod("runAsGroup", context.and_then(|pod| pod.run_as_group));
    let must_not_be_root = own
        .run_as_non_root
        .or_else(|| context.and_then(|pod| pod.run_as_non_root));
    Security {
        user: own_user.or(user),
        group: own_group.or(group),
        groups: pod.groups.clone(),
        must_not_be_root: must_not_be_root == Some(true),
        dropped,
        added,
        no_new_privileges: own.allow_privilege_escalation == Some(false),
        has_read_only_root: own.read_only_root_filesystem == Some(true),
        said: Said {
            user_by_pod: own.run_as_user.is_none() && user.is_some(),
            wants_to_gain: own.allow_privilege_escalation == Some(true),
        },
    }
}

/// What both have: all of it another kind of wall than any there is here.
fn alike(
    place: &str,
    se_linux: Option<&v1::SELinuxOptions>,
    seccomp: Option<&v1::SeccompProfile>,
    app_armor: Option<&v1::AppArmorProfile>,
    windows: Option<&v1::WindowsSecurityContextOptions>,
    problems: &mut Vec<Remark>,
) {
    let mut refuse = |field: &str, message: &str| {
        problems.push(Remark::new(format!("{place}.{field}"), message));
    };
    if se_linux.is_some_and(|given| *given != v1::SELinuxOptions::default()) {
        refuse(
            "seLinuxOptions",
            "no label is set: leave it out; the host's policy holds",
        );
    }
    if seccomp.is_some_and(|given| given.type_ != "Unconfined") {
        refuse(
            "seccompProfile.type",
            "no filter is installed: leave it out, or say Unconfined",
        );
    }
    if app_armor.is_some_and(|given| given.type_ != "Unconfined") {
        refuse(
            "appArmorProfile.type",
            "no profile is entered: leave it out, or say Unconfined",
        );
    }
    if windows.is_some_and(|given| *given != v1::WindowsSecurityContextOptions::default()) {
        refuse("windowsOptions", "must not be given: this node is linux");
    }
}

fn read_id(place: &str, field: &str, id: Option<i64>, problems: &mut Vec<Remark>) -> Option<u32> {
    let id = id?;
    let read = u32::try_from(id).ok().filter(|id| *id <= MAX_ID);
    if read.is_none() {
        let message = format!("Invalid value: {id}: must be between 0 and {MAX_ID}, inclusive");
        problems.push(Remark::new(format!("{place}.{field}"), message));
    }
    read
}

/// What is dropped and what is asked for. What is named to be dropped is, whatever else is asked for.
fn capabilities(
    from: Option<&v1::Capabilities>,
    place: &str,
    problems: &mut Vec<Remark>,
) -> (u64, u64) {
    let mut read = |list: &str, names: Option<&Vec<String>>| {
        let (mut all, mut named) = (false, 0);
        for (index, name) in names.into_iter().flatten().enumerate() {
            match capability(name) {
                Some(u64::MAX) => all = true,
                Some(bit) => named |= bit,
                None => {
                    let field = format!("{place}.capabilities.{list}[{index}]");
                    let shown = super::super::misfit::shown(name);
                    let message = format!(
                        "{shown} is no capability: ALL, or names such as NET_RAW, are right"
                    );
                    problems.push(Remark::new(field, message));
                }
            }
        }
        (all, named)
    };
    let (drops_all, dropped) = read("drop", from.and_then(|from| from.drop.as_ref()));
    let (adds_all, added) = read("add", from.and_then(|from| from.add.as_ref()));
    let added = if adds_all { u64::MAX } else { added };
    let others = if drops_all { !added } else { 0 };
    (others | dropped, added)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(pod: &Value, container: &Value) -> (Security, Option<u32>, Vec<String>) {
        let spec = json!({"securityContext": pod, "containers": [{"name": "c", "securityContext": container}]});
        let spec: v1::PodSpec = serde_json::from_value(spec).unwrap();
        let mut problems = Vec::new();
        let secure = of_pod(&spec, &mut problems);
        let container = &spec.containers[0];
        let security = of_container(&secure, container, "spec.containers[0]", &mut problems);
        let texts = problems.iter().map(ToString::to_string).collect();
        (security, secure.fs_group, texts)
    }

    #[test]
    fn the_container_speaks_before_the_pod() {
        let pod = json!({"runAsUser": 1000, "runAsGroup": 7, "runAsNonRoot": true,
            "supplementalGroups": [9, 5], "fsGroup": 5, "fsGroupChangePolicy": "Always",
            "seccompProfile": {"type": "Unconfined"}});
        let own = json!({"runAsUser": 2000, "runAsNonRoot": false, "readOnlyRootFilesystem": true,
            "allowPrivilegeEscalation": false, "privileged": false, "procMount": "Default"});
        let (security, fs_group, problems) = read(&pod, &own);
        assert_eq!(problems, [""; 0]);
        assert_eq!(fs_group, Some(5));
        let expected = Security {
            user: Some(2000),
            group: Some(7),
            groups: vec![5, 9],
            must_not_be_root: false,
            no_new_privileges: true,
            has_read_only_root: true,
            ..Security::default()
        };
        assert_eq!(security, expected);
        let (security, ..) = read(&pod, &json!({"allowPrivilegeEscalation": true}));
        assert_eq!(
            (security.user, security.must_not_be_root),
            (Some(1000), true)
        );
        let (user_by_pod, wants_to_gain) = (true, true);
        assert_eq!(
            security.said,
            Said {
                user_by_pod,
                wants_to_gain
            }
        );
        assert_eq!(read(&Value::Null, &Value::Null).0, Security::default());
    }

    #[test]
    fn what_is_dropped_and_asked_for_becomes_bits() {
        let (chown, raw) = (1, 1 << 13);
        for (capabilities, dropped, added) in [
            (json!({"drop": ["ALL"]}), u64::MAX, 0),
            (json!({"drop": ["ALL"], "add": ["CHOWN"]}), !chown, chown),
            (json!({"drop": ["NET_RAW", "CAP_CHOWN"]}), chown | raw, 0),
            (json!({"drop": ["NET_RAW"], "add": ["ALL"]}), raw, u64::MAX),
            (
                json!({"drop": ["ALL", "CHOWN"], "add": ["CHOWN"]}),
                u64::MAX,
                chown,
            ),
            (json!({}), 0, 0),
        ] {
            let (security, _, problems) =
                read(&Value::Null, &json!({"capabilities": capabilities}));
            assert_eq!(
                (security.dropped, security.added),
                (dropped, added),
                "{capabilities}"
            );
            assert_eq!(problems, [""; 0]);
        }
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_with_its_place() {
        let own = "spec.containers[0].securityContext";
        for (pod, container, place) in [
            (
                json!({"sysctls": [{"name": "a", "value": "b"}]}),
                json!({}),
                "spec.securityContext.sysctls",
            ),
            (
                json!({"seLinuxOptions": {"level": "s0"}}),
                json!({}),
                "spec.securityContext.seLinuxOptions",
            ),
            (
                json!({"seccompProfile": {"type": "RuntimeDefault"}}),
                json!({}),
                "spec.securityContext.seccompProfile.type",
            ),
            (
                json!({"supplementalGroupsPolicy": "Merge"}),
                json!({}),
                "spec.securityContext.supplementalGroupsPolicy",
            ),
            (
                json!({"runAsUser": -1}),
                json!({}),
                "spec.securityContext.runAsUser",
            ),
            (
                json!({"supplementalGroups": [1, 4_294_967_296_i64]}),
                json!({}),
                "spec.securityContext.supplementalGroups[1]",
            ),
            (
                json!({}),
                json!({"privileged": true}),
                &format!("{own}.privileged"),
            ),
            (
                json!({}),
                json!({"procMount": "Unmasked"}),
                &format!("{own}.procMount"),
            ),
            (
                json!({}),
                json!({"runAsGroup": 4_294_967_296_i64}),
                &format!("{own}.runAsGroup"),
            ),
            (
                json!({}),
                json!({"appArmorProfile": {"type": "RuntimeDefault"}}),
                &format!("{own}.appArmorProfile.type"),
            ),
            (
                json!({}),
                json!({"seccompProfile": {"type": "Localhost", "localhostProfile": "a"}}),
                &format!("{own}.seccompProfile.type"),
            ),
            (
                json!({}),
                json!({"windowsOptions": {"hostProcess": true}}),
                &format!("{own}.windowsOptions"),
            ),
            (
                json!({}),
                json!({"capabilities": {"add": ["CHOWN", "FLY"]}}),
                &format!("{own}.capabilities.add[1]"),
            ),
        ] {
            let (.., problems) = read(&pod, &container);
            assert_eq!(problems.len(), 1, "{problems:?} of {pod} {container}");
            assert!(
                problems[0].starts_with(&format!("{place}: ")),
                "{problems:?}"
            );
        }
    }
}
