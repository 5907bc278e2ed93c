//! How processes get into cgroups, and what becomes of them.
//!
//! A container's program is started by a small [`shim`] that outlives the agent. Agent and shim share
//! a directory per attempt and nothing else: `spec.json` (the agent's), `lock` (held while the shim
//! lives), `started.json` and `exit.json` (the shim's). [`Runtime`] is the agent's side; it keeps no
//! state, so it may be killed at any instant. It never writes a limit and never decides a restart.
//!
//! ```text
//! STATE/pods/UID/CONTAINER/ATTEMPT/{spec,started,exit}.json lock
//! STATE/pods/UID/CONTAINER/scratch/
//! STATE/pods/UID/.volumes/VOLUME/
//! LOGS/NAMESPACE_NAME_UID/CONTAINER/ATTEMPT.log ATTEMPT.log.1 …
//! ```
//!
//! A program that runs already is taken in with [`attach`]; it has no shim and no log.

pub mod attach;
pub mod cri;
mod dir;
pub mod errand;
pub mod exec;
pub mod identity;
pub mod left;
mod lock;
pub mod logs;
pub mod name;
pub mod open_files;
pub mod process;
pub mod record;
mod remove;
pub mod restart;
pub mod shim;
pub mod space;
pub mod state;

pub use errand::Errands;
pub use identity::ProcessId;
pub use name::{AttemptId, BadName, ContainerId};
pub use process::{ContainerSpec, Runtime, RuntimeError};
pub use record::{Exit, ExitReason, MountSpec, Started};
pub use space::{Held, ProjectSpec, VolumeSpec};
pub use state::{AttemptState, Lost, LostReason, Running};
