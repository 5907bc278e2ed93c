//! What has to be done to make the tree that was found equal to the one that is wanted.
//!
//! Decides which operations and why; `order` decides which comes first. It must never plan a step for
//! a value the kernel already has, and never touch a cgroup outside the scope it was given.

use std::collections::BTreeSet;
use std::fmt;

use super::order::Order;
use crate::cgroup::{CgroupPath, ControllerSet, Node, Op, Setting, Tree};
use crate::units::PageSize;

/// Why a step is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// It was never applied before.
    New,
    /// Something else was applied before.
    Changed,
    /// This was applied before: somebody else has undone it.
    Drift,
    /// The cgroup is there and is not wanted.
    Unwanted,
}

impl Cause {
    /// The cause in one word: `new`, `changed`, `drift`, `unwanted`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Changed => "changed",
            Self::Drift => "drift",
            Self::Unwanted => "unwanted",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One operation of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What to do. A value to write is the one the kernel will keep.
    pub op: Op,
    /// Why.
    pub cause: Cause,
    /// For a write: what the file holds now; `None` where there is no file yet.
    pub before: Option<Setting>,
}

/// The steps from what was found to what is wanted, in the order in which they must be done. Only
/// `plan` makes one. It prints one line for each step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan(Vec<Step>);

impl Plan {
    /// The steps, first to last.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Takes out the steps that shall not be done now.
    pub fn leave_out(&mut self, mut which: impl FnMut(&Step) -> bool) -> Vec<Step> {
        self.0.extract_if(.., |step| which(step)).collect()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Compares the trees in `scope`: the cgroup at that path, all below it, and those above it. The top
/// as scope means everything. The trees are always the whole ones, and a plan for one pod looks only at
/// that pod's part of them, so it costs the same among 1 or 1000 pods; nothing outside the scope can
/// be taken for unwanted.
///
/// * `wanted` holds, with each cgroup, those above it, and enables above what it sets below. A file
///   it does not name is left alone, as is a controller that is enabled beyond it.
/// * `found` holds only cgroups that are ours: each in scope that `wanted` lacks is killed and
///   removed, except the top.
/// * `applied` is what was in effect after the last pass (see `remember`). It names causes and
///   decides nothing else; an empty one is fine.
/// * `page` is the kernel's page: a value that the kernel keeps differently is no difference.
pub fn plan(
    scope: &CgroupPath,
    wanted: &Tree,
    found: &Tree,
    applied: &Tree,
    page: PageSize,
) -> Plan {
    let mut order = Order::default();
    let unwanted = unwanted(scope, wanted, found);
    for path in &unwanted {
        // The highest goes with all below it.
        if path.parent().is_none_or(|above| !unwanted.contains(&above)) {
            order.tear_down(path);
        }
    }
    for (path, node) in wanted.around(scope) {
        let known = applied.get(path);
        let there = found.get(path);
        if there.is_none() {
            let cause = known.map_or(Cause::New, |_| Cause::Drift);
            order.build(Op::Create(path.clone()), cause);
        }
        let missing = there.map_or_else(
            || node.enabled.clone(),
            |there| node.enabled.without(&there.enabled),
        );
        if !missing.is_empty() {
            let cause = cause_of_missing(&missing, known);
            order.build(Op::Enable(path.clone(), missing), cause);
        }
        let differing = node.settings.values().filter_map(|setting| {
            let setting = setting.kept(page);
            let before = there.and_then(|there| there.get(setting.file()));
            (before != Some(setting)).then(|| Step {
                op: Op::Write(path.clone(), setting),
                cause: cause_of_difference(setting, known, page),
                before,
            })
        });
        order.write(differing);
    }
    Plan(order.finish())
}

/// The cgroups in scope that nobody wants, parents first.
pub(super) fn unwanted<'a>(
    scope: &CgroupPath,
    wanted: &Tree,
    found: &'a Tree,
) -> BTreeSet<&'a CgroupPath> {
    found
        .within(scope)
        .map(|(path, _)| path)
        .filter(|path| !path.is_top() && !wanted.contains(path))
        // Not one that a wanted tree forgot above a cgroup it has.
        .filter(|path| wanted.within(path).next().is_none())
        .collect()
}

fn cause_of_missing(missing: &ControllerSet, applied: Option<&Node>) -> Cause {
    match applied {
        None => Cause::New,
        Some(applied) if missing.without(&applied.enabled).is_empty() => Cause::Drift,
        Some(_) => Cause::Changed,
    }
}

fn cause_of_difference(wanted: Setting, applied: Option<&Node>, page: PageSize) -> Cause {
    match applied.and_then(|applied| applied.get(wanted.file())) {
        None => Cause::New,
        Some(applied) if applied.kept(page) == wanted => Cause::Drift,
        Some(_) => Cause::Changed,
    }
}

/// After a pass: notes in `applied` what `wanted` and `found` agree on in `scope`, and forgets there
/// what is no longer wanted. What is wanted and not in effect keeps its old note.
pub fn remember(
    applied: &mut Tree,
    scope: &CgroupPath,
    wanted: &Tree,
    found: &Tree,
    page: PageSize,
) {
    let gone = applied.within(scope).map(|(path, _)| path);
    let gone: Vec<_> = gone
        .filter(|path| !wanted.contains(path))
        .cloned()
        .collect();
    for path in gone {
        applied.remove(&path);
    }
    for (path, node) in wanted.around(scope) {
        let Some(there) = found.get(path) else {
            continue;
        };
        let mut known = applied.remove(path).unwrap_or_default();
        known
            .settings
            .retain(|file, _| node.settings.contains_key(file));
        for setting in node.settings.values() {
            let setting = setting.kept(page);
            if there.get(setting.file()) == Some(setting) {
                known.set(setting);
            }
        }
        known.enabled = known.enabled.common(&node.enabled);
        let agreed = node.enabled.common(&there.enabled);
        agreed.iter().for_each(|name| known.enabled.insert(name));
        applied.insert(path.clone(), known);
    }
}
