//! Containers that have CPUs to themselves, and those that share the others: given, kept over crashes, freed.

use std::time::Duration;

use k8s_openapi::api::core::v1;
use serde_json::{Value, json};

use super::bench::{Bench, one};
use super::resize::{amounts, resize};
use crate::agent::request::PodKey;
use crate::cgroup::{CgroupPath, Controller, ErrorKind, InterfaceFile, ModelKernel, Op, Setting};
use crate::config::Config;
use crate::model::policy::CpuManagerPolicy;
use crate::model::topology::{Cpu, Topology};
use crate::units::{CpuSet, CpuWeight};

/// Cores of one thread, two at each node.
pub(super) fn machine(online: &str) -> Result<Topology, String> {
    let online: CpuSet = online.parse().unwrap();
    let cpu = |number| Cpu {
        number,
        core: number,
        node: number / 2,
    };
    Topology::new(online.iter().map(cpu).collect(), "0-1".parse().unwrap())
}

pub(super) fn placing(config: &mut Config) {
    config.cpu_manager_policy = CpuManagerPolicy::Static;
}

/// A Guaranteed pod; each container's name and CPU.
pub(super) fn pod(containers: &[(&str, &str)]) -> Value {
    let containers: Vec<_> = containers
        .iter()
        .map(|(name, cpu)| {
            json!({"name": name, "image": "i", "command": ["sleep", "1000"],
                "resources": amounts(cpu, "64Mi")})
        })
        .collect();
    json!({"containers": containers})
}

fn file(bench: &mut Bench, key: &PodKey, container: &str, file: InterfaceFile) -> String {
    let path = bench.path(key, container);
    let node = bench.kernel.with(|kernel| kernel.node(&path));
    node.get(file)
        .map(|setting| setting.value())
        .unwrap_or_default()
}

/// Where a container may run, as the kernel has it.
pub(super) fn cpus(bench: &mut Bench, key: &PodKey, container: &str) -> String {
    let path = bench.path(key, container);
    let effective = bench.kernel.with(|kernel| kernel.effective_cpus(&path));
    assert_eq!(
        file(bench, key, container, InterfaceFile::CpusetCpus),
        effective.to_string()
    );
    effective.to_string()
}

fn delete(bench: &mut Bench, key: &PodKey) {
    bench.agent().delete_pod(key, Some(0), None, false).unwrap();
    bench.until("it to be gone", |agent| !agent.pods.contains_key(key));
}

/// Report kubernetes#70585: who has CPUs of its own has no quota, nor has its pod; who shares keeps its own.
#[test]
fn whole_cpus_are_had_alone_and_the_others_are_shared() {
    let mut bench = Bench::with(placing);
    let web = bench.create("web", &one("Always"));
    assert_eq!(cpus(&mut bench, &web, "c"), "0-3");
    let pair = bench.create("pair", &pod(&[("own", "2"), ("part", "500m")]));
    // CPU 0 is the system's, so node 1 is the one with room for two.
    assert_eq!(cpus(&mut bench, &pair, "own"), "2-3");
    assert_eq!(
        file(&mut bench, &pair, "own", InterfaceFile::CpusetMems),
        "1"
    );
    assert_eq!(
        file(&mut bench, &pair, "own", InterfaceFile::CpuMax),
        "max 100000"
    );
    assert_eq!(cpus(&mut bench, &pair, "part"), "0-1");
    assert_eq!(
        file(&mut bench, &pair, "part", InterfaceFile::CpusetMems),
        "0-1"
    );
    assert_eq!(
        file(&mut bench, &pair, "part", InterfaceFile::CpuMax),
        "50000 100000"
    );
    assert_eq!(cpus(&mut bench, &web, "c"), "0-1");
    let path = bench.entry(&pair).path();
    let node = bench.kernel.with(|kernel| kernel.node(&path));
    assert_eq!(
        node.get(InterfaceFile::CpuMax).unwrap().value(),
        "max 100000"
    );
    assert_eq!(node.get(InterfaceFile::CpusetCpus).unwrap().value(), "");
    let notes: Vec<_> = {
        let translated = &bench.entry(&pair).translated;
        let notes = translated.cgroups.iter().flat_map(|cgroup| &cgroup.notes);
        notes.map(ToString::to_string).collect()
    };
    for expected in [
        "cpu.max: container own has CPUs of their own",
        "cpuset.cpus: 2 CPUs to itself",
        "cpuset.mems: the NUMA nodes of its CPUs",
        "cpu.max: it has CPUs 2-3 to itself: a quota",
        "cpuset.cpus: shared",
    ] {
        assert!(
            notes.iter().any(|note| note.starts_with(expected)),
            "{expected}: {notes:#?}"
        );
    }

    let third = bench.create("third", &pod(&[("own", "1")]));
    assert_eq!(cpus(&mut bench, &third, "own"), "1");
    assert_eq!(cpus(&mut bench, &web, "c"), "0");
    assert_eq!(cpus(&mut bench, &pair, "part"), "0");
    delete(&mut bench, &pair);
    bench.until("the others to follow", |agent| !agent.cpus.moved);
    assert_eq!(cpus(&mut bench, &web, "c"), "0,2-3");
    let refused = bench.send("large", &pod(&[("own", "3")])).unwrap_err();
    let texts: Vec<_> = refused
        .causes
        .iter()
        .map(|cause| cause.message.as_str())
        .collect();
    let expected = "not enough cpus available to satisfy request: requested=3, available=2; 3 by container own \
                    to themselves asked for, of 4 CPUs 1 are reserved (0) and 1 are taken (1)";
    assert!(texts.contains(&expected), "{texts:#?}");
    assert_eq!(cpus(&mut bench, &web, "c"), "0,2-3");
}

