//! `allot events`: what happened, oldest first.

use std::io::Write;

use serde::Deserialize;
use serde_json::Value;

use super::Context;
use super::choice::OfPod;
use super::error::CliError;
use super::tables::{self, Shape};
use super::target::Target;
use crate::exit;
use crate::model::kind::EVENT;

/// Show what happened, oldest first
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// About what
    #[command(flatten)]
    pub whose: OfPod,
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
    let (namespace, pod) = args.whose.chosen(context)?;
    let client = context.client()?;
    let mut fields = Vec::new();
    if let Some(name) = pod {
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
