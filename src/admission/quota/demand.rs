//! What one object uses, by the keys that quotas count (Kubernetes 1.36 `pkg/quota/v1/evaluator/core`).

use std::collections::BTreeMap;

use super::scope::Traits;
use crate::model::{EffectivePod, List, Pod, QosClass, ResourceList, ResourceName, ResourceQuota};
use crate::units::{Format, Quantity};

/// What one object asks of the quotas of its namespace.
#[derive(Clone, Debug)]
pub struct Demand {
    /// `pods`, `services`, `jobs.batch` …
    resource: String,
    usage: ResourceList,
    traits: Traits,
    unspecified: BTreeMap<ResourceName, Vec<String>>,
}

impl Demand {
    /// A pod that is not over. While a resize is under way, the larger of what it asks for and what is
    /// in force counts: [`Demand::raised_to`].
    pub fn of_pod(pod: &Pod, effective: &EffectivePod) -> Self {
        let mut demand = Self::of_ended_pod(pod);
        demand.usage.set(ResourceName::Pods, one());
        for (name, amount) in effective.requests.iter() {
            for key in request_keys(name) {
                demand.usage.set(key, amount);
            }
        }
        for (name, amount) in effective.limits.iter().filter(|(name, _)| is_compute(name)) {
            demand.usage.set(key(List::Limits, name), amount);
        }
        demand.unspecified = unspecified(pod);
        demand
    }

    /// A pod that is over: it is still stored, and holds nothing else.
    pub fn of_ended_pod(pod: &Pod) -> Self {
        Self {
            traits: Traits::of_pod(pod, QosClass::of(pod)),
            ..Self::of_object("pods")
        }
    }

    /// An object that is merely counted. `resource` is the plural of its kind, followed by a point and
    /// the API group unless that is the core: `configmaps`, `jobs.batch`.
    pub fn of_object(resource: &str) -> Self {
        let mut usage = ResourceList::default();
        usage.set(ResourceName::Other(format!("count/{resource}")), one());
        // Some kinds are counted under a bare name as well.
        let bare = match resource {
            "configmaps"
            | "persistentvolumeclaims"
            | "replicationcontrollers"
            | "resourcequotas"
            | "secrets"
            | "services" => Some(resource),
            "imagestreams.image.openshift.io" => Some("openshift.io/imagestreams"),
            _ => None,
        };
        if let Some(key) = bare {
            usage.set(ResourceName::from(key), one());
        }
        Self {
            resource: resource.to_owned(),
            usage,
            traits: Traits::default(),
            unspecified: BTreeMap::new(),
        }
    }

    /// The same with more: what is in it already stays.
    pub(super) fn with(
        mut self,
        usage: impl IntoIterator<Item = (ResourceName, Quantity)>,
    ) -> Self {
        for (key, amount) in usage {
            self.usage.set(key, amount);
        }
        self
    }

    /// The same, with these traits.
    pub(super) fn with_traits(self, traits: Traits) -> Self {
        Self { traits, ..self }
    }

    /// The larger of both, key by key.
    #[must_use]
    pub fn raised_to(mut self, other: &Self) -> Self {
        self.usage.raise_to(&other.usage);
        self
    }

    /// `pods`, `services`, `jobs.batch` …
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// How much of each key it uses.
    pub fn usage(&self) -> &ResourceList {
        &self.usage
    }

    /// Keys that some containers leave out although they must give them where they are counted, with
    /// those containers.
    pub fn unspecified(&self) -> &BTreeMap<ResourceName, Vec<String>> {
        &self.unspecified
    }

    /// Scopes that match it.
    pub fn traits(&self) -> &Traits {
        &self.traits
    }

    /// Whether a quota's scopes match it.
    pub fn matches(&self, quota: &ResourceQuota) -> bool {
        quota.terms().all(|term| self.traits.match_term(&term))
    }
}

/// The keys under which a pod's request is counted. A native resource that Kubernetes does not know is
/// not counted at all.
fn request_keys(name: &ResourceName) -> Vec<ResourceName> {
    let prefixed = key(List::Requests, name);
    match name {
        ResourceName::HugePages(_) => vec![name.clone(), prefixed],
        _ if is_compute(name) => vec![name.clone(), prefixed],
        _ if name.is_extended() || name.to_string().starts_with(DEVICE_CLASS) => vec![prefixed],
        _ => Vec::new(),
    }
}

/// Devices that are claimed as if they were extended resources (Kubernetes 1.36, KEP-5004).
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";

fn is_compute(name: &ResourceName) -> bool {
    matches!(
        name,
        ResourceName::Cpu | ResourceName::Memory | ResourceName::EphemeralStorage
    )
}

fn key(list: List, name: &ResourceName) -> ResourceName {
    ResourceName::Other(format!("{list}.{name}"))
}

/// What each container leaves out of cpu and memory, init containers included. Zero is given. Where the
/// pod gives amounts as a whole, its containers need none. Ephemeral storage, huge pages and extended
/// resources are never asked for.
fn unspecified(pod: &Pod) -> BTreeMap<ResourceName, Vec<String>> {
    let mut missing: BTreeMap<_, Vec<String>> = BTreeMap::new();
    if pod.resources.as_ref().is_some_and(|own| !own.is_empty()) {
        return missing;
    }
    for (_, _, container) in pod.all_containers() {
        for name in [ResourceName::Cpu, ResourceName::Memory] {
            let mut keys = Vec::new();
            if !container.resources.requests.contains(&name) {
                keys.extend(request_keys(&name));
            }
            if !container.resources.limits.contains(&name) {
                keys.push(key(List::Limits, &name));
            }
            for key in keys {
                missing.entry(key).or_default().push(container.name.clone());
            }
        }
    }
    for containers in missing.values_mut() {
        containers.sort();
    }
    missing
}

fn one() -> Quantity {
    Quantity::from_units(1, Format::DecimalSi)
}
