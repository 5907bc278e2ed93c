//! What an unquoted value of a YAML text means.
//!
//! The same as to `kubectl`, whose YAML is 1.1: `yes` and `on` are true, `0644` is octal. Whether
//! that is what the field takes is decided in `typed`.

/// The meaning of an unquoted value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Meaning {
    /// Nothing, `~`, `null`.
    Null,
    /// `true`, `no`, …
    Bool(bool),
    /// A whole number from -2^63 to 2^64-1.
    Int(i128),
    /// Any other number.
    Float(f64),
    /// None of these: text.
    Text,
}

/// What an unquoted value means.
pub(super) fn meaning(text: &str) -> Meaning {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Meaning::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "y" | "Y" | "on" | "On" | "ON" => {
            return Meaning::Bool(true);
        }
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "n" | "N" | "off" | "Off" | "OFF" => {
            return Meaning::Bool(false);
        }
        _ => {}
    }
    if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return Meaning::Text;
    }
    if let Some(int) = int(text) {
        return Meaning::Int(int);
    }
    match text.parse::<f64>() {
        Ok(float) if is_float(text) && float.is_finite() => Meaning::Float(float),
        _ => Meaning::Text,
    }
}

/// A whole number: decimal, `0x`, `0o`, `0b`, or octal after a leading zero, with `_` between digits.
fn int(text: &str) -> Option<i128> {
    let digits = text.replace('_', "");
    let (negative, digits) = match digits.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, digits.strip_prefix('+').unwrap_or(&digits)),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, digits.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, digits.get(2..)?),
        [b'0', b'b' | b'B', ..] => (2, digits.get(2..)?),
        [b'0', _, ..] => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    // `from_str_radix` would take a second sign.
    if !digits.starts_with(|c: char| c.is_ascii_hexdigit()) {
        return None;
    }
    let int = i128::from_str_radix(digits, radix).ok()?;
    let int = if negative { -int } else { int };
    (i128::from(i64::MIN)..=i128::from(u64::MAX))
        .contains(&int)
        .then_some(int)
}

/// Digits with at most one point, and an exponent of digits: what YAML takes for a number.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && is_digits(digits)
    });
    is_digits(whole) && is_digits(part) && whole.len().max(part.len()) > 0 && exponent_fits
}

#[cfg(test)]
mod tests {
    use super::{Meaning, meaning};

    #[test]
    fn unquoted_values_mean_what_they_mean_to_kubectl() {
        for (text, expected) in [
            ("", Meaning::Null),
            ("~", Meaning::Null),
            ("on", Meaning::Bool(true)),
            ("No", Meaning::Bool(false)),
            ("0", Meaning::Int(0)),
            ("-12", Meaning::Int(-12)),
            ("1_000", Meaning::Int(1000)),
            ("0644", Meaning::Int(420)),
            ("0o17", Meaning::Int(15)),
            ("0x1F", Meaning::Int(31)),
            ("18446744073709551615", Meaning::Int(i128::from(u64::MAX))),
            (
                "18446744073709551616",
                Meaning::Float(18_446_744_073_709_551_616.0),
            ),
            ("08", Meaning::Float(8.0)),
            ("1e3", Meaning::Float(1000.0)),
            (".5", Meaning::Float(0.5)),
            ("1.", Meaning::Float(1.0)),
            ("1e999", Meaning::Text),
            (".", Meaning::Text),
            ("-", Meaning::Text),
            ("--1", Meaning::Text),
            ("0x-1", Meaning::Text),
            ("1e", Meaning::Text),
            (".inf", Meaning::Text),
            ("100m", Meaning::Text),
            ("1.2.3", Meaning::Text),
            ("2024-01-01T00:00:00Z", Meaning::Text),
            ("nan", Meaning::Text),
        ] {
            assert_eq!(meaning(text), expected, "{text}");
        }
    }
}
