//! The stamp: by which version, in which boot and for which node values were in effect last.
//!
//! Decides what may be assumed of the last agent's work. It must never make anything pass for enforced.

use super::entry::PodEntry;
use super::events::Severity;
use super::run::Agent;
use crate::cgroup::{CgroupPath, Controller, InterfaceFile, Setting, Tree};
use crate::report::pod::ENFORCED;
use crate::store::{Change, Expect};

/// The store key of the stamp.
const STAMP_KEY: &str = "node/enforced-by";

impl Agent {
    /// What an agent like this one had in effect for a pod, in this boot, it has not changed since: what
    /// differs now was changed by somebody else while no agent ran. Levels follow sums over pods, and shared CPUs
    /// those that others have, of which the last may not have been written: nothing is assumed of them. Answers the
    /// cgroups that have such values, as far as a difference says anything.
    pub(super) fn assume_applied(&mut self) -> Vec<CgroupPath> {
        let stamp = self.stamp_text();
        let last = self.store.get(STAMP_KEY).ok().flatten();
        if last.is_none_or(|last| last.value != stamp.as_bytes()) {
            return Vec::new();
        }
        let levels = self.levels.tree.iter();
        let mut doubtful: Vec<_> = levels.map(|(path, _)| path.clone()).collect();
        for entry in self.pods.values().filter(|entry| was_enforced(entry)) {
            let sharing = entry.sharing();
            for (path, node) in self.wanted.within(&entry.path()) {
                let mut node = node.clone();
                if sharing.contains(path) {
                    let own = |file: &InterfaceFile| file.controller() != Controller::Cpuset;
                    node.settings.retain(|file, _| own(file));
                }
                self.applied.insert(path.clone(), node);
            }
            doubtful.extend(sharing);
        }
        // A pod on its way in or out moves levels and shared CPUs by itself.
        if !self.pods.values().all(is_at_rest) {
            doubtful.clear();
        }
        doubtful
    }

    /// The first pass over the whole tree. Where values of which nothing is assumed differ it tells that, without
    /// saying who it was.
    pub(super) fn take_over(&mut self, doubtful: &[CgroupPath]) {
        let top = CgroupPath::top();
        match self.found_around(&top) {
            Ok(found) => {
                for path in doubtful {
                    self.tell_what_differs(path, &found);
                }
                self.enforce_found(&top, found);
            }
            // It says what is wrong.
            Err(_) => drop(self.enforce(&top)),
        }
    }

    fn tell_what_differs(&mut self, path: &CgroupPath, found: &Tree) {
        let (Some(wanted), Some(found)) = (self.wanted.get(path), found.get(path)) else {
            return;
        };
        let page = self.kernel.page_size();
        let assumed = self.applied.get(path);
        let differs = |wanted: &Setting| {
            let file = wanted.file();
            let is_assumed = assumed.is_some_and(|node| node.get(file).is_some());
            let found = found
                .get(file)
                .filter(|found| *found != wanted.kept(page))?;
            (!is_assumed).then(|| (file, found.value(), wanted.value()))
        };
        let all: Vec<_> = wanted.settings.values().filter_map(differs).collect();
        for (file, found, wanted) in all {
            let message = format!(
                "{file} of {path} was {found} at the start, {wanted} is wanted: somebody changed it while no \
                 allotd ran, or the last one ended before it was written"
            );
            self.tell(path, Severity::Warning, "FoundDifferent", &message);
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
        let (cpus, reserved) = self.cpus.room().map_or_else(Default::default, |room| {
            (room.topology.all(), room.reserved)
        });
        format!(
            "{} {} {:?} {:?} {cpus} {reserved}",
            env!("CARGO_PKG_VERSION"),
            self.system.boot_id,
            self.policy,
            self.node
        )
    }
}

/// Whether all of it was in effect, and nothing of it has changed since.
fn was_enforced(entry: &PodEntry) -> bool {
    let mut conditions = entry.record.conditions.iter();
    entry.placed
        && entry.record.resizing.is_none()
        && conditions.any(|one| one.kind == ENFORCED && one.status)
}

/// Whether it moved nothing above it or beside it when the last agent ended.
fn is_at_rest(entry: &PodEntry) -> bool {
    entry.record.deletion.is_none() && (was_enforced(entry) || entry.is_over())
}
