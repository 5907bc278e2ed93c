//! Objects in Kubernetes' protobuf, as typed clients send them: bytes in, their JSON form out.
//!
//! Decides what the bytes say; whether that is right is decided of the JSON form, as of any other. Must
//! never drop what it does not know: a kind or a field that is in no table is refused. The bytes are
//! hostile: lengths are checked, the number of values is bounded, and no message can hold itself.

mod decode;
mod schema;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
mod tests;
mod wire;

use std::fmt;

use serde_json::Value;

/// The media type.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// Why bytes cannot be read as an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The kind is in no table: other formats may be right for it.
    Kind {
        /// What the body says it is.
        api_version: String,
        /// The same.
        kind: String,
    },
    /// The bytes are wrong, or say what no table knows.
    Body {
        /// Offset of the wrong byte in the body.
        at: usize,
        /// The field it belongs to; empty where the whole object is meant.
        field: String,
        /// What is wrong.
        message: String,
    },
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind { api_version, kind } => write!(
                f,
                "{api_version:?} {kind:?} is not read as protobuf here: application/json is right"
            ),
            Self::Body { at, field, message } if field.is_empty() => {
                write!(f, "byte {at}: {message}")
            }
            Self::Body { at, field, message } => write!(f, "byte {at}: {field}: {message}"),
        }
    }
}

/// The JSON form of an object, with `apiVersion` and `kind`; without its status.
///
/// # Errors
/// The bytes are no object of a known kind, or say something about it that is not known here.
pub fn read(bytes: &[u8]) -> Result<Value, Unreadable> {
    decode::object(bytes)
}
