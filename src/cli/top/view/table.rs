//! The table of pods and containers.
//!
//! Decides which columns have room and what stands in them.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::bars::{Bar, curve};
use super::columns::{COLUMNS, Column, layout};
use super::look::harmless;
use super::{Look, put};
use crate::cli::top::history::Series;
use crate::cli::top::rows::{Row, Sort};
use crate::cli::top::state::Model;
use crate::cli::top::units::{bytes, count, cpu, milli, withheld};
use crate::report::top::NodeTop;

use Column::{
    Cpu, CpuBar, CpuCurve, CpuLimit, Disk, Marks, Memory, MemoryBar, MemoryCurve, MemoryMax, Name,
    Namespace, Pressure, Tasks, Throttled,
};

/// Head and rows; the row with the cursor is always among them.
pub fn paint(buffer: &mut Buffer, area: Rect, model: &Model, look: &Look) {
    let width = usize::from(area.width);
    let Some(report) = &model.report else {
        return empty(buffer, area, "asking allotd; rates take a second", look);
    };
    let choice = &model.choice;
    let layout = layout(width, choice.namespace.is_none(), choice.sort);
    let head = head(&layout, choice.sort, choice.reversed, look);
    put(buffer, area, &[head]);
    let names = layout
        .iter()
        .take_while(|(column, _)| matches!(column, Namespace | Name))
        .map(|(_, width)| width.saturating_add(1))
        .sum::<usize>();
    let names = u16::try_from(names).unwrap_or(u16::MAX).saturating_sub(1);
    let names = names.min(area.width);
    let rows = model.rows();
    let lines = usize::from(area.height.saturating_sub(1));
    if rows.is_empty() {
        let below = Rect {
            y: area.y.saturating_add(2),
            height: area.height.saturating_sub(2),
            ..area
        };
        let text = match (&choice.namespace, choice.filter.is_empty()) {
            (_, false) => "no pod matches the filter; Esc ends it".to_owned(),
            (None, true) => "no pods".to_owned(),
            (Some(here), true) => format!(
                "no pods in namespace {}; a shows those of all",
                harmless(here)
            ),
        };
        return empty(buffer, below, &text, look);
    }
    // The cursor stays in the middle, where there is something on both sides.
    let first = model
        .cursor
        .saturating_sub(lines / 2)
        .min(rows.len().saturating_sub(lines));
    let shown = rows.iter().enumerate().skip(first).take(lines);
    for (y, (place, row)) in (area.y.saturating_add(1)..area.bottom()).zip(shown) {
        let line = line(row, &layout, model, &report.node, look);
        buffer.set_line(area.x, y, &line, area.width);
        if place == model.cursor {
            // Bars turned round would say something else.
            let names = Rect {
                y,
                height: 1,
                width: names,
                ..area
            };
            buffer.set_style(names, look.cursor());
        }
    }
}

fn empty(buffer: &mut Buffer, area: Rect, text: &str, look: &Look) {
    let line = Line::from(Span::styled(text.to_owned(), look.dim()));
    put(buffer, area, &[line]);
}

fn head<'a>(layout: &[(Column, usize)], sort: Sort, reversed: bool, look: &Look) -> Line<'a> {
    let mut spans = Vec::new();
    for (column, width) in layout {
        let Some((_, name, by, _)) = COLUMNS.iter().find(|(one, ..)| one == column) else {
            continue;
        };
        if !spans.is_empty() {
            spans.push(Span::raw(" "));
        }
        let is_sorted = *by == Some(sort);
        let upwards = reversed != (sort == Sort::Name);
        let arrow = match (is_sorted, upwards, look.unicode) {
            (false, ..) => "",
            (true, true, true) => "▲",
            (true, false, true) => "▼",
            (true, true, false) => "^",
            (true, false, false) => "v",
        };
        let text = format!("{name}{arrow}");
        let text = if is_at_left(*column) {
            look.fit(&text, *width)
        } else {
            look.right(&text, *width)
        };
        let style = match (is_sorted, column) {
            (true, _) => look.strong().patch(look.curve()),
            (false, CpuBar | MemoryBar) => look.dim(),
            _ => look.strong(),
        };
        spans.push(Span::styled(text, style));
    }
    Line::from(spans)
}

