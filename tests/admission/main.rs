//! Admission as a whole: what is filled in, what is refused and in which words, what fits.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

#[path = "../support/pods.rs"]
mod pods;

mod defaults;
mod fit;
mod privilege;
mod properties;
mod resources;
mod rules;
mod volumes;
mod warnings;

use allotd::admission::{Situation, Verdict, admit, readmit};
use allotd::model::{Pod, ResourceList};

/// Judges a pod on an empty node on which anything usual fits.
fn judge(pod: Pod) -> Verdict {
    let node = pods::big_node();
    let nothing = ResourceList::default();
    let situation = Situation::new(&node, &nothing, 0);
    admit(pod, &situation)
}

/// The rules that a pod breaks whatever the node, as they are printed.
fn refusals(pod: Pod) -> Vec<String> {
    let reasons = readmit(pod).err().unwrap_or_default();
    reasons.iter().map(ToString::to_string).collect()
}
