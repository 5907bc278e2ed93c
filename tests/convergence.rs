//! Properties of enforcement on random trees, with the model kernel in place of the real one: every
//! tree becomes every other in one pass, others' writes are told and undone, and nothing fails or
//! kills silently.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

#[path = "support/trees.rs"]
mod trees;

use std::collections::BTreeMap;

use allotd::cgroup::{
    CgroupPath, ErrorKind, Hierarchy, InterfaceFile, ModelKernel, Node, Op, Pid, Setting, Tree,
};
use allotd::enforcement::{Cause, Outcome, Plan, apply, plan, remember};
use allotd::units::{Bytes, Limit, PageSize};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use trees::{HUGE, MIB, fitting_trees, paths, setting_of, top, trees};

const PAGE: PageSize = PageSize::FOUR_KIB;

/// A kernel and what its owner remembers.
#[derive(Debug, Default)]
struct Machine {
    kernel: ModelKernel,
    applied: Tree,
}

impl Machine {
    fn found(&mut self) -> Tree {
        self.kernel.found(&top()).unwrap()
    }

    fn plan(&mut self, wanted: &Tree) -> Plan {
        let found = self.found();
        plan(&top(), wanted, &found, &self.applied, PAGE)
    }

    fn pass(&mut self, wanted: &Tree) -> Outcome {
        let plan = self.plan(wanted);
        let outcome = apply(&mut self.kernel, &plan);
        let found = self.found();
        remember(&mut self.applied, &top(), wanted, &found, PAGE);
        outcome
    }

    /// The kernel has exactly the wanted cgroups, and in them what is wanted.
    fn has(&mut self, wanted: &Tree) -> bool {
        let found = self.found();
        found.len() == wanted.len()
            && wanted.iter().all(|(path, node)| {
                found.get(path).is_some_and(|there| {
                    node.enabled.without(&there.enabled).is_empty()
                        && node
                            .settings
                            .values()
                            .all(|setting| there.get(setting.file()) == Some(setting.kept(PAGE)))
                })
            })
    }

    /// A process in every cgroup that hands nothing down, with some memory and huge pages.
    fn populate(&mut self, sizes: &[u64]) -> Vec<(Pid, CgroupPath)> {
        let found = self.found();
        let leaves = found
            .iter()
            .filter(|(path, node)| !path.is_top() && node.enabled.is_empty());
        let mut alive = Vec::new();
        for (pid, ((path, _), mib)) in (1..).map(Pid).zip(leaves.zip(sizes.iter().cycle())) {
            self.kernel.spawn_in(path, pid).unwrap();
            self.kernel.grow(pid, Bytes(mib * MIB));
            self.kernel.take_huge_pages(pid, HUGE, Bytes(2 * mib * MIB));
            self.kernel.set_cache(path, Bytes(mib * MIB));
            alive.push((pid, path.clone()));
        }
        alive.retain(|(pid, _)| self.kernel.is_alive(*pid));
        alive
    }

    fn oom_kills(&mut self) -> Option<u64> {
        self.kernel.counters(&top()).unwrap().oom_kill
    }
}

/// Whether a step of a plan is in effect.
fn is_done(found: &Tree, op: &Op) -> bool {
    let there = found.get(op.path());
    match op {
        Op::Create(_) => there.is_some(),
        Op::Remove(_) => there.is_none(),
        Op::Enable(_, set) => there.is_some_and(|node| set.without(&node.enabled).is_empty()),
        Op::Write(_, setting) => there.and_then(|node| node.get(setting.file())) == Some(*setting),
        _ => true,
    }
}

fn is_told(outcome: &Outcome, op: &Op) -> bool {
    let held = |setting: &Setting| {
        let same = outcome.held.iter().filter(|held| held.path == *op.path());
        same.into_iter().any(|held| held.wanted == *setting)
    };
    outcome.failed.iter().any(|failed| failed.op == *op)
        || matches!(op, Op::Write(_, setting) if held(setting))
        || matches!(op, Op::Remove(path) if outcome.pending.contains(path))
}

fn faults() -> impl Strategy<Value = Vec<(usize, ErrorKind)>> {
    let kind = select(vec![
        ErrorKind::Gone,
        ErrorKind::Busy,
        ErrorKind::Invalid,
        ErrorKind::Unsupported,
        ErrorKind::Denied,
        ErrorKind::Interrupted,
        ErrorKind::Other,
    ]);
    prop::collection::vec((0..40_usize, kind), 0..6)
}

