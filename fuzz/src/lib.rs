//! One function for every kind of text that comes from outside: it takes any bytes, and panics where
//! something that must hold for all bytes does not.
//!
//! `scripts/fuzz` looks for such bytes; `tests/fuzz_corpus.rs` goes through those of `seeds/` and
//! `tests/data` in every ordinary test run.

pub mod admission;
mod choices;
pub mod config;
pub mod kmsg;
pub mod log;
pub mod manifest;
pub mod patch;
pub mod path;
pub mod protobuf;
pub mod quantity;
pub mod record;
pub mod setting;
pub mod stats;
pub mod store;

/// What takes any bytes.
pub type Target = fn(&[u8]);

/// All targets by name: those of `Cargo.toml`, and the directories of `seeds/`.
pub const TARGETS: &[(&str, Target)] = &[
    ("admission", admission::run),
    ("config", config::run),
    ("kmsg", kmsg::run),
    ("log", log::run),
    ("manifest", manifest::run),
    ("patch", patch::run),
    ("path", path::run),
    ("protobuf", protobuf::run),
    ("quantity", quantity::run),
    ("record", record::run),
    ("setting", setting::run),
    ("stats", stats::run),
    ("store", store::run),
];
