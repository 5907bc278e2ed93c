//! The lines about the node.

use ratatui::text::{Line, Span};

use super::Look;
use super::bars::{Bar, curve};
use super::look::{columns, harmless};
use crate::cli::top::state::Model;
use crate::cli::top::units::{bytes, count, cpu, milli, percent, share};
use crate::report::top::{NodeTop, TopReport};

/// Above this pressure the node waits more than it should (hundredths of a percent).
const PRESSED: u32 = 1000;

/// As many lines as there is room for.
pub fn lines<'a>(model: &Model, look: &Look, width: usize, height: u16) -> Vec<Line<'a>> {
    let wanted = match height {
        0..=4 => 0,
        5..=9 => 1,
        10..=15 => 3,
        _ => 5,
    };
    let mut lines = vec![title(model, look, width)];
    if let Some(report) = &model.report {
        lines.extend(node(model, report, look, width));
    }
    lines.truncate(wanted);
    lines
}

fn title<'a>(model: &Model, look: &Look, width: usize) -> Line<'a> {
    let where_to = match &model.choice.namespace {
        Some(namespace) => format!("namespace {}", harmless(namespace)),
        None => "all namespaces".to_owned(),
    };
    let mut left = vec![Span::styled("allot top", look.strong())];
    let mut right = format!("every {} s", model.interval);
    if let Some(report) = &model.report {
        let rows = model.rows();
        let pods = rows.iter().filter(|row| row.container.is_none()).count();
        let name = harmless(&report.node.name);
        left.push(Span::raw(format!("  node {name}  {where_to}  {pods} pods")));
        right = format!("{}  {right}", look.time(report.time));
    } else {
        left.push(Span::raw(format!("  {where_to}")));
    }
    if !model.choice.filter.is_empty() {
        let filter = format!("  /{}", harmless(&model.choice.filter));
        left.push(Span::styled(filter, look.warn()));
    }
    if model.held {
        left.push(Span::styled("  held", look.warn()));
    }
    let taken: usize = left.iter().map(Span::width).sum();
    let free = width.saturating_sub(taken);
    if free > columns(&right) {
        left.push(Span::styled(look.right(&right, free), look.dim()));
    }
    Line::from(left)
}

fn node<'a>(model: &Model, report: &TopReport, look: &Look, width: usize) -> Vec<Line<'a>> {
    let node = &report.node;
    let has_curves = width >= 110;
    let history = &model.history;
    let line = |name: &str, part: Option<u64>, all: Option<u64>, rest: String, series| {
        let used = percent(part, all);
        let style = match used {
            Some(90..) => look.bad(),
            Some(70..) => look.warn(),
            _ => look.good(),
        };
        let bar = Bar {
            value: part,
            scale: all,
            is_bound: true,
            marks: [None; 2],
            style,
        };
        let mut spans = vec![Span::styled(look.fit(name, 7), look.strong())];
        spans.extend(bar.spans(if has_curves { 24 } else { 16 }, look));
        let used = used.map_or_else(|| "-".to_owned(), |used| format!("{used}%"));
        spans.push(Span::raw(look.right(&used, 5)));
        if has_curves {
            let curve = curve(series, all, 24, look);
            spans.push(Span::styled(format!("  {curve}"), look.curve()));
        }
        spans.push(Span::raw(format!("  {rest}")));
        Line::from(spans)
    };
    let of = |part: String, all: String| format!("{part} of {all}");
    let requested = |part: String, all: String, percent: Option<u64>| {
        let percent = percent.map_or_else(String::new, |percent| format!(" ({percent}%)"));
        format!("requested {part} of {all}{percent}")
    };
    let (used, all) = (node.used.cpu_nano, node.capacity.cpu_milli);
    let (asked, may) = (node.requested, node.allocatable);
    let cpus = format!(
        "{:16}{}",
        of(cpu(used.map(milli)), cpu(all)),
        requested(
            cpu(asked.cpu_milli.or(Some(0))),
            cpu(may.cpu_milli),
            percent(asked.cpu_milli, may.cpu_milli)
        )
    );
    let memory = format!(
        "{:16}{}",
        of(
            bytes(node.used.working_set_bytes),
            bytes(node.used.memory_max_bytes)
        ),
        requested(
            bytes(asked.memory_bytes.or(Some(0))),
            bytes(may.memory_bytes),
            percent(asked.memory_bytes, may.memory_bytes)
        )
    );
    let disk = format!(
        "{:16}tasks {} of {}",
        of(bytes(node.used.disk_bytes), bytes(node.disk_capacity_bytes)),
        count(node.used.tasks),
        count(node.used.tasks_max)
    );
    let nano = all.map(|milli| milli.saturating_mul(1_000_000));
    vec![
        line("CPU", used, nano, cpus, history.cpu(None)),
        line(
            "Memory",
            node.used.working_set_bytes,
            node.used.memory_max_bytes,
            memory,
            history.memory(None),
        ),
        line(
            "Disk",
            node.used.disk_bytes,
            node.disk_capacity_bytes,
            disk,
            None,
        ),
        pressure(node, look),
    ]
}

fn pressure<'a>(node: &NodeTop, look: &Look) -> Line<'a> {
    let mut spans = vec![Span::styled("Waiting", look.strong())];
    let used = &node.used;
    let all = [
        ("cpu", used.cpu_pressure),
        ("memory", used.memory_pressure),
        ("io", used.io_pressure),
    ];
    if all.iter().all(|(_, pressure)| pressure.is_none()) {
        spans.push(Span::styled("  not counted by this kernel", look.dim()));
    } else {
        for (what, pressure) in all {
            let style = if pressure > Some(PRESSED) {
                look.bad()
            } else {
                look.good()
            };
            spans.push(Span::raw(format!("  {what} ")));
            spans.push(Span::styled(share(pressure), style));
        }
    }
    for condition in &node.conditions {
        let text = format!("  {}", harmless(condition));
        spans.push(Span::styled(text, look.bad()));
    }
    for (what, count, style) in [
        ("OOM", node.oom_kills, look.bad()),
        ("drift", node.drifts, look.warn()),
    ] {
        let style = if count > 0 { style } else { look.dim() };
        spans.push(Span::styled(format!("  {what} {count}"), style));
    }
    Line::from(spans)
}
