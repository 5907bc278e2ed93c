//! What a node that has too little of something takes: the kubelet's rules.

use k8s_openapi::api::core::v1;

use crate::admission::Verdict;
use crate::agent::request::{Cause, Refusal};
use crate::agent::run::Agent;
use crate::model::QosClass;
use crate::model::eviction::Pressure;

/// The taint that a pod must tolerate to come in while memory is short.
const MEMORY_TAINT: &str = "node.kubernetes.io/memory-pressure";

impl Agent {
    /// Refuses a pod that would make it worse. While only memory is short, those may come that asked for
    /// some, and those that say that they can bear it; critical ones always may.
    pub(in crate::agent) fn refuse_under_pressure(
        &self,
        verdict: &Verdict,
        object: &v1::Pod,
    ) -> Result<(), Refusal> {
        let (pod, qos) = (verdict.pod(), verdict.qos());
        let pressed = Pressure::ALL
            .into_iter()
            .filter(|it| self.evictor.is_pressed(*it));
        let pressed: Vec<_> = pressed.collect();
        let may_come = pod.is_critical()
            || pressed.is_empty()
            || (pressed == [Pressure::Memory]
                && (qos != QosClass::BestEffort || tolerates_memory_pressure(object)));
        if may_come {
            return Ok(());
        }
        let names: Vec<_> = pressed.iter().map(ToString::to_string).collect();
        let message = format!("The node had condition: [{}]. ", names.join(", "));
        let told = format!(
            "pods {:?} is refused: Pod was rejected: {message}",
            pod.name
        );
        Err(Refusal {
            causes: vec![Cause {
                reason: "Evicted".to_owned(),
                field: String::new(),
                message,
            }],
            ..Refusal::new(403, "Evicted", told.trim_end()).about("pods", &pod.name)
        })
    }
}

/// Kubernetes' rule for one taint of effect `NoSchedule`.
fn tolerates_memory_pressure(object: &v1::Pod) -> bool {
    let spec = object.spec.as_ref();
    let mut tolerations = spec
        .and_then(|spec| spec.tolerations.as_ref())
        .into_iter()
        .flatten();
    tolerations.any(|toleration| {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let (key, operator) = (text(&toleration.key), text(&toleration.operator));
        let takes_effect = matches!(text(&toleration.effect).as_str(), "" | "NoSchedule");
        // The taint has no value.
        let takes = match operator.as_str() {
            "Exists" => key.is_empty() || key == MEMORY_TAINT,
            "" | "Equal" => key == MEMORY_TAINT && text(&toleration.value).is_empty(),
            _ => false,
        };
        takes_effect && takes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerations_are_those_of_kubernetes() {
        for (toleration, expected) in [
            (r#"{"operator": "Exists"}"#, true),
            (
                r#"{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}"#,
                true,
            ),
            (
                r#"{"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}"#,
                true,
            ),
            (
                r#"{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoExecute"}"#,
                false,
            ),
            (
                r#"{"key": "node.kubernetes.io/memory-pressure", "value": "x"}"#,
                false,
            ),
            (
                r#"{"key": "node.kubernetes.io/disk-pressure", "operator": "Exists"}"#,
                false,
            ),
            (
                r#"{"key": "node.kubernetes.io/memory-pressure", "operator": "Lt"}"#,
                false,
            ),
        ] {
            let text =
                format!(r#"{{"spec": {{"containers": [], "tolerations": [{toleration}]}}}}"#);
            let pod: v1::Pod = serde_json::from_str(&text).unwrap();
            assert_eq!(tolerates_memory_pressure(&pod), expected, "{toleration}");
        }
        assert!(!tolerates_memory_pressure(&v1::Pod::default()));
    }
}
