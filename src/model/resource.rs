//! Names and amounts of resources.
//!
//! Decides which names are one resource (`hugepages-2Mi` and `hugepages-2097152` are), never
//! whether a name is allowed somewhere: that is `admission::validate`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::units::{Bytes, HugePageSize, MilliCpu, Quantity};

/// The name of a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceName {
    /// `cpu`, counted in thousandths.
    Cpu,
    /// `memory`, in bytes.
    Memory,
    /// `ephemeral-storage`, in bytes.
    EphemeralStorage,
    /// `hugepages-SIZE`, in bytes.
    HugePages(HugePageSize),
    /// `pods`: of a node, how many it takes.
    Pods,
    /// Any other name: an extended resource such as `example.com/foo`, or a name that is wrong.
    Other(String),
}

impl ResourceName {
    /// An extended resource: qualified by a domain that is not Kubernetes' own, and not a quota
    /// key (`requests.…`). Counted in whole pieces, never overcommitted
    /// (Kubernetes 1.36 `IsExtendedResourceName`).
    pub fn is_extended(&self) -> bool {
        match self {
            Self::Other(name) => {
                name.contains('/')
                    && !name.contains("kubernetes.io/")
                    && !name.starts_with("requests.")
            }
            _ => false,
        }
    }

    /// Whether `spec.resources` may name it: cpu, memory and huge pages (KEP-2837).
    pub fn is_pod_level(&self) -> bool {
        matches!(self, Self::Cpu | Self::Memory | Self::HugePages(_))
    }

    /// Whether a request must equal its limit: huge pages and extended resources.
    pub fn is_never_overcommitted(&self) -> bool {
        matches!(self, Self::HugePages(_)) || self.is_extended()
    }
}

impl From<&str> for ResourceName {
    fn from(name: &str) -> Self {
        match name {
            "cpu" => Self::Cpu,
            "memory" => Self::Memory,
            "ephemeral-storage" => Self::EphemeralStorage,
            "pods" => Self::Pods,
            _ => {
                let in_quota = || huge_pages(name.strip_prefix("requests.")?);
                if let Some(pages) = huge_pages(name) {
                    pages
                } else if let Some(pages) = in_quota() {
                    Self::Other(format!("requests.{pages}"))
                } else {
                    Self::Other(name.to_owned())
                }
            }
        }
    }
}

/// The one name of huge pages of a size, if this is a name of some.
fn huge_pages(name: &str) -> Option<ResourceName> {
    let size = Quantity::from_str(name.strip_prefix("hugepages-")?).ok()?;
    HugePageSize::new(size.to_u64_ceil()?).map(ResourceName::HugePages)
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Memory => f.write_str("memory"),
            Self::EphemeralStorage => f.write_str("ephemeral-storage"),
            Self::Pods => f.write_str("pods"),
            Self::HugePages(size) => write!(f, "hugepages-{}", size.kubernetes_name()),
            Self::Other(name) => f.write_str(name),
        }
    }
}

/// Amounts by resource. A resource that is absent was not named: absent is not zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceList(BTreeMap<ResourceName, Quantity>);

impl ResourceList {
    /// The amount of a resource, if it is named.
    pub fn get(&self, name: &ResourceName) -> Option<Quantity> {
        self.0.get(name).copied()
    }

    /// Sets the amount of a resource.
    pub fn set(&mut self, name: ResourceName, amount: Quantity) {
        self.0.insert(name, amount);
    }

    /// Takes a resource out.
    pub fn remove(&mut self, name: &ResourceName) -> Option<Quantity> {
        self.0.remove(name)
    }

    /// Whether the resource is named.
    pub fn contains(&self, name: &ResourceName) -> bool {
        self.0.contains_key(name)
    }

    /// Whether no resource is named.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and amounts, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (&ResourceName, Quantity)> {
        self.0.iter().map(|(name, amount)| (name, *amount))
    }

    /// The CPU amount in thousandths, rounded up; `None` where not named.
    pub fn cpu(&self) -> Option<MilliCpu> {
        self.get(&ResourceName::Cpu).map(|q| MilliCpu(q.milli()))
    }

    /// The memory amount, rounded up to a byte; `None` where not named.
    pub fn memory(&self) -> Option<Bytes> {
        self.bytes(&ResourceName::Memory)
    }

    /// The amount of a resource counted in bytes or pieces, rounded up; `None` where not named.
    pub fn bytes(&self, name: &ResourceName) -> Option<Bytes> {
        self.get(name).map(|q| Bytes(q.bytes()))
    }

    /// Adds every amount of the other list; sums stay within the range of `Quantity`.
    pub fn add(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            let sum = self
                .get(name)
                .map_or(amount, |own| own.saturating_add(amount));
            self.set(name.clone(), sum);
        }
    }

    /// Takes every amount of the other list away from what is named here; nothing falls below zero.
    pub fn subtract(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            if let Some(own) = self.get(name) {
                let left = own.checked_sub(amount).unwrap_or(Quantity::ZERO);
                self.set(name.clone(), left.max(Quantity::ZERO));
            }
        }
    }

    /// Raises every amount to that of the other list where that is greater.
    pub fn raise_to(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            if self.get(name).is_none_or(|own| own < amount) {
                self.set(name.clone(), amount);
            }
        }
    }
}

impl FromIterator<(ResourceName, Quantity)> for ResourceList {
    fn from_iter<I: IntoIterator<Item = (ResourceName, Quantity)>>(amounts: I) -> Self {
        Self(amounts.into_iter().collect())
    }
}

/// Which of the two lists of `Resources` is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum List {
    /// `requests`
    Requests,
    /// `limits`
    Limits,
}

impl fmt::Display for List {
    /// The field's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requests => "requests",
            Self::Limits => "limits",
        })
    }
}

/// What is asked for (`requests`) and what is allowed at the most (`limits`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Kubernetes' `requests`.
    pub requests: ResourceList,
    /// Kubernetes' `limits`.
    pub limits: ResourceList,
}

impl Resources {
    /// One of the two lists.
    pub fn list(&self, list: List) -> &ResourceList {
        match list {
            List::Requests => &self.requests,
            List::Limits => &self.limits,
        }
    }

    /// One of the two lists, to be changed.
    pub fn list_mut(&mut self, list: List) -> &mut ResourceList {
        match list {
            List::Requests => &mut self.requests,
            List::Limits => &mut self.limits,
        }
    }

    /// Whether neither list names a resource.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.limits.is_empty()
    }
}
