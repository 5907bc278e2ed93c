//! The figures once: a table of the node and one of its pods and containers.
//!
//! Decides layout only. What has no figures yet is left out, as `kubectl top` does.

use std::io::Write;

use super::Args;
use super::units::{milli, percent};
use crate::cli::Context;
use crate::cli::error::CliError;
use crate::cli::render::Page;
use crate::cli::target::Target;
use crate::exit;
use crate::report::top::{Amounts, ContainerTop, NodeTop, PodTop, TopReport, Use};

/// Shows the figures once.
///
/// # Errors
/// No daemon, or output that cannot be written.
pub fn run(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let mut report: TopReport = context.client()?.get(&target())?;
    if !args.all_namespaces {
        let wanted = context.namespace();
        report.pods.retain(|pod| pod.namespace == wanted);
    }
    if args.output.write(&report, out)? {
        return Ok(exit::OK);
    }
    let nodes = node_page(&report.node);
    let pods = pod_page(&report.pods, args.all_namespaces);
    write!(out, "{nodes}\n{pods}")?;
    Ok(exit::OK)
}

/// Where the figures are.
pub fn target() -> Target {
    Target::new(&["apis", "allotd.dev", "v1", "top"])
}

/// What is used: CPU in thousandths, memory in bytes.
fn used(figures: &Use) -> Amounts {
    Amounts {
        cpu_milli: figures.cpu_nano.map(milli),
        memory_bytes: figures.working_set_bytes,
    }
}

/// The sums: absent as soon as one is not known.
fn sum(all: impl Iterator<Item = Amounts>) -> Amounts {
    let none = Amounts {
        cpu_milli: Some(0),
        memory_bytes: Some(0),
    };
    let add = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
    all.fold(none, |sum, one| Amounts {
        cpu_milli: add(sum.cpu_milli, one.cpu_milli),
        memory_bytes: add(sum.memory_bytes, one.memory_bytes),
    })
}

fn or_nothing(amounts: Amounts) -> Amounts {
    Amounts {
        cpu_milli: amounts.cpu_milli.or(Some(0)),
        memory_bytes: amounts.memory_bytes.or(Some(0)),
    }
}

fn node_page(node: &NodeTop) -> Page {
    let mut page = Page::table();
    page.texts(0, &["NODE", "CPU", "ALLOCATABLE", "MEMORY", "ALLOCATABLE"]);
    let (used, all) = (used(&node.used), node.allocatable);
    page.texts(
        0,
        &[
            node.name.clone(),
            cpu(used.cpu_milli),
            share(used.cpu_milli, all.cpu_milli, cpu),
            memory(used.memory_bytes),
            share(used.memory_bytes, all.memory_bytes, memory),
        ],
    );
    page
}

fn pod_page(pods: &[PodTop], all_namespaces: bool) -> Page {
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
    for PodTop {
        namespace,
        name,
        containers,
        ..
    } in pods
    {
        let is_known = |one: &&ContainerTop| {
            let used = used(&one.used);
            used.cpu_milli.is_some() && used.memory_bytes.is_some()
        };
        let each = containers.iter().filter(is_known);
        if each.clone().count() > 1 {
            // What asks for nothing adds nothing; one without a limit leaves all without.
            let requests = sum(each.clone().map(|one| or_nothing(one.requests)));
            let limits = sum(each.clone().map(|one| one.limits));
            let all = sum(each.clone().map(|one| used(&one.used)));
            line(namespace, &cells(name, "(all)", all, [requests, limits]));
        }
        for one in each {
            let asked = [one.requests, one.limits];
            line(namespace, &cells(name, &one.name, used(&one.used), asked));
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
        cpu(used.cpu_milli),
        share(used.cpu_milli, requests.cpu_milli, cpu),
        share(used.cpu_milli, limits.cpu_milli, cpu),
        memory(used.memory_bytes),
        share(used.memory_bytes, requests.memory_bytes, memory),
        share(used.memory_bytes, limits.memory_bytes, memory),
    ]
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
    match percent(part, all) {
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
        let pods: Vec<PodTop> = serde_json::from_value(json!([{
            "namespace": "default", "name": "web",
            "containers": [
                {"name": "a", "cpuNano": 249_000_001, "workingSetBytes": 12 << 20,
                    "requests": {"cpuMilli": 100, "memoryBytes": 6 << 20},
                    "limits": {"cpuMilli": 1000, "memoryBytes": 24 << 20}},
                {"name": "b", "cpuNano": 0, "workingSetBytes": 1024},
                {"name": "has-just-begun", "workingSetBytes": 1024},
            ],
        }]))
        .unwrap();
        assert_eq!(
            pod_page(&pods, true).to_string(),
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
