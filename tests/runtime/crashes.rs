//! Agent or shim killed at a bad moment: there is one process or none, and everybody can tell which.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use allotd::runtime::{AttemptState, LostReason, ProcessId, Running};
use rustix::process::Signal;

use crate::support::{Node, attempt, until};

/// Notes each time that it really runs.
const COUNTED: &str = "echo ran >>runs; exec sleep 1000";

fn runs(node: &Node) -> usize {
    let text = std::fs::read_to_string(node.scratch().join("runs"));
    text.map_or(0, |text| text.lines().count())
}

/// The shim as an agent would start it.
fn shim(node: &Node) -> Command {
    let mut shim = Command::new(env!("CARGO_BIN_EXE_allotd"));
    shim.arg0("allotd")
        .arg("shim")
        .arg(node.attempt_dir())
        .stdin(Stdio::null());
    shim
}

/// Leaves the attempt as an agent does that is killed after it wrote the spec.
fn write_spec(node: &Node, script: &str) {
    node.start(&Node::spec(&[script]));
    if let AttemptState::Running(running) = node.state() {
        running.process.signal(Signal::KILL).unwrap();
    }
    node.exit(&attempt());
    until("the shim's end", || node.shims().is_empty().then_some(()));
    for name in ["started.json", "exit.json", "lock"] {
        std::fs::remove_file(node.attempt_dir().join(name)).unwrap();
    }
    let _ = std::fs::remove_file(node.scratch().join("runs"));
    assert_eq!(node.state(), AttemptState::NotStarted);
}

#[test]
fn starting_twice_gives_one_process() {
    let node = Node::new();
    let spec = Node::spec(&[COUNTED]);
    let states: Vec<_> = std::thread::scope(|scope| {
        let start = || node.start(&spec);
        let all: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
        all.into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let running = node.running();
    for state in states {
        assert_eq!(state, AttemptState::Running(running.clone()));
    }
    assert_eq!(node.start(&spec), AttemptState::Running(running.clone()));
    until("the program", || (runs(&node) > 0).then_some(()));
    running.process.signal(Signal::KILL).unwrap();
    let exit = node.exit(&attempt());
    assert_eq!(node.start(&spec), AttemptState::Exited(exit));
    assert_eq!(runs(&node), 1);
}

#[test]
fn what_an_agent_left_half_done_is_finished() {
    let node = Node::new();
    // An agent that was killed after it made the directory.
    let dir = node.attempt_dir();
    assert_eq!(node.state(), AttemptState::NotStarted);
    // One that was killed while it wrote the spec, after a shim that was killed early.
    for half in [
        ".spec.json.new",
        ".started.json.new",
        ".exit.json.new",
        "lock",
    ] {
        std::fs::write(dir.join(half), "{").unwrap();
    }
    std::fs::write(dir.join("spec.json"), "{ damaged").unwrap();
    assert_eq!(node.state(), AttemptState::NotStarted);
    assert!(matches!(
        node.start(&Node::spec(&["exit 7"])),
        AttemptState::Running(_) | AttemptState::Exited(_)
    ));
    assert_eq!(node.exit(&attempt()).exit_code, 7);
}

/// The shim goes on when everything that started it is killed, its process group included.
#[test]
fn the_shim_outlives_the_agent() {
    let node = Node::new();
    write_spec(&node, "read x <fifo; exit 5");
    let fifo = node.scratch().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let shim = shim(&node);
    let mut agent = Command::new("sh");
    agent
        .args(["-c", "\"$0\" shim \"$1\"; sleep 1000"])
        .arg(shim.get_program())
        .arg(node.attempt_dir());
    let mut agent = agent.process_group(0).spawn().unwrap();
    until("the program", || {
        matches!(node.state(), AttemptState::Running(_)).then_some(())
    });
    let group = nix::unistd::Pid::from_raw(agent.id().cast_signed());
    nix::sys::signal::killpg(group, nix::sys::signal::Signal::SIGKILL).unwrap();
    agent.wait().unwrap();
    assert!(node.running().supervised);
    std::fs::write(&fifo, "\n").unwrap();
    assert_eq!(node.exit(&attempt()).exit_code, 5);
}

/// Killed at any instant of a start, the first process leaves an attempt that the next agent finishes.
#[test]
fn an_agent_killed_at_any_instant_leaves_one_process() {
    for round in 0..40 {
        let node = Node::new();
        write_spec(&node, COUNTED);
        let mut first = shim(&node).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(100 * round));
        first.kill().unwrap();
        first.wait().unwrap();
        let state = node.start(&Node::spec(&[COUNTED]));
        assert!(
            matches!(state, AttemptState::Running(_)),
            "round {round}: {state:?}"
        );
        until("the program", || (runs(&node) > 0).then_some(()));
        node.running().process.signal(Signal::KILL).unwrap();
        node.exit(&attempt());
        assert_eq!(runs(&node), 1, "round {round}");
    }
}

/// Killed at any instant of a start, the shim leaves at most one process, and never an unknown one.
#[test]
fn a_shim_killed_at_any_instant_leaves_no_unknown_process() {
    let (mut not_started, mut others) = (0, 0);
    for round in 0..60 {
        let node = Node::new();
        write_spec(&node, COUNTED);
        let mut first = shim(&node).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(100 * round));
        let second = node.shims();
        first.kill().unwrap();
        first.wait().unwrap();
        until("the shims' end", || {
            for shim in second.iter().chain(&node.shims()) {
                shim.signal(Signal::KILL).unwrap();
            }
            // A list of processes can miss one that is being born; the lock cannot.
            let held = matches!(
                node.state(),
                AttemptState::Starting
                    | AttemptState::Running(Running {
                        supervised: true,
                        ..
                    })
            );
            (node.shims().is_empty() && !held).then_some(())
        });
        // A child that was never released is ending; it holds nothing that a start would need.
        match node.state() {
            AttemptState::NotStarted => {
                not_started += 1;
                let state = node.start(&Node::spec(&[COUNTED]));
                assert!(
                    matches!(state, AttemptState::Running(_)),
                    "round {round}: {state:?}"
                );
                until("the program", || (runs(&node) > 0).then_some(()));
                node.running().process.signal(Signal::KILL).unwrap();
                node.exit(&attempt());
                assert_eq!(runs(&node), 1, "round {round}");
            }
            AttemptState::Running(running) => {
                others += 1;
                assert!(!running.supervised);
                let state = node.start(&Node::spec(&[COUNTED]));
                assert!(
                    matches!(state, AttemptState::Running(_) | AttemptState::Lost(_)),
                    "{state:?}"
                );
                running.process.signal(Signal::KILL).unwrap();
                assert!(matches!(node.wait(&attempt()), AttemptState::Lost(_)));
                assert!(runs(&node) <= 1, "round {round}");
            }
            AttemptState::Lost(lost) => {
                others += 1;
                assert_eq!(lost.why, LostReason::ShimDied);
                assert!(runs(&node) <= 1, "round {round}");
            }
            other => panic!("round {round}: {other:?}"),
        }
    }
    println!("killed before the record {not_started} times, after it {others} times");
}

