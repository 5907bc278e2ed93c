//! What a pod may say that has no effect with the process runtime, which starts programs of the
//! host as they are.
//!
//! Left out is what a scheduler or a registry reads (node selectors, tolerations, pull policy …),
//! what merely describes (ports), and what asks for the way it is anyway (`hostNetwork: true`).

use k8s_openapi::api::core::v1::{Container, PodSpec};

use super::convert::Remark;

const NO_EFFECT: &str = "is not supported by the process runtime and has no effect";

/// Whether a field is given and not empty.
fn is_set<T: Default + PartialEq>(field: Option<&T>) -> bool {
    field.is_some_and(|value| *value != T::default())
}

/// Whether a field is given with another value than the one it has by default.
fn is_other_than(field: Option<&String>, default: &str) -> bool {
    field.is_some_and(|value| !value.is_empty() && value != default)
}

fn note(place: &str, fields: &[(&str, bool)], notes: &mut Vec<Remark>) {
    for (field, is_given) in fields {
        if *is_given {
            notes.push(Remark::new(format!("{place}.{field}"), NO_EFFECT));
        }
    }
}

/// Notes what has no effect for the pod as a whole.
pub(super) fn in_pod(spec: &PodSpec, notes: &mut Vec<Remark>) {
    let fields = [
        ("dnsConfig", is_set(spec.dns_config.as_ref())),
        ("dnsPolicy", spec.dns_policy.as_deref() == Some("None")),
        (
            "ephemeralContainers",
            is_set(spec.ephemeral_containers.as_ref()),
        ),
        (
            "evictionResponders",
            is_set(spec.eviction_responders.as_ref()),
        ),
        ("hostAliases", is_set(spec.host_aliases.as_ref())),
        ("hostname", is_set(spec.hostname.as_ref())),
        ("hostnameOverride", is_set(spec.hostname_override.as_ref())),
        ("readinessGates", is_set(spec.readiness_gates.as_ref())),
        ("resourceClaims", is_set(spec.resource_claims.as_ref())),
        ("runtimeClassName", is_set(spec.runtime_class_name.as_ref())),
        ("schedulingGates", is_set(spec.scheduling_gates.as_ref())),
        ("setHostnameAsFQDN", spec.set_hostname_as_fqdn == Some(true)),
        (
            "shareProcessNamespace",
            spec.share_process_namespace == Some(true),
        ),
        ("subdomain", is_set(spec.subdomain.as_ref())),
    ];
    note("spec", &fields, notes);
    for (index, volume) in spec.volumes.iter().flatten().enumerate() {
        if volume.empty_dir.is_none() {
            notes.push(Remark::new(format!("spec.volumes[{index}]"), NO_EFFECT));
        }
    }
    if let Some(resources) = &spec.resources {
        note(
            "spec.resources",
            &[("claims", is_set(resources.claims.as_ref()))],
            notes,
        );
    }
}

/// Notes what has no effect for a container at this place.
pub(super) fn in_container(from: &Container, place: &str, is_init: bool, notes: &mut Vec<Remark>) {
    let restart_policy = from.restart_policy.as_deref();
    let claims = from
        .resources
        .as_ref()
        .and_then(|resources| resources.claims.as_ref());
    let fields = [
        ("envFrom", is_set(from.env_from.as_ref())),
        ("resources.claims", is_set(claims)),
        (
            "lifecycle.stopSignal",
            is_set(
                from.lifecycle
                    .as_ref()
                    .and_then(|hooks| hooks.stop_signal.as_ref()),
            ),
        ),
        (
            "restartPolicy",
            restart_policy.is_some() && !(is_init && restart_policy == Some("Always")),
        ),
        (
            "restartPolicyRules",
            is_set(from.restart_policy_rules.as_ref()),
        ),
        ("stdin", from.stdin == Some(true)),
        (
            "terminationMessagePath",
            is_other_than(
                from.termination_message_path.as_ref(),
                "/dev/termination-log",
            ),
        ),
        (
            "terminationMessagePolicy",
            is_other_than(from.termination_message_policy.as_ref(), "File"),
        ),
        ("tty", from.tty == Some(true)),
        ("volumeDevices", is_set(from.volume_devices.as_ref())),
    ];
    note(place, &fields, notes);
    for (index, variable) in from.env.iter().flatten().enumerate() {
        if variable.value_from.is_some() {
            let field = format!("{place}.env[{index}].valueFrom");
            let message = format!(
                "{NO_EFFECT}: {} is not set",
                super::misfit::shown(&variable.name)
            );
            notes.push(Remark::new(field, message));
        }
    }
}
