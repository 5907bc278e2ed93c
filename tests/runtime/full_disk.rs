//! Disks that are full, each a small tmpfs in a mount namespace of the test's own.

use std::path::Path;
use std::process::Command;

use allotd::runtime::record::{Exit, LogBounds, Spec};

use crate::support::Node;

/// Whether this process may mount; a plain user may, in a user namespace, on most systems.
fn unshare() -> Option<Vec<&'static str>> {
    let ways = [vec!["unshare", "-m"], vec!["unshare", "-rm"]];
    let works = |way: &Vec<&str>| {
        let script = "mount -t tmpfs none /mnt";
        let tried = Command::new(way[0])
            .args(&way[1..])
            .args(["sh", "-c", script])
            .output();
        tried.is_ok_and(|output| output.status.success())
    };
    let way = ways.into_iter().find(works);
    if way.is_none() {
        eprintln!("skipped: this user may not mount a tmpfs");
    }
    way
}

/// Runs `script` as a container whose log and attempt are on a disk of 128 KiB. Returns the exit and
/// the log; the disk itself is gone with its namespace.
fn run_on_small_disk(script: &str) -> Option<(Exit, String)> {
    let way = unshare()?;
    let node = Node::new();
    let disk = node.temp.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let at = |name: &str| disk.join(name);
    let spec = Spec {
        argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
        env: vec![
            "PATH=/usr/bin:/bin".to_owned(),
            format!("DISK={}", disk.display()),
        ],
        cwd: "/".into(),
        cgroup: None,
        shim_cgroup: None,
        oom_score_adj: 0,
        log_bounds: LogBounds::default(),
        mounts: Vec::new(),
        heeds_quota: false,
        security: allotd::model::security::Security::default(),
        state: None,
        scratch: None,
        volumes: Vec::new(),
        log: at("log"),
    };
    let spec_file = node.temp.path().join("spec.json");
    std::fs::write(&spec_file, serde_json::to_vec(&spec).unwrap()).unwrap();
    let out = node.temp.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let steps = r#"set -e
        mount -t tmpfs -o size=128k none "$1"
        mkdir "$1/attempt"
        cp "$2" "$1/attempt/spec.json"
        "$3" shim "$1/attempt"
        until [ -e "$1/attempt/exit.json" ]; do sleep .02; done
        cp "$1/attempt/exit.json" "$1/log" "$4""#;
    let arguments = [
        disk.as_path(),
        &spec_file,
        Path::new(env!("CARGO_BIN_EXE_allotd")),
        &out,
    ];
    let output = Command::new("timeout")
        .arg("60")
        .args(way)
        .args(["sh", "-c", steps, "sh"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let read = |name: &str| std::fs::read(Path::new(&out).join(name)).unwrap();
    let exit = serde_json::from_slice(&read("exit.json")).unwrap();
    Some((exit, String::from_utf8(read("log")).unwrap()))
}

#[test]
fn a_full_log_stops_nobody_and_what_is_missing_is_counted() {
    let line = "0123456789012345678901234567890123456789";
    let script = format!(
        "i=0; while [ $i -lt 20000 ]; do echo {line}; i=$((i+1)); done; \
         : >$DISK/log; sleep .1; echo room again; exit 3"
    );
    let Some((exit, log)) = run_on_small_disk(&script) else {
        return;
    };
    assert_eq!(exit.exit_code, 3);
    // Some was written before the log was emptied, the rest was not.
    let output = 20_000 * 41;
    assert!(
        (output / 2..output).contains(&exit.dropped_log_bytes),
        "{exit:?}"
    );
    let lines: Vec<&str> = log.lines().collect();
    assert!(
        lines.last().unwrap().ends_with(" stdout F room again"),
        "{lines:?}"
    );
}

/// Whatever is in the log of a full disk is whole records.
#[test]
fn a_full_log_ends_with_a_whole_record() {
    let Some((exit, log)) = run_on_small_disk("seq 1 100000") else {
        return;
    };
    assert_eq!(exit.exit_code, 0);
    // A gap may be followed by a smaller batch that still had room.
    let number = |line: &str| {
        line.split_once(" stdout F ")
            .unwrap()
            .1
            .parse::<u64>()
            .unwrap()
    };
    let kept: Vec<u64> = log.lines().map(number).collect();
    assert!(log.ends_with('\n') && kept.is_sorted() && kept.len() > 1000);
    let bytes = |numbers: &mut dyn Iterator<Item = u64>| {
        numbers
            .map(|number| number.to_string().len() as u64 + 1)
            .sum::<u64>()
    };
    let missing = bytes(&mut (1..=100_000)) - bytes(&mut kept.into_iter());
    assert_eq!(exit.dropped_log_bytes, missing);
}

/// A container that fills the very disk of its attempt cannot keep its exit from being recorded.
#[test]
fn the_exit_has_its_room() {
    let script = "cat /dev/zero >$DISK/fill 2>/dev/null; echo x >$DISK/more; exit 9";
    let Some((exit, _)) = run_on_small_disk(script) else {
        return;
    };
    assert_eq!(exit.exit_code, 9);
}
