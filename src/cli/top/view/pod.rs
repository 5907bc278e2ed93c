//! One pod: its figures, and what it gets and why, down to the files in the kernel.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::Look;
use super::bars::curve;
use super::look::harmless;
use super::table::{cpu_bar, memory_bar};
use crate::cli::top::rows::Row;
use crate::cli::top::state::{Model, Pane};
use crate::cli::top::units::{bytes, count, cpu, milli, share, withheld};
use crate::report::age::duration;
use crate::report::top::NodeTop;

/// The row that the pane was opened from.
fn row(pane: &Pane) -> Row<'_> {
    let name = pane.key.container.as_ref();
    let mut all = pane.pod.containers.iter();
    Row {
        pod: &pane.pod,
        container: all.find(|container| Some(&container.name) == name),
        is_last: false,
    }
}

/// The figures, as many lines as there is room for.
pub fn head<'a>(
    pane: &Pane,
    model: &Model,
    look: &Look,
    width: usize,
    height: u16,
) -> Vec<Line<'a>> {
    let wanted = match height {
        0..=4 => 1,
        5..=11 => 3,
        _ => 7,
    };
    let row = row(pane);
    let mut lines = vec![title(pane, &row, look)];
    let nothing = NodeTop::default();
    let node = model
        .report
        .as_ref()
        .map_or(&nothing, |report| &report.node);
    lines.extend(figures(pane, &row, model, node, look, width));
    lines.push(troubles(pane, &row, model, look));
    lines.push(Line::default());
    lines.truncate(wanted);
    lines
}

fn title<'a>(pane: &Pane, row: &Row<'_>, look: &Look) -> Line<'a> {
    let name = format!("{}/{}", pane.name.namespace, pane.name.name);
    let mut spans = vec![Span::styled(harmless(&name), look.strong())];
    if let Some(container) = row.container {
        let text = format!("  container {}", harmless(&container.name));
        spans.push(Span::styled(text, look.strong()));
    }
    let status = harmless(row.status());
    let style = if status == "Running" {
        look.good()
    } else {
        look.warn()
    };
    spans.push(Span::styled(format!("  {status}"), style));
    spans.push(Span::raw(format!("  {}", harmless(&pane.pod.qos_class))));
    if pane.gone {
        spans.push(Span::styled(
            "  is gone: these are the last figures",
            look.bad(),
        ));
    }
    Line::from(spans)
}

fn figures<'a>(
    pane: &Pane,
    row: &Row<'_>,
    model: &Model,
    node: &NodeTop,
    look: &Look,
    width: usize,
) -> Vec<Line<'a>> {
    let used = row.used();
    let asked = row.requests();
    let wide = width >= 110;
    let (bar, trail) = if wide { (24, 30) } else { (12, 12) };
    let line =
        |name: &str, figure: String, drawn: Vec<Span<'static>>, curve: String, rest: String| {
            let mut spans = vec![
                Span::styled(look.fit(name, 7), look.strong()),
                Span::raw(format!("{} ", look.right(&figure, 6))),
            ];
            spans.extend(drawn);
            spans.push(Span::styled(format!(" {curve} "), look.curve()));
            spans.push(Span::raw(rest));
            Line::from(spans)
        };
    let history = &model.history;
    let nano = used.cpu_max_milli.or(asked.cpu_milli);
    let nano = nano.map(|milli| milli.saturating_mul(1_000_000));
    let cpus = line(
        "CPU",
        cpu(used.cpu_nano.map(milli)),
        cpu_bar(row, node, look).spans(bar, look),
        curve(history.cpu(Some(&pane.key)), nano, trail, look),
        format!(
            "request {} limit {} withheld {}",
            cpu(asked.cpu_milli),
            cpu(used.cpu_max_milli),
            withheld(used.throttled_usec)
        ),
    );
    let bound = used.memory_max_bytes.or(asked.memory_bytes);
    let memory = line(
        "Memory",
        bytes(used.working_set_bytes),
        memory_bar(row, node, look).spans(bar, look),
        curve(history.memory(Some(&pane.key)), bound, trail, look),
        format!(
            "min {} high {} max {}",
            bytes(used.memory_min_bytes),
            bytes(used.memory_high_bytes),
            bytes(used.memory_max_bytes)
        ),
    );
    let most = used
        .tasks_max
        .map_or_else(|| ", no bound".to_owned(), |n| format!(" of {n}"));
    let tasks = Line::from(vec![
        Span::styled("Tasks  ", look.strong()),
        Span::raw(format!("{}{most}, ", look.right(&count(used.tasks), 6))),
        Span::raw(format!("{} forks refused  ", count(used.forks_refused))),
        Span::styled("Disk ", look.strong()),
        Span::raw(bytes(used.disk_bytes)),
        Span::styled("  Cache ", look.strong()),
        Span::raw(bytes(
            used.memory_bytes
                .zip(used.working_set_bytes)
                .map(|(all, held)| all.saturating_sub(held)),
        )),
    ]);
    let waiting = Line::from(vec![
        Span::styled("Waiting", look.strong()),
        Span::raw(format!(
            "  cpu {}  memory {}  io {}",
            share(used.cpu_pressure),
            share(used.memory_pressure),
            share(used.io_pressure)
        )),
    ]);
    vec![cpus, memory, tasks, waiting]
}

