//! Nodes, as far as admission asks for them.

use k8s_openapi::api::core::v1;

use super::{Converted, list};
use crate::model::Node;
use crate::units::{Bytes, PageSize, Quantity};

/// A node. What it reserves is what its capacity has and its allocatable lacks; without
/// allocatable it gives all it has.
pub fn node(node: &v1::Node) -> Converted<Node> {
    let mut problems = Vec::new();
    let status = node.status.clone().unwrap_or_default();
    let capacity = list(status.capacity.as_ref(), "status.capacity", &mut problems);
    let allocatable = match &status.allocatable {
        None => capacity.clone(),
        given => list(given.as_ref(), "status.allocatable", &mut problems),
    };
    let reserved = capacity
        .iter()
        .filter_map(|(name, amount)| {
            let kept = amount.checked_sub(allocatable.get(name)?)?;
            (kept > Quantity::ZERO).then(|| (name.clone(), kept))
        })
        .collect();
    let swap = status
        .node_info
        .and_then(|info| info.swap?.capacity)
        .map_or(0, |swap| u64::try_from(swap).unwrap_or(0));
    let object = Node {
        name: node.metadata.name.clone().unwrap_or_default(),
        capacity,
        reserved,
        allocatable,
        page_size: PageSize::FOUR_KIB,
        max_pids: None,
        reserved_pids: 0,
        swap: Bytes(swap),
    };
    Converted {
        object,
        problems,
        notes: Vec::new(),
    }
}
