//! What a service uses (Kubernetes 1.36 `serviceEvaluator`).

use super::Demand;
use crate::model::ResourceName;
use crate::units::{Format, Quantity};

/// How a service is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServiceType {
    /// Within the cluster, or by name.
    #[default]
    Other,
    /// `NodePort`
    NodePort,
    /// `LoadBalancer`
    LoadBalancer,
}

/// A Service, as far as quotas look at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// `spec.type`
    pub kind: ServiceType,
    /// `spec.ports`: of each, whether it names its node port.
    pub ports: Vec<bool>,
    /// `spec.allocateLoadBalancerNodePorts` is false: node ports are only those that are named.
    pub only_named_node_ports: bool,
}

impl Service {
    /// What it asks of quotas.
    pub fn demand(&self) -> Demand {
        let balancers = u64::from(self.kind == ServiceType::LoadBalancer);
        let node_ports = match self.kind {
            ServiceType::Other => 0,
            ServiceType::LoadBalancer if self.only_named_node_ports => {
                self.ports.iter().filter(|named| **named).count()
            }
            ServiceType::LoadBalancer | ServiceType::NodePort => self.ports.len(),
        };
        let node_ports = u64::try_from(node_ports).unwrap_or(u64::MAX);
        let counts = [
            ("services.loadbalancers", balancers),
            ("services.nodeports", node_ports),
        ];
        Demand::of_object("services").with(counts.map(|(key, number)| {
            let number = Quantity::from_units(number, Format::DecimalSi);
            (ResourceName::from(key), number)
        }))
    }
}
