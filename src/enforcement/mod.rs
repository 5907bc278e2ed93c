//! Making the cgroups that are there equal to those that are wanted.
//!
//! `plan` compares two trees and is pure; `apply` performs its plan through the one door to the
//! kernel and tells what the kernel shows afterwards. Applying, resizing, deleting, repairing drift
//! and recovering after a restart are all these two calls. Nothing here knows what a pod is.

pub mod apply;
pub mod hold;
mod order;
pub mod outcome;
pub mod plan;
pub mod show;
#[cfg(test)]
mod tests;

pub use apply::apply;
pub use hold::Held;
pub use outcome::{Failed, Outcome, Repaired};
pub use plan::{Cause, Plan, Step, plan, remember};
pub use show::{Row, Verdict, diff};
