//! The owner on the model kernel, stopped and started at any instant.

mod accounts;
mod bench;
mod cases;
mod clock;
mod cpus;
mod definitions;
mod drift;
mod durable;
mod ends;
mod faults;
mod eviction;
mod hooks;
mod kernel;
mod namespaces;
mod node_end;
mod orphans;
mod probes;
mod random;
mod reload;
mod reports;
mod resize;
mod resize_rules;
mod scale;
mod security;
mod shim;
mod statics;
