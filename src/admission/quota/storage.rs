//! What a claim for storage uses (Kubernetes 1.36 `pvcEvaluator`).

use super::Demand;
use super::scope::Traits;
use crate::model::ResourceName;
use crate::units::Quantity;

/// What follows the name of a storage class in a key.
pub(in crate::admission) const STORAGE_CLASS: &str = ".storageclass.storage.k8s.io/";

/// A PersistentVolumeClaim, as far as quotas look at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageClaim {
    /// `spec.resources.requests.storage`
    pub request: Option<Quantity>,
    /// `status.allocatedResources.storage`
    pub allocated: Option<Quantity>,
    /// `spec.storageClassName`
    pub storage_class: Option<String>,
    /// The volume attributes classes that it has and that it is to have.
    pub attributes_classes: Vec<String>,
}

impl StorageClaim {
    /// What it asks of quotas: the larger of what it asks for and what it has, in whole bytes.
    pub fn demand(&self) -> Demand {
        let storage = self.request.max(self.allocated);
        let storage = storage.map(|storage| storage.round_up(0));
        let mut usage: Vec<_> = storage
            .map(|storage| (ResourceName::from("requests.storage"), storage))
            .into_iter()
            .collect();
        let mut demand = Demand::of_object("persistentvolumeclaims");
        let class = self
            .storage_class
            .as_ref()
            .filter(|class| !class.is_empty());
        if let Some(class) = class {
            let key = |what: &str| ResourceName::Other(format!("{class}{STORAGE_CLASS}{what}"));
            usage.extend(storage.map(|storage| (key("requests.storage"), storage)));
            let one = demand
                .usage()
                .get(&ResourceName::from("persistentvolumeclaims"));
            usage.extend(one.map(|one| (key("persistentvolumeclaims"), one)));
        }
        demand = demand.with(usage);
        demand.with_traits(Traits::of_claim(self.attributes_classes.iter().cloned()))
    }
}
