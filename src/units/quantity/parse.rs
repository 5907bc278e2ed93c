//! Reads a quantity: `[sign] digits [. digits] [suffix]`, all of it ASCII.
//!
//! Decides what is a quantity and what it is worth. A figure finer than a nano-unit is rounded away from
//! zero; a binary suffix cuts the magnitude at 2^63-1 as Kubernetes does. Must never do more work than the
//! length of the text and the bound on the exponent allow.

use std::str::FromStr;

use super::{Format, NANO, Quantity, QuantityError};

/// The longest text that is read, in bytes. Exact figures need at most 42.
pub(super) const MAX_TEXT: usize = 64;

/// The largest magnitude of an exponent that is read. Kubernetes cuts it to 32 bits, so that 2^32 means 0.
pub(super) const MAX_EXPONENT: i32 = 999;

/// The largest magnitude that a binary suffix can carry, 2^63-1 units, in nano-units.
const BINARY_CAP: i128 = ((1 << 63) - 1) * NANO;

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.len() > MAX_TEXT {
            return Err(QuantityError::TooLong { length: text.len() });
        }
        read(text).map_err(|fault| {
            let text = text.to_owned();
            match fault {
                Fault::Format => QuantityError::Format { text },
                Fault::Suffix(suffix) => QuantityError::Suffix {
                    suffix: suffix.to_owned(),
                    text,
                },
                Fault::NoDigits => QuantityError::NoDigits { text },
                Fault::Exponent => QuantityError::Exponent { text },
                Fault::TooLarge => QuantityError::TooLarge { text },
            }
        })
    }
}

/// What is wrong, before the whole text is attached to it.
pub(super) enum Fault<'a> {
    Format,
    Suffix(&'a str),
    NoDigits,
    Exponent,
    TooLarge,
}

/// Reads a text whose length is known to be bounded.
pub(super) fn read(text: &str) -> Result<Quantity, Fault<'_>> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, rest) = take_digits(rest);
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => take_digits(rest),
        None => ("", rest),
    };
    if text.is_empty() || !looks_like_suffix(suffix) {
        return Err(Fault::Format);
    }
    let scale = read_suffix(suffix)?;
    if whole.is_empty() && fraction.is_empty() {
        return Err(Fault::NoDigits);
    }
    let magnitude = magnitude(whole, fraction, scale);
    let (magnitude, format) = match scale {
        Scale::Binary(_) => {
            let magnitude = magnitude.map_or(BINARY_CAP, |m| m.min(BINARY_CAP));
            // A part of a unit has no binary form, so Kubernetes files it as decimal.
            let format = if (1..NANO).contains(&magnitude) {
                Format::DecimalSi
            } else {
                Format::BinarySi
            };
            (magnitude, format)
        }
        Scale::Decimal(_) => (magnitude.ok_or(Fault::TooLarge)?, Format::DecimalSi),
        Scale::Exponent(_) => (magnitude.ok_or(Fault::TooLarge)?, Format::DecimalExponent),
    };
    let nano = if negative { -magnitude } else { magnitude };
    Quantity::from_nano(nano, format).ok_or(Fault::TooLarge)
}

/// What the suffix multiplies by.
#[derive(Clone, Copy)]
enum Scale {
    /// A power of two.
    Binary(u32),
    /// A power of ten, from a decimal suffix.
    Decimal(i32),
    /// A power of ten, from an exponent.
    Exponent(i32),
}

fn take_digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

/// Whether the text has the outer shape of a suffix: letters, a sign, digits. What else stands there is a
/// fault of format, not of the suffix.
fn looks_like_suffix(text: &str) -> bool {
    let rest = text.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    take_digits(rest).1.is_empty()
}

fn read_suffix(suffix: &str) -> Result<Scale, Fault<'_>> {
    Ok(match suffix {
        "n" => Scale::Decimal(-9),
        "u" => Scale::Decimal(-6),
        "m" => Scale::Decimal(-3),
        "" => Scale::Decimal(0),
        "k" => Scale::Decimal(3),
        "M" => Scale::Decimal(6),
        "G" => Scale::Decimal(9),
        "T" => Scale::Decimal(12),
        "P" => Scale::Decimal(15),
        "E" => Scale::Decimal(18),
        "Ki" => Scale::Binary(10),
        "Mi" => Scale::Binary(20),
        "Gi" => Scale::Binary(30),
        "Ti" => Scale::Binary(40),
        "Pi" => Scale::Binary(50),
        "Ei" => Scale::Binary(60),
        _ => Scale::Exponent(read_exponent(suffix)?),
    })
}

fn read_exponent(suffix: &str) -> Result<i32, Fault<'_>> {
    let digits = suffix
        .strip_prefix(['e', 'E'])
        .map(|rest| rest.strip_prefix(['+', '-']).unwrap_or(rest))
        .filter(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
        .ok_or(Fault::Suffix(suffix))?;
    // Only too many digits can make this fail.
    let power: i32 = digits.parse().map_err(|_| Fault::Exponent)?;
    if power > MAX_EXPONENT {
        return Err(Fault::Exponent);
    }
    Ok(if suffix.contains('-') { -power } else { power })
}

/// The value of the digits in nano-units, rounded up; `None` where it does not fit an `i128`.
///
/// A power of ten only moves the decimal point, so the digits are walked once: those before the point from
/// the left, those behind it from the right, where each step divides by ten and remembers in `inexact`
/// whether anything was cut off.
fn magnitude(whole: &str, fraction: &str, scale: Scale) -> Option<i128> {
    let (shift, nano_per_unit) = match scale {
        Scale::Binary(power) => (0, NANO.checked_shl(power)?),
        Scale::Decimal(power) | Scale::Exponent(power) => (power, NANO),
    };
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    let digit = |index: i32| {
        let digit = usize::try_from(index).ok().and_then(|i| digits.get(i));
        digit.map_or(0, |d| i128::from(d - b'0'))
    };
    let end = i32::try_from(digits.len()).ok()?;
    let point = i32::try_from(whole.len()).ok()?.checked_add(shift)?;

    let mut units: i128 = 0;
    for index in 0..point {
        units = units.checked_mul(10)?.checked_add(digit(index))?;
    }
    let mut part: i128 = 0;
    let mut inexact = false;
    for index in (point..end).rev() {
        // Never above 10 * nano_per_unit, which is below 2^94.
        part += digit(index) * nano_per_unit;
        inexact |= part % 10 != 0;
        part /= 10;
    }
    units
        .checked_mul(nano_per_unit)?
        .checked_add(part)?
        .checked_add(i128::from(inexact))
}
