//! Cgroups, processes and files of pods that the store does not know, or cannot tell of.

use std::fs;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;

use super::bench::{Bench, one};
use crate::agent::FORMATS;
use crate::agent::orphans::LOSS_KEY;
use crate::agent::request::PodKey;
use crate::agent::run::store_key;
use crate::cgroup::{CgroupPath, ModelKernel, Op, Pid};
use crate::model::kind::LIMIT_RANGE;
use crate::report::Orphan;
use crate::store::{Change, Expect, open_or_rebuild};

fn lives(bench: &Bench, pid: i32) -> bool {
    bench.kernel.with(|kernel| kernel.is_alive(Pid(pid)))
}

fn is_there(bench: &Bench, path: &CgroupPath) -> bool {
    bench.kernel.with(|kernel| kernel.node(path)) != crate::cgroup::Node::default()
}

/// What becomes of the store's entry of a pod while no agent runs.
fn replaced(bench: &mut Bench, key: &PodKey, record: Option<&[u8]>) {
    bench.pass(Duration::from_millis(50));
    let change = match record {
        None => Change::Delete(store_key(key), Expect::Any),
        Some(text) => Change::Put(store_key(key), text.to_vec(), Expect::Any),
    };
    bench.agent().store.commit(&[change]).unwrap();
    bench.crash();
}

fn notes(bench: &mut Bench) -> Vec<String> {
    let note = bench.agent().orphans.note.clone();
    note.into_iter().collect()
}

#[test]
fn what_has_no_record_ends_is_told_and_keeps_its_files() {
    let mut bench = Bench::new();
    let (kept, stays) = bench.run("kept", &one("Always"));
    let (lost, goes) = bench.run("lost", &one("Always"));
    let (pod, files) = (bench.entry(&lost).path(), bench.attempt(&lost, "c", 0));
    let uid = bench.entry(&lost).uid().to_string();
    assert_eq!(notes(&mut bench), Vec::<String>::new());
    replaced(&mut bench, &lost, None);
    bench.until("its end", |agent| {
        !matches!(agent.kernel.look(&pod), Ok(Some(_)))
    });
    assert!(!lives(&bench, goes));
    assert!(lives(&bench, stays));
    let told = bench.events("OrphanedCgroup");
    let expected = format!("{pod} is removed with its 1 processes: no pod has it");
    assert_eq!(told, [expected]);
    assert!(files.join("started.json").exists(), "files are left");
    let told = bench.events("OrphanedFiles");
    assert_eq!(told, notes(&mut bench));
    assert!(told[0].starts_with("1 of the directories"), "{told:?}");
    assert!(told[0].ends_with(&uid), "{told:?}");
    bench.pass(Duration::from_millis(50));
    // Nothing of it is done twice.
    bench.kernel.with(ModelKernel::take_performed);
    bench.crash();
    bench.pass(Duration::from_millis(50));
    assert_eq!(bench.kernel.with(ModelKernel::take_performed), []);
    assert_eq!(bench.events("OrphanedCgroup").len(), 1);
    assert_eq!(bench.entry(&kept).attempt("c"), 0);
}

#[test]
fn a_record_that_nobody_can_read_is_no_reason_to_kill() {
    // The second is no pod any more, but still says which one it was.
    for garbage in ["{", "{\"object\": {\"metadata\": {\"uid\": \"UID\"}}}"] {
        let mut bench = Bench::new();
        let (key, pid) = bench.run("web", &one("Always"));
        let pod = bench.entry(&key).path();
        let uid = bench.entry(&key).uid().to_string();
        let says = garbage.contains("UID");
        let garbage = garbage.replace("UID", &uid);
        // Somebody made a cgroup in the name of a pod that never was.
        let foreign: CgroupPath = CgroupPath::top().child("podnever").unwrap();
        let make = Op::Create(foreign.clone());
        bench
            .kernel
            .with(|kernel| kernel.as_another(&make))
            .unwrap();
        replaced(&mut bench, &key, Some(garbage.as_bytes()));
        bench.pass(Duration::from_millis(200));
        assert!(lives(&bench, pid), "{garbage}");
        assert!(is_there(&bench, &pod), "{garbage}");
        assert_eq!(is_there(&bench, &foreign), !says, "{garbage}");
        assert!(bench.agent().pods.get(&key).is_none());
        let told = bench.agent().problems[&store_key(&key)].clone();
        assert!(told.contains("cannot be read"), "{told}");
    }
}

