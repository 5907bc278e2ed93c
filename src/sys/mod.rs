//! The few system calls that no library offers in safe form: the only place where `unsafe` is
//! allowed, one call per module, each with the reason why it is sound.
//!
//! Nothing here decides anything; what to do with an answer is the caller's.

pub mod clone;
pub mod exec;
pub mod ioprio;
pub mod passed;
pub mod process;
pub mod project;
pub mod quota;
pub mod readable;
