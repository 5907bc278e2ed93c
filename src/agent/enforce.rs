//! Wanted, found, plan, apply, read back: the one path to the kernel.

use std::collections::BTreeMap;
use std::time::Instant;

use super::request::PodKey;
use super::run::{Agent, RETRY};
use crate::cgroup::{CgroupPath, ErrorKind, KernelError, Op, Tree};
use crate::enforcement::{self, Outcome, Plan};
use crate::translation::{Place, levels};

impl Agent {
    /// Puts a pod's cgroups into the wanted tree, without those of init containers that did their
    /// work. Whether that changed what is wanted.
    pub(super) fn place(&mut self, key: &PodKey) -> bool {
        let Some(entry) = self.pods.get_mut(key) else {
            return false;
        };
        let done: Vec<_> = entry
            .admitted
            .pod()
            .all_containers()
            .filter(|(_, _, container)| !entry.needs_cgroup(container))
            .filter_map(|(_, _, container)| entry.container_path(&container.name))
            .collect();
        if entry.placed {
            let before = self.wanted.len();
            for path in &done {
                self.wanted.remove(path);
            }
            return self.wanted.len() != before;
        }
        let mut tree = entry.translated.tree.clone();
        for path in &done {
            tree.remove(path);
        }
        self.wanted.extend(tree);
        entry.placed = true;
        self.totals.add(&entry.translated.share);
        self.refresh_levels();
        true
    }

    /// Takes a pod's cgroups out of the wanted tree.
    pub(super) fn displace(&mut self, key: &PodKey) {
        let Some(entry) = self.pods.get_mut(key) else {
            return;
        };
        let path = entry.path();
        self.drifts.forget(&path);
        if entry.placed {
            entry.placed = false;
            self.totals.remove(&entry.translated.share);
        }
        self.wanted.remove_within(&path);
        self.refresh_levels();
    }

    /// The values of the levels follow the sums over the pods.
    pub(super) fn refresh_levels(&mut self) {
        self.levels = levels(&self.totals, &self.node, &self.policy);
        self.wanted.extend(self.levels.tree.clone());
    }

    /// What is in the kernel at `scope`, below it and above it.
    pub(super) fn found_around(&mut self, scope: &CgroupPath) -> Result<Tree, KernelError> {
        let mut found = match self.kernel.found(scope) {
            Ok(found) => found,
            Err(error) if error.kind == ErrorKind::Gone => Tree::default(),
            Err(error) => return Err(error),
        };
        for path in scope.self_and_above().skip(1) {
            if let Some(node) = self.kernel.look(&path)? {
                found.insert(path, node);
            }
        }
        Ok(found)
    }

    /// Makes the kernel hold what is wanted at `scope`, below it and above it. Whether nothing is
    /// left to do.
    pub(super) fn enforce(&mut self, scope: &CgroupPath) -> bool {
        let found = match self.found_around(scope) {
            Ok(found) => found,
            Err(error) => {
                self.kernel_failed(scope, &error.to_string());
                return false;
            }
        };
        self.enforce_found(scope, found)
    }

    /// The same, where it is known what is there.
    pub(super) fn enforce_found(&mut self, scope: &CgroupPath, found: Tree) -> bool {
        let page = self.kernel.page_size();
        let plan = enforcement::plan(scope, &self.wanted, &found, &self.applied, page);
        self.carry_out(scope, found, plan)
    }

    /// The same for this one cgroup, where somebody wrote files of it: nothing above or below it is looked at, so
    /// that it costs the same among a thousand pods. Where more is to be done there, all is looked at.
    pub(super) fn enforce_alone(&mut self, path: &CgroupPath) -> bool {
        let mut undone = self.unenforced.keys();
        if undone.any(|at| at.is_within(path) || path.is_within(at)) {
            return self.enforce(path);
        }
        let (Some(wanted), Ok(Some(node))) = (self.wanted.get(path), self.kernel.look(path)) else {
            return self.enforce(path);
        };
        let alone = |node| {
            let mut tree = Tree::default();
            tree.insert(path.clone(), node);
            tree
        };
        let (wanted, found) = (alone(wanted.clone()), alone(node));
        let page = self.kernel.page_size();
        let plan = enforcement::plan(path, &wanted, &found, &self.applied, page);
        self.carry_out(path, found, plan)
    }