/// Processes, objects and counters are as before, whatever happened to the file, and it is said.
#[test]
fn a_store_that_is_damaged_or_gone_is_made_anew_from_its_journal() {
    for damage in [Some("no store"), Some(""), None] {
        let mut bench = Bench::new();
        let range = json!({"metadata": {"name": "r", "namespace": "default"},
            "spec": {"limits": [{"type": "Container", "max": {"memory": "64Mi"}}]}});
        bench.put(LIMIT_RANGE, &range, true).unwrap();
        let (key, pid) = bench.run("web", &one("Always"));
        bench.pass(Duration::from_millis(50));
        let before = bench.entry(&key).record.clone();
        let revision = bench.agent().store.revision().unwrap();
        bench.kernel.with(ModelKernel::take_performed);
        bench.crash_and(|store| match damage {
            Some(text) => fs::write(store, text).unwrap(),
            None => fs::remove_file(store).unwrap(),
        });
        bench.pass(Duration::from_millis(50));
        assert_eq!(bench.processes(&key, "c"), [pid]);
        assert!(lives(&bench, pid));
        assert_eq!(bench.kernel.with(ModelKernel::take_performed), []);
        let entry = bench.entry(&key);
        assert_eq!(entry.record.object.metadata.uid, before.object.metadata.uid);
        assert_eq!(entry.record.object.spec, before.object.spec);
        assert_eq!(entry.attempt("c"), 0);
        let range = bench.seen(LIMIT_RANGE, "default", "r").unwrap();
        assert_eq!(range["spec"]["limits"][0]["max"]["memory"], "64Mi");
        assert!(bench.agent().store.revision().unwrap() > revision);
        let told = bench.events("StoreRebuilt");
        assert!(told[0].contains("entries of its journal"), "{told:?}");
        let problems: Vec<_> = bench.agent().problems.values().cloned().collect();
        assert_eq!(problems.len(), 1, "nothing is left alone");
        assert!(told[0].starts_with(&problems[0]), "{told:?} {problems:?}");
        // The next one finds a sound store.
        bench.crash();
        assert!(bench.agent().problems.is_empty());
        assert_eq!(bench.events("StoreRebuilt").len(), 1);
    }
}

/// Nobody can tell the pods whose records are lost from what is left over, so neither is ended until a reboot.
#[test]
fn what_runs_is_left_alone_where_its_record_may_be_lost() {
    let mut bench = Bench::new();
    let (key, pid) = bench.run("web", &one("Always"));
    let pod = bench.entry(&key).path();
    let uid = bench.entry(&key).uid().to_string();
    bench.pass(Duration::from_millis(50));
    bench.crash_and(|store| {
        fs::write(store, "no store").unwrap();
        fs::remove_file(store.with_file_name("store.redb.journal")).unwrap();
    });
    bench.pass(Duration::from_millis(200));
    let told = bench.events("StoreRebuilt");
    assert!(
        told[0].contains("a new one is empty: it has no journal"),
        "{told:?}"
    );
    assert!(
        told[0].ends_with("is left alone and not counted until the next boot"),
        "{told:?}"
    );
    assert!(notes(&mut bench)[0].ends_with(&uid));
    // Not by the next agent either, which finds a sound store.
    bench.crash();
    bench.pass(Duration::from_millis(200));
    assert!(lives(&bench, pid) && is_there(&bench, &pod));
    assert!(bench.agent().pods.get(&key).is_none());
    bench.reboot();
    assert!(!bench.agent().orphans.spared);
}

