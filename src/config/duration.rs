//! Durations in a file, as Kubernetes writes them: `100ms`, `1m30s`.
//!
//! jiff reads the format; this only joins it to serde.

use std::time::Duration;

use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, Serializer, de::Error};

pub(super) fn serialize<S: Serializer>(value: &Duration, out: S) -> Result<S::Ok, S::Error> {
    match SignedDuration::try_from(*value) {
        Ok(signed) => out.serialize_str(&format!("{signed:#}").replace(' ', "")),
        Err(_) => Err(serde::ser::Error::custom("the duration is too long")),
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(input)?;
    let wrong = || {
        D::Error::custom(format!(
            "{text:?} is no duration: 100ms, 10s or 1m30s are right"
        ))
    };
    let signed: SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(signed).map_err(|_| wrong())
}
