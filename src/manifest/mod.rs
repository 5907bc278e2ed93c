//! Text to objects: YAML or JSON in, Kubernetes objects and every problem out, each with its
//! document, line, field and what would be right.
//!
//! Pure: bytes in, values out; reads no file. Whether an object is allowed is not decided here but
//! in `admission`. The text is hostile: its size, its depth, its values and the copies its aliases
//! make are bounded, so that any text is answered in bounded time and memory.
//!
//! The meaning of an unquoted value is that of `kubectl` (YAML 1.1), save that keys are always text,
//! and that two things are told and not guessed: a key given twice, and a quantity with a leading
//! zero.

mod access;
mod build;
pub mod convert;
pub mod expand;
mod located;
mod misfit;
mod object;
pub mod openshift;
mod parse;
pub mod patch;
mod place;
mod problem;
pub mod protobuf;
mod reader;
mod scalar;
pub mod strategic;
mod tree;
mod typed;
mod unsupported;

pub use located::Located;
pub use object::{Object, Other};
pub use problem::Problem;

/// Bytes of text that are read: 4 MiB. A pod of 10,000 containers has about 2 MiB.
pub const MAX_BYTES: usize = 4 << 20;

/// What becomes of fields that are unknown or given twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// They are problems.
    #[default]
    Strict,
    /// They are warnings: the first is left out, of the second the last one counts.
    Warn,
}

/// What a text holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// All objects whose values could be read, in order. Where there are problems, they serve to
    /// find further ones: nothing of a manifest with problems may take effect.
    pub objects: Vec<Located<Object>>,
    /// What is wrong, in the order of the text. Of very many, the last one tells how many are left
    /// out.
    pub problems: Vec<Problem>,
    /// Unknown and doubled fields, under [`Strictness::Warn`].
    pub warnings: Vec<Problem>,
}

/// Reads a text. `source` is its name in problems: a path, or `-`.
pub fn read(source: &str, bytes: &[u8], strictness: Strictness) -> Manifest {
    reader::read(source, bytes, strictness)
}
