//! `allot events`: what happened, oldest first.

use std::io::Write;

use serde::Deserialize;
use serde_json::Value;

use super::error::CliError;
use super::tables::{self, Shape};
use super::target::Target;
use super::{Context, pod_name};
use crate::exit;
use crate::model::kind::EVENT;

/// Show what happened, oldest first
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Only events about this pod
    #[arg(value_name = "[NAMESPACE/]POD")]
    pub pod: Option<String>,
    /// Events of all namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,
    /// Only events of this type, such as Warning
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
}

#[derive(Deserialize)]
struct List {
    items: Vec<Value>,
}

/// Shows events.
///
/// # Errors
/// No daemon, or output that cannot be written.
pub fn run(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let pod = args.pod.as_deref().map(|text| pod_name(text, context));
    let pod = pod.transpose()?;
    let namespace = match pod {
        Some((namespace, _)) => Some(namespace),
        None => (!args.all_namespaces).then(|| context.namespace()),
    };
    let client = context.client()?;
    let mut fields = Vec::new();
    if let Some((_, name)) = pod {
        fields.extend([
            "involvedObject.kind=Pod".to_owned(),
            format!("involvedObject.name={name}"),
        ]);
    }
    let target = Target::kind(EVENT, namespace).with("fieldSelector", &fields.join(","));
    let mut events: List = client.get(&target)?;
    events.items.retain(|event| {
        args.kind.as_deref().is_none_or(|wanted| {
            let kind = event.get("type").and_then(Value::as_str);
            kind.is_some_and(|kind| kind.eq_ignore_ascii_case(wanted))
        })
    });
    if events.items.is_empty() {
        context.say("No events found.");
        return Ok(exit::OK);
    }
    let shape = Shape {
        namespace: namespace.is_none(),
        ..Shape::default()
    };
    let page = tables::page(EVENT, &events.items, shape, context.clock.now);
    write!(out, "{page}")?;
    Ok(exit::OK)
}
