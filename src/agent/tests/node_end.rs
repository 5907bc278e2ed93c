//! The end of all pods with the node: hooks, grace periods, the bound; and that nothing else happens.

use std::fs;
use std::time::Duration;

use serde_json::json;

use super::bench::{Bench, one, runs};
use super::hooks::{Log, run_script, with_hook};
use super::statics;
use crate::agent::node_end::Ended;
use crate::agent::run::Agent;
use crate::cgroup::{Hierarchy, InterfaceFile, Op, Setting};
use crate::store::Entry;
use crate::units::{Bytes, Limit};

const STUBBORN: &str = "trap '' TERM; while :; do sleep 0.05; done";

fn begin(bench: &mut Bench, seconds: u64) {
    let most = Duration::from_secs(seconds);
    bench.crash_into(|parts| Agent::restore_to_end(parts, most).unwrap());
}

/// Ends all pods within so many seconds.
fn end(bench: &mut Bench, seconds: u64) -> Ended {
    begin(bench, seconds);
    bench.until("all to end", |agent| agent.has_ended_all());
    let ended = bench.agent().ended();
    // A shim, unlike what stands in for it, has recorded the end before anybody sees it.
    bench.pass(Duration::from_millis(50));
    ended
}

fn records(bench: &mut Bench) -> Vec<Entry> {
    bench.agent().settle_all();
    bench.agent().store.list("pods/").unwrap()
}

#[test]
fn hooks_run_before_sigterm_and_the_pods_stay() {
    let (mut bench, log) = (Bench::new(), Log::new());
    let key = run_script(
        &mut bench,
        "web",
        &log.program(),
        &with_hook("Always", &log),
    );
    bench.create(
        "idle",
        &json!({"containers": [{"name": "c", "image": "i"}]}),
    );
    let before = records(&mut bench);
    // One that would be started, if any were.
    bench.next_process();
    let ended = end(&mut bench, 10);
    assert_eq!((ended.containers, ended.killed), (1, 0), "{ended}");
    assert_eq!(ended.left, [""; 0]);
    assert!(ended.took < Duration::from_secs(5), "{ended}");
    assert_eq!(log.text(), "stop\nterm\n");
    assert_eq!(bench.events("Killing"), ["Stopping container c"]);
    assert!(!runs(bench.agent(), &key, "c"));
    let after = bench.agent().store.list("pods/").unwrap();
    assert_eq!(after, before, "the pods are kept as they were");
    bench.crash();
    assert_eq!(bench.events("Killing").len(), 1, "what was told is kept");
    bench.until("another run", |agent| {
        agent.pods.get(&key).unwrap().attempt("c") == 1 && runs(agent, &key, "c")
    });
    let last = bench.entry(&key).record.containers["c"].last.clone();
    assert_eq!(last.unwrap().exit_code, Some(0));
}

#[test]
fn the_pods_own_grace_is_used() {
    let mut bench = Bench::new();
    let mut spec = one("Always");
    spec["terminationGracePeriodSeconds"] = json!(1);
    run_script(&mut bench, "web", STUBBORN, &spec);
    let ended = end(&mut bench, 15);
    assert_eq!((ended.containers, ended.killed), (1, 1), "{ended}");
    let took = ended.took.as_secs_f64();
    assert!((1.0..5.0).contains(&took), "{ended}");
}

#[test]
fn the_bound_holds_for_hooks_and_programs() {
    let (mut bench, log) = (Bench::new(), Log::new());
    let mut spec = one("Always");
    spec["terminationGracePeriodSeconds"] = json!(3600);
    let stubborn = run_script(&mut bench, "stubborn", STUBBORN, &spec);
    spec["containers"][0]["lifecycle"] = json!({"preStop": {"sleep": {"seconds": 1000}}});
    run_script(&mut bench, "web", &log.program(), &spec);
    begin(&mut bench, 3);
    bench.until("the hook to be over", |_| log.text() == "term\n");
    let ended = bench.agent().ended();
    assert!(ended.took < Duration::from_secs(3), "{ended}");
    assert!(runs(bench.agent(), &stubborn, "c"));
    bench.until("all to end", |agent| agent.has_ended_all());
    let ended = bench.agent().ended();
    assert_eq!((ended.containers, ended.killed), (2, 1), "{ended}");
    let took = ended.took.as_secs_f64();
    assert!((3.0..5.0).contains(&took), "{ended}");
}