#[test]
fn others_do_not_get_any() {
    let mut bench = Bench::with(placing);
    let mut with_init = pod(&[("app", "1")]);
    with_init["initContainers"] = json!([
        {"name": "init", "image": "i", "command": ["sleep", "1"], "resources": amounts("1", "64Mi")},
        {"name": "side", "image": "i", "command": ["sleep", "1"], "restartPolicy": "Always",
            "resources": amounts("1", "64Mi")},
    ]);
    let init = bench.create("init", &with_init);
    // Node 0 has least room that is enough.
    assert_eq!(cpus(&mut bench, &init, "side"), "1");
    assert_eq!(cpus(&mut bench, &init, "app"), "2");
    assert_eq!(cpus(&mut bench, &init, "init"), "0,3");
    let mut whole = pod(&[("c", "1")]);
    whole["resources"] = amounts("1", "64Mi");
    let mut burstable = pod(&[("c", "1")]);
    burstable["containers"][0]["resources"]["limits"]["memory"] = "65Mi".into();
    for (name, spec) in [("whole", whole), ("burstable", burstable)] {
        let key = bench.create(name, &spec);
        assert_eq!(cpus(&mut bench, &key, "c"), "0,3", "{name}");
        assert_ne!(
            file(&mut bench, &key, "c", InterfaceFile::CpuMax),
            "max 100000"
        );
        delete(&mut bench, &key);
    }
    // A dry run takes nothing.
    let dry = json!({"metadata": {"name": "dry"}, "spec": pod(&[("c", "1")])});
    let dry: Box<v1::Pod> = Box::new(serde_json::from_value(dry).unwrap());
    bench.agent().create_pod(dry, true).unwrap();
    let real = bench.create("real", &pod(&[("c", "1")]));
    assert_eq!(cpus(&mut bench, &real, "c"), "3");
}

#[test]
fn cpus_are_kept_over_crashes_and_reboots() {
    let mut bench = Bench::with(placing);
    let first = bench.create("first", &pod(&[("own", "1")]));
    let second = bench.create("second", &pod(&[("own", "1")]));
    let web = bench.create("web", &one("Always"));
    delete(&mut bench, &first);
    bench.until("the others to follow", |agent| !agent.cpus.moved);
    let is = |bench: &mut Bench| (cpus(bench, &second, "own"), cpus(bench, &web, "c"));
    let expected = ("2".to_owned(), "0-1,3".to_owned());
    assert_eq!(is(&mut bench), expected);
    bench.kernel.with(ModelKernel::take_performed);
    bench.crash();
    assert_eq!(is(&mut bench), expected);
    let performed = bench.kernel.with(ModelKernel::take_performed);
    assert!(
        !performed.iter().any(|op| matches!(op, Op::Write(..))),
        "{performed:?}"
    );
    bench.reboot();
    assert_eq!(is(&mut bench), expected);
    assert_eq!(bench.events("CPUsLost"), [""; 0]);
    assert_eq!(bench.events("Drift"), [""; 0]);
    // What was had is not given to another.
    let third = bench.create("third", &pod(&[("own", "2")]));
    assert_eq!(cpus(&mut bench, &third, "own"), "1,3");
}

