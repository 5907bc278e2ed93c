//! `allot top`: what node, pods and containers use now, against what they asked for and may have.
//!
//! The figures are those that `kubectl top` gets. One that cannot be had is `-`, never 0.

use std::io::Write;

use k8s_openapi::api::core::v1::{Container, Node, Pod};
use k8s_openapi::{List, apimachinery::pkg::api::resource::Quantity as Text};
use serde::Deserialize;
use serde_json::Value;

use super::describe::node::base;
use super::error::CliError;
use super::render::Page;
use super::target::Target;
use super::{Context, OutputForm};
use crate::exit;
use crate::model::ResourceList;
use crate::units::Quantity;

/// Show the CPU and memory in use of node, pods and containers, against requests and limits
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Print one table and end; so far there is nothing else
    #[arg(long, required = true)]
    pub once: bool,
    /// Pods of all namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    pub output: OutputForm,
}

/// Shows the figures once.
///
/// # Errors
/// No daemon, or output that cannot be written.
pub fn run(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let client = context.client()?;
    let namespace = (!args.all_namespaces).then(|| context.namespace());
    let metrics = ["apis", "metrics.k8s.io", "v1beta1"];
    let of_pods = match namespace {
        Some(namespace) => [&metrics[..], &["namespaces", namespace, "pods"]].concat(),
        None => [&metrics[..], &["pods"]].concat(),
    };
    let nodes: Value = client.get(&Target::new(&[&metrics[..], &["nodes"]].concat()))?;
    let pods: Value = client.get(&Target::new(&of_pods))?;
    let answer = serde_json::json!({"nodes": nodes, "pods": pods});
    if args.output.write(&answer, out)? {
        return Ok(exit::OK);
    }
    let read = |list: Value| -> Result<Vec<Metrics>, CliError> {
        let items = list.get("items").cloned().unwrap_or_default();
        let items = serde_json::from_value(items);
        items.map_err(|error| CliError::Failed(format!("the figures cannot be read: {error}")))
    };
    let (nodes, used) = (read(nodes)?, read(pods)?);
    let objects: List<Node> = client.get(&Target::objects(None, "nodes"))?;
    write!(out, "{}", node_page(&nodes, &objects.items))?;
    let objects: List<Pod> = client.get(&Target::objects(namespace, "pods"))?;
    let page = pod_page(&used, &objects.items, args.all_namespaces);
    write!(out, "\n{page}")?;
    Ok(exit::OK)
}

/// Of a node or of a pod.
#[derive(Debug, Deserialize)]
struct Metrics {
    metadata: Named,
    usage: Option<Usage>,
    #[serde(default)]
    containers: Vec<Used>,
}

#[derive(Debug, Deserialize)]
struct Named {
    #[serde(default)]
    namespace: String,
    name: String,
}

#[derive(Debug, Deserialize)]
struct Used {
    name: String,
    usage: Usage,
}

#[derive(Debug, Deserialize)]
struct Usage {
    cpu: String,
    memory: String,
}

/// CPU in thousandths, memory in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amounts {
    cpu: Option<u64>,
    memory: Option<u64>,
}

impl Amounts {
    fn used(usage: &Usage) -> Self {
        let read = |text: &str| text.parse::<Quantity>().ok();
        Self {
            cpu: read(&usage.cpu).map(Quantity::milli),
            memory: read(&usage.memory).map(Quantity::bytes),
        }
    }

    fn of(list: &ResourceList) -> Self {
        Self {
            cpu: list.cpu().map(|cpu| cpu.0),
            memory: list.memory().map(|memory| memory.0),
        }
    }

    fn or_nothing(self) -> Self {
        Self {
            cpu: self.cpu.or(Some(0)),
            memory: self.memory.or(Some(0)),
        }
    }

    /// The sums: absent as soon as one is not known.
    fn sum(all: impl Iterator<Item = Self>) -> Self {
        let none = Self {
            cpu: Some(0),
            memory: Some(0),
        };
        let add = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        all.fold(none, |sum, one| Self {
            cpu: add(sum.cpu, one.cpu),
            memory: add(sum.memory, one.memory),
        })
    }
}

fn node_page(nodes: &[Metrics], objects: &[Node]) -> Page {
    let mut page = Page::table();
    page.texts(0, &["NODE", "CPU", "ALLOCATABLE", "MEMORY", "ALLOCATABLE"]);
    for node in nodes {
        let used = node.usage.as_ref().map(Amounts::used).unwrap_or_default();
        let own = |object: &&Node| object.metadata.name.as_ref() == Some(&node.metadata.name);
        let object = objects.iter().find(own);
        let all = object.map(|object| Amounts::of(&base(object)));
        let all = all.unwrap_or_default();
        page.texts(
            0,
            &[
                node.metadata.name.clone(),
                cpu(used.cpu),
                share(used.cpu, all.cpu, cpu),
                memory(used.memory),
                share(used.memory, all.memory, memory),
            ],
        );
    }
    page
}

