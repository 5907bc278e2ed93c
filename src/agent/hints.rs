//! Hints that something happened in a cgroup: each leads to a look, never to a conclusion.

use std::collections::BTreeSet;
use std::time::Instant;

use super::run::Agent;
use crate::cgroup::{CgroupPath, InterfaceFile};
use crate::observation::watch::{Hint, Notice};
use crate::translation::Place;

/// What hints said of a cgroup since the last look.
#[derive(Clone, Debug, Default)]
pub(super) struct Touch {
    /// The kernel counted something.
    events: bool,
    /// Somebody wrote these files.
    files: BTreeSet<InterfaceFile>,
    /// Somebody switched controllers or removed the cgroup, or may have written anything.
    pub(super) anything: bool,
}

impl Agent {
    /// Remembers where to look.
    pub(super) fn notice(&mut self, notice: &Notice) {
        match notice {
            Notice::At(watch, hint) => {
                if let Some(path) = self.watch.path(*watch).cloned() {
                    self.touch(path, *hint);
                }
            }
            Notice::Removed(watch, name) => {
                let removed = self.watch.path(*watch).map(|path| path.child(name));
                // One that we removed ourselves is not wanted any more.
                if let Some(Ok(path)) = removed
                    && self.wanted.contains(&path)
                {
                    self.touched.entry(path).or_default().anything = true;
                }
            }
            Notice::Overflow => self.next_sync = Instant::now(),
        }
    }

    pub(super) fn touch(&mut self, path: CgroupPath, hint: Hint) {
        let touch = self.touched.entry(path).or_default();
        match hint {
            Hint::Events => touch.events = true,
            Hint::Setting(file) => drop(touch.files.insert(file)),
            Hint::Controllers => touch.anything = true,
        }
    }

    /// Reads again what hints pointed at: counters where the kernel spoke, files where somebody
    /// wrote.
    pub(super) fn look_at_touched(&mut self) {
        let mut pods = BTreeSet::new();
        let mut looked_at: Option<CgroupPath> = None;
        for (path, touch) in std::mem::take(&mut self.touched) {
            let key = Place::of(&path)
                .and_then(|place| place.uid().cloned())
                .and_then(|uid| self.by_uid.get(&uid).cloned());
            // Parents come first, and a look at one is a look at all below it.
            let seen = looked_at
                .as_ref()
                .is_some_and(|above| path.is_within(above));
            if !seen && self.wanted.contains(&path) {
                if touch.anything {
                    self.enforce(&path);
                    looked_at = Some(path.clone());
                } else if self.is_changed(&path, &touch.files) {
                    self.enforce_alone(&path);
                }
            }
            if touch.events
                && let Some(key) = key
            {
                pods.insert(key);
            }
        }
        for key in pods {
            self.look_for_oom(&key);
            self.look_for_refused_forks(&key);
            if self
                .pods
                .get(&key)
                .is_some_and(|entry| entry.record.deletion.is_some())
            {
                self.drive(&key);
            }
        }
    }

    /// Whether one of these files may need work. Most of what is written we have written ourselves: then reading
    /// that one file is enough.
    fn is_changed(&mut self, path: &CgroupPath, files: &BTreeSet<InterfaceFile>) -> bool {
        // What is not as wanted, or left alone, may be so no more.
        if !files.is_empty() && self.unenforced.contains_key(path) {
            return true;
        }
        let page = self.kernel.page_size();
        let wanted = self.wanted.get(path);
        let mut kept = files.iter().filter_map(|file| wanted?.get(*file));
        kept.any(|wanted| {
            let file = wanted.file();
            let wanted = Some(wanted.kept(page));
            let applied = self.applied.get(path).and_then(|node| node.get(file));
            applied != wanted
                || !matches!(self.kernel.value(path, file), Ok(value) if value == wanted)
        })
    }
}
