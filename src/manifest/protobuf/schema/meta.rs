//! What objects of all kinds have, and the ways in which they refer to each other.
//!
//! Decides numbers, names and types of their fields; must never say more than Kubernetes' own types.

use super::{Field, Message};

messages! {
    TypeMeta { 1 apiVersion: text, 2 kind: text, }
    Quantity { 1 string: text, }
    IntOrString { 1 type: int, 2 intVal: int, 3 strVal: text, }
    Time { 1 seconds: int, 2 nanos: int, }
    ObjectMeta {
        1 name: text, 2 generateName: text, 3 namespace: text, 4 selfLink: text, 5 uid: text,
        6 resourceVersion: text, 7 generation: int, 8 creationTimestamp: time,
        9 deletionTimestamp: time, 10 deletionGracePeriodSeconds: (int), 11 labels: {text},
        12 annotations: {text}, 13 ownerReferences: [OwnerReference], 14 finalizers: [text],
        15 clusterName: text, 17 managedFields: skipped,
    }
    OwnerReference {
        1 kind: text, 3 name: text, 4 uid: text, 5 apiVersion: text, 6 controller: (bool),
        7 blockOwnerDeletion: (bool),
    }
    ObjectReference {
        1 kind: text, 2 namespace: text, 3 name: text, 4 uid: text, 5 apiVersion: text,
        6 resourceVersion: text, 7 fieldPath: text,
    }
    LocalObjectReference { 1 name: text, }
    LabelSelector { 1 matchLabels: {text}, 2 matchExpressions: [LabelSelectorRequirement], }
    LabelSelectorRequirement { 1 key: text, 2 operator: text, 3 values: [text], }
    TypedLocalObjectReference { 1 apiGroup: (text), 2 kind: text, 3 name: text, }
    TypedObjectReference { 1 apiGroup: (text), 2 kind: text, 3 name: text, 4 namespace: (text), }
    DeleteOptions {
        1 gracePeriodSeconds: (int), 2 preconditions: Preconditions, 3 orphanDependents: (bool),
        4 propagationPolicy: (text), 5 dryRun: [text],
        6 ignoreStoreReadErrorWithClusterBreakingPotential: (bool),
    }
    Preconditions { 1 uid: (text), 2 resourceVersion: (text), }
}