fn is_at_left(column: Column) -> bool {
    matches!(column, Namespace | Name | CpuCurve | MemoryCurve | Marks)
}

fn line<'a>(
    row: &Row<'_>,
    layout: &[(Column, usize)],
    model: &Model,
    node: &NodeTop,
    look: &Look,
) -> Line<'a> {
    let used = row.used();
    let is_running = row.status() == "Running";
    let has_figures = used.cpu_nano.is_some() || used.memory_bytes.is_some();
    let mut spans: Vec<Span<'a>> = Vec::new();
    for (column, width) in layout {
        if !spans.is_empty() {
            spans.push(Span::raw(" "));
        }
        let is_of_name = matches!(column, Name | Namespace);
        if !is_of_name && !has_figures && !is_running {
            // There is nothing to measure: why, in place of the figures.
            spans.push(Span::styled(harmless(row.status()), look.warn()));
            let marks = marks(row);
            let marks = marks.trim_start_matches("! ").trim_start_matches('!');
            if !marks.is_empty() {
                spans.push(Span::styled(format!("  {marks}"), look.bad()));
            }
            break;
        }
        let right = |text: String| Span::raw(look.right(&text, *width));
        match column {
            Namespace => {
                let namespace = match row.container {
                    Some(_) => String::new(),
                    None => harmless(&row.pod.namespace),
                };
                spans.push(Span::raw(look.fit(&namespace, *width)));
            }
            Name => spans.push(name(row, *width, is_running, look)),
            Cpu => spans.push(right(cpu(used.cpu_nano.map(milli)))),
            CpuBar => spans.extend(cpu_bar(row, node, look).spans(*width, look)),
            CpuLimit => spans.push(right(cpu(used.cpu_max_milli))),
            CpuCurve => {
                let series = model.history.cpu(Some(&row.key()));
                let bound = used.cpu_max_milli.or(row.requests().cpu_milli);
                spans.push(trail(series, bound.map(nano), *width, look));
            }
            Throttled => {
                let style = if used.throttled_usec > Some(50_000) {
                    look.bad()
                } else {
                    Style::new()
                };
                let text = withheld(used.throttled_usec.filter(|_| used.cpu_max_milli.is_some()));
                spans.push(right(text).style(style));
            }
            Memory => spans.push(right(bytes(used.working_set_bytes))),
            MemoryBar => spans.extend(memory_bar(row, node, look).spans(*width, look)),
            MemoryMax => spans.push(right(bytes(used.memory_max_bytes))),
            MemoryCurve => {
                let series = model.history.memory(Some(&row.key()));
                let bound = used.memory_max_bytes.or(row.requests().memory_bytes);
                spans.push(trail(series, bound, *width, look));
            }
            Tasks => {
                let is_near = used
                    .tasks
                    .zip(used.tasks_max)
                    .is_some_and(|(now, most)| now.saturating_mul(10) >= most.saturating_mul(9));
                let style = if is_near { look.bad() } else { Style::new() };
                spans.push(right(count(used.tasks)).style(style));
            }
            Disk => spans.push(right(bytes(used.disk_bytes))),
            Pressure => spans.push(pressure(row, *width, look)),
            Marks => {
                let marks = marks(row);
                let style = if row.oom_kills() > 0 {
                    look.bad()
                } else {
                    look.warn()
                };
                spans.push(Span::styled(look.fit(&marks, *width), style));
            }
        }
    }
    Line::from(spans)
}

