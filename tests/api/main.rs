//! The REST API with a real agent behind it, on the model kernel: what is answered to friends and to
//! everybody else.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod accounts;
#[path = "../support/busy.rs"]
mod busy;
mod cases;
mod check;
mod command_line;
mod definitions;
mod eviction;
mod figures;
mod followers;
mod hostile;
mod kube;
mod kinds;
mod objects;
mod oomkills;
mod orphans;
mod policies;
mod probes;
mod protobuf;
mod refusals;
mod resize;
mod server;
mod top;
mod watch;
