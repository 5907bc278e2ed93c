//! How much disk a pod uses, and what of that is too much.
//!
//! Where the file system keeps project quotas a part of the pod's files is asked for in one call, exactly
//! and whatever the files are called; elsewhere its directories are walked. Nothing here acts on it.

pub mod limits;
pub mod measure;
pub mod projects;
pub mod walk;

pub use walk::usage;
