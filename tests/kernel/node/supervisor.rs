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
