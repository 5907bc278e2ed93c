//! `allot orphans`: what runs of pods without a record, and its end.

use std::io::Write;

use super::error::CliError;
use super::render::Page;
use super::target::Target;
use super::{Context, OutputForm};
use crate::exit;
use crate::report::Orphan;

/// Show the cgroups of pods that the store does not know, or end them
///
/// There are some only after records of pods were lost: allotd leaves them alone until the next boot, because it cannot
/// tell a pod whose record is lost from what is left over.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Kill their processes and remove them, now
    #[arg(long)]
    pub end: bool,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    pub output: OutputForm,
}

/// Shows or ends them.
///
/// # Errors
/// No daemon, a refusal, or output that cannot be written.
pub fn run(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let client = context.client()?;
    let target = Target::new(&["apis", "allotd.dev", "v1", "orphans"]);
    let orphans: Vec<Orphan> = if args.end {
        client.delete(&target)?
    } else {
        client.get(&target)?
    };
    if args.output.write(&orphans, out)? {
        return Ok(exit::OK);
    }
    if orphans.is_empty() {
        context.say("No cgroup of a pod is without a record.");
        return Ok(exit::OK);
    }
    let mut page = Page::table();
    page.texts(0, &["CGROUP", "PROCESSES"]);
    for orphan in &orphans {
        page.row(0, &[&orphan.cgroup, &orphan.processes]);
    }
    write!(out, "{page}")?;
    if args.end {
        let count = orphans.len();
        context.say(&format!("Cgroups that end: {count}"));
    }
    Ok(exit::OK)
}
