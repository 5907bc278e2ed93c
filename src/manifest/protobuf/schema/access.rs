//! Who may do what, and which pods come first or may go.
//!
//! Decides numbers, names and types of their fields; must never say more than Kubernetes' own types.

use super::meta::{LabelSelector, ObjectMeta};
use super::{Field, Message};

messages! {
    Role { 1 metadata: ObjectMeta, 2 rules: [PolicyRule], }
    ClusterRole { 1 metadata: ObjectMeta, 2 rules: [PolicyRule], 3 aggregationRule: AggregationRule, }
    PolicyRule {
        1 verbs: [text], 2 apiGroups: [text], 3 resources: [text], 4 resourceNames: [text],
        5 nonResourceURLs: [text],
    }
    AggregationRule { 1 clusterRoleSelectors: [LabelSelector], }
    RoleBinding { 1 metadata: ObjectMeta, 2 subjects: [Subject], 3 roleRef: RoleRef, }
    ClusterRoleBinding { 1 metadata: ObjectMeta, 2 subjects: [Subject], 3 roleRef: RoleRef, }
    Subject { 1 kind: text, 2 apiGroup: text, 3 name: text, 4 namespace: text, }
    RoleRef { 1 apiGroup: text, 2 kind: text, 3 name: text, }
    PodDisruptionBudget { 1 metadata: ObjectMeta, 2 spec: PodDisruptionBudgetSpec, 3 status: skipped, }
    PodDisruptionBudgetSpec {
        1 minAvailable: int_or_text, 2 selector: LabelSelector, 3 maxUnavailable: int_or_text,
        4 unhealthyPodEvictionPolicy: (text),
    }
    PriorityClass {
        1 metadata: ObjectMeta, 2 value: int, 3 globalDefault: bool, 4 description: text,
        5 preemptionPolicy: (text),
    }
}
