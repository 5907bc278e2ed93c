//! The exit codes of `allot` and `allotd`, all in one place.
//!
//! | code | meaning |
//! |------|---------|
//! | 0    | done, and nothing to object to |
//! | 1    | an error, `allot diff` found drift, or `allot check --strict` has warnings |
//! | 2    | the command line or the input cannot be understood; nothing was changed |
//! | 3    | understood and refused: an object that is not admitted, or in `allot check` would not be |
//!
//! These are part of the interface: a code never changes its meaning.

/// Done, and nothing to object to.
pub const OK: u8 = 0;
/// An error, drift, or warnings under `check --strict`.
pub const ERROR: u8 = 1;
/// The command line or the input cannot be understood; nothing was changed.
pub const BAD_INPUT: u8 = 2;
/// Understood and refused.
pub const REFUSED: u8 = 3;