fn memory(node: &Node, file: InterfaceFile) -> Limit<Bytes> {
    match node.get(file) {
        Some(
            Setting::MemoryMax(bytes)
            | Setting::MemoryMin(bytes)
            | Setting::HugetlbMax(_, bytes)
            | Setting::HugetlbRsvdMax(_, bytes),
        ) => bytes,
        other => panic!("{other:?}"),
    }
}

/// What must hold between any two operations, for cgroups in both trees (a new one begins unbounded).
fn fits(found: &Tree, settled: impl Fn(&CgroupPath) -> bool) -> Result<(), String> {
    use InterfaceFile::{HugetlbMax, HugetlbRsvdMax, MemoryMax, MemoryMin};
    let get = |path: &CgroupPath, file| memory(found.get(path).unwrap(), file);
    let mut promised = BTreeMap::<CgroupPath, u64>::new();
    for (path, _) in found.iter() {
        let ensure = |holds: bool, what: &str| holds.then_some(()).ok_or(format!("{path}: {what}"));
        ensure(
            get(path, MemoryMin) <= get(path, MemoryMax),
            "protected above its bound",
        )?;
        let Some(above) = path.parent() else { continue };
        let sum = promised.entry(above.clone()).or_default();
        *sum += get(path, MemoryMin).value().unwrap().0;
        ensure(
            Limit::At(Bytes(*sum)) <= get(&above, MemoryMin),
            "protected beyond its parent",
        )?;
        if settled(path) {
            for file in [MemoryMax, HugetlbMax(HUGE), HugetlbRsvdMax(HUGE)] {
                ensure(
                    get(path, file) <= get(&above, file),
                    "bounded above its parent",
                )?;
            }
            let reserves = get(path, HugetlbRsvdMax(HUGE));
            ensure(
                reserves <= get(path, HugetlbMax(HUGE)),
                "reserves more than it may use",
            )?;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        // A failure prints what is needed to repeat it.
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn any_tree_becomes_any_other_in_one_pass(a in trees(), b in trees()) {
        let mut machine = Machine::default();
        prop_assert!(machine.pass(&a).is_complete());
        prop_assert!(machine.has(&a));
        let going = |path: &CgroupPath| !b.contains(path);
        for (pid, (path, _)) in (1..).map(Pid).zip(a.iter().filter(|(path, _)| going(path))) {
            // Refused where controllers are handed down.
            let _ = machine.kernel.spawn_in(path, pid);
        }
        let outcome = machine.pass(&b);
        prop_assert!(outcome.is_complete(), "{outcome:#?}");
        prop_assert!(machine.has(&b));
        prop_assert_eq!(machine.plan(&b).to_string(), "");
    }

    #[test]
    fn one_foreign_write_is_one_drift(
        (wanted, place, value) in trees().prop_flat_map(|tree| {
            let files = tree.iter().flat_map(|(path, node)| {
                node.settings.keys().map(|file| (path.clone(), *file))
            });
            let mut files: Vec<_> = files.collect();
            files.push((top(), InterfaceFile::CpuWeight));
            (Just(tree), select(files)).prop_flat_map(|(tree, (path, file))| {
                (Just(tree), Just(path), setting_of(file))
            })
        })
    ) {
        let mut machine = Machine::default();
        machine.pass(&wanted);
        machine.kernel.as_another(&Op::Write(place.clone(), value)).unwrap();
        let plan = machine.plan(&wanted);
        let ours = wanted.get(&place).unwrap().get(value.file()).map(|ours| ours.kept(PAGE));
        match ours.filter(|ours| *ours != value.kept(PAGE)) {
            None => prop_assert_eq!(plan.to_string(), ""),
            Some(ours) => {
                prop_assert_eq!(plan.steps().len(), 1);
                let step = &plan.steps()[0];
                prop_assert_eq!(&step.op, &Op::Write(place.clone(), ours));
                prop_assert_eq!(step.cause, Cause::Drift);
                prop_assert_eq!(step.before, Some(value.kept(PAGE)));
                let outcome = machine.pass(&wanted);
                prop_assert!(outcome.is_complete());
                prop_assert_eq!(outcome.repaired.len(), 1);
                prop_assert_eq!(outcome.enforced.get(&place).unwrap().get(ours.file()), Some(ours));
            }
        }
        prop_assert!(machine.has(&wanted));
    }

    #[test]
    fn one_foreign_removal_is_only_drift(wanted in trees(), which in any::<Index>()) {
        let mut machine = Machine::default();
        machine.pass(&wanted);
        let all: Vec<_> = wanted.iter().map(|(path, _)| path.clone()).skip(1).collect();
        if all.is_empty() {
            return Ok(());
        }
        let path = which.get(&all);
        machine.kernel.as_another(&Op::Remove(path.clone())).unwrap();
        let plan = machine.plan(&wanted);
        prop_assert!(plan.steps().iter().all(|step| step.cause == Cause::Drift));
        prop_assert!(plan.steps().iter().all(|step| step.op.path().is_within(path)));
        machine.pass(&wanted);
        prop_assert!(machine.has(&wanted));
    }

    #[test]
    fn nothing_fails_or_kills_silently(
        a in trees(),
        b in trees(),
        faults in faults(),
        sizes in prop::collection::vec(0..32_u64, 1..4),
    ) {
        let mut machine = Machine::default();
        machine.pass(&a);
        let alive = machine.populate(&sizes);
        let kills = machine.oom_kills();
        let plan = machine.plan(&b);
        for (nth, kind) in faults {
            machine.kernel.fail_nth(kind, nth);
        }
        let outcome = machine.pass(&b);

        let found = machine.found();
        for step in plan.steps() {
            prop_assert!(
                is_done(&found, &step.op) || is_told(&outcome, &step.op),
                "{} is neither done nor told: {outcome:#?}", step.op
            );
        }
        for (path, enforced) in outcome.enforced.iter() {
            let there = found.get(path).unwrap();
            prop_assert!(enforced.settings.values().all(|s| there.get(s.file()) == Some(*s)));
            prop_assert!(enforced.enabled.without(&there.enabled).is_empty());
        }
        for (path, seen) in outcome.seen.iter() {
            prop_assert_eq!(found.get(path), Some(seen));
        }
        prop_assert_eq!(machine.oom_kills(), kills);
        for (pid, path) in &alive {
            prop_assert!(machine.kernel.is_alive(*pid) || !b.contains(path), "{pid} in {path} died");
        }

        machine.kernel.heal();
        for (pid, _) in &alive {
            machine.kernel.exit(*pid);
        }
        let outcome = machine.pass(&b);
        prop_assert!(outcome.is_complete(), "{outcome:#?}");
        prop_assert!(machine.has(&b));
        prop_assert_eq!(machine.plan(&b).to_string(), "");
    }

    #[test]
    fn amounts_fit_at_all_times(a in fitting_trees(), b in fitting_trees()) {
        let mut machine = Machine::default();
        machine.pass(&a);
        prop_assert_eq!(fits(&machine.found(), |_| true), Ok(()));
        let plan = machine.plan(&b);
        for step in plan.steps() {
            machine.kernel.perform(&step.op).unwrap();
            // A new cgroup begins unbounded; one that goes has nobody left to use what it has.
            let settled = |path: &CgroupPath| a.contains(path) && b.contains(path);
            let fits = fits(&machine.found(), settled);
            prop_assert_eq!(fits, Ok(()), "after {} in\n{}", step.op, plan);
        }
        prop_assert!(machine.has(&b));
        prop_assert_eq!(fits(&machine.found(), |_| true), Ok(()));
    }

    #[test]
    fn a_scope_gives_its_part_of_the_whole_plan(
        wanted in trees(),
        found in trees(),
        applied in trees(),
        scope in prop_oneof![paths(), Just(top())],
    ) {
        // What goes goes as a whole: the highest of it is its scope.
        let goes = |path: &CgroupPath| found.contains(path) && !wanted.contains(path);
        let scope = scope.self_and_above().filter(goes).last().unwrap_or(scope);
        let whole = plan(&top(), &wanted, &found, &applied, PAGE);
        let part = plan(&scope, &wanted, &found, &applied, PAGE);
        let around = |path: &CgroupPath| path.is_within(&scope) || scope.is_within(path);
        let expected: Vec<_> = whole.steps().iter().filter(|step| around(step.op.path())).collect();
        prop_assert_eq!(part.steps().iter().collect::<Vec<_>>(), expected);

        // What was applied names causes and decides nothing.
        let fresh = plan(&scope, &wanted, &found, &Tree::default(), PAGE);
        let ops = |plan: &Plan| plan.steps().iter().map(|step| step.op.clone()).collect::<Vec<_>>();
        prop_assert_eq!(ops(&fresh), ops(&part));
    }
}