/// What went wrong, in words.
fn troubles<'a>(pane: &Pane, row: &Row<'_>, model: &Model, look: &Look) -> Line<'a> {
    let mut parts = Vec::new();
    for (number, what) in [(row.oom_kills(), "OOM kills"), (row.restarts(), "restarts")] {
        if number > 0 {
            parts.push(format!("{what}: {number}"));
        }
    }
    if row.drifts() > 0 {
        let now = model.report.as_ref().map(|report| report.time);
        let last = now.zip(pane.pod.last_drift);
        let ago = last.map(|(now, last)| duration(now.duration_since(last).as_secs()));
        let ago = ago.map_or_else(String::new, |ago| format!(", the last {ago} ago"));
        parts.push(format!("foreign changes undone: {}{ago}", row.drifts()));
    }
    let throttling = match row.container {
        Some(container) => &container.throttling,
        None => &pane.pod.throttling,
    };
    parts.extend(throttling.as_ref().and_then(|told| told.verdict.clone()));
    if let Some(why) = &pane.pod.unenforced {
        parts.push(format!("not enforced: {}", harmless(why)));
    }
    if parts.is_empty() {
        return Line::from(Span::styled("nothing went wrong", look.dim()));
    }
    Line::from(Span::styled(parts.join("; "), look.bad()))
}

/// The explanation from where it is scrolled to.
pub fn body<'a>(pane: &Pane, look: &Look, area: Rect) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    if let Some(why) = &pane.failure {
        let text = format!("no explanation: {}", harmless(why));
        lines.push(Line::from(Span::styled(text, look.bad())));
    } else if pane.lines.is_empty() && !pane.gone {
        lines.push(Line::from(Span::styled("asking allotd why", look.dim())));
    }
    for difference in &pane.differences {
        let text = format!("differs: {}", harmless(difference));
        lines.push(Line::from(Span::styled(text, look.bad())));
    }
    let (down, aside) = pane.scrolled;
    // The end may be scrolled up to the last screen, not past it.
    let room = usize::from(area.height).saturating_sub(lines.len());
    let first = down.min(pane.lines.len().saturating_sub(room.max(1)));
    for text in pane.lines.iter().skip(first).take(room) {
        let cut: String = text.chars().skip(aside).collect();
        let style = if text.ends_with(':') {
            look.strong()
        } else {
            Style::new()
        };
        lines.push(Line::from(Span::styled(harmless(&cut), style)));
    }
    lines
}
