//! The thread that reads `/dev/kmsg`.
//!
//! It hands on what the log tells, from the oldest record that is left. It decides nothing, and ends
//! with its owner.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread::JoinHandle;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout};

use super::{Reports, Told};

/// The log.
pub const KMSG: &str = "/dev/kmsg";

/// More than a record can be (bytes): its text is at the most 1024, escaped four times as much, and its
/// dictionary little more.
const RECORD: usize = 16 * 1024;

/// The reading thread; it ends when this does.
#[derive(Debug)]
pub struct Reader(Option<(PipeWriter, JoinHandle<()>)>);

impl Reader {
    /// Reads the log from its beginning, and hands what it tells to `deliver`, until that returns false.
    /// `deliver` gets `None` once all is read that was there at the start.
    ///
    /// # Errors
    /// The log may not be read (it takes `CAP_SYSLOG` where `kernel.dmesg_restrict` is 1), or no thread
    /// can be had.
    pub fn start(
        path: &Path,
        deliver: impl Fn(Option<Told>) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let log = OpenOptions::new()
            .read(true)
            .custom_flags(OFlag::O_NONBLOCK.bits())
            .open(path)?;
        let (end, alive) = io::pipe()?;
        let thread = std::thread::Builder::new()
            .name("kmsg".to_owned())
            .spawn(move || read(&log, &end, &deliver))?;
        Ok(Self(Some((alive, thread))))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some((alive, thread)) = self.0.take() {
            drop(alive);
            let _ = thread.join();
        }
    }
}

fn read(mut log: &File, end: &PipeReader, deliver: &dyn Fn(Option<Told>) -> bool) {
    let mut reports = Reports::default();
    let mut record = vec![0; RECORD];
    let mut caught_up = false;
    loop {
        match log.read(&mut record) {
            Ok(0) => return,
            Ok(length) => {
                let (lost, told) = reports.take(record.get(..length).unwrap_or_default());
                for told in lost.into_iter().chain(told) {
                    if !deliver(Some(told)) {
                        return;
                    }
                }
            }
            Err(error) => match error.raw_os_error().map(Errno::from_raw) {
                Some(Errno::EAGAIN) => {
                    if !caught_up && !deliver(None) {
                        return;
                    }
                    caught_up = true;
                    if wait(log, end) {
                        return;
                    }
                }
                // The next read goes on behind what was overwritten; the numbers tell how much that is.
                // A record that is too long is passed over in the same way.
                Some(Errno::EPIPE | Errno::EINTR | Errno::EINVAL) => {}
                _ => return,
            },
        }
    }
}

/// Waits for a record; whether the end has come instead.
fn wait(log: &File, end: &PipeReader) -> bool {
    let mut ready = [
        PollFd::new(log.as_fd(), PollFlags::POLLIN),
        PollFd::new(end.as_fd(), PollFlags::POLLIN),
    ];
    // An interrupted wait is tried again by the caller.
    let _ = nix::poll::poll(&mut ready, PollTimeout::NONE);
    let [_, end] = ready;
    end.any().unwrap_or(false)
}
