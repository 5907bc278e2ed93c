//! A bound that may be absent, as the kernel spells it: a value, or `max`.
//!
//! It must never be encoded as a sentinel such as `0` or `-1`.

use std::fmt;
use std::str::FromStr;

/// A value, or `max`: no bound at all. `Max` is greater than every value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit<T> {
    /// Bounded at this value.
    At(T),
    /// Not bounded.
    Max,
}

impl<T> Limit<T> {
    /// The value of the bound, if there is one.
    pub fn value(self) -> Option<T> {
        match self {
            Self::At(value) => Some(value),
            Self::Max => None,
        }
    }

    /// Applies `f` to the value of the bound; `max` stays `max`.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Limit<U> {
        match self {
            Self::At(value) => Limit::At(f(value)),
            Self::Max => Limit::Max,
        }
    }
}

impl<T> From<Option<T>> for Limit<T> {
    /// No value is no bound.
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Max, Self::At)
    }
}

impl<T: fmt::Display> fmt::Display for Limit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(value) => value.fmt(f),
            Self::Max => f.write_str("max"),
        }
    }
}

impl<T: FromStr> FromStr for Limit<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        if text == "max" {
            Ok(Self::Max)
        } else {
            text.parse().map(Self::At)
        }
    }
}
