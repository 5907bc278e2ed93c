//! `allot logs`: what a container wrote, byte for byte.

use std::io::Write;

use super::error::CliError;
use super::target::Target;
use super::{Context, pod_name};
use crate::exit;

/// Print what a container wrote
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The pod
    #[arg(value_name = "[NAMESPACE/]POD")]
    pub pod: String,
    /// The container; needed where the pod has several
    #[arg(short, long, value_name = "NAME")]
    pub container: Option<String>,
    /// Go on with what it writes from now on
    #[arg(short, long)]
    pub follow: bool,
    /// Only so many lines from the end
    #[arg(long, value_name = "N")]
    pub tail: Option<u32>,
    /// The run before the present one
    #[arg(short, long)]
    pub previous: bool,
    /// The time in front of each line
    #[arg(long)]
    pub timestamps: bool,
}

/// Prints a log.
///
/// # Errors
/// No daemon, no such container, or output that cannot be written.
pub fn run(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let (namespace, name) = pod_name(&args.pod, context)?;
    let mut target = Target::objects(Some(namespace), "pods")
        .below(name)
        .below("log");
    if let Some(container) = &args.container {
        target = target.with("container", container);
    }
    if let Some(lines) = args.tail {
        target = target.with("tailLines", &lines.to_string());
    }
    for (key, is_set) in [
        ("follow", args.follow),
        ("previous", args.previous),
        ("timestamps", args.timestamps),
    ] {
        if is_set {
            target = target.with(key, "true");
        }
    }
    context.client()?.stream(&target, &mut |piece| {
        out.write_all(piece)?;
        out.flush()
    })?;
    Ok(exit::OK)
}
