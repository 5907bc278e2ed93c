//! Bars and curves of characters.
//!
//! Something is never drawn as nothing, and what is not known is left blank.

use ratatui::style::Style;
use ratatui::text::Span;

use super::Look;
use crate::cli::top::history::Series;

/// What a bar shows.
#[derive(Clone, Copy, Debug)]
pub struct Bar {
    /// What is in use.
    pub value: Option<u64>,
    /// What a full bar is.
    pub scale: Option<u64>,
    /// Whether that is a bound: a dotted line shows what is left up to it.
    pub is_bound: bool,
    /// Amounts that are marked on the way there.
    pub marks: [Option<u64>; 2],
    /// The style of what is in use.
    pub style: Style,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Used,
    Left,
    Mark,
}

impl Bar {
    /// The bar in this many columns.
    pub fn spans(&self, width: usize, look: &Look) -> Vec<Span<'static>> {
        let (Some(value), Some(scale)) = (self.value, self.scale.filter(|scale| *scale > 0)) else {
            return vec![Span::raw(" ".repeat(width))];
        };
        let eighths = share(value, scale, width.saturating_mul(8)).max(usize::from(value > 0));
        let mark_at = |mark: &Option<u64>| {
            let mark = mark.filter(|mark| *mark > 0 && *mark < scale)?;
            Some(share(mark, scale, width))
        };
        let marks: Vec<_> = self.marks.iter().filter_map(mark_at).collect();
        let mut spans: Vec<Span<'static>> = Vec::new();
        let mut last = None;
        for cell in 0..width {
            let filled = eighths.saturating_sub(cell.saturating_mul(8)).min(8);
            let (part, sign) = if marks.contains(&cell) {
                (Part::Mark, if look.unicode { '│' } else { '|' })
            } else if filled > 0 {
                (Part::Used, block(filled, look))
            } else {
                let sign = match (self.is_bound, look.unicode) {
                    (false, _) => ' ',
                    (true, true) => '·',
                    (true, false) => '.',
                };
                (Part::Left, sign)
            };
            match spans.last_mut() {
                Some(span) if last == Some(part) => span.content.to_mut().push(sign),
                _ => spans.push(Span::styled(
                    sign.to_string(),
                    match part {
                        Part::Used => self.style,
                        Part::Left => look.dim(),
                        Part::Mark => look.strong(),
                    },
                )),
            }
            last = Some(part);
        }
        spans
    }
}

/// A cell of which so many eighths are filled.
fn block(eighths: usize, look: &Look) -> char {
    const BLOCKS: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
    if !look.unicode {
        return '#';
    }
    BLOCKS.get(eighths).copied().unwrap_or('█')
}

/// `value` of `scale`, in `steps`: at most all of them.
fn share(value: u64, scale: u64, steps: usize) -> usize {
    let steps = u128::try_from(steps).unwrap_or(u128::MAX);
    let share = u128::from(value)
        .saturating_mul(steps)
        .checked_div(u128::from(scale))
        .unwrap_or(0)
        .min(steps);
    usize::try_from(share).unwrap_or(usize::MAX)
}

/// The latest of some figure in this many columns, newest at the right. A full column is `bound`, or what
/// was greatest where that is more or there is none.
pub fn curve(series: Option<&Series>, bound: Option<u64>, width: usize, look: &Look) -> String {
    const CURVE: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const PLAIN: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];
    let signs = if look.unicode { CURVE } else { PLAIN };
    let all = series.map_or(0, Series::len);
    let latest = || {
        let series = series.into_iter().flatten();
        series.skip(all.saturating_sub(width))
    };
    let greatest = latest().flatten().copied().max();
    let scale = bound.max(greatest).unwrap_or(0).max(1);
    let mut text = " ".repeat(width.saturating_sub(all));
    for figure in latest() {
        text.push(match figure {
            None => ' ',
            Some(0) => signs.first().copied().unwrap_or(' '),
            Some(figure) => {
                let level = share(*figure, scale, signs.len().saturating_sub(1)).max(1);
                signs.get(level).copied().unwrap_or(' ')
            }
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    fn look(unicode: bool) -> Look {
        Look {
            colour: false,
            unicode,
            zone: TimeZone::UTC,
        }
    }

    fn bar(value: Option<u64>, scale: Option<u64>, mark: Option<u64>, unicode: bool) -> String {
        let bar = Bar {
            value,
            scale,
            is_bound: true,
            marks: [mark, None],
            style: Style::new(),
        };
        let spans = bar.spans(8, &look(unicode));
        spans.iter().map(|span| span.content.as_ref()).collect()
    }

    #[test]
    fn bars_show_parts_and_marks() {
        for (value, scale, mark, expected) in [
            (Some(0), Some(8), None, "········"),
            (Some(1), Some(u64::MAX), None, "▏·······"),
            (Some(4), Some(8), None, "████····"),
            (Some(9), Some(16), None, "████▌···"),
            (Some(99), Some(8), None, "████████"),
            (Some(u64::MAX), Some(1), Some(u64::MAX), "████████"),
            (Some(2), Some(8), Some(4), "██··│···"),
            (Some(6), Some(8), Some(4), "████│█··"),
            (Some(6), Some(8), Some(8), "██████··"),
            (None, Some(8), Some(4), "        "),
            (Some(6), Some(0), None, "        "),
            (Some(6), None, None, "        "),
        ] {
            let drawn = bar(value, scale, mark, true);
            assert_eq!(drawn, expected, "{value:?} of {scale:?}, {mark:?}");
        }
        assert_eq!(bar(Some(9), Some(16), Some(14), false), "#####..|");
    }

    #[test]
    fn curves_end_with_the_latest_and_leave_blanks_for_the_unknown() {
        let series: Series = [Some(0), None, Some(1), Some(50), Some(100)].into();
        for (bound, width, expected) in [
            (Some(100), 7, "  ▁ ▂▄█"),
            (Some(100), 2, "▄█"),
            (Some(200), 5, "▁ ▂▂▄"),
            (Some(10), 3, "▂▄█"),
            (None, 3, "▂▄█"),
            (None, 0, ""),
        ] {
            assert_eq!(curve(Some(&series), bound, width, &look(true)), expected);
        }
        assert_eq!(curve(None, Some(1), 3, &look(true)), "   ");
        assert_eq!(curve(Some(&series), None, 3, &look(false)), ".-#");
    }
}
