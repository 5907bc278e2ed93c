//! `resizePolicy`: whether a container runs on when its amounts change.
//!
//! Reads it and tells what Kubernetes 1.36 (`validateResizePolicy`) would not take either.

use k8s_openapi::api::core::v1;

use super::Remark;
use crate::manifest::misfit::shown;
use crate::model::pod::ResizePolicy;

/// The policy of a container at this place.
pub(super) fn policy(
    from: &v1::Container,
    place: &str,
    problems: &mut Vec<Remark>,
) -> ResizePolicy {
    let mut policy = ResizePolicy::default();
    let mut seen = Vec::new();
    for (index, given) in from.resize_policy.iter().flatten().enumerate() {
        let mut problem = |field: &str, message: String| {
            let field = format!("{place}.resizePolicy[{index}].{field}");
            problems.push(Remark::new(field, message));
        };
        let name = given.resource_name.as_str();
        let restarts = match given.restart_policy.as_str() {
            "RestartContainer" => true,
            "NotRequired" => false,
            other => {
                let message = format!(
                    "Unsupported value: {:?}: supported values: \"NotRequired\", \
                     \"RestartContainer\"",
                    shown(other)
                );
                problem("restartPolicy", message);
                continue;
            }
        };
        if seen.contains(&name) {
            problem(
                "resourceName",
                format!("Duplicate value: {:?}", shown(name)),
            );
            continue;
        }
        seen.push(name);
        match name {
            "cpu" => policy.restarts_for_cpu = restarts,
            "memory" => policy.restarts_for_memory = restarts,
            other => problem(
                "resourceName",
                format!(
                    "Unsupported value: {:?}: supported values: \"cpu\", \"memory\"",
                    shown(other)
                ),
            ),
        }
    }
    policy
}

/// Containers of a pod that starts none anew cannot have another run.
pub(super) fn check_restarts(spec: &v1::PodSpec, problems: &mut Vec<Remark>) {
    if spec.restart_policy.as_deref() != Some("Never") {
        return;
    }
    let init = spec.init_containers.iter().flatten().enumerate();
    let init = init.map(|(index, container)| ("initContainers", index, container));
    let app = spec.containers.iter().enumerate();
    let app = app.map(|(index, container)| ("containers", index, container));
    for (list, index, container) in init.chain(app) {
        let is_sidecar = container.restart_policy.as_deref() == Some("Always");
        if list == "initContainers" && is_sidecar {
            continue;
        }
        for (at, policy) in container.resize_policy.iter().flatten().enumerate() {
            if policy.restart_policy == "RestartContainer" {
                let field = format!("spec.{list}[{index}].resizePolicy[{at}].restartPolicy");
                let message = "Invalid value: \"RestartContainer\": must be 'NotRequired' when \
                               `restartPolicy` is 'Never'";
                problems.push(Remark::new(field, message));
            }
        }
    }
}