/// A journal that ends early is like a whole one, so a pod that it does not have may be one of its last lines.
#[test]
fn what_runs_is_left_alone_where_the_end_of_the_journal_may_be_missing() {
    let mut bench = Bench::new();
    let (kept, stays) = bench.run("kept", &one("Always"));
    bench.pass(Duration::from_millis(50));
    let (lost, pid) = bench.run("lost", &one("Always"));
    let pod = bench.entry(&lost).path();
    bench.pass(Duration::from_millis(50));
    let key = store_key(&lost);
    bench.crash_and(|store| {
        fs::remove_file(store).unwrap();
        let journal = store.with_file_name("store.redb.journal");
        let text = fs::read_to_string(&journal).unwrap();
        let before = |line: &&str| !line.contains(&key);
        let lines: Vec<_> = text.split_inclusive('\n').take_while(before).collect();
        assert!(lines.concat().ends_with('\n') && lines.concat().len() < text.len());
        fs::write(&journal, lines.concat()).unwrap();
    });
    bench.pass(Duration::from_millis(200));
    let told = bench.events("StoreRebuilt");
    assert!(
        told[0].contains("which may lack the last changes"),
        "{told:?}"
    );
    assert!(bench.agent().pods.get(&lost).is_none());
    assert!(lives(&bench, pid) && is_there(&bench, &pod));
    assert_eq!(bench.processes(&kept, "c"), [stays]);
    assert_eq!(bench.agent().problems.len(), 2);
    assert_eq!(bench.events("OrphanedCgroup"), Vec::<String>::new());
}

/// The first agent after the loss may be killed before it has told of it, and so before it has spared anything.
#[test]
fn a_loss_outlives_the_agent_that_finds_it() {
    let mut bench = Bench::new();
    let (key, pid) = bench.run("web", &one("Always"));
    bench.pass(Duration::from_millis(50));
    bench.crash_and(|store| {
        fs::write(store, "no store").unwrap();
        fs::write(store.with_file_name("store.redb.journal"), "no line").unwrap();
        drop(open_or_rebuild(store, FORMATS).unwrap());
    });
    bench.pass(Duration::from_millis(200));
    assert!(lives(&bench, pid));
    assert!(bench.agent().pods.get(&key).is_none());
    assert_eq!(bench.events("StoreRebuilt").len(), 1);
    // Each agent of this boot says so, and only the first that it was made anew.
    assert_eq!(bench.agent().problems.len(), 2);
    bench.crash();
    let problems: Vec<_> = bench.agent().problems.values().cloned().collect();
    let expected = "records of pods were lost or cannot be read: what runs without a record is left alone and not \
                    counted until the next boot (1 cgroups of pods); allot orphans names them, allot orphans --end ends \
                    them now";
    assert_eq!(problems, [expected]);
    assert_eq!(bench.events("StoreRebuilt").len(), 1);
    bench.reboot();
    assert!(bench.agent().problems.is_empty());
}

/// Somebody says that what was left alone shall go: it does, as anything else without a record, and nothing else.
#[test]
fn what_is_left_alone_ends_when_somebody_says_so() {
    let mut bench = Bench::new();
    let (key, pid) = bench.run("web", &one("Always"));
    let pod = bench.entry(&key).path();
    bench.pass(Duration::from_millis(50));
    bench.crash_and(|store| {
        fs::write(store, "no store").unwrap();
        fs::remove_file(store.with_file_name("store.redb.journal")).unwrap();
    });
    let (other, stays) = bench.run("other", &one("Always"));
    let orphan = Orphan {
        cgroup: pod.to_string(),
        processes: 1,
    };
    assert_eq!(bench.agent().list_orphans(false), Ok(vec![orphan.clone()]));
    assert!(lives(&bench, pid));
    // What is not durable is not done: the next agent would spare again what this one has ended in part.
    let full = bench.agent().store.full.clone();
    full.store(true, Ordering::Relaxed);
    assert_eq!(bench.agent().list_orphans(true).unwrap_err().code, 507);
    bench.pass(Duration::from_millis(50));
    assert!(lives(&bench, pid));
    full.store(false, Ordering::Relaxed);
    assert_eq!(bench.agent().list_orphans(true), Ok(vec![orphan]));
    bench.until("its end", |agent| {
        !matches!(agent.kernel.look(&pod), Ok(Some(_)))
    });
    assert!(!lives(&bench, pid));
    let expected = format!("{pod} is removed with its 1 processes: no pod has it");
    assert_eq!(bench.events("OrphanedCgroup"), [expected]);
    assert_eq!(bench.agent().list_orphans(false), Ok(Vec::new()));
    assert!(!bench.agent().problems.contains_key(LOSS_KEY));
    assert!(lives(&bench, stays) && bench.agent().pods.get(&other).is_some());
    bench.crash();
    assert!(!bench.agent().orphans.spared, "for this boot");
    assert!(bench.agent().problems.is_empty());
}
