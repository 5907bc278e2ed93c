//! Real memory pressure: who goes, in which order, and how soon.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use allotd::observation::machine::kept_pages;
use serde_json::{Value, json};

use super::daemon::{
    Anything, Daemon, cgroup_of, counter, create, events, get, pod, read_pod, running_pid, send,
    wait,
};
use crate::Outcome;
use crate::player::{Holding, Player};

tests![memory_pressure_takes_pods_in_the_order_foretold];

const MIB: u64 = 1 << 20;
/// Memory that is put away first, so that the machine is as one of half the size.
const BALLAST: u64 = 300;
/// How far below the threshold each shortage goes (MiB): more than what comes and goes by itself, and far
/// less than what each pod gives back.
const DEPTH: u64 = 16;

/// `MemAvailable` in bytes, and the free pages that the processor keeps: 60 MiB of a process that ended stay
/// there for seconds.
fn available() -> Anything<u64> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kept = kept_pages(&fs::read_to_string("/proc/zoneinfo")?) * 4096;
    Ok(kib.ok_or("no MemAvailable")?.parse::<u64>()? * 1024 + kept)
}

/// What is available once it does not move any more.
fn settled() -> Anything<u64> {
    let mut last = available()?;
    wait("memory to settle", || {
        std::thread::sleep(Duration::from_millis(400));
        let now = available()?;
        let still = now.abs_diff(last) < MIB;
        last = now;
        Ok(still)
    })?;
    Ok(last)
}

fn holder(name: &str, mib: u64, resources: &Value) -> Anything<(String, PathBuf)> {
    let made = create(&pod(
        name,
        &json!({"restartPolicy": "Never", "containers": [{
            "name": "c", "image": "i", "resources": resources,
            "command": ["/init", "play", "hold-memory", mib.to_string()],
        }]}),
    ))?;
    let cgroup = cgroup_of(&made).join("c");
    running_pid(name, "c")?;
    wait("the memory to be held", || {
        Ok(counter(&cgroup, "memory.stat", "anon")? >= mib * MIB)
    })?;
    Ok((name.to_owned(), cgroup))
}

fn outside(mib: u64) -> Anything<Player> {
    let mut player = Player::holds(Holding::Memory, u32::try_from(mib)?)?;
    player.take()?;
    Ok(player)
}

fn is_dead(cgroup: &Path) -> bool {
    // One that is gone has no processes either.
    counter(cgroup, "cgroup.events", "populated").unwrap_or(0) == 0
}

/// Makes memory short from outside of all pods, and sees which of these goes and how long after the
/// threshold was crossed.
fn shortage(least: u64, pods: &[(String, PathBuf)]) -> Anything<(String, Duration, Vec<Player>)> {
    let take = |available: u64| -> Anything<Player> {
        let taken = available.saturating_sub(least) / MIB + DEPTH;
        let mut player = Player::holds(Holding::Memory, u32::try_from(taken)?)?;
        player.go();
        Ok(player)
    };
    let mut players = vec![take(settled()?)?];
    let start = Instant::now();
    let mut crossed = None;
    loop {
        if crossed.is_none() && available()? < least {
            crossed = Some(Instant::now());
        }
        let dead = pods.iter().find(|(_, cgroup)| is_dead(cgroup));
        if let Some((name, _)) = dead {
            let crossed = crossed.ok_or("a pod went before the threshold was crossed")?;
            return Ok((name.clone(), crossed.elapsed(), players));
        }
        // The kernel may find more than it had told of; then the rest is taken too.
        let rounds = u64::try_from(players.len())?;
        if crossed.is_none() && start.elapsed() > Duration::from_secs(4 * rounds) {
            players.push(take(available()?)?);
        }
        if start.elapsed() > Duration::from_secs(20) {
            return Err(format!("nobody went with {} of {least} bytes left", available()?).into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn memory_pressure_takes_pods_in_the_order_foretold() -> Outcome {
    let _ballast = outside(BALLAST)?;
    // One daemon to know what the next one will take.
    let daemon = Daemon::start()?;
    let least = settled()?.saturating_sub(200 * MIB) / MIB * MIB;
    println!(
        "measured: threshold {} MiB of {} available",
        least / MIB,
        available()? / MIB
    );
    daemon.stop()?;
    let daemon = Daemon::start_with(&format!("evictionHard: {{memory.available: \"{least}\"}}"))?;
    let guaranteed = json!({"limits": {"cpu": "100m", "memory": "48Mi"}});
    let mut pods = vec![
        holder("guaranteed", 40, &guaranteed)?,
        holder("burstable", 50, &json!({"requests": {"memory": "8Mi"}}))?,
        holder("besteffort", 60, &json!({}))?,
    ];
    // The node is well, and what it tells is what will be.
    assert!(settled()? > least + 8 * MIB, "{} {least}", available()?);
    let report = get("/apis/allotd.dev/v1/eviction")?;
    let foretold = order(&report)?;
    assert_eq!(
        foretold,
        ["besteffort", "burstable", "guaranteed"],
        "{report}"
    );
    assert_eq!(report["conditions"], json!([]), "{report}");
    let mut eaters = Vec::new();
    let mut gone = Vec::new();
    let mut worst = Duration::ZERO;
    for expected in &foretold {
        let (name, after, players) = shortage(least, &pods)?;
        println!(
            "measured: {name} was gone {} ms after the threshold",
            after.as_millis()
        );
        eaters.extend(players);
        assert_eq!(&name, expected);
        worst = worst.max(after);
        pods.retain(|(other, _)| *other != name);
        gone.push(name.clone());
        wait("the pod to be told as evicted", || {
            Ok(read_pod(&name)?["status"]["phase"] == "Failed")
        })?;
        let status = read_pod(&name)?["status"].clone();
        assert_eq!(status["reason"], "Evicted", "{status}");
        let message = status["message"].as_str().unwrap_or("");
        assert!(
            message.starts_with("The node was low on resource: memory. Threshold quantity: "),
            "{message}"
        );
        // One pod, and then enough is left again.
        std::thread::sleep(Duration::from_millis(1500));
        for (other, _) in &pods {
            assert_eq!(read_pod(other)?["status"]["phase"], "Running", "{other}");
        }
    }
    assert_eq!(gone, foretold);
    assert!(worst < Duration::from_secs(1), "{worst:?}");
    assert!(
        events("OOMKilling")?.is_empty(),
        "the kernel had to kill nobody"
    );
    assert_eq!(
        events("EvictionThresholdMet")?.len(),
        1,
        "the same text is counted up"
    );
    let node = get("/api/v1/nodes/vm")?;
    let conditions = node["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let memory = conditions.iter().find(|it| it["type"] == "MemoryPressure");
    assert!(memory.is_some_and(|it| it["status"] == "True"), "{node}");
    let (code, refused) = send(&pod(
        "late",
        &json!({"containers": [{"name": "c", "image": "i", "command": ["sleep", "inf"]}]}),
    ))?;
    assert_eq!(
        (code, &refused["reason"]),
        (403, &json!("Evicted")),
        "{refused}"
    );
    // The next one derives the condition anew: there is enough now.
    daemon.stop()
}

/// The pods in the order in which they would go for memory.
fn order(report: &Value) -> Anything<Vec<String>> {
    let orders = report["orders"].as_array().ok_or("no orders")?;
    let memory = orders.iter().find(|order| order["resource"] == "memory");
    let pods = memory
        .and_then(|order| order["pods"].as_array())
        .ok_or("no order for memory")?;
    let names = pods.iter().filter_map(|pod| pod["name"].as_str());
    Ok(names.map(str::to_owned).collect())
}
