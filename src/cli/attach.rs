//! `allot attach`: a process that runs already comes under a container's limits.

use std::io::Write;

use serde_json::{Value, json};

use super::client::Answer;
use super::error::CliError;
use super::target::Target;
use super::{Context, pod_name};
use crate::exit;

/// Put a running process into a container that waits for one
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The pod
    #[arg(value_name = "[NAMESPACE/]POD")]
    pub pod: String,
    /// The container
    pub container: String,
    /// The process
    #[arg(long, value_parser = clap::value_parser!(i32).range(2..))]
    pub pid: i32,
    /// Its descendants too
    #[arg(long)]
    pub children: bool,
}

/// Attaches a process.
///
/// # Errors
/// No daemon, a refusal, or output that cannot be written.
pub fn run(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let (namespace, name) = pod_name(&args.pod, context)?;
    let body = json!({
        "container": args.container,
        "pid": args.pid,
        "children": args.children,
    });
    let target = Target::own_pod(namespace, name).below("attach");
    let answer: Answer<Value> = context.client()?.post(&target, &body)?;
    let moved = answer.object.get("attached").and_then(Value::as_array);
    let moved: Vec<_> = moved.into_iter().flatten().map(Value::to_string).collect();
    writeln!(
        out,
        "attached to {namespace}/{name} {}: {}",
        args.container,
        moved.join(" ")
    )?;
    Ok(exit::OK)
}
