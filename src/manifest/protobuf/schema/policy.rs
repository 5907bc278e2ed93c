//! Namespaces, policies and what is only kept: text and secrets.
//!
//! Decides numbers, names and types of their fields; must never say more than Kubernetes' own types.

use super::meta::{LocalObjectReference, ObjectMeta, ObjectReference};
use super::{Field, Message};

messages! {
    Namespace { 1 metadata: ObjectMeta, 2 spec: NamespaceSpec, 3 status: skipped, }
    NamespaceSpec { 1 finalizers: [text], }
    LimitRange { 1 metadata: ObjectMeta, 2 spec: LimitRangeSpec, }
    LimitRangeSpec { 1 limits: [LimitRangeItem], }
    LimitRangeItem {
        1 type: text, 2 max: {quantity}, 3 min: {quantity}, 4 default: {quantity},
        5 defaultRequest: {quantity}, 6 maxLimitRequestRatio: {quantity},
    }
    ResourceQuota { 1 metadata: ObjectMeta, 2 spec: ResourceQuotaSpec, 3 status: skipped, }
    ResourceQuotaSpec { 1 hard: {quantity}, 2 scopes: [text], 3 scopeSelector: ScopeSelector, }
    ScopeSelector { 1 matchExpressions: [ScopedResourceSelectorRequirement], }
    ScopedResourceSelectorRequirement { 1 scopeName: text, 2 operator: text, 3 values: [text], }
    ConfigMap {
        1 metadata: ObjectMeta, 2 data: {text}, 3 binaryData: {bytes}, 4 immutable: (bool),
    }
    Secret {
        1 metadata: ObjectMeta, 2 data: {bytes}, 3 type: text, 4 stringData: {text},
        5 immutable: (bool),
    }
    ServiceAccount {
        1 metadata: ObjectMeta, 2 secrets: [ObjectReference],
        3 imagePullSecrets: [LocalObjectReference], 4 automountServiceAccountToken: (bool),
    }
}
