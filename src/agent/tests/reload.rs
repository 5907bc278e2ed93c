//! A configuration read again while pods run.

use super::bench::{Bench, one};
use crate::cgroup::InterfaceFile;
use crate::config::Config;

/// `pids.max` in the kernel of the pod that this container belongs to.
fn pids_max(bench: &mut Bench, key: &crate::agent::PodKey) -> String {
    let path = bench.path(key, "c").parent().unwrap();
    let node = bench.agent().kernel.look(&path).unwrap().unwrap();
    node.get(InterfaceFile::PidsMax).unwrap().value()
}

fn read(bench: &mut Bench, change: impl FnOnce(&mut Config)) -> Result<String, String> {
    let mut config = bench.agent().config.clone();
    change(&mut config);
    let taken = bench.agent().reload(Ok(Box::new(config)));
    taken
        .map(|change| change.told())
        .map_err(|refusal| refusal.message)
}

#[test]
fn a_changed_limit_reaches_pods_that_run_and_what_is_fixed_waits() {
    let mut bench = Bench::new();
    let (key, pid) = bench.run("web", &one("Always"));
    assert_eq!(pids_max(&mut bench, &key), "max");
    let told = read(&mut bench, |config| {
        config.pod_pids_limit = 123;
        config.state_dir = "/elsewhere".into();
    });
    let text = "configuration read again; changed: podPidsLimit; only a restart changes: stateDir";
    assert_eq!(told.as_deref(), Ok(text));
    assert_eq!(pids_max(&mut bench, &key), "123");
    assert_eq!(bench.processes(&key, "c"), [pid]);
    assert_eq!(bench.events("ConfigurationRead"), [text]);

    let told = read(&mut bench, |config| config.pod_pids_limit = -1);
    assert!(told.is_ok(), "{told:?}");
    assert_eq!(pids_max(&mut bench, &key), "max");
}

#[test]
fn a_refused_configuration_changes_nothing_and_is_told_until_a_good_one_comes() {
    let mut bench = Bench::new();
    let (key, _) = bench.run("web", &one("Always"));
    let refused = read(&mut bench, |config| {
        config.pod_pids_limit = 123;
        let all = "1Ei".parse().unwrap();
        config.system_reserved.insert("memory".to_owned(), all);
    });
    assert!(refused.unwrap_err().contains("memory"));
    assert!(
        bench
            .agent()
            .reload(Err("configuration: no YAML".to_owned()))
            .is_err()
    );
    assert_eq!(pids_max(&mut bench, &key), "max");
    assert_eq!(bench.agent().config.pod_pids_limit, -1);
    let problems = |bench: &mut Bench| -> Vec<_> {
        let problems = bench.agent().problems.values().cloned();
        problems
            .filter(|it| it.contains("former one stays"))
            .collect()
    };
    assert_eq!(
        problems(&mut bench),
        ["configuration: no YAML; the former one stays"]
    );
    assert_eq!(bench.events("ConfigurationRefused").len(), 2);
    assert!(read(&mut bench, |_| {}).is_ok());
    assert!(problems(&mut bench).is_empty());
}

#[test]
fn pods_that_come_later_follow_the_new_configuration() {
    let mut bench = Bench::new();
    read(&mut bench, |config| config.pod_pids_limit = 7).unwrap();
    let (key, _) = bench.run("web", &one("Always"));
    assert_eq!(pids_max(&mut bench, &key), "7");
}
