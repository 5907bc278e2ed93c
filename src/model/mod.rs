//! Pods, nodes and policies as plain data, with the invariants that hold for each on its own.
//!
//! This is our own small vocabulary: `manifest` makes it from Kubernetes objects, `admission` judges
//! it, `translation` turns it into cgroup values. Nothing here does I/O.

pub mod annotation;
pub mod cluster_quota;
pub mod definition;
pub mod effective;
pub mod eviction;
pub mod kind;
pub mod kinds;
pub mod lifecycle;
pub mod limit_range;
pub mod name;
pub mod namespace;
pub mod node;
pub mod pod;
pub mod policy;
pub mod probe;
pub mod qos;
pub mod resource;
pub mod resource_quota;
pub mod security;
pub mod space;
pub mod topology;
pub mod volume;

pub use cluster_quota::{ClusterResourceQuota, NamespaceSelector};
pub use definition::{DefinedVersion, Definition};
pub use effective::{EffectiveContainer, EffectivePod};
pub use kind::Kind;
pub use kinds::{Kinds, Words};
pub use limit_range::{Bound, LimitRange, LimitRangeItem, LimitType};
pub use namespace::{LabelSelector, LabelTerm, Namespace};
pub use node::Node;
pub use pod::{Container, ContainerKind, Pod, PodUid};
pub use policy::Policy;
pub use qos::QosClass;
pub use resource::{List, ResourceList, ResourceName, Resources};
pub use resource_quota::{LimitedResource, Operator, ResourceQuota, Scope, ScopeTerm};
pub use topology::Topology;
