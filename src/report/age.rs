//! How long ago something was, in the form that users of kubectl know.

use std::fmt::Write;

/// A unit: its seconds and its sign.
type Unit = (i64, char);
/// Below which length, in which unit, with which smaller one.
type Step = (i64, Unit, Option<Unit>);

/// Seconds in at most two units, the second only where it still matters
/// (Kubernetes 1.36 `HumanDuration`).
pub fn duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    // Clocks may differ by a second.
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let steps: [Step; 8] = [
        (2 * MINUTE, (1, 's'), None),
        (10 * MINUTE, (MINUTE, 'm'), Some((1, 's'))),
        (3 * HOUR, (MINUTE, 'm'), None),
        (8 * HOUR, (HOUR, 'h'), Some((MINUTE, 'm'))),
        (2 * DAY, (HOUR, 'h'), None),
        (8 * DAY, (DAY, 'd'), Some((HOUR, 'h'))),
        (2 * YEAR, (DAY, 'd'), None),
        (8 * YEAR, (YEAR, 'y'), Some((DAY, 'd'))),
    ];
    let found = steps.into_iter().find(|(below, ..)| seconds < *below);
    let (_, (unit, sign), smaller) = found.unwrap_or((i64::MAX, (YEAR, 'y'), None));
    let mut text = format!("{}{sign}", seconds / unit);
    if let Some((smaller, sign)) = smaller {
        let rest = seconds % unit / smaller;
        if rest > 0 {
            let _ = write!(text, "{rest}{sign}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_those_of_kubectl() {
        for (seconds, text) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (119, "119s"),
            (120, "2m"),
            (179, "2m59s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (10_860, "3h1m"),
            (8 * 3600, "8h"),
            (47 * 3600, "47h"),
            (51 * 3600, "2d3h"),
            (8 * 86_400, "8d"),
            (729 * 86_400, "729d"),
            (731 * 86_400, "2y1d"),
            (3000 * 86_400, "8y"),
        ] {
            assert_eq!(duration(seconds), text, "{seconds}");
        }
    }
}
