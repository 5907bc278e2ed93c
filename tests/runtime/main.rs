//! The process runtime against real processes: how they start, what they see, how they end, and what
//! is left when agent or shim are killed at a bad moment. Limits are the business of `tests/kernel`.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

mod crashes;
mod ends;
mod exec;
mod full_disk;
mod output;
mod security;
mod support;
mod upkeep;
