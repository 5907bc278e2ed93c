//! The node that an input is judged for.

use k8s_openapi::api::core::v1;

use super::of_input;
use crate::agent::build_node;
use crate::config::Config;
use crate::manifest::{Located, Object, Problem, convert};
use crate::model::{Node, ResourceList};
use crate::observation;

/// The node of the input, or this machine; and which of the two it is, `input` or `machine`.
pub fn node(
    given: &[(&Located<Object>, &v1::Node)],
    config: &Config,
    problems: &mut Vec<Problem>,
) -> Option<(Node, &'static str)> {
    let Some(((located, node), more)) = given.split_first() else {
        return match this_machine(config) {
            Ok(node) => Some((node, "machine")),
            Err(message) => {
                let message = format!("there is no Node in the input, and {message}");
                problems.push(of_input(message));
                None
            }
        };
    };
    for (located, node) in more {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let message = format!("node {name} is one too many: pods are judged for one node");
        problems.push(located.problem("kind", message));
    }
    let converted = convert::node(node);
    let unreadable = converted.problems.into_iter();
    problems.extend(unreadable.map(|remark| located.problem(&remark.field, remark.message)));
    if converted.object.capacity.is_empty() && converted.object.allocatable.is_empty() {
        let message = "status.capacity is missing: it says what the node has, as in {cpu: 2, memory: 8Gi, pods: 110}";
        problems.push(located.problem("status", message));
    }
    Some((converted.object, "input"))
}

fn this_machine(config: &Config) -> Result<Node, String> {
    // The state directory may not be there yet, but a directory above it is.
    let disk = config.state_dir.ancestors().find(|dir| dir.is_dir());
    let disk = disk.unwrap_or(std::path::Path::new("/"));
    let facts = observation::node::read(disk)
        .map_err(|error| format!("this machine cannot be read: {error}"))?;
    build_node(config, &facts, &ResourceList::default()).map_err(|problems| {
        format!(
            "this machine cannot keep what is reserved: {}",
            problems.join("; ")
        )
    })
}
