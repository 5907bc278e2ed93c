//! `allot diff`: what shall be in the kernel against what is.

use std::io::Write;

use super::error::{CliError, ERROR};
use super::render::Page;
use super::target::Target;
use super::{Context, OutputForm};
use crate::exit;
use crate::report::DiffReport;

/// Compare what shall be in the kernel with what is; exit code 1 where they differ
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Show what is the same too
    #[arg(long)]
    pub all: bool,
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
    Ok(if report.drift { exit::ERROR } else { exit::OK })
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