#[test]
fn static_and_critical_pods_end_after_the_others() {
    let (mut bench, log) = (statics::bench(), Log::new());
    let program = log.program();
    let pid = bench.next_process_of(&program.replace("echo term", "echo static"));
    let file = statics::manifest("first", &one("Always"));
    statics::write(&mut bench, "web.json", &file);
    statics::until_runs(&mut bench, "first", pid);
    run_script(&mut bench, "web", &program, &with_hook("Always", &log));
    let ended = end(&mut bench, 15);
    assert_eq!(log.text(), "stop\nterm\nstatic\n");
    assert_eq!((ended.containers, ended.killed), (2, 0), "{ended}");
    assert!(ended.took < Duration::from_secs(5), "{ended}");
    bench.next_process();
    bench.crash();
    bench.until("the static pod to be back", |agent| {
        runs(agent, &statics::key(), "c")
    });
}

#[test]
fn others_do_not_take_the_time_of_critical_pods() {
    let (mut bench, log) = (statics::bench(), Log::new());
    let pid = bench.next_process_of(&log.program());
    let file = statics::manifest("first", &one("Always"));
    statics::write(&mut bench, "web.json", &file);
    statics::until_runs(&mut bench, "first", pid);
    run_script(&mut bench, "web", STUBBORN, &one("Always"));
    let ended = end(&mut bench, 6);
    assert_eq!((ended.containers, ended.killed), (2, 1), "{ended}");
    assert_eq!(log.text(), "term\n", "it had its time");
    let took = ended.took.as_secs_f64();
    assert!((4.0..6.0).contains(&took), "{ended}");
}

#[test]
fn who_is_killed_meanwhile_is_followed_by_the_next() {
    let (mut bench, log) = (Bench::new(), Log::new());
    let mut spec = with_hook("Always", &log);
    let started = log.path().with_file_name("started");
    let script = format!(
        "touch {}; sleep 0.5; echo stop >> {}",
        started.display(),
        log.path().display()
    );
    spec["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][2] = json!(script);
    let key = run_script(&mut bench, "web", &log.program(), &spec);
    begin(&mut bench, 10);
    Bench::wait_for(&started);
    // An agent finds what it has always known: nobody wants an end any more.
    bench.crash();
    bench.pass(Duration::from_millis(800));
    assert!(runs(bench.agent(), &key, "c"));
    fs::remove_file(&started).unwrap();
    begin(&mut bench, 10);
    Bench::wait_for(&started);
    let ended = end(&mut bench, 10);
    assert_eq!((ended.containers, ended.killed), (1, 0), "{ended}");
    let text = log.text();
    assert!(text.ends_with("stop\nterm\n"), "{text}");
    assert_eq!(text.matches("term").count(), 1, "{text}");
}

/// An end that nobody has noted yet, a value that somebody changed, a probe that fails, an end under way.
#[test]
fn nothing_else_is_done() {
    let mut bench = Bench::new();
    let (ended, pid) = bench.run("ended", &one("Always"));
    let mut spec = one("Always");
    spec["containers"][0]["livenessProbe"] = json!({"exec": {"command": ["false"]},
        "periodSeconds": 1, "initialDelaySeconds": 2, "failureThreshold": 1});
    spec["terminationGracePeriodSeconds"] = json!(2);
    let web = run_script(&mut bench, "web", STUBBORN, &spec);
    spec["containers"][0]["livenessProbe"] = json!(null);
    let going = run_script(&mut bench, "going", STUBBORN, &spec);
    let deleted = bench.agent().delete_pod(&going, Some(3600), None, false);
    deleted.unwrap();
    bench.pass(Duration::from_millis(100));
    let before = records(&mut bench);
    let path = bench.path(&web, "c");
    let foreign = Setting::MemoryHigh(Limit::At(Bytes(1 << 20)));
    bench.kernel.with(|kernel| {
        kernel.perform(&Op::Write(path.clone(), foreign)).unwrap();
    });
    bench.kill(pid);
    bench.next_process();
    let told = end(&mut bench, 4);
    assert_eq!((told.containers, told.killed), (2, 2), "{told}");
    assert_eq!(told.left, [""; 0]);
    let after = bench.agent().store.list("pods/").unwrap();
    assert_eq!(after, before);
    for key in [&ended, &web, &going] {
        assert_eq!(bench.entry(key).attempt("c"), 0, "{key}");
        assert!(!runs(bench.agent(), key, "c"), "{key}");
    }
    assert_eq!(bench.events("Unhealthy"), [""; 0]);
    for reason in ["Exited", "BackOff", "OrphanedCgroup", "Drift", "Evicted"] {
        assert_eq!(bench.events(reason), [""; 0], "{reason}");
    }
    let node = bench.kernel.with(|kernel| kernel.node(&path));
    assert_eq!(
        node.get(InterfaceFile::MemoryHigh).unwrap().value(),
        "1048576"
    );
    // The next agent goes on with all of it.
    bench.crash();
    bench.until("the end to be noted", |agent| {
        agent.pods.get(&ended).unwrap().attempt("c") == 1
    });
    bench.until("the deleted pod to go", |agent| {
        !agent.pods.contains_key(&going)
    });
}
