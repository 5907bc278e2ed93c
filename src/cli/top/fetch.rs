//! Asks the daemon, on a thread of its own: whoever looks never waits for an answer.
//!
//! One question at a time, each bounded by the client. A daemon that does not answer is asked again after
//! the interval, for as long as somebody looks.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::once::target;
use super::state::{Event, Failure, PodName};
use crate::cli::client::Client;
use crate::cli::error::CliError;
use crate::cli::target::Target;

/// Starts to ask every `interval`, and about pods when told to. What comes goes to `events`; it ends with
/// whoever holds the other end of either channel.
///
/// # Errors
/// The system has no room for a thread.
pub fn start(
    socket: PathBuf,
    interval: Duration,
    events: Sender<Event>,
) -> Result<Sender<PodName>, CliError> {
    let (send, pods) = channel();
    thread::Builder::new()
        .name("fetch".to_owned())
        .spawn(move || {
            let asked = Client::new(&socket).map(|client| ask(&client, interval, &pods, &events));
            if let Err(error) = asked {
                let _ = events.send(Event::Failed(error.to_string()));
            }
        })
        .map_err(|error| CliError::Failed(format!("cannot start a thread: {error}")))?;
    Ok(send)
}

fn ask(client: &Client, interval: Duration, pods: &Receiver<PodName>, events: &Sender<Event>) {
    loop {
        let event = match client.get(&target()) {
            Ok(report) => Event::Report(report),
            Err(error) => Event::Failed(error.to_string()),
        };
        if events.send(event).is_err() {
            return;
        }
        // Counted from the answer on: whoever asks again within a second gets the same look.
        let next = Instant::now() + interval;
        loop {
            let left = next.saturating_duration_since(Instant::now());
            let name = match pods.recv_timeout(left) {
                Ok(name) => name,
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            // Of several wishes only the last is still wanted.
            let name = pods.try_iter().last().unwrap_or(name);
            let target = Target::own_pod(&name.namespace, &name.name).below("explain");
            let result = client.get(&target).map_err(|error| {
                if error.is_not_found() {
                    Failure::Gone
                } else {
                    Failure::Other(error.to_string())
                }
            });
            if events.send(Event::Explained(name, result)).is_err() {
                return;
            }
        }
    }
}
