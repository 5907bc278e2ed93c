//! Large files and many files, on both file systems that count by project: ext4 and XFS.

use std::time::Instant;

use serde_json::{Value, json};

use super::command_line::done;
use super::daemon::{Anything, Daemon, create, delete, events, get, pod, running_pid, wait};
use super::storage::{Disk, counting, limited, log, phase, scratch, sh, usage};
use crate::Outcome;

tests![
    a_deleted_gibibyte_that_is_open_counts_on_ext4,
    a_deleted_gibibyte_that_is_open_counts_on_xfs,
    many_files_are_counted_without_a_walk_on_ext4,
    many_files_are_counted_without_a_walk_on_xfs,
    the_kernel_keeps_the_limit_on_xfs,
];

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// So many take seconds under emulation.
const FILES: u64 = 20_000;

fn a_deleted_gibibyte_that_is_open_counts_on_ext4() -> Outcome {
    a_deleted_gibibyte_that_is_open_counts(Disk::Ext4)
}

fn a_deleted_gibibyte_that_is_open_counts_on_xfs() -> Outcome {
    a_deleted_gibibyte_that_is_open_counts(Disk::Xfs)
}

/// Report kubernetes#83107 at its size, wherever figures are told.
fn a_deleted_gibibyte_that_is_open_counts(disk: Disk) -> Outcome {
    counting(disk)?;
    let _daemon = Daemon::start()?;
    let script =
        "fallocate -l 1073741824 big && exec 3<big && rm big && ls && echo ready; sleep inf";
    create(&pod("web", &json!({"containers": [sh(script)]})))?;
    wait("the file", || Ok(log("web")?.contains("ready")))?;
    assert_eq!(log("web")?, "ready\n", "no file has a name");
    let expected = GIB..GIB + MIB;
    let used = usage("web")?;
    assert_eq!(used["disk"]["exact"], true, "{used}");
    assert!(expected.contains(&scratch(&used)), "{used}");
    let summary = get("/stats/summary")?;
    let pod = &summary["pods"][0];
    for told in [&pod["ephemeral-storage"], &pod["containers"][0]["rootfs"]] {
        let bytes = told["usedBytes"].as_u64().unwrap_or(0);
        assert!(expected.contains(&bytes), "{pod}");
    }
    let top = get("/apis/allotd.dev/v1/top?disk=true")?;
    let pods = top["pods"].as_array().into_iter().flatten();
    let told = pods.filter_map(|pod| pod["diskBytes"].as_u64()).max();
    assert!(told.is_some_and(|bytes| expected.contains(&bytes)), "{top}");
    let table = done("describe pod web")?;
    let cells = table.split_whitespace();
    let kib = cells.filter_map(|cell| cell.strip_suffix("Ki")?.parse::<u64>().ok());
    let largest = kib.max().unwrap_or(0);
    assert!(expected.contains(&(largest << 10)), "{table}");
    delete("web", 0)
}

fn many_files_are_counted_without_a_walk_on_ext4() -> Outcome {
    many_files_are_counted_without_a_walk(Disk::Ext4)
}

fn many_files_are_counted_without_a_walk_on_xfs() -> Outcome {
    many_files_are_counted_without_a_walk(Disk::Xfs)
}

/// What is asked is answered as soon as with no file at all: the least of some times.
fn soonest(name: &str) -> Anything<(u128, Value)> {
    let mut least = u128::MAX;
    let mut told = Value::Null;
    for _ in 0..5 {
        let start = Instant::now();
        told = usage(name)?;
        least = least.min(start.elapsed().as_micros());
    }
    Ok((least, told))
}

fn many_files_are_counted_without_a_walk(disk: Disk) -> Outcome {
    counting(disk)?;
    let _daemon = Daemon::start()?;
    create(&pod("few", &json!({"containers": [sh("sleep inf")]})))?;
    running_pid("few", "c")?;
    let start = Instant::now();
    let command = json!(["/init", "play", "make-files", FILES.to_string()]);
    let container = json!({"name": "c", "image": "i", "command": command});
    create(&pod("many", &json!({"containers": [container]})))?;
    wait("the files", || Ok(log("many")?.contains("taken")))?;
    let made = start.elapsed();
    let (few, _) = soonest("few")?;
    let (many, used) = soonest("many")?;
    println!("measured: {FILES} files made in {made:?}, counted in {many} µs; none in {few} µs");
    assert_eq!(used["disk"]["exact"], true, "{used}");
    let inodes = used["disk"]["inodes"].as_u64().unwrap_or(0);
    // Beside the files: the directories of pod, container, run, scratch, logs, and what is in them.
    assert!((FILES..FILES + 20).contains(&inodes), "{used}");
    // A walk asks the kernel about each file: far more than a microsecond here.
    assert!(many < few + u128::from(FILES), "{many} µs, {few} µs");
    let summary = get("/stats/summary")?;
    let pods = summary["pods"].as_array().into_iter().flatten();
    let told = pods
        .filter(|pod| pod["podRef"]["name"] == "many")
        .find_map(|pod| pod["ephemeral-storage"]["inodesUsed"].as_u64());
    assert_eq!(told, Some(inodes), "{summary}");
    Ok(())
}

/// XFS refuses with ENOSPC what is above a project's limit, and asks nobody who it is: the log of a container
/// that is full waits for room too, and the program does not wait for the log.
fn the_kernel_keeps_the_limit_on_xfs() -> Outcome {
    counting(Disk::Xfs)?;
    let _daemon = Daemon::start()?;
    let script = "dd if=/dev/zero of=big bs=1M count=32 2>/tmp/said; echo dd $? >>/tmp/said; \
                  echo lost; until [ -e /tmp/go ]; do sleep 0.1; done; rm big; \
                  sleep 1; echo goes on; sleep inf";
    let mut full = pod("full", &json!({"containers": [limited(script, "8Mi")]}));
    full["metadata"]["annotations"] = json!({"allotd.dev/storage-policy": "enforce"});
    create(&full)?;
    let said = || std::fs::read_to_string("/tmp/said").unwrap_or_default();
    wait("the end of dd", || Ok(said().contains("dd 1")))?;
    let said = said();
    assert!(said.contains("No space left on device"), "{said}");
    wait("the event", || {
        Ok(events("EphemeralStorageFull")?.iter().any(|(message, _)| {
            message.contains("of 8388608 bytes")
                && message.ends_with("further writes get \"No space left on device\"")
        }))
    })?;
    // It may have filled the disk before it was known to run.
    wait("it to run", || Ok(phase("full")? == "Running"))?;
    assert!(events("StorageNotEnforced")?.is_empty());
    let used = usage("full")?;
    let bytes = used["disk"]["bytes"].as_u64().unwrap_or(0);
    assert!((7 * MIB..9 * MIB).contains(&bytes), "{used}");
    std::fs::write("/tmp/go", "")?;
    wait("the log to go on", || Ok(log("full")?.contains("goes on")))?;
    delete("full", 0)?;

    std::fs::remove_file("/tmp/go")?;
    create(&pod(
        "over",
        &json!({"containers": [limited(script, "8Mi")]}),
    ))?;
    wait("the eviction", || Ok(phase("over")? == "Failed"))?;
    delete("over", 0)
}
