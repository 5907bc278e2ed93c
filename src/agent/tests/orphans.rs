//! Cgroups, processes and files of pods that the store does not know, or cannot tell of.

use std::time::Duration;

use super::bench::{Bench, one};
use crate::agent::request::PodKey;
use crate::agent::run::store_key;
use crate::cgroup::{CgroupPath, ModelKernel, Op, Pid};
use crate::store::{Change, Expect};

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
