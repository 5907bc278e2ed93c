//! Copying a program's output to its log, in one thread, until the program ends.
//!
//! The end of the program decides, not the end of its output: a grandchild that holds the pipe open
//! must not keep the exit from being recorded. And the pipes are always emptied, so that a log which
//! cannot be written never stops the program.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{ioctl_fionread, retry_on_intr};

use super::log::LogFile;
use crate::runtime::cri::{Cutter, Stream};
use crate::sys::exec::{Step, outcome};

/// How long after the end of the program its children may still write.
const GRACE: Duration = Duration::from_millis(100);
/// The buffer of a read: a pipe's usual capacity (bytes).
const BUFFER: usize = 64 * 1024;

/// Two pipes and the log that they lead to.
pub(super) struct Copier {
    log: LogFile,
    pipes: [Pipe; 2],
    buffer: Vec<u8>,
}

/// The reading end of a pipe.
struct Pipe {
    /// `None` once the other end is closed.
    file: Option<File>,
    cutter: Cutter,
    /// Bytes that must be read before the copier may leave.
    owed: u64,
}

impl Copier {
    pub(super) fn new(log: LogFile, stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Self> {
        let pipes = [
            Pipe::new(stdout, Stream::Stdout)?,
            Pipe::new(stderr, Stream::Stderr)?,
        ];
        Ok(Self {
            log,
            pipes,
            buffer: vec![0; BUFFER],
        })
    }

    /// Copies until the process of `pidfd` has ended. `verdict` tells whether it has become the
    /// program: if so `runs` is called, if not the failed step is returned in the end.
    pub(super) fn run(
        &mut self,
        pidfd: &OwnedFd,
        verdict: OwnedFd,
        runs: impl FnOnce(),
    ) -> io::Result<Option<(Step, io::Error)>> {
        // A child killed before it became the program ends the verdict as well: no need to ask twice.
        self.copy_until(&verdict)?;
        let failure = outcome(&verdict)?;
        drop(verdict);
        if failure.is_none() {
            runs();
        }
        self.copy_until(pidfd)?;
        Ok(failure)
    }

    /// Copies what the ended program left in the pipes, and what its children add within
    /// [`GRACE`]. Returns the bytes of output that the log could not take.
    pub(super) fn drain(&mut self) -> io::Result<u64> {
        for pipe in &mut self.pipes {
            pipe.owed = pipe.waiting();
        }
        let deadline = Instant::now() + GRACE;
        while self.pipes.iter().any(|pipe| pipe.file.is_some()) {
            let rest = deadline.saturating_duration_since(Instant::now());
            if rest.is_zero() && self.pipes.iter().all(|pipe| pipe.owed == 0) {
                break;
            }
            self.copy_once(None, Timespec::try_from(rest).ok().as_ref())?;
        }
        for pipe in &mut self.pipes {
            pipe.cutter.finish(|head, text| self.log.add(head, text));
        }
        self.log.flush();
        Ok(self.log.dropped())
    }

    /// Copies until `other` is readable.
    fn copy_until(&mut self, other: &OwnedFd) -> io::Result<()> {
        while !self.copy_once(Some(other), None)? {}
        Ok(())
    }

    /// Waits for the pipes and for `other`, reads each pipe that is ready once, and says whether
    /// the other is.
    fn copy_once(
        &mut self,
        other: Option<&OwnedFd>,
        timeout: Option<&Timespec>,
    ) -> io::Result<bool> {
        let poll_in = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let ready: Vec<bool> = {
            let open = self.pipes.iter().filter_map(|pipe| pipe.file.as_ref());
            let mut fds: Vec<_> = open
                .map(AsFd::as_fd)
                .chain(other.map(AsFd::as_fd))
                .map(poll_in)
                .collect();
            retry_on_intr(|| poll(&mut fds, timeout))?;
            fds.iter().map(|fd| !fd.revents().is_empty()).collect()
        };
        let mut ready = ready.into_iter();
        for pipe in self.pipes.iter_mut().filter(|pipe| pipe.file.is_some()) {
            if ready.next() == Some(true) {
                pipe.copy(&mut self.log, &mut self.buffer);
            }
        }
        self.log.flush();
        Ok(ready.next() == Some(true))
    }
}

impl Pipe {
    fn new(fd: OwnedFd, stream: Stream) -> io::Result<Self> {
        // Our end only: the program's end stays as programs expect it.
        fcntl_setfl(&fd, fcntl_getfl(&fd)? | OFlags::NONBLOCK)?;
        Ok(Self {
            file: Some(File::from(fd)),
            cutter: Cutter::new(stream),
            owed: 0,
        })
    }

    /// Bytes that wait in the pipe.
    fn waiting(&self) -> u64 {
        let file = self.file.as_ref();
        file.map_or(0, |file| ioctl_fionread(file).unwrap_or(0))
    }

    /// Copies what one read gives.
    fn copy(&mut self, log: &mut LogFile, buffer: &mut [u8]) {
        let Some(file) = &mut self.file else { return };
        match retry_on_intr(|| rustix::io::read(&*file, &mut *buffer)) {
            Ok(count) if count > 0 => {
                log.at(Timestamp::now());
                let read = buffer.get(..count).unwrap_or_default();
                self.cutter.feed(read, |head, text| log.add(head, text));
                let count = u64::try_from(count).unwrap_or(u64::MAX);
                self.owed = self.owed.saturating_sub(count);
            }
            Err(rustix::io::Errno::AGAIN) => {}
            // The end, or an error that will not go away.
            _ => {
                self.file = None;
                self.owed = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::pipe::pipe;

    use super::*;
    use crate::runtime::record::LogBounds;

    /// Somebody holds the pipes open and keeps silent: what is in them is read, and no more awaited.
    #[test]
    fn draining_reads_what_is_there_and_ends() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("0.log");
        let ((stdout, out), (stderr, err)) = (pipe().unwrap(), pipe().unwrap());
        let log = LogFile::open(&path, LogBounds::default()).unwrap();
        let mut copier = Copier::new(log, stdout, stderr).unwrap();
        // More than one read takes.
        rustix::pipe::fcntl_setpipe_size(&out, 4 * BUFFER).unwrap();
        rustix::io::write(&out, &vec![b'\n'; 3 * BUFFER]).unwrap();
        rustix::io::write(&err, b"unfinished").unwrap();
        assert_eq!(copier.drain().unwrap(), 0);
        let text = std::fs::read_to_string(&path).unwrap();
        let count = |head: &str| text.lines().filter(|line| line.contains(head)).count();
        assert_eq!(count(" stdout F "), 3 * BUFFER);
        assert_eq!(count(" stderr P unfinished"), 1);
    }
}
