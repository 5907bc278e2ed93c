//! A thousand pods with real processes, which take minutes and memory: only on request, by
//! `scripts/vm --memory 6144 --timeout 1800 --filter node::thousand::a_new_agent_takes_over_a_thousand_pods`.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::daemon::{Anything, Daemon, cgroup_of, create, file, get, pod, wait};
use crate::Outcome;

tests![a_new_agent_takes_over_a_thousand_pods];

const PODS: usize = 1000;

/// Every pod by its name.
fn pods() -> Anything<BTreeMap<String, Value>> {
    let list = get("/api/v1/namespaces/default/pods")?;
    let items = list["items"].as_array().ok_or("no items")?.iter();
    let name = |pod: &Value| pod["metadata"]["name"].as_str().unwrap_or("").to_owned();
    Ok(items.map(|pod| (name(pod), pod.clone())).collect())
}

fn all_run() -> Anything<bool> {
    let pods = pods()?;
    let runs = |pod: &&Value| pod["status"]["phase"] == "Running";
    Ok(pods.values().filter(runs).count() == PODS)
}

/// What the kernel was told of all containers, and the processes in them.
fn kernel(pods: &BTreeMap<String, Value>) -> Anything<Vec<String>> {
    let mut found = Vec::new();
    for pod in pods.values() {
        let container = cgroup_of(pod).join("c");
        for name in ["cgroup.procs", "memory.max", "cpu.weight", "pids.max"] {
            found.push(file(&container, name)?);
        }
    }
    Ok(found)
}

fn patiently(what: &str, mut so: impl FnMut() -> Anything<bool>) -> Outcome {
    for _ in 0..20 {
        if wait(what, &mut so).is_ok() {
            return Ok(());
        }
    }
    Err(format!("waited too long for {what}").into())
}

fn a_new_agent_takes_over_a_thousand_pods() -> Outcome {
    let settings = "maxPods: 1000\nevictionHard: {}";
    let daemon = Daemon::start_with(settings)?;
    let spec = json!({"terminationGracePeriodSeconds": 0, "containers": [{
        "name": "c", "image": "i", "command": ["sleep", "inf"],
        "resources": {"limits": {"memory": "4Mi"}},
    }]});
    let start = Instant::now();
    let mut hundreds = Vec::new();
    for number in 0..PODS {
        create(&pod(&format!("p{number}"), &spec))?;
        if number % 100 == 99 {
            hundreds.push((start.elapsed().as_secs(), daemon.cpu_time()?.as_secs()));
        }
    }
    let sent = start.elapsed();
    println!("measured: seconds, and of CPU of the agent, after each hundred: {hundreds:?}");
    patiently("all to run", all_run)?;
    println!(
        "measured: {PODS} pods admitted in {:.1} s, all running after {:.1} s; the agent took {:.1} s of CPU",
        sent.as_secs_f64(),
        start.elapsed().as_secs_f64(),
        daemon.cpu_time()?.as_secs_f64()
    );
    let files = daemon.open_files()?;
    println!(
        "measured: {} open files: {files:?}",
        files.values().sum::<usize>()
    );
    // What is new of them is told before the next agent has to tell it.
    std::thread::sleep(Duration::from_secs(3));
    let (before, values) = (pods()?, kernel(&pods()?)?);
    daemon.kill()?;

    let start = Instant::now();
    let daemon = Daemon::spawn(&[])?;
    patiently("allotd to answer", || {
        Ok(Daemon::wait_until_it_answers().is_ok())
    })?;
    println!(
        "measured: a new agent answers after {:.1} s and {:.1} s of CPU",
        start.elapsed().as_secs_f64(),
        daemon.cpu_time()?.as_secs_f64()
    );
    std::thread::sleep(Duration::from_secs(3));
    let idle = daemon.cpu_time()?;
    std::thread::sleep(Duration::from_secs(10));
    println!(
        "measured: in 10 s without an event it took {} ms of CPU",
        daemon.cpu_time()?.saturating_sub(idle).as_millis()
    );
    let after = pods()?;
    assert_eq!(after.len(), PODS);
    for (name, pod) in &before {
        assert_eq!(after.get(name), Some(pod), "{name}");
    }
    assert!(kernel(&after)? == values, "values or processes differ");
    assert_eq!(get("/apis/allotd.dev/v1/drifts")?, json!([]));
    let diff = get("/apis/allotd.dev/v1/diff")?;
    let rows = diff["rows"].as_array().ok_or("no rows")?;
    assert_eq!(diff["drift"], false);
    println!("measured: none of {} values differs", rows.len());
    Ok(())
}
