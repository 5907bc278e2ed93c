//! Values that somebody else changes: repaired, left, adopted; while the agent runs and while it does not.

use serde_json::json;

use super::bench::{Bench, one};
use super::resize::{amounts, resize};
use crate::agent::request::PodKey;
use crate::cgroup::{CgroupPath, InterfaceFile, ModelKernel, Op, Setting};
use crate::config::Config;
use crate::model::policy::DriftPolicy;
use crate::observation::watch::Hint;
use crate::report::drift::DriftOutcome;
use crate::units::{CpuMax, Limit, Micros};

fn quota(micros: u64) -> Setting {
    Setting::CpuMax(CpuMax {
        quota: Limit::At(Micros(micros)),
        period: CpuMax::DEFAULT_PERIOD,
    })
}

/// Somebody writes; the kernel hints, and the agent looks.
fn write(bench: &mut Bench, path: &CgroupPath, setting: Setting) {
    write_unseen(bench, path, setting);
    bench.agent().enforce(path);
    bench.agent().settle_all();
}

fn write_unseen(bench: &mut Bench, path: &CgroupPath, setting: Setting) {
    let op = Op::Write(path.clone(), setting);
    bench.kernel.with(|kernel| kernel.as_another(&op)).unwrap();
}

fn shown(bench: &mut Bench, path: &CgroupPath) -> Setting {
    let node = bench.kernel.with(|kernel| kernel.node(path));
    node.get(InterfaceFile::CpuMax).unwrap()
}

fn outcomes(bench: &mut Bench) -> Vec<DriftOutcome> {
    let drifts = bench.agent().drifts.after(0);
    drifts.iter().map(|drift| drift.outcome).collect()
}

fn enforced(bench: &mut Bench, key: &PodKey) -> Result<(), String> {
    bench.entry(key).enforced.clone()
}

/// The kernel names the file that somebody wrote: that one is mended, and what else is wrong there. Cgroups above and
/// below wait for whoever looks at all.
#[test]
fn what_a_hint_names_is_mended_alone() {
    let mut bench = Bench::new();
    let (key, _) = bench.run("web", &one("Always"));
    let path = bench.path(&key, "c");
    let above = path.parent().unwrap();
    let hint = |bench: &mut Bench| {
        bench.kernel.with(ModelKernel::take_performed);
        let hint = Hint::Setting(InterfaceFile::CpuMax);
        bench.agent().touch(path.clone(), hint);
        bench.agent().look_at_touched();
        bench.agent().settle_all();
        bench.kernel.with(ModelKernel::take_performed)
    };
    assert_eq!(hint(&mut bench), [], "the agent's own write");
    let told = bench.entry(&key).revision;
    write_unseen(&mut bench, &path, quota(5000));
    write_unseen(&mut bench, &path, Setting::PidsMax(Limit::At(7)));
    write_unseen(&mut bench, &above, quota(7000));
    let pids = Setting::PidsMax(Limit::Max);
    let mended = [quota(10_000), pids].map(|setting| Op::Write(path.clone(), setting));
    let done = hint(&mut bench);
    assert!(
        done.len() == 2 && mended.iter().all(|op| done.contains(op)),
        "{done:?}"
    );
    assert_eq!(outcomes(&mut bench), [DriftOutcome::Repaired; 2]);
    assert_eq!(bench.entry(&key).revision, told, "the pod is as it was");
    assert_eq!(shown(&mut bench, &above), quota(7000));
    bench.agent().enforce(&CgroupPath::top());
    assert_eq!(shown(&mut bench, &above), quota(10_000));
    // One that is left alone for a while is looked at with all there is.
    for _ in 0..9 {
        write_unseen(&mut bench, &path, quota(5000));
        hint(&mut bench);
    }
    assert!(enforced(&mut bench, &key).is_err());
    write_unseen(&mut bench, &path, quota(10_000));
    assert_eq!(hint(&mut bench), []);
    assert_eq!(
        enforced(&mut bench, &key),
        Ok(()),
        "somebody else has mended it"
    );
}

#[test]
fn what_is_changed_again_and_again_is_left_for_a_while() {
    let mut bench = Bench::new();
    let (key, _) = bench.run("web", &one("Always"));
    let path = bench.path(&key, "c");
    for _ in 0..5 {
        write(&mut bench, &path, quota(5000));
        assert_eq!(shown(&mut bench, &path), quota(10_000));
        assert_eq!(enforced(&mut bench, &key), Ok(()));
    }
    write(&mut bench, &path, quota(5000));
    assert_eq!(shown(&mut bench, &path), quota(5000));
    let why = enforced(&mut bench, &key).unwrap_err();
    assert!(
        why.contains("cpu.max of pod") && why.contains("again and again"),
        "{why}"
    );
    assert_eq!(bench.events("DriftContested").len(), 1);
    let expected = [
        vec![DriftOutcome::Repaired; 5],
        vec![DriftOutcome::Contested],
    ]
    .concat();
    assert_eq!(outcomes(&mut bench), expected);
    let drift = &bench.agent().drifts.after(0)[0];
    assert_eq!(
        (
            &*drift.pod,
            &*drift.container,
            &*drift.file,
            &*drift.found,
            &*drift.wanted
        ),
        ("web", "c", "cpu.max", "5000 100000", "10000 100000")
    );
    // Another file of it is repaired as ever.
    write(&mut bench, &path, Setting::PidsMax(Limit::At(7)));
    let node = bench.kernel.with(|kernel| kernel.node(&path));
    assert_eq!(
        node.get(InterfaceFile::PidsMax),
        Some(Setting::PidsMax(Limit::Max))
    );
}

