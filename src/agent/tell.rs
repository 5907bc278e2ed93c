//! Telling: what happens becomes an event in the API and a line in the log, in the same words.

use jiff::Timestamp;

use super::events::{Severity, Subject};
use super::request::PodKey;
use super::run::Agent;

impl Agent {
    /// Tells of an event about a pod or one of its containers.
    pub(super) fn event(
        &mut self,
        key: &PodKey,
        container: &str,
        severity: Severity,
        reason: &str,
        message: &str,
    ) {
        let uid = self
            .pods
            .get(key)
            .map_or_else(String::new, |entry| entry.uid().to_string());
        let subject = Subject {
            kind: "Pod",
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid,
            field_path: if container.is_empty() {
                String::new()
            } else {
                format!("spec.containers{{{container}}}")
            },
        };
        if severity == Severity::Warning {
            tracing::warn!(
                POD = key.name,
                NAMESPACE = key.namespace,
                CONTAINER = container,
                reason,
                "{message}"
            );
        } else {
            tracing::info!(
                POD = key.name,
                NAMESPACE = key.namespace,
                CONTAINER = container,
                reason,
                "{message}"
            );
        }
        self.events
            .note(&subject, severity, reason, message, Timestamp::now());
    }

    /// Tells of an event about the node.
    pub(super) fn node_event(&mut self, severity: Severity, reason: &str, message: &str) {
        let subject = Subject {
            kind: "Node",
            namespace: "default".to_owned(),
            name: self.node.name.clone(),
            uid: String::new(),
            field_path: String::new(),
        };
        match severity {
            Severity::Warning => tracing::warn!(reason, "{message}"),
            Severity::Normal => tracing::info!(reason, "{message}"),
        }
        self.events
            .note(&subject, severity, reason, message, Timestamp::now());
    }
}
