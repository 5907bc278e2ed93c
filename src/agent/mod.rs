//! The owner: one thread that holds all state, and the only place where the stages meet.
//!
//! Decides in which order they meet: admit, commit, enforce, start, watch, report. Applying, restart
//! recovery and drift repair are the same path: state wanted, state found, a plan. Slow work (disk
//! walks, starting processes, slow clients) never runs here.

mod admit;
mod answer;
mod attach;
mod cache;
mod probes;
mod census;
mod containers;
mod cpus;
mod crash;
mod drift;
mod ending;
mod ends;
mod enforce;
mod entry;
pub mod events;
mod figures;
mod guard;
mod eviction;
mod hints;
mod input;
mod kills;
pub mod lifecycle;
mod names;
mod node;
mod node_end;
mod objects;
mod oom;
mod orphans;
mod pods;
mod publish;
mod recover;
pub mod record;
mod refuse;
mod reload;
mod replace;
mod request;
mod resize;
mod run;
mod sampler;
mod settle;
mod since;
mod spaces;
mod stamp;
mod statics;
mod stop;
mod tell;
#[cfg(test)]
mod tests;
mod walks;

pub use cache::{Cache, Change, Expired, Seen, Watcher};
pub use eviction::{EvictionParts, News};
pub use input::{Handle, Input};
pub use node::build as build_node;
pub use node_end::{Ended, end_pods};
pub use objects::usage;
pub use record::FORMATS;
pub use request::{Cause, Kept, ObjectKey, PodKey, Put, Refusal, Reply, Request};
pub use run::{Agent, Parts, StartupError, start};
