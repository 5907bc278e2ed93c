//! The picture of a model. Pure: the same model gives the same picture.
//!
//! Decides what has room. It must not fail on any model or any size, down to a terminal of one
//! character: what has no room is left out, the least needed first.

mod bars;
mod columns;
mod header;
mod help;
mod look;
mod pod;
mod table;

pub use look::Look;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::state::{Model, Screen};
use look::harmless;

/// Draws the model over the whole frame.
pub fn draw(frame: &mut Frame<'_>, model: &Model, look: &Look) {
    let area = frame.area();
    paint(frame.buffer_mut(), area, model, look);
}

fn paint(buffer: &mut Buffer, area: Rect, model: &Model, look: &Look) {
    let lines = area.height;
    let footer = u16::from(lines >= 3);
    let width = usize::from(area.width);
    let above = match &model.screen {
        Screen::Table => header::lines(model, look, width, lines),
        Screen::Pod(pane) => pod::head(pane, model, look, width, lines),
        Screen::Help => Vec::new(),
    };
    put(buffer, area, &above);
    let used = u16::try_from(above.len()).unwrap_or(u16::MAX);
    let body = Rect {
        y: area.y.saturating_add(used),
        height: lines.saturating_sub(used).saturating_sub(footer),
        ..area
    };
    match &model.screen {
        Screen::Table => table::paint(buffer, body, model, look),
        Screen::Pod(pane) => put(buffer, body, &pod::body(pane, look, body)),
        Screen::Help => put(buffer, body, &help::lines(look)),
    }
    if footer == 1 {
        let last = Rect {
            y: area.y.saturating_add(lines.saturating_sub(1)),
            height: 1,
            ..area
        };
        put(buffer, last, &[below(model, look)]);
    }
}

/// Lines from the top of an area on; what has no room is cut.
fn put(buffer: &mut Buffer, area: Rect, lines: &[Line<'_>]) {
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        buffer.set_line(area.x, y, line, area.width);
    }
}

/// The last line: what is wrong, what is typed, or which keys there are.
fn below<'a>(model: &Model, look: &Look) -> Line<'a> {
    if model.typing {
        let cursor = if look.unicode { "▏" } else { "_" };
        let filter = harmless(&model.choice.filter);
        return Line::from(vec![
            Span::styled("filter: ", look.strong()),
            Span::raw(format!("{filter}{cursor}")),
            Span::styled("  Enter keeps it, Esc ends it", look.dim()),
        ]);
    }
    if let Some(why) = &model.failure {
        let since = model.now.saturating_sub(model.answered.unwrap_or_default());
        let age = match model.answered {
            Some(_) => format!("figures are {} s old; ", since.as_secs()),
            None => String::new(),
        };
        let text = format!("{age}trying again: {}", harmless(why));
        return Line::from(Span::styled(text, look.bad()));
    }
    if let Some(seconds) = model.overdue() {
        let text = format!("no answer from allotd for {seconds} s; waiting");
        return Line::from(Span::styled(text, look.bad()));
    }
    let keys = match model.screen {
        Screen::Help => "any key: back   q quit",
        Screen::Pod(_) if look.unicode => "Esc back   ↑ ↓ ← → scroll   ? keys   q quit",
        Screen::Pod(_) => "Esc back   arrows scroll   ? keys   q quit",
        Screen::Table => {
            "q quit  ? keys  / filter  Enter pod  sort: n c m t p d s o  r reverse  a all"
        }
    };
    Line::from(Span::styled(keys, look.dim()))
}

#[cfg(test)]
mod tests;
