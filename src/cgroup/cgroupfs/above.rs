//! Bounds in the cgroups above the top one, which belong to others: a slice that somebody gave a limit.
//!
//! Decides which of them matter: those that give less than the top cgroup's own. It must never write there.

use std::cmp::Ordering;

use super::lifecycle;
use super::mount::Mount;
use crate::cgroup::{InterfaceFile, Setting};

/// What can be too little for all pods together.
const BOUNDS: [InterfaceFile; 5] = [
    InterfaceFile::CpuMax,
    InterfaceFile::MemoryHigh,
    InterfaceFile::MemoryMax,
    InterfaceFile::MemorySwapMax,
    InterfaceFile::PidsMax,
];

/// A sentence for each. What cannot be read is not told: it is asked for with each status.
pub(super) fn bounds(mount: &Mount, below: &str) -> Vec<String> {
    let read = |path: &str, file: InterfaceFile| {
        let text = mount
            .root
            .below(path)
            .and_then(|dir| dir.read(&file.to_string()));
        Setting::parse(file, &text.ok()?)
    };
    let mut told = Vec::new();
    for file in BOUNDS {
        let Some(own) = read(below, file) else {
            continue;
        };
        for path in lifecycle::above(below) {
            let Some(bound) = read(path, file) else {
                continue;
            };
            if bound.compare(own) == Some(Ordering::Less) {
                told.push(format!(
                    "{}/{file} is {}: all pods together get no more, though {} gives them {}",
                    mount.shown(path),
                    bound.value(),
                    mount.shown(below),
                    own.value()
                ));
            }
        }
    }
    told
}
