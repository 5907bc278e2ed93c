//! CPUs that are off, and that go off while the agent runs.

use std::fs;
use std::time::{Duration, Instant};

use super::bench::{Bench, one};
use super::cpus::{cpus, placing, pod};
use crate::agent::cpus::Cpus;
use crate::model::kind::NODE;
use crate::observation::node::offline_cpus;

/// Which CPUs of four are on, as the kernel tells.
fn set_online(bench: &mut Bench, online: &str) {
    let dir = bench.agent().facts.devices.join("cpu");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("present"), "0-3\n").unwrap();
    fs::write(dir.join("online"), format!("{online}\n")).unwrap();
    bench.agent().next_sync = Instant::now();
    bench.pass(Duration::from_millis(50));
}

fn annotation(bench: &mut Bench) -> Option<String> {
    let node = bench.seen(NODE, "", "node").unwrap();
    let text = node.pointer("/metadata/annotations/allotd.dev~1offline-cpus")?;
    Some(text.as_str().unwrap().to_owned())
}

#[test]
fn a_cpu_that_goes_off_is_told_for_as_long_as_it_is_counted() {
    let mut bench = Bench::with(placing);
    let own = bench.create("own", &pod(&[("own", "2")]));
    let web = bench.create("web", &one("Always"));
    assert_eq!(cpus(&mut bench, &own, "own"), "2-3");
    set_online(&mut bench, "0-3");
    assert_eq!(annotation(&mut bench), None);
    assert!(bench.agent().problems.is_empty());

    set_online(&mut bench, "0-2");
    assert_eq!(annotation(&mut bench).as_deref(), Some("3"));
    let problem = "CPUs 3 went off: capacity counts them until allotd starts anew, and pods run on the others; some of \
                   them were alone those of default/own";
    let problems: Vec<_> = bench.agent().problems.values().cloned().collect();
    assert_eq!(problems, [problem]);
    bench.agent().next_sync = Instant::now();
    bench.pass(Duration::from_millis(50));
    assert_eq!(bench.events("CPUsOffline"), [problem], "told once");
    set_online(&mut bench, "0-3");
    assert!(bench.agent().problems.is_empty());
    assert_eq!(annotation(&mut bench), None);

    // The next agent finds it off, and counts on it no more.
    set_online(&mut bench, "0-2");
    bench.cpus = "0-2";
    bench.crash();
    assert_eq!(annotation(&mut bench).as_deref(), Some("3"));
    assert!(bench.agent().problems.is_empty());
    assert_eq!(cpus(&mut bench, &own, "own"), "0-2");
    assert_eq!(cpus(&mut bench, &web, "c"), "0-2");
}

#[test]
fn reserved_cpus_must_be_on() {
    let mut bench = Bench::with(placing);
    set_online(&mut bench, "0-2");
    let agent = bench.agent();
    let mut facts = agent.facts.clone();
    facts.offline = offline_cpus(&facts.devices).unwrap();
    facts.topology = super::cpus::machine("0-2");
    let mut config = agent.config.clone();
    for (reserved, expected) in [
        ("0,3", "reservedSystemCPUs names CPUs 3 (off); on are 0-2"),
        (
            "9",
            "reservedSystemCPUs names CPUs 9 (not there); on are 0-2",
        ),
        (
            "2-4,7",
            "reservedSystemCPUs names CPUs 3 (off) and 4,7 (not there); on are 0-2",
        ),
    ] {
        config.reserved_system_cpus = reserved.to_owned();
        let error = Cpus::of(&config, &facts).unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}");
    }
    config.reserved_system_cpus = "2".to_owned();
    assert!(Cpus::of(&config, &facts).is_ok());
}
