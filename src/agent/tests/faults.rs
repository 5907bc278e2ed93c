//! Every call of the agent to the kernel fails once in every way, in the life of a pod.
//!
//! Afterwards nothing may be left undone: what is wanted is in the kernel, and a pod that was deleted is gone from it.

use std::time::{Duration, Instant};

use super::bench::{Bench, one, runs};
use crate::agent::request::PodKey;
use crate::agent::run::Agent;
use crate::cgroup::{CgroupPath, ErrorKind, Hierarchy, Op, Setting};
use crate::units::{Bytes, Limit};

/// Those to which the agent reacts in ways of their own.
const KINDS: [ErrorKind; 4] = [
    ErrorKind::Gone,
    ErrorKind::Busy,
    ErrorKind::Unsupported,
    ErrorKind::Interrupted,
];

/// How many calls a stage makes at most; a fault that lies behind the last of them ends the row.
const MOST: usize = 200;

/// After `before`, once: `stage` with a fault, then `undo` without, for each call in the stage and each kind.
fn every_fault(before: fn(&mut Bench), stage: fn(&mut Bench), undo: fn(&mut Bench)) {
    let mut bench = Bench::new();
    before(&mut bench);
    for kind in KINDS {
        let mut calls = 0;
        loop {
            bench.kernel.fail_call(calls, kind);
            stage(&mut bench);
            let was_all = bench.kernel.no_fault();
            undo(&mut bench);
            if was_all {
                break;
            }
            calls += 1;
            assert!(calls < MOST, "{kind:?}: it never ends");
        }
        assert!(calls > 3, "{kind:?}: only {calls} calls failed");
    }
}

fn key() -> PodKey {
    PodKey::new("default", "web")
}

fn is_enforced(agent: &Agent) -> bool {
    let entry = agent.pods.get(&key());
    entry.is_some_and(|entry| entry.enforced.is_ok())
}

/// The kernel has all that is wanted, and no more of any pod.
fn holds(bench: &mut Bench) -> Result<(), String> {
    let found = bench.kernel.with(|kernel| kernel.found(&CgroupPath::top()));
    let found = found.unwrap();
    let agent = bench.agent();
    for (path, node) in agent.wanted.iter() {
        let there = found.get(path).ok_or(format!("{path} is missing"))?;
        for setting in node.settings.values() {
            if there.get(setting.file()) != Some(*setting) {
                return Err(format!("{path}: {setting} is missing"));
            }
        }
    }
    match found.iter().find(|(path, _)| !agent.wanted.contains(path)) {
        Some((path, _)) => Err(format!("{path} is left")),
        None => Ok(()),
    }
}

fn settle(bench: &mut Bench, so: impl Fn(&mut Agent) -> bool) {
    bench.until("it", so);
    let start = Instant::now();
    while let Err(why) = holds(bench) {
        assert!(start.elapsed().as_secs() < 20, "{why}");
        bench.pass(Duration::from_millis(5));
    }
}

fn start(bench: &mut Bench) {
    let pid = bench.next_process();
    bench.create("web", &one("Always"));
    settle(bench, |agent| {
        runs(agent, &key(), "c") && is_enforced(agent)
    });
    bench.put_in(&key(), "c", pid);
}

fn end(bench: &mut Bench) {
    bench
        .agent()
        .delete_pod(&key(), Some(0), None, false)
        .unwrap();
    settle(bench, |agent| !agent.pods.contains_key(&key()));
}

fn change_from_outside(bench: &mut Bench) {
    let path = bench.path(&key(), "c");
    let foreign = Setting::MemoryMax(Limit::At(Bytes::mib(200)));
    let op = Op::Write(path.clone(), foreign);
    bench.kernel.with(|kernel| kernel.as_another(&op)).unwrap();
    // As after a hint of the kernel.
    bench.agent().enforce(&path);
    bench.agent().settle_all();
    settle(bench, |agent| is_enforced(agent));
}

/// What is repaired so often would be left alone.
fn forget_contests(bench: &mut Bench) {
    let path = bench.path(&key(), "c");
    bench.agent().drifts.forget(&path);
}

#[test]
fn a_pod_starts_in_spite_of_every_fault() {
    every_fault(|_| {}, start, end);
}

#[test]
fn a_pod_ends_in_spite_of_every_fault() {
    every_fault(start, end, start);
}

#[test]
fn what_somebody_changed_is_repaired_in_spite_of_every_fault() {
    every_fault(start, change_from_outside, forget_contests);
}
