//! Columns, ages and dates in the forms that users of `kubectl` know.
//!
//! Decides layout only. Text that somebody else wrote passes `clean` on its way, so that it can
//! neither break a line nor drive the terminal.

use std::borrow::Cow;
use std::fmt::{Display, Write};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::report::age::duration;

/// The time at which something is shown, and where.
#[derive(Clone, Debug)]
pub struct Clock {
    /// Ages are counted up to here.
    pub now: Timestamp,
    /// Dates are shown in this zone.
    pub zone: TimeZone,
}

impl Clock {
    /// The present moment and the system's zone.
    pub fn system() -> Self {
        Self {
            now: Timestamp::now(),
            zone: TimeZone::system(),
        }
    }

    /// How long ago that was: `5s`, `3m20s`, `2d3h` …
    pub fn age(&self, since: Option<&Time>) -> String {
        match since {
            Some(Time(since)) => duration(self.now.duration_since(*since).as_secs()),
            None => "<unknown>".to_owned(),
        }
    }

    /// A date as in mails: `Tue, 07 Jul 2019 12:54:41 -0700`.
    pub fn date(&self, time: Option<&Time>) -> String {
        match time {
            Some(Time(time)) => time
                .to_zoned(self.zone.clone())
                .strftime("%a, %d %b %Y %H:%M:%S %z")
                .to_string(),
            None => "<unknown>".to_owned(),
        }
    }
}

/// Text of others with its control characters spelt out.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c.is_control() {
            safe.extend(c.escape_debug());
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// Lines of cells that are laid out in columns at the end, by the rule of Go's `tabwriter`: a column
/// is a run of lines that all have the cell and a further one after it. So a line of one cell ends the
/// columns above it, and the last cell of a line widens none.
#[derive(Clone, Debug, Default)]
pub struct Page {
    lines: Vec<Vec<String>>,
    padding: usize,
}

impl Page {
    /// Columns of `kubectl describe`: two blanks between them.
    pub fn description() -> Self {
        Self {
            lines: Vec::new(),
            padding: 2,
        }
    }

    /// Columns of `kubectl get`: three blanks between them.
    pub fn table() -> Self {
        Self {
            lines: Vec::new(),
            padding: 3,
        }
    }

    /// A line, with two blanks in front for each level.
    pub fn row(&mut self, level: usize, cells: &[&dyn Display]) {
        let mut cells = cells.iter().map(|cell| {
            let text = cell.to_string();
            match clean(&text) {
                Cow::Borrowed(_) => text,
                Cow::Owned(safe) => safe,
            }
        });
        let first = format!("{}{}", "  ".repeat(level), cells.next().unwrap_or_default());
        self.lines
            .push(std::iter::once(first).chain(cells).collect());
    }

    /// A line of texts.
    pub fn texts<T: AsRef<str>>(&mut self, level: usize, cells: &[T]) {
        let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
        let cells: Vec<&dyn Display> = cells.iter().map(|cell| cell as &dyn Display).collect();
        self.row(level, &cells);
    }

    /// Two lines: the names of columns, and a line of dashes below each.
    pub fn heading(&mut self, level: usize, names: &[&str]) {
        self.texts(level, names);
        let dashes: Vec<_> = names.iter().map(|name| "-".repeat(name.len())).collect();
        self.texts(level, &dashes);
    }

    /// Whether there is no line.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The width of each cell that another one follows.
    fn widths(&self) -> Vec<Vec<usize>> {
        let mut widths: Vec<Vec<usize>> = self
            .lines
            .iter()
            .map(|line| {
                let columns = line.len().saturating_sub(1);
                let cells = line.iter().take(columns);
                cells
                    .map(|cell| cell.chars().count() + self.padding)
                    .collect()
            })
            .collect();
        let columns = widths.iter().map(Vec::len).max().unwrap_or(0);
        for column in 0..columns {
            for run in widths.chunk_by_mut(|a, b| (a.len() > column) == (b.len() > column)) {
                let cells = || run.iter().filter_map(|line| line.get(column));
                let widest = cells().copied().max().unwrap_or(0);
                for width in run.iter_mut().filter_map(|line| line.get_mut(column)) {
                    *width = widest;
                }
            }
        }
        widths
    }
}

impl Display for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (cells, widths) in self.lines.iter().zip(self.widths()) {
            let mut line = String::new();
            let mut widths = widths.into_iter();
            for cell in cells {
                let width = widths.next().unwrap_or(0);
                let _ = write!(line, "{cell:width$}");
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_one_cell_ends_the_columns_above() {
        let mut page = Page::description();
        page.texts(0, &["Name:", "compute-resources"]);
        page.texts(0, &["Scopes:", "BestEffort"]);
        page.texts(0, &[" * matches all"]);
        page.heading(0, &["Resource", "Used", "Hard"]);
        page.texts(0, &["requests.nvidia.com/gpu", "0", "4"]);
        assert_eq!(
            page.to_string(),
            "\
Name:    compute-resources
Scopes:  BestEffort
 * matches all
Resource                 Used  Hard
--------                 ----  ----
requests.nvidia.com/gpu  0     4
"
        );
    }

    #[test]
    fn an_empty_cell_still_takes_its_padding() {
        let mut page = Page::description();
        page.texts(1, &["web", "", "1"]);
        assert_eq!(page.to_string(), "  web    1\n");
    }

    #[test]
    fn foreign_text_stays_in_its_cell() {
        let mut page = Page::table();
        page.texts(0, &["a\tb\n", "\u{1b}]0;x\u{7}", "ü"]);
        page.texts(0, &["x", "y", "z"]);
        assert_eq!(
            page.to_string(),
            "a\\tb\\n   \\u{1b}]0;x\\u{7}   ü\nx        y                 z\n"
        );
    }

    #[test]
    fn dates_name_their_zone() {
        let clock = Clock {
            now: Timestamp::UNIX_EPOCH,
            zone: TimeZone::fixed(jiff::tz::offset(-7)),
        };
        let time = Time("2019-07-07T19:54:41Z".parse().unwrap());
        assert_eq!(clock.date(Some(&time)), "Sun, 07 Jul 2019 12:54:41 -0700");
    }
}
