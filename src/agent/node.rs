//! The node made from the machine's facts, the configuration and what was advertised.

use k8s_openapi::api::core::v1;
use serde_json::Value;

use super::events::Severity;
use super::request::Refusal;
use super::run::{Agent, put};
use crate::config::Config;
use crate::model::node::{HardEviction, allocatable};
use crate::model::{Node, ResourceList, ResourceName};
use crate::observation::node::NodeFacts;
use crate::report;
use crate::units::Quantity;
use crate::units::quantity::Format;

/// The store key of the extended resources that were advertised through the API.
pub(super) const ADVERTISED_KEY: &str = "node/advertised";

/// The node's name: the configured one, or the machine's.
pub(super) fn name(config: &Config) -> String {
    if !config.node_name.is_empty() {
        return config.node_name.clone();
    }
    nix::unistd::gethostname()
        .ok()
        .and_then(|name| name.into_string().ok())
        .map(|name| name.to_lowercase())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "localhost".to_owned())
}

/// The node; `advertised` are extended resources beside those of the configuration.
///
/// # Errors
/// A reservation above the capacity; all are named.
pub fn build(
    config: &Config,
    facts: &NodeFacts,
    advertised: &ResourceList,
) -> Result<Node, Vec<String>> {
    let mut capacity = facts.capacity.clone();
    capacity.set(
        ResourceName::Pods,
        Quantity::from_units(config.max_pods.into(), Format::DecimalSi),
    );
    for (name, amount) in &config.extended_resources {
        capacity.set(name.as_str().into(), *amount);
    }
    for (name, amount) in advertised.iter() {
        capacity.set(name.clone(), amount);
    }
    let mut reserved = ResourceList::default();
    for list in [&config.system_reserved, &config.kube_reserved] {
        let list = list
            .iter()
            .filter(|(name, _)| name.as_str() != "pid")
            .map(|(name, amount)| (name.as_str().into(), *amount));
        reserved.add(&list.collect());
    }
    let cpu = config.reserved_cpu();
    if !cpu.is_zero() {
        reserved.set(ResourceName::Cpu, cpu);
    }
    let eviction = HardEviction::read(&config.eviction_hard)?;
    let allocatable = allocatable(&capacity, &reserved, &eviction)?;
    Ok(Node {
        name: name(config),
        capacity,
        reserved,
        allocatable,
        page_size: facts.page_size,
        max_pids: facts.max_pids,
        reserved_pids: config.reserved_pids(),
        swap: facts.swap,
    })
}

impl Agent {
    /// The node object.
    pub(super) fn node_object(&self) -> Box<v1::Node> {
        Box::new(report::node::object(
            &self.node,
            &self.system,
            &self.problems.values().cloned().collect::<Vec<_>>(),
            self.evictor.conditions(),
            self.started,
            self.node_told.0,
        ))
    }

    /// Changes the extended resources in `status.capacity`; nothing else of a node can be changed.
    pub(super) fn patch_node(
        &mut self,
        patch: &json_patch::Patch,
    ) -> Result<Box<v1::Node>, Refusal> {
        let invalid = |message: String| Refusal::new(422, "Invalid", message);
        let before = serde_json::to_value(self.node_object())
            .map_err(|error| Refusal::internal(error.to_string()))?;
        let mut after = before.clone();
        json_patch::patch(&mut after, patch)
            .map_err(|error| invalid(format!("the patch does not apply: {error}")))?;
        let (capacity, rest) = take_capacity(after);
        let (capacity_before, rest_before) = take_capacity(before);
        if rest != rest_before {
            return Err(invalid(
                "the patch changes more than /status/capacity: only extended resources there can be changed".to_owned(),
            ));
        }
        let mut advertised = ResourceList::default();
        for (name, amount) in capacity.as_object().into_iter().flatten() {
            let resource = ResourceName::from(name.as_str());
            if !resource.is_extended() {
                if capacity_before.get(name) == Some(amount) {
                    continue;
                }
                return Err(invalid(format!(
                    "status.capacity[{name}]: measured by allotd; only extended resources (DOMAIN/NAME) can be advertised"
                )));
            }
            let amount: Quantity = serde_json::from_value(amount.clone())
                .map_err(|error| invalid(format!("status.capacity[{name}]: {error}")))?;
            if amount.is_negative() || !amount.is_integer() {
                return Err(invalid(format!(
                    "status.capacity[{name}]: Invalid value: \"{amount}\": must be a whole number, 0 or more"
                )));
            }
            advertised.set(resource, amount);
        }
        if let Some(missing) =
            capacity_before
                .as_object()
                .into_iter()
                .flatten()
                .find(|(name, _)| {
                    !ResourceName::from(name.as_str()).is_extended()
                        && capacity.get(name.as_str()).is_none()
                })
        {
            return Err(invalid(format!(
                "status.capacity[{}]: measured by allotd, it cannot be removed",
                missing.0
            )));
        }
        self.advertise(advertised)
    }

    fn advertise(&mut self, advertised: ResourceList) -> Result<Box<v1::Node>, Refusal> {
        let node = build(&self.config, &self.facts, &advertised)
            .map_err(|problems| Refusal::new(422, "Invalid", problems.join("; ")))?;
        let spelt = report::node::api_list(&advertised);
        let change = put(ADVERTISED_KEY, &spelt)
            .ok_or_else(|| Refusal::internal("the resources have no JSON form"))?;
        self.commit(vec![change])
            .map_err(|error| Refusal::not_durable(error.to_string()))?;
        self.node = node;
        self.advertised = advertised;
        self.node_told.0 = 0;
        self.publish_node();
        let list: Vec<_> = spelt
            .iter()
            .map(|(name, amount)| format!("{name}: {}", amount.0))
            .collect();
        self.node_event(
            Severity::Normal,
            "ResourcesAdvertised",
            &format!("extended resources are now {}", list.join(", ")),
        );
        Ok(self.node_object())
    }
}

/// Splits `status.capacity` off a node.
fn take_capacity(mut node: Value) -> (Value, Value) {
    let capacity = node
        .pointer_mut("/status/capacity")
        .map(Value::take)
        .unwrap_or_default();
    (capacity, node)
}
