//! The stamp: by which version, in which boot and for which node values were in effect last.
//!
//! Decides what may be assumed of the last agent's work. It must never make anything pass for enforced.

use super::entry::PodEntry;
use super::run::Agent;
use crate::cgroup::{Controller, InterfaceFile};
use crate::report::pod::ENFORCED;
use crate::store::{Change, Expect};

/// The store key of the stamp.
const STAMP_KEY: &str = "node/enforced-by";

impl Agent {
    /// What an agent like this one had in effect for a pod, in this boot, it has not changed since: what
    /// differs now was changed by somebody else while no agent ran. Levels follow sums over pods, of which the
    /// last may not have been written, so nothing is assumed of them.
    pub(super) fn assume_applied(&mut self) {
        let stamp = self.stamp_text();
        let last = self.store.get(STAMP_KEY).ok().flatten();
        if last.is_none_or(|last| last.value != stamp.as_bytes()) {
            return;
        }
        let was_enforced = |entry: &&PodEntry| {
            let mut conditions = entry.record.conditions.iter();
            entry.placed
                && entry.record.resizing.is_none()
                && conditions.any(|one| one.kind == ENFORCED && one.status)
        };
        for entry in self.pods.values().filter(was_enforced) {
            for (path, node) in self.wanted.within(&entry.path()) {
                let mut node = node.clone();
                // What is shared follows other pods, and may have moved before it was written.
                let own = |file: &InterfaceFile| file.controller() != Controller::Cpuset;
                node.settings.retain(|file, _| own(file));
                self.applied.insert(path.clone(), node);
            }
        }
    }

    /// The machine has ended what ran, which says nothing of the next run: as with the kubelet, whose memory of ends
    /// goes with its process.
    pub(super) fn forgive_in_a_new_boot(&mut self) {
        let last = self.store.get(STAMP_KEY).ok().flatten();
        let stamp = last.map(|last| String::from_utf8_lossy(&last.value).into_owned());
        if stamp.is_none_or(|stamp| stamp.contains(&self.system.boot_id)) {
            return;
        }
        for key in self.pods.keys().cloned().collect::<Vec<_>>() {
            let Some(entry) = self.pods.get_mut(&key) else {
                continue;
            };
            let all = entry.record.containers.iter();
            let waits = all.filter(|(_, it)| it.quick_ends > 0 || it.not_before.is_some());
            let names: Vec<_> = waits.map(|(name, _)| name.clone()).collect();
            for name in names {
                let record = entry.change(&name);
                (record.quick_ends, record.not_before) = (0, None);
            }
        }
    }

    /// By whom and for which node values are in effect from now on.
    pub(super) fn stamp(&mut self) {
        let stamp = self.stamp_text().into_bytes();
        let last = self.store.get(STAMP_KEY).ok().flatten();
        if last.is_none_or(|last| last.value != stamp) {
            let change = Change::Put(STAMP_KEY.to_owned(), stamp, Expect::Any);
            // Without it the next agent calls a drift a new value: it is repaired all the same.
            drop(self.commit(vec![change]));
        }
    }

    fn stamp_text(&self) -> String {
        format!(
            "{} {} {:?} {:?}",
            env!("CARGO_PKG_VERSION"),
            self.system.boot_id,
            self.policy,
            self.node
        )
    }
}
