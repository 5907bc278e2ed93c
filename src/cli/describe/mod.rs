//! `allot describe`: everything about an object on one page, in the layout of `kubectl describe`.

mod probes;
pub mod node;
pub mod object;
pub mod pod;
pub mod policy;
pub mod usage;

use std::collections::BTreeMap;
use std::io::Write;

use k8s_openapi::List;
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::apply::LAST_APPLIED;
use super::choice::Objects;
use super::client::Client;
use super::error::CliError;
use super::kinds::Lookup;
use super::render::{Clock, Page};
use super::target::Target;
use super::{Context, pod_name};
use crate::exit;
use crate::model;
use crate::model::kind::{APPLIED_QUOTA, CLUSTER_QUOTA, LIMIT_RANGE, NODE, POD, RESOURCE_QUOTA};
use crate::report::PodUsage;
use crate::report::table::last_seen;

/// Show all about pods, nodes, quotas, limits or other objects
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Which objects
    #[command(flatten)]
    pub objects: Objects,
}

/// Describes what is named, or all.
///
/// # Errors
/// No daemon, no such object, or output that cannot be written.
pub fn run(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let client = context.client()?;
    let kinds = Lookup::default().chosen(&args.objects.kinds, &client)?;
    let mut pages = Vec::new();
    for kind in kinds.as_slice() {
        pages.extend(match *kind {
            POD => describe_pods(args, context, &client)?,
            NODE => describe_nodes(args, context, &client)?,
            RESOURCE_QUOTA => describe_each(args, context, &client, *kind, policy::quota)?,
            CLUSTER_QUOTA | APPLIED_QUOTA => {
                describe_each(args, context, &client, *kind, policy::cluster_quota)?
            }
            LIMIT_RANGE => describe_each(args, context, &client, *kind, policy::limit_range)?,
            _ => {
                let events: List<Event> = client.get(&Target::objects(None, "events"))?;
                describe_each(args, context, &client, *kind, |value: &Value| {
                    object::page(*kind, value, &events.items, &context.clock)
                })?
            }
        });
    }
    if pages.is_empty() {
        context.say("No resources found.");
    }
    let pages: Vec<_> = pages.iter().map(ToString::to_string).collect();
    write!(out, "{}", pages.join("\n\n"))?;
    Ok(exit::OK)
}

fn describe_pods(args: &Args, context: &Context, client: &Client) -> Result<Vec<Page>, CliError> {
    let pods: Vec<Pod> = if args.objects.names.is_empty() {
        let namespace = args.objects.namespace(context);
        let list: List<Pod> = client.get(&Target::objects(namespace, "pods"))?;
        list.items
    } else {
        let names = args.objects.names.iter();
        names
            .map(|text| {
                let (namespace, name) = pod_name(text, context)?;
                client.get(&Target::objects(Some(namespace), "pods").below(name))
            })
            .collect::<Result<_, _>>()?
    };
    let events: List<Event> = client.get(&Target::objects(None, "events"))?;
    let pages = pods.iter().map(|pod| {
        let own: Vec<Event> = events
            .items
            .iter()
            .filter(|event| {
                let about = &event.involved_object;
                about.uid == pod.metadata.uid && about.name == pod.metadata.name
            })
            .cloned()
            .collect();
        // A pod that went meanwhile has no use any more; its description still stands.
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let usage: Option<PodUsage> = client
            .get(&Target::own_pod(namespace, name).below("usage"))
            .ok();
        pod::page(pod, &own, usage.as_ref(), &context.clock)
    });
    Ok(pages.collect())
}

/// Objects of a kind that is described by what is in them alone.
fn describe_each<T: DeserializeOwned>(
    args: &Args,
    context: &Context,
    client: &Client,
    kind: model::Kind,
    page: impl Fn(&T) -> Page,
) -> Result<Vec<Page>, CliError> {
    let objects: Vec<T> = if args.objects.names.is_empty() {
        let namespace = args.objects.namespace(context);
        let list: Items<T> = client.get(&Target::kind(kind, namespace))?;
        list.items
    } else {
        let names = args.objects.names.iter();
        names
            .map(|text| {
                if !kind.namespaced {
                    return client.get(&Target::kind(kind, None).below(text));
                }
                let (namespace, name) = pod_name(text, context)?;
                client.get(&Target::kind(kind, Some(namespace)).below(name))
            })
            .collect::<Result<_, _>>()?
    };
    Ok(objects.iter().map(page).collect())
}

/// A list of objects.
#[derive(Deserialize)]
struct Items<T> {
    items: Vec<T>,
}

fn describe_nodes(args: &Args, context: &Context, client: &Client) -> Result<Vec<Page>, CliError> {
    let nodes: Vec<Node> = if args.objects.names.is_empty() {
        let list: List<Node> = client.get(&Target::objects(None, "nodes"))?;
        list.items
    } else {
        let names = args.objects.names.iter();
        names
            .map(|name| client.get(&Target::objects(None, "nodes").below(name)))
            .collect::<Result<_, _>>()?
    };
    let pods: List<Pod> = client.get(&Target::objects(None, "pods"))?;
    let events: List<Event> = client.get(&Target::objects(None, "events"))?;
    let pages = nodes.iter().map(|node| {
        let own: Vec<Event> = events
            .items
            .iter()
            .filter(|event| {
                let about = &event.involved_object;
                about.kind.as_deref() == Some("Node") && about.name == node.metadata.name
            })
            .cloned()
            .collect();
        node::page(node, &pods.items, &own, &context.clock)
    });
    Ok(pages.collect())
}

/// Labels or annotations, one in a line, the name in front of the first. What was applied last is the whole
/// object once more, a secret's content too; `kubectl` leaves it out as well.
fn map(page: &mut Page, name: &str, map: Option<&BTreeMap<String, String>>, between: &str) {
    let shown = map.into_iter().flatten();
    let shown: Vec<_> = shown.filter(|(key, _)| *key != LAST_APPLIED).collect();
    if shown.is_empty() {
        page.texts(0, &[name, "<none>"]);
    }
    for (index, (key, value)) in shown.into_iter().enumerate() {
        let name = if index == 0 { name } else { "" };
        page.texts(0, &[name, &format!("{key}{between}{value}")]);
    }
}

/// The events about an object, oldest first.
fn write_events(page: &mut Page, events: &[Event], clock: &Clock) {
    if events.is_empty() {
        page.texts(0, &["Events:", "<none>"]);
        return;
    }
    page.texts(0, &["Events:"]);
    page.texts(1, &["Type", "Reason", "Age", "From", "Message"]);
    page.texts(1, &["----", "------", "----", "----", "-------"]);
    for event in events {
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let mut age = last_seen(event, clock.now);
        if let Some(count) = event.count.filter(|count| *count > 1) {
            let over = clock.age(event.first_timestamp.as_ref());
            age = format!("{age} (x{count} over {over})");
        }
        let source = event
            .source
            .as_ref()
            .and_then(|source| source.component.clone());
        page.texts(
            1,
            &[
                text(&event.type_),
                text(&event.reason),
                age,
                source.unwrap_or_else(|| text(&event.reporting_component)),
                text(&event.message),
            ],
        );
    }
}
