//! What allotd tells the one that supervises it: readiness to the notification socket, log lines with their
//! fields to the journal's socket.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use serde_json::json;

use super::daemon::{Anything, Daemon, create, delete, pod, running_pid, wait};
use crate::Outcome;

tests![
    readiness_and_the_end_are_notified,
    the_journal_gets_a_field_for_each_part,
    the_agent_may_open_more_files_than_what_it_starts,
];

const NOTIFY: &str = "/run/notify";
const JOURNAL: &str = "/run/systemd/journal/socket";

fn socket(path: &str) -> Anything<UnixDatagram> {
    let socket = UnixDatagram::bind(path)?;
    socket.set_read_timeout(Some(Duration::from_secs(30)))?;
    Ok(socket)
}

fn message(socket: &UnixDatagram) -> Anything<Vec<u8>> {
    let mut text = vec![0; 8192];
    let length = socket.recv(&mut text)?;
    text.truncate(length);
    Ok(text)
}

fn notified(socket: &UnixDatagram) -> Anything<String> {
    Ok(String::from_utf8(message(socket)?)?)
}

/// The fields of a journal entry in the native protocol: a name, a line feed, the length of the value in
/// eight bytes, the value, a line feed; or `NAME=VALUE` in one line.
fn fields(mut entry: &[u8]) -> Anything<BTreeMap<String, String>> {
    let mut fields = BTreeMap::new();
    while let Some(end) = entry.iter().position(|byte| *byte == b'\n') {
        let line = std::str::from_utf8(&entry[..end])?;
        entry = &entry[end + 1..];
        if let Some((name, value)) = line.split_once('=') {
            fields.insert(name.to_owned(), value.to_owned());
            continue;
        }
        let (length, rest) = entry.split_first_chunk::<8>().ok_or("no length")?;
        let (value, rest) = rest.split_at(usize::try_from(u64::from_le_bytes(*length))?);
        fields.insert(line.to_owned(), String::from_utf8(value.to_vec())?);
        entry = &rest[1..];
    }
    Ok(fields)
}

fn readiness_and_the_end_are_notified() -> Outcome {
    let socket = socket(NOTIFY)?;
    // Only to have a configuration.
    Daemon::start()?.stop()?;
    let daemon = Daemon::spawn(&[("NOTIFY_SOCKET", NOTIFY)])?;
    assert!(notified(&socket)?.contains("READY=1"));
    // Whoever is told so may ask at once.
    assert!(super::daemon::get("/api/v1/pods")?.is_object());
    daemon.stop()?;
    assert!(notified(&socket)?.contains("STOPPING=1"));
    Ok(())
}

fn the_journal_gets_a_field_for_each_part() -> Outcome {
    fs::create_dir_all("/run/systemd/journal")?;
    Daemon::start()?.stop()?;
    let socket = socket(JOURNAL)?;
    let daemon = Daemon::spawn(&[("JOURNAL_STREAM", "8:1234")])?;
    Daemon::wait_until_it_answers()?;
    create(&pod(
        "web",
        &json!({"containers": [{"name": "app", "image": "i", "command": ["sleep", "inf"]}]}),
    ))?;
    running_pid("web", "app")?;
    let mut started = BTreeMap::new();
    wait("the start in the journal", || {
        started = fields(&message(&socket)?)?;
        Ok(started
            .get("MESSAGE")
            .is_some_and(|text| text == "Started container app"))
    })?;
    for (field, value) in [
        ("POD", "web"),
        ("NAMESPACE", "default"),
        ("CONTAINER", "app"),
        ("REASON", "Started"),
        ("SYSLOG_IDENTIFIER", "allotd"),
    ] {
        let found = started.get(field).map(String::as_str);
        assert_eq!(found, Some(value), "{field} in {started:?}");
    }
    delete("web", 0)?;
    daemon.stop()
}

/// The soft and the hard limit of a process.
fn open_files(limits: &str) -> Anything<[u64; 2]> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let mut words = line.ok_or("no limit of open files")?.split_whitespace();
    let mut limit = || Anything::Ok(words.next().ok_or("no limit")?.parse()?);
    Ok([limit()?, limit()?])
}

/// Found with a thousand pods: with the kernel's own 1024 the agent could not look after 150 of them.
fn the_agent_may_open_more_files_than_what_it_starts() -> Outcome {
    let own = open_files(&fs::read_to_string("/proc/self/limits")?)?;
    let daemon = Daemon::start()?;
    let agents = open_files(&daemon.file("limits")?)?;
    assert!(
        own[0] < 500_000 && agents[0] > 500_000,
        "{own:?} {agents:?}"
    );
    let spec = json!({"containers": [{"name": "c", "image": "i", "command": ["sleep", "inf"],
        "lifecycle": {"postStart": {"exec": {"command": ["sh", "-c", "cat /proc/self/limits >limits"]}}},
    }]});
    let made = create(&pod("files", &spec))?;
    let pid = running_pid("files", "c")?;
    assert_eq!(
        open_files(&fs::read_to_string(format!("/proc/{pid}/limits"))?)?,
        own
    );
    let uid = made["metadata"]["uid"].as_str().unwrap_or("");
    let hooks = format!("/tmp/state/pods/{uid}/c/scratch/limits");
    wait("the hook", || {
        Ok(fs::read_to_string(&hooks).is_ok_and(|text| text.contains("open files")))
    })?;
    assert_eq!(open_files(&fs::read_to_string(&hooks)?)?, own, "of a hook");
    Ok(())
}