fn pod_page(used: &[Metrics], objects: &[Pod], all_namespaces: bool) -> Page {
    let mut page = Page::table();
    let mut line = |namespace: &str, cells: &[String]| {
        let namespace = all_namespaces.then(|| namespace.to_owned());
        let cells: Vec<_> = namespace.into_iter().chain(cells.iter().cloned()).collect();
        page.texts(0, &cells);
    };
    line(
        "NAMESPACE",
        &[
            "POD",
            "CONTAINER",
            "CPU",
            "REQUEST",
            "LIMIT",
            "MEMORY",
            "REQUEST",
            "LIMIT",
        ]
        .map(str::to_owned),
    );
    for pod in used {
        let Named { namespace, name } = &pod.metadata;
        let own = |object: &&Pod| {
            object.metadata.name.as_ref() == Some(name)
                && object.metadata.namespace.as_ref() == Some(namespace)
        };
        let object = objects.iter().find(own);
        let each = pod.containers.iter();
        let sum = Amounts::sum(each.clone().map(|one| Amounts::used(&one.usage)));
        let asked = |one: &Used| {
            let container = object.and_then(|object| container(object, &one.name));
            container.map_or([Amounts::default(); 2], asked_for)
        };
        if each.len() > 1 {
            // What asks for nothing adds nothing; one without a limit leaves all without.
            let requests = each.clone().map(|one| {
                let [requests, _] = asked(one);
                requests.or_nothing()
            });
            let limits = each.clone().map(|one| {
                let [_, limits] = asked(one);
                limits
            });
            let all = [Amounts::sum(requests), Amounts::sum(limits)];
            line(namespace, &cells(name, "(all)", sum, all));
        }
        for one in each {
            let used = Amounts::used(&one.usage);
            line(namespace, &cells(name, &one.name, used, asked(one)));
        }
    }
    page
}

fn cells(
    pod: &str,
    container: &str,
    used: Amounts,
    [requests, limits]: [Amounts; 2],
) -> [String; 8] {
    [
        pod.to_owned(),
        container.to_owned(),
        cpu(used.cpu),
        share(used.cpu, requests.cpu, cpu),
        share(used.cpu, limits.cpu, cpu),
        memory(used.memory),
        share(used.memory, requests.memory, memory),
        share(used.memory, limits.memory, memory),
    ]
}

fn container<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    let spec = pod.spec.as_ref()?;
    let init = spec.init_containers.iter().flatten();
    spec.containers
        .iter()
        .chain(init)
        .find(|container| container.name == name)
}

/// Requests and limits.
fn asked_for(container: &Container) -> [Amounts; 2] {
    let Some(resources) = &container.resources else {
        return [Amounts::default(); 2];
    };
    [&resources.requests, &resources.limits].map(|amounts| {
        let amount = |name: &str| {
            let Text(text) = amounts.as_ref()?.get(name)?;
            text.parse::<Quantity>().ok()
        };
        Amounts {
            cpu: amount("cpu").map(Quantity::milli),
            memory: amount("memory").map(Quantity::bytes),
        }
    })
}

fn cpu(milli: Option<u64>) -> String {
    milli.map_or_else(|| "-".to_owned(), |milli| format!("{milli}m"))
}

/// Whole MiB, rounded up, so that what is there never reads as nothing.
fn memory(bytes: Option<u64>) -> String {
    bytes.map_or_else(
        || "-".to_owned(),
        |bytes| format!("{}Mi", bytes.div_ceil(1 << 20)),
    )
}

/// An amount, and how much of it is in use.
fn share(part: Option<u64>, all: Option<u64>, spelt: fn(Option<u64>) -> String) -> String {
    let percent = part.zip(all).and_then(|(part, all)| {
        let percent = u128::from(part).saturating_mul(100);
        percent.checked_div(u128::from(all))
    });
    match percent {
        Some(percent) => format!("{} ({percent}%)", spelt(all)),
        None => spelt(all),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn use_stands_beside_what_was_asked_for() {
        let used: Vec<Metrics> = serde_json::from_value(json!([{
            "metadata": {"namespace": "default", "name": "web"},
            "containers": [
                {"name": "a", "usage": {"cpu": "249000001n", "memory": "12288Ki"}},
                {"name": "b", "usage": {"cpu": "0n", "memory": "1Ki"}},
            ],
        }]))
        .unwrap();
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"namespace": "default", "name": "web"},
            "spec": {"containers": [
                {"name": "a", "resources": {
                    "requests": {"cpu": "100m", "memory": "6Mi"}, "limits": {"cpu": "1", "memory": "24Mi"},
                }},
                {"name": "b"},
            ]},
        }))
        .unwrap();
        assert_eq!(
            pod_page(&used, &[pod], true).to_string(),
            "\
NAMESPACE   POD   CONTAINER   CPU    REQUEST       LIMIT         MEMORY   REQUEST      LIMIT
default     web   (all)       250m   100m (250%)   -             13Mi     6Mi (200%)   -
default     web   a           250m   100m (250%)   1000m (25%)   12Mi     6Mi (200%)   24Mi (50%)
default     web   b           0m     -             -             1Mi      -            -
"
        );
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        assert_eq!(share(Some(5), Some(0), cpu), "0m");
        assert_eq!(share(None, Some(100), cpu), "100m");
        assert_eq!(cpu(None), "-");
    }
}
