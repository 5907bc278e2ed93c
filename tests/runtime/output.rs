//! What programs write, and what the log says they wrote.

use std::io::Write;
use std::time::{Duration, Instant};

use allotd::runtime::ProcessId;
use allotd::runtime::logs::Log;
use rustix::process::Signal;

use crate::support::{Node, attempt, until};

#[test]
fn both_streams_are_told_apart_and_the_last_line_is_kept() {
    let node = Node::new();
    let script = "echo one; sleep .05; echo two >&2; sleep .05; echo; printf three";
    assert_eq!(node.run(&[script]).exit_code, 0);
    assert_eq!(node.log(), ["out: one", "err: two", "out: ", "out: three…"]);
}

#[test]
fn long_lines_are_cut_and_bytes_stay_what_they_are() {
    let node = Node::new();
    let script = "head -c 40000 /dev/zero | tr '\\0' x; echo; printf '\\377\\000\\n'";
    assert_eq!(node.run(&[script]).exit_code, 0);
    let path = node.runtime.log_path(&attempt());
    let page = Log::open(&path)
        .unwrap()
        .unwrap()
        .page(0, u64::MAX)
        .unwrap();
    let records: Vec<_> = page
        .records
        .iter()
        .map(|r| (r.full, r.text.len()))
        .collect();
    let expected = [(false, 16384), (false, 16384), (true, 7232), (true, 2)];
    assert_eq!(records, expected);
    assert_eq!(page.records[3].text, b"\xff\0");
    let times: Vec<_> = page.records.iter().map(|record| record.time).collect();
    assert!(times.is_sorted(), "{times:?}");
}

/// Nothing is lost of much output, and the shim stays small.
#[test]
fn much_output_arrives_whole() {
    let (idle, node) = (idle_shim(), Node::new());
    let started = Instant::now();
    let script = "i=0; while [ $i -lt 40 ]; do head -c 10000 /dev/zero | tr '\\0' '\\n' >&2; \
                  head -c 1000000 /dev/zero; i=$((i+1)); done";
    let mut spec = Node::spec(&[script]);
    spec.log.size = 1 << 30;
    node.start(&spec);
    let mut most = 0;
    loop {
        for shim in node.shims() {
            most = most.max(own_memory(&shim));
        }
        if node.state().is_final() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let exit = node.exit(&attempt());
    assert_eq!((exit.exit_code, exit.dropped_log_bytes), (0, 0));
    let log = Log::open(&node.runtime.log_path(&attempt()))
        .unwrap()
        .unwrap();
    let (mut offset, mut lines, mut bytes) = (0, 0, 0);
    loop {
        let page = log.page(offset, u64::MAX).unwrap();
        if page.next == offset {
            break;
        }
        offset = page.next;
        lines += page.records.iter().filter(|record| record.full).count();
        bytes += page
            .records
            .iter()
            .map(|record| record.text.len())
            .sum::<usize>();
    }
    assert_eq!((lines, bytes), (400_000, 40_000_000));
    println!(
        "40 MB in {:?}, shim at most {most} KiB of its own, {idle} KiB without output",
        started.elapsed()
    );
    // Most of it is the program's own data, relocated at its start, which grows with the program.
    assert!(idle > 0 && most < idle + 512, "{most} KiB, {idle} KiB");
}

/// The memory that a process shares with nobody (KiB); nothing of one that has ended.
fn own_memory(process: &ProcessId) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid));
    let status = status.unwrap_or_default();
    let anonymous = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kib = anonymous.and_then(|text| text.trim().strip_suffix(" kB"));
    kib.map_or(0, |kib| kib.parse().unwrap())
}

/// What a shim has that has nothing to copy.
fn idle_shim() -> u64 {
    let node = Node::new();
    node.start(&Node::spec(&["sleep 1000"]));
    let shims = node.shims();
    shims.iter().map(own_memory).max().unwrap()
}

/// A grandchild that keeps the pipe must not keep the exit from being recorded.
#[test]
fn the_end_of_the_program_decides() {
    let node = Node::new();
    let started = Instant::now();
    let exit = node.run(&["sleep 1000 & echo $! >pid; echo said"]);
    assert_eq!(exit.exit_code, 0);
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(node.log(), ["out: said"]);
    let pid = std::fs::read_to_string(node.scratch().join("pid")).unwrap();
    let sleeper = ProcessId::of(pid.trim().parse().unwrap()).unwrap();
    assert!(sleeper.unwrap().signal(Signal::KILL).unwrap());
}

/// A program that has written much and ends at once: all of it is in the log.
#[test]
fn what_waits_in_the_pipe_at_the_end_is_read() {
    for _ in 0..20 {
        let node = Node::new();
        node.run(&["head -c 60000 /dev/zero | tr '\\0' '\\n'"]);
        assert_eq!(node.log().len(), 60000);
    }
}

/// A log that cannot be opened is told, and the program does not run unheard.
#[test]
fn a_log_that_is_a_symlink_is_refused() {
    let node = Node::new();
    let log = node.runtime.log_path(&attempt());
    std::fs::create_dir_all(log.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/dev/null", &log).unwrap();
    let exit = node.run(&["touch ran"]);
    assert_eq!(exit.exit_code, 128);
    assert!(exit.message.contains("cannot open"), "{}", exit.message);
    assert!(!node.scratch().join("ran").exists());
}

/// A log that somebody empties while it is written goes on, and readers start anew.
#[test]
fn an_emptied_log_goes_on() {
    let node = Node::new();
    std::fs::create_dir_all(node.scratch()).unwrap();
    let fifo = node.scratch().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    node.start(&Node::spec(&["echo before; read x <fifo; echo after"]));
    let log = node.runtime.log_path(&attempt());
    until("the first line", || {
        (log.metadata().ok()?.len() > 0).then_some(())
    });
    std::fs::File::create(&log).unwrap();
    std::fs::File::options()
        .write(true)
        .open(&fifo)
        .unwrap()
        .write_all(b"\n")
        .unwrap();
    assert_eq!(node.exit(&attempt()).exit_code, 0);
    assert_eq!(node.log(), ["out: after"]);
}
