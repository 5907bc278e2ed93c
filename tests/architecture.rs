//! The shape of the source tree, checked: direction of dependencies, size of files, a reason for
//! every module. What ARCHITECTURE.md says of these is what this test enforces.

// Test code outside test functions.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// No source file is longer, tests included.
const MAX_LINES: usize = 400;

/// Which rooms a room may use. Data flows down this list.
const MAY_USE: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("sys", &[]),
    ("exit", &[]),
    ("model", &["units"]),
    ("manifest", &["units", "model"]),
    ("admission", &["units", "model"]),
    ("cgroup", &["units", "sys"]),
    ("translation", &["units", "model", "admission", "cgroup"]),
    ("enforcement", &["units", "cgroup"]),
    ("observation", &["units", "model", "cgroup", "sys"]),
    ("runtime", &["units", "model", "sys"]),
    ("store", &[]),
    ("config", &["units", "model"]),
    (
        "report",
        &[
            "units",
            "model",
            "manifest",
            "admission",
            "cgroup",
            "translation",
        ],
    ),
    (
        "agent",
        &[
            "units",
            "model",
            "manifest",
            "admission",
            "cgroup",
            "translation",
            "enforcement",
            "observation",
            "runtime",
            "store",
            "config",
            "report",
            "sys",
        ],
    ),
    (
        "server",
        &[
            "agent",
            "config",
            "manifest",
            "model",
            "observation",
            "report",
            "runtime",
        ],
    ),
    (
        "daemon",
        &[
            "agent",
            "cgroup",
            "config",
            "model",
            "observation",
            "report",
            "runtime",
            "server",
            "store",
            "sys",
            "translation",
        ],
    ),
    (
        "cli",
        &[
            "units",
            "model",
            "manifest",
            "admission",
            "cgroup",
            "translation",
            "observation",
            "config",
            "report",
            "agent",
            "exit",
        ],
    ),
];

/// Rooms that are pure: no file, clock, socket, thread or log.
const PURE: &[&str] = &[
    "units",
    "model",
    "manifest",
    "admission",
    "translation",
    "enforcement",
    "report",
];

/// Parts of other rooms that are pure all the same.
const PURE_PARTS: &[&str] = &["observation/eviction"];

/// What a pure room must not name.
const IMPURE: &[&str] = &[
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "std::env::var",
    "std::env::args",
    "std::io::std",
    "Instant::now",
    "SystemTime::now",
    "Timestamp::now",
    "Zoned::now",
    "tracing::",
    "tokio::",
    "rustix::",
    "nix::",
    "procfs::",
    "static mut",
    "println!",
    "eprintln!",
];

fn sources() -> Vec<(PathBuf, String)> {
    fn walk(dir: &Path, into: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, into);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                into.push((path, text));
            }
        }
    }
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    walk(&src, &mut all);
    let mut all: Vec<_> = all
        .into_iter()
        .map(|(path, text)| (path.strip_prefix(&src).unwrap().to_owned(), text))
        .collect();
    all.sort();
    assert!(all.len() > 50, "the walk found {} files only", all.len());
    all
}

/// The room of a file: `agent/run.rs` is in `agent`, `daemon.rs` is `daemon`.
fn room(path: &Path) -> String {
    let first = path.components().next().unwrap().as_os_str();
    first.to_str().unwrap().trim_end_matches(".rs").to_owned()
}

/// The code of a file without its unit tests.
fn code(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap()
}

#[test]
fn data_flows_one_way() {
    let allowed: BTreeMap<_, _> = MAY_USE.iter().copied().collect();
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let room = room(&path);
        if room == "lib" || room == "bin" {
            continue;
        }
        let may = allowed
            .get(room.as_str())
            .unwrap_or_else(|| panic!("room {room} is not in the map: add it where it belongs"));
        for (number, line) in code(&text).lines().enumerate() {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for used in line.split("crate::").skip(1) {
                let used: String = used
                    .chars()
                    .take_while(|c| c.is_alphanumeric() || *c == '_')
                    .collect();
                let known = allowed.contains_key(used.as_str());
                if known && used != room && !may.contains(&used.as_str()) {
                    wrong.push(format!(
                        "src/{}:{}: {room} must not use {used}",
                        path.display(),
                        number + 1
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn pure_rooms_touch_nothing() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let in_pure_part = PURE_PARTS.iter().any(|part| path.starts_with(part));
        if !PURE.contains(&room(&path).as_str()) && !in_pure_part {
            continue;
        }
        for (number, line) in code(&text).lines().enumerate() {
            if line.trim_start().starts_with("//") {
                continue;
            }
            for name in IMPURE.iter().filter(|name| line.contains(**name)) {
                wrong.push(format!("src/{}:{}: {name}", path.display(), number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn files_stay_short_and_say_what_they_are_for() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let lines = text.lines().count();
        if lines > MAX_LINES {
            wrong.push(format!("src/{}: {lines} lines", path.display()));
        }
        if !text.starts_with("//!") {
            wrong.push(format!("src/{}: does not open with //!", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Unsafe code lives in `sys`. The shim may call two functions there that are unsafe because they want
/// to be the first thing a process does; nobody but its `main` can promise that.
#[test]
fn unsafe_code_lives_in_sys_alone() {
    let wrong: Vec<_> = sources()
        .into_iter()
        .filter(|(path, _)| room(path) != "sys" && path != Path::new("runtime/shim/mod.rs"))
        .filter(|(_, text)| {
            code(text)
                .lines()
                .any(|line| !line.trim_start().starts_with("//") && line.contains("unsafe "))
        })
        .map(|(path, _)| format!("src/{}", path.display()))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
