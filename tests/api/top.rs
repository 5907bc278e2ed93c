//! `allot top`: the same figures in every form, and the picture on a real terminal.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use allotd::cli::top::keys::Key;
use allotd::cli::top::state::{Event, Model};
use allotd::cli::top::view::{Look, draw};
use allotd::report::top::TopReport;
use jiff::tz::TimeZone;
use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{LocalFlags, tcgetattr};
use nix::unistd::Pid;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;
use serde_json::Value;

use crate::busy;
use crate::server::{PODS, Server};

/// The words of the first line that has this one in it.
fn words_of(text: &str, wanted: &str) -> Vec<String> {
    let line = text
        .lines()
        .find(|line| line.split_whitespace().any(|word| word == wanted));
    let line = line.unwrap_or_else(|| panic!("no {wanted} in {text}"));
    line.split_whitespace().map(str::to_owned).collect()
}

fn picture(report: TopReport) -> String {
    let mut model = Model::new("default", false, 1);
    model.update(Event::Size(120, 30));
    model.update(Event::Report(Box::new(report)));
    // Containers of pods that have only one are shown too.
    model.update(Event::Key(Key::Char('e')));
    let look = Look {
        colour: false,
        unicode: true,
        zone: TimeZone::UTC,
    };
    let mut terminal = Terminal::new(TestBackend::new(120, 30)).unwrap();
    terminal.draw(|frame| draw(frame, &model, &look)).unwrap();
    let cells = terminal.backend().buffer().content.chunks(120);
    let lines = cells.map(|line| line.iter().map(Cell::symbol).collect::<String>());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_table_the_picture_and_kubectl_have_the_same_figures() {
    let (server, _process) = busy::server();
    // All who ask within a second are told of the same look.
    let (once, report, metrics) = (0..20)
        .find_map(|_| {
            let (before, code) = server.told("top -o json");
            assert_eq!(code, Some(0), "{before}");
            let (once, _) = server.told("top --once");
            let metrics = server.get("/apis/metrics.k8s.io/v1beta1/pods").json();
            let (after, _) = server.told("top -o json");
            (before == after).then_some((once, before, metrics))
        })
        .unwrap();
    assert_eq!(server.told("top").1, Some(0), "where there is no terminal");
    let report: TopReport = serde_json::from_str(&report).unwrap();
    let table = words_of(&once, "web");
    assert_eq!(table[..2], ["web", "c"], "{once}");
    let (cpu, memory) = (&table[2], table[7].as_str());
    assert_eq!(memory, "12Mi", "{once}");
    let shown = picture(report.clone());
    let row = words_of(&shown, "c");
    assert!(
        row.contains(cpu) && row.contains(&table[7]),
        "{table:?} {shown}"
    );
    let node = words_of(&once, "node");
    let above = words_of(&shown, "CPU");
    assert!(above.contains(&node[1]), "{node:?} {shown}");

    let used = &metrics["items"][0]["containers"][0]["usage"];
    let container = &report.pods[0].containers[0];
    let nano = container.used.cpu_nano.unwrap();
    assert_eq!(used["cpu"], format!("{nano}n"));
    let kib = container.used.working_set_bytes.unwrap() / 1024;
    assert_eq!(used["memory"], format!("{kib}Ki"));
}

#[test]
fn the_answer_has_the_bounds_in_effect_and_what_was_asked_for() {
    let (server, _process) = busy::server();
    let answer: Value = server.get("/apis/allotd.dev/v1/top").json();
    let node = &answer["node"];
    assert_eq!(node["name"], "node");
    assert_eq!(node["allocatable"]["cpuMilli"], 3900);
    assert_eq!(node["capacity"]["cpuMilli"], 4000);
    assert_eq!(node["requested"]["cpuMilli"], 500);
    assert_eq!(node["requested"]["memoryBytes"], 64 << 20);
    assert_eq!(node["memoryMaxBytes"], 4_u64 << 30);
    let pod = &answer["pods"][0];
    for (field, value) in [
        ("status", Value::from("Running")),
        ("qosClass", "Guaranteed".into()),
        ("cpuMaxMilli", 500.into()),
        ("memoryMaxBytes", (64 << 20).into()),
        ("memoryMinBytes", (60 << 20).into()),
        ("drifts", 0.into()),
    ] {
        assert_eq!(pod[field], value, "{field}: {pod}");
    }
    assert!(pod.get("unenforced").is_none(), "{pod}");
    assert!(
        pod.get("cpuPressure").is_none(),
        "the model has none: {pod}"
    );
    let container = &pod["containers"][0];
    assert_eq!(container["state"], "Running");
    assert_eq!(container["requests"]["cpuMilli"], 500);
    assert_eq!(container["throttledUsec"], 0);
    assert_eq!(container["diskBytes"], 0);
    assert_eq!(container["tasks"], 1);
}

/// `allot top` on a terminal of 80 columns and 24 lines.
struct OnTerminal {
    child: Child,
    keyboard: std::fs::File,
    terminal: OwnedFd,
    screen: Receiver<Vec<u8>>,
    seen: String,
}

impl OnTerminal {
    fn start(server: &Server) -> Self {
        let size = Winsize {
            ws_row: 24,
            ws_col: 80,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pair = openpty(Some(&size), None).unwrap();
        let end = || Stdio::from(pair.slave.try_clone().unwrap());
        let child = Command::new(assert_cmd::cargo::cargo_bin!("allot"))
            .arg("--socket")
            .arg(server.socket())
            .arg("top")
            .env("TERM", "xterm")
            .env("LC_ALL", "C.UTF-8")
            .env_remove("NO_COLOR")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let mut master = std::fs::File::from(pair.master);
        let keyboard = master.try_clone().unwrap();
        let (send, screen) = channel();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(n @ 1..) = master.read(&mut piece) {
                if send.send(piece[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            keyboard,
            terminal: pair.slave,
            screen,
            seen: String::new(),
        }
    }

    /// Waits until this word was written; between two words only the cursor may move.
    fn sees(&mut self, text: &str) {
        let start = Instant::now();
        while !self.seen.contains(text) {
            let late = start.elapsed().as_secs() >= 60;
            assert!(!late, "no {text:?}: {:.4000?}", self.seen);
            match self.screen.recv_timeout(Duration::from_millis(100)) {
                Ok(piece) => self.seen.push_str(&String::from_utf8_lossy(&piece)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => panic!("it ended: {:?}", self.seen),
            }
        }
        self.seen.clear();
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    fn is_raw(&self) -> bool {
        let modes = tcgetattr(&self.terminal).unwrap();
        !modes.local_flags.contains(LocalFlags::ICANON)
    }

    /// It must end by itself and leave the terminal as it was.
    fn end(mut self) -> ExitStatus {
        self.sees("\u{1b}[?1049l");
        let status = self.child.wait().unwrap();
        assert!(!self.is_raw(), "the terminal is still in raw mode");
        status
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn on_a_terminal_there_is_a_picture_until_q() {
    let (server, _process) = busy::server();
    let mut top = OnTerminal::start(&server);
    top.sees("web");
    assert!(top.is_raw());
    top.press("\r");
    top.sees("Cgroups:");
    top.press("\u{1b}");
    top.sees("NAME");
    server.send(
        "DELETE",
        &format!("{PODS}/web?gracePeriodSeconds=0"),
        "",
        "",
    );
    top.sees("shows");
    top.press("q");
    assert_eq!(top.end().code(), Some(0));
}

#[test]
fn a_daemon_that_goes_is_told_of_and_a_signal_ends_it() {
    let (server, process) = busy::server();
    let mut top = OnTerminal::start(&server);
    top.sees("web");
    drop(server);
    drop(process);
    top.sees("trying");
    let pid = Pid::from_raw(top.child.id().try_into().unwrap());
    kill(pid, Signal::SIGTERM).unwrap();
    let status = top.end();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(Signal::SIGTERM as i32)
    );
}
