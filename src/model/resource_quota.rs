//! What the objects of a namespace may use together (`ResourceQuota`), and what they use.
//!
//! Plain data. What an object uses, and whether that is still allowed, is decided in
//! `admission::quota`.

use std::fmt;

use super::ResourceList;
use crate::units::Quantity;

/// A ResourceQuota and its account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceQuota {
    /// `metadata.namespace`: it counts the objects of this namespace. Empty within a
    /// [`ClusterResourceQuota`](super::ClusterResourceQuota), which says itself whose objects it counts.
    pub namespace: String,
    /// `metadata.name`
    pub name: String,
    /// `spec.hard`: the bounds, by key: `requests.cpu`, `pods`, `count/jobs.batch` …
    pub hard: ResourceList,
    /// `spec.scopes`: each must match an object that is counted.
    pub scopes: Vec<Scope>,
    /// `spec.scopeSelector.matchExpressions`: each must match as well.
    pub selector: Vec<ScopeTerm>,
    /// `status.used`; a key that is absent is not used.
    pub used: ResourceList,
}

impl ResourceQuota {
    /// All that must match an object that is counted; a bare scope must exist.
    pub fn terms(&self) -> impl Iterator<Item = ScopeTerm> {
        let scopes = self.scopes.iter().map(|scope| ScopeTerm {
            scope: *scope,
            operator: Operator::Exists,
            values: Vec::new(),
        });
        scopes.chain(self.selector.iter().cloned())
    }

    /// What is used, with a figure for every key that is bounded.
    pub fn used_of_hard(&self) -> ResourceList {
        let used = |name| self.used.get(name).unwrap_or(Quantity::ZERO);
        self.hard
            .iter()
            .map(|(name, _)| (name.clone(), used(name)))
            .collect()
    }

    /// Adds to the account what an object uses.
    pub fn charge(&mut self, amounts: &ResourceList) {
        self.used.add(amounts);
    }

    /// Takes from the account what an object no longer uses; nothing falls below zero.
    pub fn release(&mut self, amounts: &ResourceList) {
        self.used.subtract(amounts);
    }
}

/// A property of an object that decides whether a quota counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Pods with a deadline.
    Terminating,
    /// Pods without one.
    NotTerminating,
    /// Pods of the class BestEffort.
    BestEffort,
    /// Pods of the other two classes.
    NotBestEffort,
    /// Pods by the name of their priority class.
    PriorityClass,
    /// Pods whose affinity speaks of other namespaces.
    CrossNamespacePodAffinity,
    /// Claims by the name of their volume attributes class.
    VolumeAttributesClass,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Terminating,
        Self::NotTerminating,
        Self::BestEffort,
        Self::NotBestEffort,
        Self::PriorityClass,
        Self::CrossNamespacePodAffinity,
        Self::VolumeAttributesClass,
    ];

    /// The scope of this name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|scope| scope.to_string() == name)
    }

    /// Whether it asks for the name of a class.
    pub fn has_values(self) -> bool {
        matches!(self, Self::PriorityClass | Self::VolumeAttributesClass)
    }

    /// The scope that matches exactly the other objects.
    pub fn opposite(self) -> Option<Self> {
        match self {
            Self::Terminating => Some(Self::NotTerminating),
            Self::NotTerminating => Some(Self::Terminating),
            Self::BestEffort => Some(Self::NotBestEffort),
            Self::NotBestEffort => Some(Self::BestEffort),
            _ => None,
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Terminating => "Terminating",
            Self::NotTerminating => "NotTerminating",
            Self::BestEffort => "BestEffort",
            Self::NotBestEffort => "NotBestEffort",
            Self::PriorityClass => "PriorityClass",
            Self::CrossNamespacePodAffinity => "CrossNamespacePodAffinity",
            Self::VolumeAttributesClass => "VolumeAttributesClass",
        })
    }
}

/// How a scope or a label is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// One of the values.
    In,
    /// None of the values; what has no value has none of them.
    NotIn,
    /// Any value.
    Exists,
    /// No value.
    DoesNotExist,
}

impl Operator {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::In, Self::NotIn, Self::Exists, Self::DoesNotExist];

    /// The operator of this name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|operator| operator.to_string() == name)
    }

    /// Whether it compares with values.
    pub fn takes_values(self) -> bool {
        matches!(self, Self::In | Self::NotIn)
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
        })
    }
}

/// What may be used only where a quota counts it (`limitedResources` of the quota admission).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitedResource {
    /// The kind of object: `pods`, `services`, `jobs.batch` …
    pub resource: String,
    /// Parts of keys: `cpu` means `cpu`, `requests.cpu` and `limits.cpu`.
    pub match_contains: Vec<String>,
    /// Objects that match one of these need a quota of that scope.
    pub match_scopes: Vec<ScopeTerm>,
}

/// One expression about a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeTerm {
    /// `scopeName`
    pub scope: Scope,
    /// `operator`
    pub operator: Operator,
    /// `values`
    pub values: Vec<String>,
}

impl fmt::Display for ScopeTerm {
    /// Kubernetes' form: `{PriorityClass In [a b]}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            scope,
            operator,
            values,
        } = self;
        write!(f, "{{{scope} {operator} [{}]}}", values.join(" "))
    }
}
