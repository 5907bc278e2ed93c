//! `allot diff`: what shall be in the kernel against what is.

use std::io::Write;
use std::thread::sleep;
use std::time::Duration;

use super::error::{CliError, ERROR};
use super::render::{Page, clean};
use super::target::Target;
use super::{Context, OutputForm};
use crate::exit;
use crate::report::DiffReport;
use crate::report::drift::Drift;

/// Compare what shall be in the kernel with what is; exit code 1 where they differ
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Show what is the same too
    #[arg(long)]
    pub all: bool,
    /// Go on, and show each value that somebody else changes, until ended
    #[arg(long, conflicts_with = "all")]
    pub watch: bool,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    pub output: OutputForm,
}

/// The word for a file that is as it shall be.
const SAME: &str = "same";

/// Compares.
///
/// # Errors
/// No daemon, or output that cannot be written.
pub fn run(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let target = Target::new(&["apis", "allotd.dev", "v1", "diff"]);
    let report: DiffReport = context.client()?.get(&target)?;
    if !args.output.write(&report, out)? {
        write_text(&report, args.all, out)?;
    }
    if args.watch {
        out.flush()?;
        return watch(args, context, out);
    }
    Ok(if report.drift { exit::ERROR } else { exit::OK })
}

/// How often is looked for new drifts.
const PAUSE: Duration = Duration::from_millis(500);

/// Prints drifts as they come; ends only with an error, as when nobody reads any more.
fn watch(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let client = context.client()?;
    let drifts = |after: u64| -> Result<Vec<Drift>, CliError> {
        let target = Target::new(&["apis", "allotd.dev", "v1", "drifts"]);
        client.get(&target.with("after", &after.to_string()))
    };
    let mut last = drifts(0)?.last().map_or(0, |drift| drift.id);
    loop {
        for drift in drifts(last)? {
            last = drift.id;
            if !args.output.write(&drift, out)? {
                writeln!(out, "{}", line(&drift))?;
            }
        }
        out.flush()?;
        sleep(PAUSE);
    }
}

fn line(drift: &Drift) -> String {
    let whose = match (drift.pod.as_str(), drift.container.as_str()) {
        ("", _) => drift.cgroup.clone(),
        (pod, "") => format!("{}/{pod}", drift.namespace),
        (pod, container) => format!("{}/{pod} {container}", drift.namespace),
    };
    let time = drift.time.strftime("%H:%M:%S%.3f");
    let outcome = drift.outcome.name();
    let text = match drift.file.as_str() {
        "" => format!("{time}  {outcome:<9}  {whose}: {}", drift.wanted),
        file => format!(
            "{time}  {outcome:<9}  {whose}: {file} {} (wanted {})",
            drift.found, drift.wanted
        ),
    };
    clean(&text).to_string()
}

fn write_text(report: &DiffReport, all: bool, out: &mut dyn Write) -> std::io::Result<()> {
    let differ = report.rows.iter().filter(|row| row.verdict != SAME).count();
    let mut page = Page::table();
    page.texts(0, &["PATH", "FILE", "WANTED", "KERNEL", "VERDICT"]);
    let rows = report.rows.iter().filter(|row| all || row.verdict != SAME);
    for row in rows.clone() {
        let dash = |text: &str| if text.is_empty() { "-" } else { text }.to_owned();
        page.texts(
            0,
            &[
                row.path.clone(),
                dash(&row.file),
                dash(&row.wanted),
                dash(&row.kernel),
                row.verdict.clone(),
            ],
        );
    }
    if all || differ > 0 {
        let text = page.to_string();
        let mut lines = text.lines();
        if let Some(header) = lines.next() {
            writeln!(out, "{header}")?;
        }
        for (line, row) in lines.zip(rows) {
            if row.verdict == SAME {
                writeln!(out, "{line}")?;
            } else {
                writeln!(out, "{ERROR}{line}{ERROR:#}")?;
            }
        }
    }
    writeln!(out, "{} of {} values differ", differ, report.rows.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::DiffRow;

    fn row(file: &str, kernel: &str, verdict: &str) -> DiffRow {
        DiffRow {
            path: "burstable/pod1".to_owned(),
            file: file.to_owned(),
            wanted: "35".to_owned(),
            kernel: kernel.to_owned(),
            verdict: verdict.to_owned(),
        }
    }

    fn written(all: bool) -> String {
        let report = DiffReport {
            drift: true,
            rows: vec![
                row("cpu.weight", "36", "drift"),
                row("cpu.max", "35", SAME),
                row("pids.max", "", "missing"),
            ],
        };
        let mut out = Vec::new();
        write_text(&report, all, &mut out).unwrap();
        anstream::adapter::strip_str(std::str::from_utf8(&out).unwrap()).to_string()
    }

    #[test]
    fn only_differences_are_shown_unless_asked() {
        assert_eq!(
            written(false),
            "\
PATH             FILE         WANTED   KERNEL   VERDICT
burstable/pod1   cpu.weight   35       36       drift
burstable/pod1   pids.max     35       -        missing
2 of 3 values differ
"
        );
        assert_eq!(written(true).lines().count(), 5);
    }
}
