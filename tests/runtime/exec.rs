//! Programs that are run beside a container's own: what they see, what is told of them, what is killed.

use std::time::{Duration, Instant};

use allotd::model::security::Security;
use allotd::runtime::exec::{MAX_OUTPUT, Outcome};
use allotd::runtime::{AttemptState, ContainerSpec};

use crate::support::{Node, attempt, until};

fn exec(node: &Node, time: Duration, words: &[&str]) -> Outcome {
    let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(node.runtime.exec(&attempt(), &words, time))
        .unwrap()
}

fn shell(node: &Node, script: &str) -> Outcome {
    exec(node, Duration::from_secs(30), &["sh", "-c", script])
}

/// A node whose container sleeps.
fn asleep(change: impl FnOnce(&mut ContainerSpec)) -> Node {
    let node = Node::new();
    let mut spec = Node::spec(&["sleep", "1000"]);
    change(&mut spec);
    assert!(matches!(node.start(&spec), AttemptState::Running(_)));
    node
}

fn exited(code: i32, output: &str) -> Outcome {
    Outcome::Exited {
        code,
        output: output.to_owned(),
    }
}

#[test]
fn a_program_sees_what_the_containers_own_sees() {
    let node = asleep(|spec| {
        spec.env = vec![("COLOR".to_owned(), "red".to_owned())];
        spec.working_dir = Some("/usr".into());
    });
    let scratch = node.scratch();
    let seen = shell(
        &node,
        "echo $COLOR $HOME; pwd; cat /proc/self/oom_score_adj",
    );
    let expected = format!("red {}\n/usr\n500\n", scratch.display());
    assert_eq!(seen, exited(0, &expected));
}

#[test]
fn words_and_codes_arrive_as_they_are() {
    let node = asleep(|_| {});
    let words = ["printf", "%s|", "", "--help", "two words", "é"];
    let seen = exec(&node, Duration::from_secs(30), &words);
    assert_eq!(seen, exited(0, "|--help|two words|é|"));
    assert_eq!(shell(&node, "echo no >&2; exit 7"), exited(7, "no\n"));
    assert_eq!(shell(&node, "kill -9 $$"), exited(137, ""));
}

#[test]
fn the_beginning_of_much_output_is_kept() {
    let node = asleep(|_| {});
    match shell(&node, "head -c 3000000 /dev/zero | tr '\\0' x; echo end") {
        Outcome::Exited { code: 0, output } => assert_eq!(output, "x".repeat(MAX_OUTPUT)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_cannot_be_run_is_told() {
    let node = asleep(|_| {});
    let seen = exec(&node, Duration::from_secs(30), &["no-such-program"]);
    let Outcome::NotRun { why } = seen else {
        panic!("{seen:?}");
    };
    assert!(why.contains("no-such-program\" is not in PATH"), "{why}");
    let nobody = Node::new();
    assert!(matches!(shell(&nobody, "true"), Outcome::NotRun { .. }));
}

#[test]
fn all_that_takes_too_long_is_killed_and_nothing_else() {
    let node = asleep(|_| {});
    let (began, file) = (Instant::now(), node.temp.path().join("pids"));
    let script = format!(
        "(setsid sh -c 'echo $$ >> {0}; sleep 900; true' &); sleep 0.2; echo $$ >> {0}; echo slow; sleep 901",
        file.display()
    );
    let words = ["sh", "-c", script.as_str()];
    let seen = exec(&node, Duration::from_secs(1), &words);
    let output = "slow\n".to_owned();
    assert_eq!(seen, Outcome::TimedOut { output });
    assert!(began.elapsed() < Duration::from_secs(20));
    let pids = std::fs::read_to_string(file).unwrap();
    assert_eq!(pids.lines().count(), 2);
    for pid in pids.lines() {
        let dead = || (!std::fs::exists(format!("/proc/{pid}")).unwrap()).then_some(());
        until("its end", dead);
    }
    assert!(node.running().process.is_alive().unwrap());
}

/// What a hook leaves running is the container's, as with other runtimes.
#[test]
fn what_is_left_in_the_background_holds_nobody_up() {
    let node = asleep(|_| {});
    let seen = shell(&node, "sleep 3 & echo $!");
    let Outcome::Exited { code: 0, output } = seen else {
        panic!("{seen:?}");
    };
    assert!(std::fs::exists(format!("/proc/{}", output.trim())).unwrap());
}

#[test]
fn a_program_is_who_the_container_is() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let node = asleep(|spec| {
        spec.security = Security {
            user: Some(12_345),
            group: Some(54_321),
            groups: vec![7],
            dropped: u64::MAX,
            no_new_privileges: true,
            ..Security::default()
        };
        spec.working_dir = Some("/".into());
    });
    let script = "id -u; id -G; grep -h -e CapBnd -e NoNewPrivs /proc/self/status; \
                  ls $HOME/../../../..";
    let seen = shell(&node, script);
    let expected = "12345\n54321 7\nNoNewPrivs:\t1\nCapBnd:\t0000000000000000\n";
    let Outcome::Exited { code: 0, output } = seen else {
        panic!("{seen:?}");
    };
    // Of the state directory it sees what the container sees.
    let (own, state) = output.split_at(expected.len().min(output.len()));
    let mut lines: Vec<_> = own.lines().collect();
    lines.sort_unstable();
    let mut wanted: Vec<_> = expected.lines().collect();
    wanted.sort_unstable();
    assert_eq!(lines, wanted, "{output}");
    assert_eq!(state.trim(), "pods", "{output}");
}

#[test]
fn an_errand_runs_a_program_whatever_its_words_look_like() {
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};
    let node = asleep(|_| {});
    let mut errand = Command::new(env!("CARGO_BIN_EXE_allotd"))
        .arg("errand")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let dir = node.attempt_dir();
    let asked = format!(
        "exec\x00{}\x009000\x00printf\0%s|\0--help\0--\0",
        dir.display()
    );
    let mut stdin = errand.stdin.take().unwrap();
    stdin.write_all(asked.as_bytes()).unwrap();
    drop(stdin);
    let mut told = String::new();
    let mut stdout = errand.stdout.take().unwrap();
    stdout.read_to_string(&mut told).unwrap();
    assert!(errand.wait().unwrap().success());
    assert_eq!(told, r#"0{"exited":{"code":0,"output":"--help|--||"}}"#);
}
