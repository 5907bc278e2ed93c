//! Prints a quantity: the canonical form of Kubernetes and the plain decimal number.
//!
//! The canonical form has no fraction and the largest suffix that keeps the number whole. It must never
//! lose value: reading it back gives the same figure, also beyond exa-units where Kubernetes drops the
//! suffix.

use std::fmt;

use super::{Format, NANO, Quantity};

/// Decimal suffixes from 10^-9 up in steps of 1000.
const DECIMAL_SUFFIXES: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

/// Binary suffixes from 2^0 up in steps of 1024.
const BINARY_SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl Quantity {
    /// The value as a plain decimal number without suffix: `400m` is `0.4`, `1Ki` is `1024`.
    pub fn exact(self) -> String {
        let sign = if self.is_negative() { "-" } else { "" };
        let whole = self.nano.abs() / NANO;
        let fraction = self.nano.abs() % NANO;
        let text = format!("{sign}{whole}.{fraction:09}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&canonical(*self))
    }
}

fn canonical(quantity: Quantity) -> String {
    if quantity.is_zero() {
        return "0".to_owned();
    }
    match quantity.format {
        Format::BinarySi if fits_binary(quantity) => binary(quantity.nano / NANO),
        Format::BinarySi | Format::DecimalSi => decimal(quantity.nano),
        Format::DecimalExponent => exponent(quantity.nano),
    }
}

/// Whether binary notation can carry the value. Fractions and figures below 1024 look as in decimal
/// notation, as in Kubernetes; so do figures above 2^63-1, which only arithmetic can reach, because a
/// binary suffix is cut there when it is read.
fn fits_binary(quantity: Quantity) -> bool {
    let units = quantity.nano.abs() / NANO;
    quantity.is_integer() && (1024..=i128::from(i64::MAX)).contains(&units)
}

fn binary(units: i128) -> String {
    let (number, suffix) = reduce(units, 1024, &BINARY_SUFFIXES);
    format!("{number}{suffix}")
}

fn decimal(nano: i128) -> String {
    let (number, suffix) = reduce(nano, 1000, &DECIMAL_SUFFIXES);
    format!("{number}{suffix}")
}

fn exponent(nano: i128) -> String {
    let (mut number, mut power) = (nano, -9);
    while number % 1000 == 0 {
        number /= 1000;
        power += 3;
    }
    if power == 0 {
        number.to_string()
    } else {
        format!("{number}e{power}")
    }
}

/// Divides by `step` as long as the number stays whole and a larger suffix exists.
fn reduce(mut number: i128, step: i128, suffixes: &[&'static str]) -> (i128, &'static str) {
    let mut chosen = "";
    for (index, suffix) in suffixes.iter().enumerate() {
        chosen = suffix;
        if index + 1 == suffixes.len() || number % step != 0 {
            break;
        }
        number /= step;
    }
    (number, chosen)
}
