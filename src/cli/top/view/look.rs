//! What the terminal can show, and text made to fit it.
//!
//! Without colour the same things are told by weight and by words: no meaning is in a colour alone.

use std::fmt::Write;

use jiff::tz::TimeZone;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Span;

use crate::cli::render::clean;

/// What the terminal can show.
#[derive(Clone, Debug)]
pub struct Look {
    /// Colours.
    pub colour: bool,
    /// More than ASCII.
    pub unicode: bool,
    /// Times are shown in this zone.
    pub zone: TimeZone,
}

impl Look {
    fn coloured(&self, colour: Color) -> Style {
        if self.colour {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }

    /// As it should be.
    pub fn good(&self) -> Style {
        self.coloured(Color::Green)
    }

    /// Worth a look.
    pub fn warn(&self) -> Style {
        self.coloured(Color::Yellow)
    }

    /// Wrong.
    pub fn bad(&self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Curves.
    pub fn curve(&self) -> Style {
        self.coloured(Color::Cyan)
    }

    /// Less important than what stands beside it.
    pub fn dim(&self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// More important.
    pub fn strong(&self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// The line with the cursor.
    pub fn cursor(&self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// A time of day.
    pub fn time(&self, time: jiff::Timestamp) -> String {
        let zoned = time.to_zoned(self.zone.clone());
        zoned.strftime("%H:%M:%S").to_string()
    }

    /// Text of this very width: cut, with a sign that it was, or filled up with blanks.
    pub fn fit(&self, text: &str, width: usize) -> String {
        let mut fitting = self.cut(text, width);
        let short = width.saturating_sub(columns(&fitting));
        fitting.extend(std::iter::repeat_n(' ', short));
        fitting
    }

    /// The same, with the blanks in front.
    pub fn right(&self, text: &str, width: usize) -> String {
        let cut = self.cut(text, width);
        let mut fitting = " ".repeat(width.saturating_sub(columns(&cut)));
        fitting.push_str(&cut);
        fitting
    }

    /// Text of at most this width.
    pub fn cut(&self, text: &str, width: usize) -> String {
        if columns(text) <= width {
            return text.to_owned();
        }
        let mut cut = String::new();
        let mut used = 0_usize;
        let mut one = [0; 4];
        for c in text.chars() {
            let next = used.saturating_add(columns(c.encode_utf8(&mut one)));
            if next >= width {
                break;
            }
            cut.push(c);
            used = next;
        }
        if width > 0 {
            cut.push(if self.unicode { '…' } else { '~' });
        }
        cut
    }
}

/// The columns that a text takes.
pub fn columns(text: &str) -> usize {
    Span::raw(text).width()
}

/// Text of others: what would drive the terminal, or turn the order of letters round, is spelt out.
pub fn harmless(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    let text = clean(text);
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if turns(c) {
            let _ = write!(safe, "{}", c.escape_unicode());
        } else {
            safe.push(c);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(unicode: bool) -> Look {
        Look {
            colour: false,
            unicode,
            zone: TimeZone::UTC,
        }
    }

    #[test]
    fn text_is_made_to_fit_by_what_it_takes_on_the_screen() {
        for (text, width, expected) in [
            ("web", 5, "web  "),
            ("web", 3, "web"),
            ("website", 4, "web…"),
            ("website", 1, "…"),
            ("website", 0, ""),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日… "),
            ("", 2, "  "),
        ] {
            assert_eq!(look(true).fit(text, width), expected, "{text} {width}");
        }
        assert_eq!(look(false).fit("website", 4), "web~");
        assert_eq!(look(true).right("7m", 5), "   7m");
    }

    #[test]
    fn foreign_text_drives_nothing() {
        assert_eq!(
            harmless("a\u{1b}[31m\n\u{202e}b\u{9b}ü"),
            "a\\u{1b}[31m\\n\\u{202e}b\\u{9b}ü"
        );
    }
}
