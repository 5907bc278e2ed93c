//! The Kubernetes quantity: an exact decimal figure with the notation it was written in.
//!
//! Decides what a text such as `250m`, `1.5Gi` or `1e3` is worth, how figures are added and compared, and
//! what they look like when printed. The grammar, the rounding and the printed form are those of
//! Kubernetes 1.36 (`apimachinery/pkg/api/resource`).
//!
//! A quantity is a whole number of nano-units in an `i128`, so every operation is exact. This module must
//! never use floating point, wrap, or do work that grows with an exponent.

mod error;
mod parse;
mod print;
mod wire;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::Neg;

pub use error::QuantityError;

/// Nano-units in one unit (one byte, one core, one object).
const NANO: i128 = 1_000_000_000;

/// Nano-units in one milli-unit.
const NANO_PER_MILLI: i128 = 1_000_000;

/// The largest magnitude in nano-units: 10^29 units, that is 100,000,000,000 exa-units. The range is
/// symmetric, so negation and absolute values cannot overflow.
const MAX_NANO: i128 = 10_i128.pow(38);

/// The notation a quantity is printed in. It has no influence on the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Format {
    /// Powers of 1024: `Ki`, `Mi`, `Gi`, `Ti`, `Pi`, `Ei`.
    BinarySi,
    /// Powers of 1000: `n`, `u`, `m`, none, `k`, `M`, `G`, `T`, `P`, `E`.
    #[default]
    DecimalSi,
    /// Powers of 1000 written as an exponent: `1e3`.
    DecimalExponent,
}

/// An exact figure between -10^29 and 10^29 units in steps of one nano-unit.
///
/// Equality, order and hash look at the value alone: `1Gi` equals `1024Mi` and `1073741824`.
/// `Display` prints the canonical form, and reading that back gives the same value.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    nano: i128,
    format: Format,
}

impl Quantity {
    /// Nothing, in decimal notation.
    pub const ZERO: Self = Self {
        nano: 0,
        format: Format::DecimalSi,
    };

    /// The scale of milli-units for [`Quantity::round_up`].
    pub const MILLI: i32 = -3;

    /// A whole number of units.
    pub fn from_units(units: u64, format: Format) -> Self {
        // At most 1.9e19 * 1e9, far below the bound.
        Self {
            nano: i128::from(units) * NANO,
            format,
        }
    }

    /// A number of milli-units in decimal notation, the usual form of CPU figures.
    pub fn from_milli(milli: i64) -> Self {
        // At most 9.3e18 * 1e6, far below the bound.
        Self {
            nano: i128::from(milli) * NANO_PER_MILLI,
            format: Format::DecimalSi,
        }
    }

    /// A number of nano-units; `None` outside the range of a quantity.
    pub fn from_nano(nano: i128, format: Format) -> Option<Self> {
        (-MAX_NANO..=MAX_NANO)
            .contains(&nano)
            .then_some(Self { nano, format })
    }

    /// The exact value in nano-units.
    pub const fn nano(self) -> i128 {
        self.nano
    }

    /// The notation it is printed in.
    pub const fn format(self) -> Format {
        self.format
    }

    /// The same value in another notation.
    #[must_use]
    pub const fn with_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// Whether the value is zero.
    pub const fn is_zero(self) -> bool {
        self.nano == 0
    }

    /// Whether the value is below zero.
    pub const fn is_negative(self) -> bool {
        self.nano < 0
    }

    /// Whether the value is a whole number of units.
    pub const fn is_integer(self) -> bool {
        self.nano % NANO == 0
    }

    /// The value in units, fractions rounded away from zero as Kubernetes does: `1n` is 1, `-0.5` is -1.
    pub fn value(self) -> i128 {
        divide_away(self.nano, NANO)
    }

    /// The value in milli-units, fractions rounded away from zero.
    pub fn milli_value(self) -> i128 {
        divide_away(self.nano, NANO_PER_MILLI)
    }

    /// [`Quantity::value`] as a `u64`; `None` when negative or above 2^64-1.
    pub fn to_u64_ceil(self) -> Option<u64> {
        u64::try_from(self.value()).ok()
    }

    /// [`Quantity::value`] held within 0 and 2^64-1, for figures in bytes.
    pub fn bytes(self) -> u64 {
        clamp(self.value())
    }

    /// [`Quantity::milli_value`] held within 0 and 2^64-1, for figures in thousandths of a core.
    pub fn milli(self) -> u64 {
        clamp(self.milli_value())
    }

    /// The sum; `None` outside the range. Keeps this notation, or the other's where this is zero, so that
    /// a sum started from [`Quantity::ZERO`] looks like what was added.
    #[must_use]
    pub fn checked_add(self, other: Self) -> Option<Self> {
        Self::from_nano(self.nano.checked_add(other.nano)?, self.joint_format(other))
    }

    /// The difference; `None` outside the range. Notation as in [`Quantity::checked_add`].
    #[must_use]
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.checked_add(-other)
    }

    /// The product with a whole number; `None` outside the range.
    #[must_use]
    pub fn checked_mul(self, factor: i64) -> Option<Self> {
        Self::from_nano(self.nano.checked_mul(i128::from(factor))?, self.format)
    }

    /// The sum, held at the end of the range it would leave.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        let nano = self.nano.saturating_add(other.nano);
        Self {
            nano: nano.clamp(-MAX_NANO, MAX_NANO),
            format: self.joint_format(other),
        }
    }

    /// Rounds away from zero to a multiple of 10^`scale` units, held at the end of the range.
    ///
    /// `round_up(Quantity::MILLI)` is what the Kubernetes API does to every entry of a resource list.
    #[must_use]
    pub fn round_up(self, scale: i32) -> Self {
        let step = u32::try_from(scale.saturating_add(9))
            .map_or(1, |power| 10_i128.checked_pow(power).unwrap_or(i128::MAX));
        let nano = divide_away(self.nano, step).saturating_mul(step);
        Self {
            nano: nano.clamp(-MAX_NANO, MAX_NANO),
            ..self
        }
    }

    fn joint_format(self, other: Self) -> Format {
        if self.is_zero() {
            other.format
        } else {
            self.format
        }
    }
}

/// `number / step` rounded away from zero; `step` is positive.
fn divide_away(number: i128, step: i128) -> i128 {
    let quotient = number / step;
    if number % step == 0 {
        quotient
    } else {
        quotient + number.signum()
    }
}

fn clamp(number: i128) -> u64 {
    u64::try_from(number.max(0)).unwrap_or(u64::MAX)
}

impl Neg for Quantity {
    type Output = Self;

    fn neg(self) -> Self {
        Self {
            nano: -self.nano,
            ..self
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nano == other.nano
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nano.cmp(&other.nano)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nano.hash(state);
    }
}