fn cpu(config: &mut Config, policy: DriftPolicy) {
    config.drift_policy.insert("cpu".to_owned(), policy);
}

/// Report kubernetes#138431, of a file that is ours: by policy it is left, and told once.
#[test]
fn a_writer_that_answers_at_once_is_contested_too() {
    let mut bench = Bench::new();
    let (key, _) = bench.run("web", &one("Always"));
    let path = bench.path(&key, "c");
    write_unseen(&mut bench, &path, quota(5000));
    // What is written is not there when it is read back.
    let is_quota = |op: &Op| matches!(op, Op::Write(_, Setting::CpuMax(_)));
    bench.kernel.with(|kernel| kernel.ignore(is_quota));
    for _ in 0..5 {
        bench.agent().enforce(&path);
        let why = enforced(&mut bench, &key).unwrap_err();
        assert!(why.contains("it reads back 5000 100000"), "{why}");
    }
    bench.kernel.with(ModelKernel::heal);
    bench.agent().enforce(&path);
    assert_eq!(shown(&mut bench, &path), quota(5000));
    let why = enforced(&mut bench, &key).unwrap_err();
    assert!(why.contains("again and again"), "{why}");
    let expected = [vec![DriftOutcome::Undone; 5], vec![DriftOutcome::Contested]].concat();
    assert_eq!(outcomes(&mut bench), expected);
}

#[test]
fn a_drift_can_be_left_and_told() {
    let mut bench = Bench::with(|config| cpu(config, DriftPolicy::Report));
    let (key, _) = bench.run("web", &one("Always"));
    let path = bench.path(&key, "c");
    for _ in 0..3 {
        write(&mut bench, &path, quota(5000));
    }
    assert_eq!(outcomes(&mut bench), [DriftOutcome::Left]);
    bench.crash();
    assert_eq!(shown(&mut bench, &path), quota(5000));
    let why = enforced(&mut bench, &key).unwrap_err();
    assert!(
        why.contains("is 5000 100000, 10000 100000 is wanted"),
        "{why}"
    );
    // Right again, and changed once more: that is another one.
    write(&mut bench, &path, quota(10_000));
    assert_eq!(enforced(&mut bench, &key), Ok(()));
    write(&mut bench, &path, quota(5000));
    assert_eq!(outcomes(&mut bench), [DriftOutcome::Left; 2]);
    // Memory is repaired as ever, and the agent's own changes are made.
    write(&mut bench, &path, Setting::MemoryMax(Limit::Max));
    assert_eq!(outcomes(&mut bench)[2], DriftOutcome::Repaired);
    resize(&mut bench, &key, |pod| {
        pod["spec"]["containers"][0]["resources"] = amounts("200m", "64Mi");
    })
    .unwrap();
    assert_eq!(shown(&mut bench, &path), quota(20_000));
}

#[test]
fn a_drift_can_become_what_is_wanted() {
    let mut bench = Bench::with(|config| cpu(config, DriftPolicy::Adopt));
    let (key, _) = bench.run("web", &one("Always"));
    let path = bench.path(&key, "c");
    write(&mut bench, &path, quota(5000));
    assert_eq!(outcomes(&mut bench), [DriftOutcome::Adopted]);
    for _ in 0..2 {
        assert_eq!(shown(&mut bench, &path), quota(5000));
        assert_eq!(enforced(&mut bench, &key), Ok(()));
        let notes = &bench
            .entry(&key)
            .translated
            .cgroup(Some("c"))
            .unwrap()
            .0
            .notes;
        let notes: Vec<_> = notes.iter().map(ToString::to_string).collect();
        let note = "cpu.max: adopted from somebody who set it, in place of 10000 100000";
        assert!(notes.iter().any(|told| told == note), "{notes:?}");
        bench.crash();
    }
    // Levels are sums: there is nothing to adopt.
    let top = CgroupPath::top().child("burstable").unwrap();
    write(
        &mut bench,
        &top,
        Setting::CpuWeight(crate::units::CpuWeight::clamped(7)),
    );
    assert_eq!(outcomes(&mut bench), [DriftOutcome::Left]);
    resize(&mut bench, &key, |pod| {
        pod["spec"]["containers"][0]["resources"] = amounts("200m", "64Mi");
    })
    .unwrap();
    assert_eq!(shown(&mut bench, &path), quota(20_000));
    assert_eq!(
        bench.entry(&key).record.adopted,
        std::collections::BTreeMap::new()
    );
}

#[test]
fn what_is_changed_while_no_agent_runs_is_told_too() {
    let mut bench = Bench::new();
    let (key, _) = bench.run("web", &one("Always"));
    let path = bench.path(&key, "c");
    bench.pass(std::time::Duration::from_millis(50));
    write_unseen(&mut bench, &path, quota(5000));
    bench.crash();
    assert_eq!(shown(&mut bench, &path), quota(10_000));
    assert_eq!(outcomes(&mut bench), [DriftOutcome::Repaired]);
    assert_eq!(bench.events("Drift").len(), 1);
    // A boot, or another setting, is nobody's drift.
    bench.reboot();
    assert_eq!(outcomes(&mut bench), []);
}

#[test]
fn the_policy_names_controllers() {
    let mut config = Config::default();
    config
        .drift_policy
        .insert("io".to_owned(), DriftPolicy::Repair);
    let text = serde_json::to_string(&json!({"driftPolicy": {"io": "Repair"}})).unwrap();
    let refused = Config::parse(&text).unwrap_err().to_string();
    let told = "driftPolicy names \"io\": cpu, memory, pids, hugetlb, cpuset are right";
    assert!(refused.contains(told), "{refused}");
}