    /// Does what the plan for a scope says, but what is not to be done, and remembers what is in effect then.
    fn carry_out(&mut self, scope: &CgroupPath, mut found: Tree, mut plan: Plan) -> bool {
        if scope.is_top() {
            self.tell_of_spared(&found);
        }
        // A newer agent may be stricter, and a crash may leave a record that nobody can read: neither is a
        // reason to kill.
        plan.leave_out(|step| match &step.op {
            Op::Kill(path) | Op::Remove(path) => self.is_spared(path),
            _ => false,
        });
        self.tell_of_orphans(&plan);
        let left = self.heed_drifts(scope, &mut plan);
        let outcome = if plan.is_empty() {
            Outcome::default()
        } else {
            enforcement::apply(self.kernel.as_mut(), &plan)
        };
        outcome.update(&mut found);
        for step in plan.steps() {
            if let Op::Create(path) = &step.op
                && found.contains(path)
            {
                // A watch on an earlier cgroup at this place is of no use any more.
                self.watch.remove_within(path);
                self.count_from_zero(path);
            }
        }
        let page = self.kernel.page_size();
        enforcement::remember(&mut self.applied, scope, &self.wanted, &found, page);
        if scope.is_top() {
            // Whoever shares CPUs has been looked at.
            self.cpus.moved = false;
        }
        self.tell_of_repairs(&outcome);
        self.note_unenforced(scope, &outcome, &left);
        self.keep_watch(scope, &outcome);
        outcome.is_complete() && left.is_empty()
    }

    /// Notes what is not enforced and why; what was noted in the scope before is out of date. The log
    /// has each only once for as long as it lasts.
    fn note_unenforced(
        &mut self,
        scope: &CgroupPath,
        outcome: &Outcome,
        left: &[(CgroupPath, String)],
    ) {
        let before: BTreeMap<_, _> = self
            .unenforced
            .extract_if(.., |path, _| path.is_within(scope) || scope.is_within(path))
            .collect();
        let failed = outcome
            .failed
            .iter()
            .map(|failed| (failed.op.path(), failed.to_string(), true));
        let held = outcome
            .held
            .iter()
            .map(|held| (&held.path, held.to_string(), false));
        let left = left.iter().map(|(path, why)| (path, why.clone(), false));
        for (path, why, has_failed) in failed.chain(held).chain(left) {
            // What is in use may be another figure each time.
            let start = |why: &str| why.split(" but ").next().map(str::to_owned);
            let is_same = |known: &String| start(known) == start(&why);
            if !before
                .get(path)
                .is_some_and(|known| known.iter().any(is_same))
            {
                tracing::warn!("{why}");
                if has_failed {
                    self.sync_soon();
                }
            }
            self.tallies.failures = self.tallies.failures.saturating_add(1);
            self.unenforced.entry(path.clone()).or_default().push(why);
        }
        match Place::of(scope).and_then(|place| place.uid().cloned()) {
            Some(uid) => {
                if let Some(key) = self.by_uid.get(&uid).cloned() {
                    self.refresh_enforced(&key);
                }
            }
            None => self.refresh_all_enforced(),
        }
    }

    /// What fails for the first time may be gone a moment later; what stays is tried at each sync.
    fn sync_soon(&mut self) {
        let soon = Instant::now().checked_add(RETRY);
        self.next_sync = soon.map_or(self.next_sync, |soon| self.next_sync.min(soon));
    }

    /// Every wanted cgroup that is there is watched, and no other.
    fn keep_watch(&mut self, scope: &CgroupPath, outcome: &Outcome) {
        for path in outcome.removed.iter().chain(&outcome.gone) {
            self.watch.remove_within(path);
        }
        for (path, _) in self.wanted.around(scope) {
            if !self.applied.contains(path) {
                continue;
            }
            match self.watch.add(path) {
                Ok(false) => {}
                // Whoever wrote between the last look and the watch was not noticed.
                Ok(true) => self.touched.entry(path.clone()).or_default().anything = true,
                Err(error) => {
                    tracing::warn!("cannot watch {path}: {error}; changes are found at each sync");
                }
            }
        }
    }

    /// A pod is enforced when nothing is left undone in its cgroups and in those above.
    fn refresh_enforced(&mut self, key: &PodKey) {
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        let pod = entry.path();
        let why: Vec<_> = self
            .unenforced
            .iter()
            .filter(|(path, _)| path.is_within(&pod) || pod.is_within(path))
            .map(|(_, why)| why.join("; "))
            .collect();
        let enforced = if why.is_empty() {
            Ok(())
        } else {
            Err(why.join("; "))
        };
        // Whoever is as before is not shown anew.
        if entry.enforced != enforced
            && let Some(entry) = self.pods.get_mut(key)
        {
            entry.enforced = enforced;
        }
    }

    fn refresh_all_enforced(&mut self) {
        for key in self.pods.keys().cloned().collect::<Vec<_>>() {
            self.refresh_enforced(&key);
        }
    }

    fn kernel_failed(&mut self, scope: &CgroupPath, why: &str) {
        tracing::error!("cannot look at {scope}: {why}");
        self.tallies.failures = self.tallies.failures.saturating_add(1);
        let why = vec![why.to_owned()];
        if self.unenforced.insert(scope.clone(), why.clone()) != Some(why) {
            self.sync_soon();
        }
        self.refresh_all_enforced();
    }
}
