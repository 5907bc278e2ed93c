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
mod kernel;
mod namespaces;
mod offline;
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