#[test]
fn a_crash_between_the_commit_and_the_kernel_gives_the_same_cpus() {
    let mut bench = Bench::with(placing);
    let web = bench.create("web", &one("Always"));
    // Nothing is written any more: as if the agent had ended right after the commit.
    bench.kernel.with(|kernel| {
        kernel.fail(ErrorKind::Other, |op| matches!(op, Op::Write(..)));
    });
    let own = bench.create("own", &pod(&[("own", "2")]));
    assert_eq!(
        file(&mut bench, &web, "c", InterfaceFile::CpusetCpus),
        "0-3"
    );
    bench.kernel.with(ModelKernel::heal);
    bench.crash();
    assert_eq!(cpus(&mut bench, &own, "own"), "2-3");
    assert_eq!(cpus(&mut bench, &web, "c"), "0-1");
    assert_eq!(bench.events("Drift"), [""; 0]);
    assert_eq!(bench.events("FoundDifferent"), [""; 0]);
}

#[test]
fn what_the_machine_cannot_give_any_more_is_told_and_shared() {
    let mut bench = Bench::with(placing);
    let pair = bench.create("pair", &pod(&[("own", "2"), ("other", "1")]));
    assert_eq!(cpus(&mut bench, &pair, "own"), "2-3");
    assert_eq!(cpus(&mut bench, &pair, "other"), "1");
    bench.cpus = "0-2";
    bench.crash();
    assert_eq!(cpus(&mut bench, &pair, "own"), "0,2");
    assert_eq!(
        file(&mut bench, &pair, "own", InterfaceFile::CpusetMems),
        "0-1"
    );
    assert_eq!(
        file(&mut bench, &pair, "own", InterfaceFile::CpuMax),
        "200000 100000"
    );
    assert_eq!(cpus(&mut bench, &pair, "other"), "1");
    let said = "container own shares the CPUs that no container has to itself: it had 2-3, and 3 are not \
                there or off";
    assert_eq!(bench.events("CPUsLost"), [said]);
    // Told once; they do not come back by themselves.
    bench.cpus = "0-3";
    bench.crash();
    assert_eq!(bench.events("CPUsLost"), [said]);
    assert_eq!(cpus(&mut bench, &pair, "own"), "0,2-3");

    bench.settings = |config| {
        placing(config);
        config.reserved_system_cpus = "0-1".to_owned();
    };
    bench.crash();
    assert_eq!(cpus(&mut bench, &pair, "other"), "0-3");
    assert_eq!(bench.events("CPUsLost").len(), 2);
}

#[test]
fn without_the_policy_all_run_everywhere_again() {
    let mut bench = Bench::new();
    let own = bench.create("own", &pod(&[("own", "2")]));
    let web = bench.create("web", &one("Always"));
    let top = bench.kernel.with(|kernel| kernel.node(&CgroupPath::top()));
    assert!(!top.enabled.contains(Controller::Cpuset));
    assert_eq!(file(&mut bench, &own, "own", InterfaceFile::CpusetCpus), "");
    bench.settings = placing;
    bench.crash();
    // Who was there before shares; who comes has its own.
    assert_eq!(cpus(&mut bench, &own, "own"), "0-3");
    let new = bench.create("new", &pod(&[("own", "1")]));
    assert_eq!(cpus(&mut bench, &new, "own"), "1");
    assert_eq!(cpus(&mut bench, &own, "own"), "0,2-3");
    bench.settings = |_| {};
    bench.crash();
    for (key, name) in [(&new, "own"), (&own, "own"), (&web, "c")] {
        assert_eq!(cpus(&mut bench, key, name), "0-3");
    }
    assert_eq!(
        file(&mut bench, &new, "own", InterfaceFile::CpuMax),
        "100000 100000"
    );
    assert_eq!(bench.events("CPUsLost").len(), 1);
    // From now on a list is nobody's business.
    let path = bench.path(&web, "c");
    let list = Op::Write(path, Setting::CpusetCpus("1".parse().unwrap()));
    bench
        .kernel
        .with(|kernel| kernel.as_another(&list))
        .unwrap();
    bench.crash();
    assert_eq!(cpus(&mut bench, &web, "c"), "1");
}