#[test]
fn a_process_whose_shim_died_goes_on_and_is_lost_in_the_end() {
    let node = Node::new();
    node.start(&Node::spec(&["exec sleep 1000"]));
    let before = node.running();
    for shim in node.shims() {
        shim.signal(Signal::KILL).unwrap();
    }
    until("the shim's end", || {
        (!node.running().supervised).then_some(())
    });
    assert_eq!(node.running().process, before.process);
    assert_eq!(
        node.start(&Node::spec(&["exec sleep 1000"])),
        AttemptState::Running(node.running())
    );
    before.process.signal(Signal::TERM).unwrap();
    let AttemptState::Lost(lost) = node.wait(&attempt()) else {
        panic!("{:?}", node.state());
    };
    assert_eq!(lost.why, LostReason::ShimDied);
    assert_eq!(lost.started.unwrap().process, before.process);
}

/// A recorded process id that now belongs to another process is not mistaken for it.
#[test]
fn another_process_of_the_same_number_is_left_alone() {
    let node = Node::new();
    let mut bystander = Command::new("sleep").arg("1000").spawn().unwrap();
    let other = ProcessId::of(bystander.id().cast_signed())
        .unwrap()
        .unwrap();
    let started_json = node.attempt_dir().join("started.json");
    let record = |start_ticks: u64, boot_id: &str| {
        format!(
            r#"{{"process":{{"pid":{},"startTicks":{start_ticks},"bootId":"{boot_id}"}},"startedAt":"2026-01-02T03:04:05Z"}}"#,
            other.pid
        )
    };
    for (text, why) in [
        (
            record(other.start_ticks - 1, &other.boot_id),
            LostReason::ShimDied,
        ),
        (
            record(other.start_ticks, "another-boot"),
            LostReason::Rebooted,
        ),
        ("{}".to_owned(), LostReason::Damaged),
        (String::new(), LostReason::Damaged),
    ] {
        std::fs::write(&started_json, &text).unwrap();
        for state in [
            node.state(),
            node.start(&Node::spec(&["true", "x"])),
            node.wait(&attempt()),
        ] {
            let AttemptState::Lost(lost) = state else {
                panic!("{text}: {state:?}");
            };
            assert_eq!(lost.why, why, "{text}");
            if let Some(started) = lost.started {
                assert!(!started.process.signal(Signal::KILL).unwrap());
            }
        }
    }
    // Only the true record means it.
    std::fs::write(&started_json, record(other.start_ticks, &other.boot_id)).unwrap();
    assert_eq!(node.running().process, other);
    assert!(bystander.try_wait().unwrap().is_none());
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}

/// An agent whose store was lost finds what there is of the pod, and the shim that lives.
#[test]
fn what_nobody_knows_of_is_found_with_its_shim() {
    let node = Node::new();
    node.start(&Node::spec(&["exec sleep 1000"]));
    let running = node.running();
    let shims: Vec<_> = node.shims().iter().map(|shim| shim.pid).collect();
    let left = || node.runtime.left_behind(|_| false).unwrap();
    assert_eq!(left().pods, [attempt().container.uid().to_string()]);
    assert_eq!((left().shims, shims.len()), (shims, 1));
    let known = node.runtime.left_behind(|_| true).unwrap();
    assert_eq!((known.pods.len(), known.shims.len()), (0, 0));
    // A shim ends with its program, and the files stay.
    running.process.signal(Signal::KILL).unwrap();
    node.exit(&attempt());
    until("the shim's end", || left().shims.is_empty().then_some(()));
    assert_eq!(left().pods.len(), 1);
    let files = node.attempt_dir();
    assert!(files.join("exit.json").exists());
}
