//! Random scripts: whatever is done in whatever order, both kernels answer alike and end alike.

use std::cell::RefCell;

use allotd::cgroup::{CgroupPath, Controller, ControllerSet, Op, Pid, Setting};
use allotd::units::{Bytes, CpuMax, CpuSet, CpuWeight, HugePageSize, Limit, Micros};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::{Difference, Pair};
use crate::Outcome;
use crate::door::top::path;
use crate::player::Player;

tests![any_script_has_the_same_end];

const SCRIPTS: u32 = 30;

/// One step of a script. Processes are named by number; the last one has ended.
#[derive(Clone, Debug)]
enum Step {
    Create(CgroupPath),
    Enable(CgroupPath, ControllerSet),
    Disable(CgroupPath, Controller),
    Write(CgroupPath, Setting),
    Reclaim(CgroupPath, Bytes),
    Attach(CgroupPath, usize),
    Kill(CgroupPath),
    Remove(CgroupPath),
    End(usize),
}

fn any_script_has_the_same_end() -> Outcome {
    let stage = RefCell::new(Stage::new()?);
    let mut runner = TestRunner::new(Config {
        cases: SCRIPTS,
        failure_persistence: None,
        ..Config::default()
    });
    runner.run(&prop::collection::vec(step(), 1..40), |script| {
        let played = stage.borrow_mut().play(&script);
        played.map_err(|difference| TestCaseError::fail(difference.to_string()))
    })?;
    Ok(())
}

/// Three processes and one that has ended, for all scripts.
struct Stage {
    players: Vec<Player>,
    ended: Pid,
    scripts: u32,
}

impl Stage {
    fn new() -> std::io::Result<Self> {
        let mut ended = Player::eats(0)?;
        ended.go();
        ended.ending()?;
        let players: Result<_, _> = (0..3).map(|_| Player::waits()).collect();
        Ok(Self {
            players: players?,
            ended: ended.pid(),
            scripts: 0,
        })
    }

    fn play(&mut self, script: &[Step]) -> Result<(), Difference> {
        self.scripts += 1;
        let mut pair = Pair::new(&format!("script{}", self.scripts))?;
        for player in &self.players {
            // Whatever the script before did with it, it begins outside.
            std::fs::write("/sys/fs/cgroup/cgroup.procs", player.pid().to_string())?;
            pair.spawn(player);
        }
        for (number, step) in script.iter().enumerate() {
            let same = self.step(&mut pair, step).and_then(|()| pair.compare());
            same.map_err(|difference| format!("step {number}, {step:?}: {difference}"))?;
        }
        Ok(())
    }

    fn step(&mut self, pair: &mut Pair, step: &Step) -> Result<(), Difference> {
        let op = match step.clone() {
            Step::Disable(path, controller) => return pair.disable(&path, controller),
            Step::End(number) => return self.replace(pair, number),
            Step::Create(path) => Op::Create(path),
            Step::Enable(path, controllers) => Op::Enable(path, controllers),
            Step::Write(path, setting) => Op::Write(path, setting),
            Step::Reclaim(path, bytes) => Op::Reclaim(path, bytes),
            Step::Attach(path, number) => Op::Attach(
                path,
                self.players.get(number).map_or(self.ended, Player::pid),
            ),
            Step::Kill(path) => Op::Kill(path),
            Step::Remove(path) => Op::Remove(path),
        };
        pair.perform(&op)?;
        for number in 0..self.players.len() {
            if !pair.lives_alike(&mut self.players[number])? {
                self.replace(pair, number)?;
            }
        }
        Ok(())
    }

    /// A process ends and another one begins in its place, outside.
    fn replace(&mut self, pair: &mut Pair, number: usize) -> Result<(), Difference> {
        pair.model.exit(self.players[number].pid());
        self.players[number] = Player::waits()?;
        pair.spawn(&self.players[number]);
        Ok(())
    }
}

