//! Resizes one upon the other, while the container's own load fills every limit that it is given.
//!
//! Whatever the order, nobody is killed for them, each answer is true of the kernel when it comes, and what the
//! kernel holds at the end is what the pod says.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::daemon::{Anything, Daemon, cgroup_of, counter, delete, file, get, running_pid, wait};
use super::resize::{MIB, amounts, condition, in_progress, loaded, nobody_died, resize, shows};
use super::storage::counting_disk;
use crate::Outcome;

tests![a_storm_of_resizes_kills_nobody];

/// So long a storm leaves room for the rest of the test within the minute that it has, on a slow machine too.
const STORM: Duration = Duration::from_secs(25);

/// What the load holds and cannot give back is less than this (MiB), with the processes themselves.
const FITS: u64 = 72;

/// Numbers without a pattern, the same in every run.
struct Random(u64);

impl Random {
    fn within(&mut self, least: u64, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        least + self.0 % (most - least + 1)
    }
}

/// What was seen of a storm.
#[derive(Default)]
struct Seen {
    sent: u32,
    /// Those whose memory had to wait, and of these those that the load leaves room for.
    waited: u32,
    waited_though_fitting: u32,
    longest: Duration,
}

fn a_storm_of_resizes_kills_nobody() -> Outcome {
    let sent = storm(u32::MAX, STORM)?;
    assert!(sent > 10, "{sent} resizes");
    Ok(())
}

/// Sends so many resizes, but for no longer than this, and compares at the end. How many they were.
pub fn storm(most: u32, limit: Duration) -> Anything<u32> {
    counting_disk()?;
    let _daemon = Daemon::start()?;
    let pod = loaded("storm", 500, 128)?;
    let cgroup = cgroup_of(&pod);
    let pid = running_pid("storm", "c")?;
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut seen = Seen::default();
    let start = Instant::now();
    while seen.sent < most && start.elapsed() < limit {
        // Half of them are below what the load holds, and none is so near to it that the load itself would
        // run out of memory.
        let mib = match random.within(0, 1) {
            0 => random.within(16, 44),
            _ => random.within(FITS, 128),
        };
        // With less of the processor the load would not fill what it is given before the next one comes.
        one(&mut seen, &pod, &cgroup, random.within(200, 900), mib)?;
    }
    println!(
        "measured: {} resizes in {:.1} s, {} had to wait, {} of them though the load left room, the longest call took {} ms",
        seen.sent,
        start.elapsed().as_secs_f64(),
        seen.waited,
        seen.waited_though_fitting,
        seen.longest.as_millis()
    );
    for cgroup in [&cgroup.join("c"), &cgroup] {
        println!(
            "measured: {}: {}",
            cgroup.display(),
            file(cgroup, "memory.events")?.replace('\n', ", ")
        );
    }
    // Otherwise nothing was tried. The pod's bound is as high as its container's, and a cgroup costs the one above a
    // little, so that it is mostly the pod's that is met.
    let filled = counter(&cgroup, "memory.events", "max")?;
    assert!(filled > 0, "the load never met its limit");
    assert!(seen.waited > seen.sent / 10, "{} had to wait", seen.waited);
    nobody_died("storm", &cgroup)?;
    compare(&pod, &cgroup)?;
    nobody_died("storm", &cgroup)?;
    assert_eq!(running_pid("storm", "c")?, pid);
    delete("storm", 0)?;
    Ok(seen.sent)
}

/// One resize, and whether its answer is true: what is not said to wait is in the kernel.
fn one(seen: &mut Seen, pod: &Value, cgroup: &Path, milli: u64, mib: u64) -> Outcome {
    let sent = Instant::now();
    let answer = resize(pod, &amounts(milli, mib))?;
    seen.longest = seen.longest.max(sent.elapsed());
    seen.sent += 1;
    let Some(why) = condition(&answer, "PodResizeInProgress") else {
        assert!(shows(cgroup, milli, mib)?, "{milli}m, {mib} MiB: {answer}");
        return Ok(());
    };
    seen.waited += 1;
    if mib >= FITS {
        seen.waited_though_fitting += 1;
        println!("{why}");
    }
    assert!(why.contains(" in the way"), "{why}");
    for cgroup in [cgroup.to_owned(), cgroup.join("c")] {
        assert_eq!(file(&cgroup, "cpu.max")?, format!("{} 100000", milli * 100));
        let kept: u64 = file(&cgroup, "memory.max")?.parse()?;
        assert!(kept >= mib * MIB, "{kept} is less than {mib} MiB");
    }
    Ok(())
}

/// The last resize comes into effect, and then every value of every cgroup is what is wanted.
fn compare(pod: &Value, cgroup: &Path) -> Outcome {
    resize(pod, &amounts(700, 112))?;
    wait("the last one", || shows(cgroup, 700, 112))?;
    wait("the end of it", || Ok(in_progress("storm")?.is_none()))?;
    // What is promised stays a sixteenth below the limit.
    for cgroup in [cgroup.to_owned(), cgroup.join("c")] {
        assert_eq!(file(&cgroup, "memory.min")?, (105 * MIB).to_string());
    }
    let diff = get("/apis/allotd.dev/v1/diff")?;
    let rows = diff["rows"].as_array().ok_or("no rows")?;
    let differing: Vec<_> = rows.iter().filter(|row| row["verdict"] != "same").collect();
    assert!(differing.is_empty(), "{differing:?}");
    println!("measured: 0 of {} values differ", rows.len());
    assert!(rows.len() > 10, "{diff}");
    Ok(())
}
