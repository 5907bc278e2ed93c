//! `allotd` admits Kubernetes-shaped pods on one Linux node, turns their requests and limits into
//! cgroup v2 values, and keeps those values true in the kernel.
//!
//! The modules stand in the order in which the data flows.

pub mod units;
pub mod model;
pub mod manifest;
pub mod admission;
pub mod cgroup;
pub mod translation;
pub mod enforcement;
pub mod observation;
pub mod runtime;
pub mod store;
pub mod report;
pub mod config;
pub mod agent;
pub mod server;
pub mod daemon;
pub mod cli;
pub mod exit;
pub mod sys;
