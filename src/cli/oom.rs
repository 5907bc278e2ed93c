//! `allot oom`: which processes were killed for lack of memory, and for whose limit.

use std::io::Write;

use super::choice::OfPod;
use super::error::CliError;
use super::render::Page;
use super::target::Target;
use super::{Context, OutputForm};
use crate::exit;
use crate::report::age::duration;
use crate::report::oom::{OomKill, OomLog};

/// Show which processes were killed for lack of memory, and for whose limit; the oldest first
///
/// The latest 1000 of the node are kept, those of pods that are gone too.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Whose
    #[command(flatten)]
    pub whose: OfPod,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    pub output: OutputForm,
}

/// Shows the kills.
///
/// # Errors
/// No daemon, or output that cannot be written.
pub fn run(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let (namespace, pod) = args.whose.chosen(context)?;
    let mut target = Target::new(&["apis", "allotd.dev", "v1", "oomkills"]);
    if let Some(namespace) = namespace {
        target = target.with("namespace", namespace);
    }
    if let Some(name) = pod {
        target = target.with("pod", name);
    }
    let kills: Vec<OomKill> = context.client()?.get(&target)?;
    if args.output.write(&kills, out)? {
        return Ok(exit::OK);
    }
    if kills.is_empty() {
        context.say("No OOM kills found.");
        return Ok(exit::OK);
    }
    let page = page(&kills, namespace.is_none(), context.clock.now);
    write!(out, "{page}")?;
    Ok(exit::OK)
}

/// The kills as a table, with their namespaces where they are of several.
pub fn page(kills: &[OomKill], namespaces: bool, now: jiff::Timestamp) -> Page {
    let mut page = Page::table();
    let heads = [
        "NAMESPACE",
        "AGE",
        "POD",
        "CONTAINER",
        "PROCESS",
        "RSS",
        "KILLED",
        "LIMIT",
    ];
    let shown = usize::from(!namespaces);
    page.texts(0, heads.get(shown..).unwrap_or_default());
    for kill in kills {
        let cells = cells(kill, now);
        page.texts(0, cells.get(shown..).unwrap_or_default());
    }
    page
}

fn cells(kill: &OomKill, now: jiff::Timestamp) -> [String; 8] {
    let unknown = || "<unknown>".to_owned();
    let log = kill.log.as_ref();
    let process = log.map_or_else(unknown, |log| {
        let doubt = if log.inferred { "?" } else { "" };
        format!("{}{doubt} ({})", log.name, log.pid)
    });
    let rss = log.and_then(OomLog::rss_bytes);
    let main = match kill.main {
        Some(true) => "main process",
        Some(false) => "child",
        None => "process",
    };
    [
        kill.namespace.clone(),
        duration(now.duration_since(kill.time).as_secs()),
        kill.pod.clone(),
        kill.container.clone(),
        process,
        rss.map_or_else(unknown, size),
        format!("{main}{}", if kill.group { ", in group" } else { "" }),
        limit(kill),
    ]
}

fn limit(kill: &OomKill) -> String {
    let constraint = kill.log.as_ref().and_then(|log| log.constraint.as_deref());
    let value = kill.limit.limit_bytes.map(size);
    match (kill.limit.level.as_str(), value, constraint) {
        ("node", _, Some("CONSTRAINT_CPUSET")) => "node: the cpuset's memory".to_owned(),
        ("node", _, Some("CONSTRAINT_MEMORY_POLICY")) => "node: the policy's memory".to_owned(),
        ("node", ..) => "node: out of memory".to_owned(),
        (level, Some(value), _) => format!("{level} {value}"),
        (level, None, _) => level.to_owned(),
    }
}

/// The largest unit that leaves at least one of it, with one decimal where that says more.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["Ki", "Mi", "Gi", "Ti"];
    let fits = |(shift, _): &(u32, &str)| bytes >> shift > 0;
    let units = (10..).step_by(10).zip(UNITS);
    let Some((shift, unit)) = units.take_while(fits).last() else {
        return bytes.to_string();
    };
    let whole = bytes >> shift;
    let rest = bytes - (whole << shift);
    match rest.saturating_mul(10) >> shift {
        0 => format!("{whole}{unit}"),
        tenths => format!("{whole}.{tenths}{unit}"),
    }
}
