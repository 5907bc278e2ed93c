//! A quantity in JSON and YAML: written as a string, read from a string or a number.
//!
//! A number token reaches us as an integer or as a binary fraction. The latter is taken only where its
//! decimal digits are certain, so that a figure is either exact or refused. One limit remains: the digits
//! of a token beyond the seventeenth are lost before it gets here, and with them at most one part in 10^15.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Format, Quantity};

/// Digits that every binary fraction of 64 bits keeps.
const CERTAIN_DIGITS: usize = 15;

/// 2^53: above it not every whole number has a binary fraction of its own.
const CERTAIN_WHOLE: f64 = 9_007_199_254_740_992.0;

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

struct QuantityVisitor;

impl Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity such as \"100m\", \"64Mi\" or 2")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Quantity, E> {
        text.trim().parse().map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Quantity, E> {
        let magnitude = Quantity::from_units(number.unsigned_abs(), Format::DecimalSi);
        Ok(if number < 0 { -magnitude } else { magnitude })
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Quantity, E> {
        Ok(Quantity::from_units(number, Format::DecimalSi))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Quantity, E> {
        // The shortest decimal text that means this number, such as `1.5e0`.
        let text = format!("{number:e}");
        let mantissa = text.split('e').next().unwrap_or_default();
        let digits = mantissa.bytes().filter(u8::is_ascii_digit).count();
        if !number.is_finite() {
            return Err(E::invalid_value(Unexpected::Float(number), &self));
        }
        if digits > CERTAIN_DIGITS || number.abs() >= CERTAIN_WHOLE {
            return Err(E::custom(format_args!(
                "the number {number:e} is not exact; write the quantity in quotes"
            )));
        }
        let quantity: Quantity = text.parse().map_err(E::custom)?;
        Ok(quantity.with_format(Format::DecimalSi))
    }

    /// Kubernetes reads an explicit `null` as zero.
    fn visit_unit<E: Error>(self) -> Result<Quantity, E> {
        Ok(Quantity::ZERO)
    }
}
