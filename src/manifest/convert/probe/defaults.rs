//! Kubernetes' defaults of probes and hooks, written into the object so that its readers see them. It
//! judges nothing.

use k8s_openapi::api::core::v1;

use super::{FAILURES, PERIOD};

/// Writes Kubernetes' defaults of probes and hooks into a pod.
pub fn fill_in(spec: &mut v1::PodSpec) {
    let all = spec.init_containers.iter_mut().flatten();
    for container in all.chain(&mut spec.containers) {
        let probes = [
            &mut container.startup_probe,
            &mut container.readiness_probe,
            &mut container.liveness_probe,
        ];
        for probe in probes.into_iter().flatten() {
            let put = |field: &mut Option<i32>, default: u32| {
                if field.unwrap_or_default() == 0 {
                    *field = i32::try_from(default).ok();
                }
            };
            put(&mut probe.timeout_seconds, 1);
            put(&mut probe.period_seconds, PERIOD);
            put(&mut probe.success_threshold, 1);
            put(&mut probe.failure_threshold, FAILURES);
            probe.http_get.as_mut().map(fill_in_http);
        }
        let hooks = container.lifecycle.iter_mut();
        let hooks = hooks.flat_map(|hooks| [&mut hooks.post_start, &mut hooks.pre_stop]);
        for hook in hooks.flatten() {
            hook.http_get.as_mut().map(fill_in_http);
        }
    }
}

fn fill_in_http(http: &mut v1::HTTPGetAction) {
    for (field, default) in [(&mut http.path, "/"), (&mut http.scheme, "HTTP")] {
        if field.as_ref().is_none_or(String::is_empty) {
            *field = Some(default.to_owned());
        }
    }
}
