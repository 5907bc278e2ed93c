//! `allot create`: objects from files, or a quota from words.

use std::io::Write;

use serde_json::{Map, Value, json};

use super::error::CliError;
use super::target::Target;
use super::{Context, apply};
use crate::exit;
use crate::model::kind::RESOURCE_QUOTA;

/// Send objects, none of which may be there yet
#[derive(Clone, Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[group(id = "create")]
pub struct Args {
    /// Objects from files.
    #[command(flatten)]
    pub objects: apply::Args,
    /// An object from words.
    #[command(subcommand)]
    pub what: Option<What>,
}

/// What can be made from words.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum What {
    /// A quota: create quota NAME --hard=cpu=1,pods=2
    #[command(alias = "resourcequota")]
    Quota(Quota),
}

/// A quota from words.
#[derive(Clone, Debug, clap::Args)]
pub struct Quota {
    /// Its name
    pub name: String,
    /// Bounds: KEY=AMOUNT, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "KEY=AMOUNT")]
    pub hard: Vec<String>,
    /// Scopes that must match, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "SCOPE")]
    pub scopes: Vec<String>,
    /// Only say what would become of it
    #[arg(long)]
    pub dry_run: bool,
}

/// Creates.
///
/// # Errors
/// Words or input that cannot be understood, or no daemon.
pub fn run(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    match &args.what {
        None => apply::create(&args.objects, context, out),
        Some(What::Quota(quota)) => create_quota(quota, context, out),
    }
}

fn create_quota(args: &Quota, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let mut hard = Map::new();
    for pair in &args.hard {
        let Some((key, amount)) = pair.split_once('=') else {
            return Err(CliError::Usage(format!(
                "--hard {pair:?}: KEY=AMOUNT is right"
            )));
        };
        hard.insert(key.trim().to_owned(), json!(amount.trim()));
    }
    let mut spec = json!({"hard": hard});
    if let Some(spec) = spec.as_object_mut()
        && !args.scopes.is_empty()
    {
        spec.insert("scopes".to_owned(), json!(args.scopes));
    }
    let kind = RESOURCE_QUOTA;
    let object = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": {"name": args.name, "namespace": context.namespace()},
        "spec": spec,
    });
    let mut target = Target::kind(kind, Some(context.namespace()));
    if args.dry_run {
        target = target.with("dryRun", "All");
    }
    context.client()?.post::<Value>(&target, &object)?;
    let remark = if args.dry_run { " (dry run)" } else { "" };
    writeln!(out, "resourcequota/{} created{remark}", args.name)?;
    Ok(exit::OK)
}
