//! How programs start and how they end.

use allotd::runtime::{AttemptState, Exit, ExitReason, ProcessId, RuntimeError};
use rustix::process::Signal;

use crate::support::{Node, attempt, container, until};

fn short(exit: &Exit) -> (i32, Option<i32>, ExitReason) {
    (exit.exit_code, exit.signal, exit.reason)
}

#[test]
fn every_end_has_its_code() {
    use ExitReason::{Completed, Error};
    for (script, expected) in [
        ("exit 0", (0, None, Completed)),
        ("exit 1", (1, None, Error)),
        ("exit 255", (255, None, Error)),
        ("kill -KILL $$", (137, Some(9), Error)),
        ("kill -TERM $$", (143, Some(15), Error)),
        ("kill -PIPE $$", (141, Some(13), Error)),
        // A code that looks like a signal is none.
        ("exit 137", (137, None, Error)),
    ] {
        let exit = Node::new().run(&[script]);
        assert_eq!(short(&exit), expected, "{script}");
        assert!(exit.started_at.unwrap() <= exit.finished_at, "{exit:?}");
        assert_eq!(exit.dropped_log_bytes, 0);
    }
}

#[test]
fn a_program_that_cannot_start_says_why() {
    let node = Node::new();
    let broken = node.temp.path().join("broken");
    std::fs::write(&broken, "#!/no/interpreter\n").unwrap();
    std::fs::set_permissions(&broken, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let broken = broken.to_str().unwrap();
    for (argv, code, message) in [
        (
            ["no-such-program", "x"],
            127,
            "\"no-such-program\" is not in PATH",
        ),
        (
            ["/no/such/program", "x"],
            127,
            "\"/no/such/program\" is not there",
        ),
        ([broken, "x"], 127, "needs an interpreter that is not there"),
        (
            ["/etc/passwd", "x"],
            126,
            "cannot be executed: Permission denied",
        ),
        (["/etc", "x"], 126, "cannot be executed: Permission denied"),
    ] {
        let node = Node::new();
        let AttemptState::Exited(exit) = node.start(&Node::spec(&argv)) else {
            panic!("{:?}", node.state());
        };
        assert_eq!(
            short(&exit),
            (code, None, ExitReason::StartError),
            "{argv:?}"
        );
        assert!(exit.message.contains(message), "{:?}", exit.message);
        assert!(
            node.shims().is_empty() || until("the end", || node.shims().is_empty().then_some(true))
        );
    }
    let mut spec = Node::spec(&["true", "x"]);
    spec.working_dir = Some("/no/such/directory".into());
    let AttemptState::Exited(exit) = node.start(&spec) else {
        panic!("{:?}", node.state());
    };
    assert_eq!(short(&exit), (128, None, ExitReason::StartError));
    assert!(
        exit.message.contains("/no/such/directory"),
        "{}",
        exit.message
    );
}

#[test]
fn what_cannot_be_run_is_refused_before() {
    let node = Node::new();
    let refused = |change: &dyn Fn(&mut allotd::runtime::ContainerSpec)| {
        let mut spec = Node::spec(&["true", "x"]);
        change(&mut spec);
        matches!(node.runtime.start(&spec), Err(RuntimeError::BadSpec { .. }))
    };
    assert!(refused(&|spec| spec.argv.clear()));
    assert!(refused(&|spec| spec.argv = vec![String::new()]));
    assert!(refused(&|spec| spec.argv.push("a\0b".to_owned())));
    for (name, value) in [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0")] {
        assert!(refused(
            &|spec| spec.env = vec![(name.to_owned(), value.to_owned())]
        ));
    }
    assert!(refused(&|spec| spec.oom_score_adj = 1001));
    assert!(refused(&|spec| spec.working_dir = Some("here".into())));
    assert!(refused(&|spec| spec.cgroup = Some("../top".into())));
    assert_eq!(node.state(), AttemptState::NotStarted);
}

/// The program sees its own environment and nothing of the agent's or the shim's.
#[test]
fn the_program_starts_clean() {
    let node = Node::new();
    let mut spec = Node::spec(&["env; pwd; umask; ls /proc/self/fd | wc -l; readlink /proc/self/fd/0
        grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; cat /proc/self/oom_score_adj; ps -o sid= -p $$"]);
    spec.env = [("A", "first"), ("B", "x y"), ("A", "last")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
    node.start(&spec);
    assert_eq!(node.exit(&attempt()).exit_code, 0, "{:?}", node.log());
    let log = node.log().join("\n");
    let scratch = node.scratch();
    let scratch = scratch.to_str().unwrap();
    for line in [
        "out: A=last",
        "out: B=x y",
        "out: PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        &format!("out: HOME={scratch}"),
        &format!("out: TMPDIR={scratch}"),
        &format!("out: {scratch}"),
        "out: 0022",
        // 0, 1, 2 and the one that `ls` reads the directory with.
        "out: 4",
        "out: /dev/null",
        "out: SigBlk:\t0000000000000000",
        "out: SigIgn:\t0000000000000000",
        "out: 500",
    ] {
        assert!(
            log.split('\n').any(|seen| seen == line),
            "{line:?} is not in\n{log}"
        );
    }
    assert!(!log.contains("A=first") && !log.contains("CARGO"), "{log}");
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(scratch).unwrap());
    assert_eq!(mode & 0o7777, 0o700);
}

#[test]
fn a_running_program_is_found_signalled_and_waited_for() {
    let node = Node::new();
    let AttemptState::Running(running) = node.start(&Node::spec(&["exec sleep 1000"])) else {
        panic!("{:?}", node.state());
    };
    assert!(running.supervised);
    assert_eq!(node.running(), running);
    // `start` returns once the program runs, not just its process.
    let name = std::fs::read_to_string(format!("/proc/{}/comm", running.process.pid)).unwrap();
    assert!(name == "sh\n" || name == "sleep\n", "{name}");
    assert!(running.process.signal(Signal::TERM).unwrap());
    assert_eq!(node.exit(&attempt()).signal, Some(15));
    assert!(!running.process.signal(Signal::TERM).unwrap());
    assert_eq!(node.runtime.latest(&container()).unwrap(), Some(attempt()));
}

/// The shim is not in the agent's session, ignores a polite request and goes once it is done.
#[test]
fn the_shim_stands_alone() {
    let node = Node::new();
    node.start(&Node::spec(&["exec sleep 1000"]));
    let [shim] = <[ProcessId; 1]>::try_from(node.shims()).unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", shim.pid)).unwrap();
    assert!(stat.contains("(allotd-shim)"), "{stat}");
    let after_name: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let (parent, session) = (after_name[1], after_name[3]);
    assert_ne!(parent, std::process::id().to_string());
    assert_eq!(session, shim.pid.to_string());
    let cwd = std::fs::read_link(format!("/proc/{}/cwd", shim.pid)).unwrap();
    assert_eq!(cwd.to_str(), Some("/"));
    for signal in [Signal::TERM, Signal::HUP, Signal::INT, Signal::PIPE] {
        assert!(shim.signal(signal).unwrap());
    }
    let running = node.running();
    assert!(running.supervised);
    running.process.signal(Signal::KILL).unwrap();
    assert_eq!(node.exit(&attempt()).exit_code, 137);
    until("the shim's end", || node.shims().is_empty().then_some(()));
}