fn step() -> impl Strategy<Value = Step> {
    let process = 0_usize..4;
    prop_oneof![
        5 => place().prop_map(Step::Create),
        4 => (place(), controllers()).prop_map(|(path, set)| Step::Enable(path, set)),
        1 => (place(), controller()).prop_map(|(path, name)| Step::Disable(path, name)),
        5 => (place(), setting()).prop_map(|(path, setting)| Step::Write(path, setting)),
        1 => (place(), 1_u64..10_000).prop_map(|(path, bytes)| Step::Reclaim(path, Bytes(bytes))),
        4 => (place(), process).prop_map(|(path, number)| Step::Attach(path, number)),
        1 => place().prop_map(Step::Kill),
        2 => place().prop_map(Step::Remove),
        1 => (0_usize..3).prop_map(Step::End),
    ]
}

fn place() -> impl Strategy<Value = CgroupPath> {
    prop_oneof![
        1 => Just(CgroupPath::top()),
        6 => prop::sample::select(vec!["a", "b", "a/c", "a/d", "b/c", "a/c/e"]).prop_map(path),
    ]
}

fn controller() -> impl Strategy<Value = Controller> {
    prop::sample::select(Controller::ALL.to_vec())
}

fn controllers() -> impl Strategy<Value = ControllerSet> {
    prop_oneof![
        Just(ControllerSet::all()),
        prop::sample::subsequence(Controller::ALL.to_vec(), 0..=5)
            .prop_map(|some| some.into_iter().collect()),
    ]
}

fn setting() -> impl Strategy<Value = Setting> {
    let size = prop::sample::select(vec![HugePageSize::TWO_MIB, HugePageSize::ONE_GIB]);
    prop_oneof![
        (0_u64..20_000).prop_map(|weight| Setting::CpuWeight(CpuWeight::clamped(weight))),
        (
            edges(&[0, 999, 1000, 50_000, (1 << 44) - 1, 1 << 44]),
            prop::sample::select(vec![0, 999, 1000, 100_000, 1_000_000, 1_000_001])
        )
            .prop_map(|(quota, period)| Setting::CpuMax(CpuMax {
                quota: quota.map(Micros),
                period: Micros(period),
            })),
        prop::sample::select(vec![
            0,
            1,
            999,
            50_000,
            50_001,
            1 << 43,
            u64::MAX / 1000,
            u64::MAX
        ])
        .prop_map(|burst| Setting::CpuMaxBurst(Micros(burst))),
        bytes(0).prop_map(Setting::MemoryMin),
        bytes(0).prop_map(Setting::MemoryLow),
        // Without page cache there is nothing that a throttle could reclaim.
        bytes(64 << 20).prop_map(Setting::MemoryHigh),
        // The kernel's own memory counts in the real cgroups; a bound below it would kill.
        bytes(64 << 20).prop_map(Setting::MemoryMax),
        bytes(0).prop_map(Setting::MemorySwapMax),
        any::<bool>().prop_map(Setting::MemoryOomGroup),
        (size.clone(), bytes(0)).prop_map(|(size, bytes)| Setting::HugetlbMax(size, bytes)),
        (size, bytes(0)).prop_map(|(size, bytes)| Setting::HugetlbRsvdMax(size, bytes)),
        edges(&[0, 1, 4_194_304, 4_194_305, u64::MAX]).prop_map(Setting::PidsMax),
        list().prop_map(Setting::CpusetCpus),
        list().prop_map(Setting::CpusetMems),
    ]
}

/// Lists of which the machine has all, some or none.
fn list() -> impl Strategy<Value = CpuSet> {
    prop::sample::select(vec!["", "0", "0-1", "1-3", "511"]).prop_map(|text| text.parse().unwrap())
}

fn bytes(least: u64) -> impl Strategy<Value = Limit<Bytes>> {
    let end = 1 << 63;
    let sizes = [
        0,
        4095,
        4097,
        3 << 20,
        1 << 30,
        end - (1 << 21),
        end - 4096,
        end,
        u64::MAX,
    ];
    edges(&sizes).prop_map(move |limit| limit.map(|bytes| Bytes(bytes.max(least))))
}

/// One of the values, or `max`.
fn edges(values: &[u64]) -> impl Strategy<Value = Limit<u64>> + use<> {
    let limits = values
        .iter()
        .map(|value| Limit::At(*value))
        .chain([Limit::Max]);
    prop::sample::select(limits.collect::<Vec<_>>())
}