#[test]
fn a_resize_leaves_what_is_had_alone() {
    let mut bench = Bench::with(placing);
    let key = bench.create("pair", &pod(&[("own", "1"), ("part", "500m")]));
    let set = |index: usize, cpu: &'static str, memory: &'static str| {
        move |pod: &mut Value| pod["spec"]["containers"][index]["resources"] = amounts(cpu, memory)
    };
    let refused = resize(&mut bench, &key, set(0, "2", "64Mi")).unwrap_err();
    assert!(
        refused
            .message
            .contains("infeasible: it has CPUs 1 to itself"),
        "{}",
        refused.message
    );
    resize(&mut bench, &key, set(0, "1", "128Mi")).unwrap();
    assert_eq!(cpus(&mut bench, &key, "own"), "1");
    assert_eq!(
        file(&mut bench, &key, "own", InterfaceFile::CpuMax),
        "max 100000"
    );
    assert_eq!(
        file(&mut bench, &key, "own", InterfaceFile::MemoryMax),
        "134217728"
    );
    // It was admitted as one that shares, and remains one.
    resize(&mut bench, &key, set(1, "1", "64Mi")).unwrap();
    assert_eq!(cpus(&mut bench, &key, "part"), "0,2-3");
    assert_eq!(
        file(&mut bench, &key, "part", InterfaceFile::CpuMax),
        "100000 100000"
    );
    bench.crash();
    assert_eq!(cpus(&mut bench, &key, "part"), "0,2-3");
}

#[test]
fn a_pod_that_is_over_has_no_cpus() {
    let mut bench = Bench::with(placing);
    let mut spec = pod(&[("c", "2")]);
    spec["restartPolicy"] = "Never".into();
    let (key, pid) = bench.run("job", &spec);
    assert_eq!(cpus(&mut bench, &key, "c"), "2-3");
    bench.kill(pid);
    bench.until("its end", |agent| {
        agent
            .pods
            .get(&key)
            .is_some_and(|entry| !entry.placed && entry.record.cpus.is_empty())
    });
    let next = bench.create("next", &pod(&[("c", "2")]));
    assert_eq!(cpus(&mut bench, &next, "c"), "2-3");
    bench.crash();
    assert_eq!(cpus(&mut bench, &next, "c"), "2-3");
    assert_eq!(bench.events("CPUsLost"), [""; 0]);
}

/// What a container has to itself changes with nobody else, so who changed it is known. What is shared follows others:
/// that is told as it is.
#[test]
fn a_list_that_is_changed_while_no_agent_runs_is_told() {
    let mut bench = Bench::with(placing);
    let (own, _) = bench.run("own", &pod(&[("c", "2")]));
    let (web, _) = bench.run("web", &one("Always"));
    bench.pass(Duration::from_millis(50));
    bench.crash();
    bench.pass(Duration::from_millis(50));
    assert_eq!(bench.events("FoundDifferent"), [""; 0]);
    let level = CgroupPath::top().child("burstable").unwrap();
    let before = bench.kernel.with(|kernel| kernel.node(&level));
    let before = before.get(InterfaceFile::CpuWeight).unwrap().value();
    let list = |list: &str| Setting::CpusetCpus(list.parse().unwrap());
    for (path, setting) in [
        (bench.path(&own, "c"), list("2")),
        (bench.path(&web, "c"), list("0")),
        (level.clone(), Setting::CpuWeight(CpuWeight::clamped(77))),
    ] {
        let op = Op::Write(path, setting);
        bench.kernel.with(|kernel| kernel.as_another(&op)).unwrap();
    }
    bench.crash();
    assert_eq!(cpus(&mut bench, &own, "c"), "2-3");
    assert_eq!(cpus(&mut bench, &web, "c"), "0-1");
    let path = bench.path(&own, "c");
    let told = bench.events("Drift");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with(&format!("cpuset.cpus of {path} was 2")),
        "{told:?}"
    );
    let who =
        "somebody changed it while no allotd ran, or the last one ended before it was written";
    let path = bench.path(&web, "c");
    let expected = [
        format!("cpu.weight of {level} was 77 at the start, {before} is wanted: {who}"),
        format!("cpuset.cpus of {path} was 0 at the start, 0-1 is wanted: {who}"),
    ];
    let mut told = bench.events("FoundDifferent");
    told.sort_unstable();
    assert_eq!(told, expected);
    bench.pass(Duration::from_millis(50));
    bench.crash();
    assert_eq!(bench.events("FoundDifferent").len(), 2, "it is mended");
}