fn name<'a>(row: &Row<'_>, width: usize, is_running: bool, look: &Look) -> Span<'a> {
    let branch = match (row.container, row.is_last, look.unicode) {
        (None, ..) => "",
        (Some(_), false, true) => "├ ",
        (Some(_), true, true) => "└ ",
        (Some(_), false, false) => "|-",
        (Some(_), true, false) => "`-",
    };
    let style = match (is_running, row.container) {
        (false, _) => look.warn(),
        (true, None) => look.strong(),
        (true, Some(_)) => Style::new(),
    };
    let text = format!("{branch}{}", harmless(row.name()));
    Span::styled(look.fit(&text, width), style)
}

fn nano(milli: u64) -> u64 {
    milli.saturating_mul(1_000_000)
}

/// CPU in use, up to the limit or else to what the node gives; the mark is the request.
pub fn cpu_bar(row: &Row<'_>, node: &NodeTop, look: &Look) -> Bar {
    let used = row.used();
    let request = row.requests().cpu_milli;
    let limit = used.cpu_max_milli;
    let scale = limit.or(node.allocatable.cpu_milli);
    let over = used.cpu_nano > request.map(nano);
    let style = match used.throttled_usec {
        Some(50_001..) => look.bad(),
        _ if request.is_some() && over => look.warn(),
        _ => look.good(),
    };
    Bar {
        value: used.cpu_nano,
        scale: scale.map(nano),
        is_bound: limit.is_some(),
        marks: [request.map(nano), None],
        style,
    }
}

/// The working set, up to `memory.max` or else to what the node gives; the marks are `memory.min` and
/// `memory.high`.
pub fn memory_bar(row: &Row<'_>, node: &NodeTop, look: &Look) -> Bar {
    let used = row.used();
    let scale = used.memory_max_bytes.or(node.allocatable.memory_bytes);
    let is_near = used
        .working_set_bytes
        .zip(used.memory_max_bytes)
        .is_some_and(|(now, most)| u128::from(now) * 10 >= u128::from(most) * 9);
    let request = row.requests().memory_bytes;
    let style = if is_near {
        look.bad()
    } else if request.is_some() && used.working_set_bytes > request {
        look.warn()
    } else {
        look.good()
    };
    Bar {
        value: used.working_set_bytes,
        scale,
        is_bound: used.memory_max_bytes.is_some(),
        marks: [used.memory_min_bytes, used.memory_high_bytes],
        style,
    }
}

fn trail<'a>(series: Option<&Series>, bound: Option<u64>, width: usize, look: &Look) -> Span<'a> {
    Span::styled(curve(series, bound, width, look), look.curve())
}

/// The greatest pressure in whole percents, with the letter of what is waited for.
fn pressure<'a>(row: &Row<'_>, width: usize, look: &Look) -> Span<'a> {
    let (text, style) = match row.pressure() {
        None => ("-".to_owned(), Style::new()),
        Some((share, letter)) => {
            let style = if share > 1000 {
                look.bad()
            } else {
                Style::new()
            };
            let whole = share / 100;
            let letter = if whole > 0 {
                letter.to_string()
            } else {
                String::new()
            };
            (format!("{letter}{whole}"), style)
        }
    };
    Span::styled(look.right(&text, width), style)
}

/// What should not be: `!` it does not run, or not all its values are in effect, O OOM kills, D drift, F
/// forks refused, R restarts.
fn marks(row: &Row<'_>) -> String {
    let is_well = matches!(row.status(), "Running" | "Completed" | "Succeeded");
    let is_wrong = !is_well || (row.container.is_none() && row.pod.unenforced.is_some());
    let mut marks: Vec<String> = Vec::new();
    if is_wrong {
        marks.push("!".to_owned());
    }
    let refused = row.used().forks_refused.unwrap_or(0);
    for (letter, number) in [
        ('O', row.oom_kills()),
        ('D', row.drifts()),
        ('F', refused),
        ('R', row.restarts()),
    ] {
        if number > 0 {
            marks.push(format!("{letter}{}", count(Some(number))));
        }
    }
    marks.join(" ")
}
