//! Hints from the kernel: "look at this cgroup".
//!
//! One inotify watch per cgroup directory tells of other writers and of the kernel's own notices; the
//! latter come only while `memory.events` and `cgroup.events` are held open after a first read
//! (measured on Linux 6.1 and 6.12). A hint is never a fact: the receiver reads the files again.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};

use crate::cgroup::{CgroupPath, InterfaceFile};

/// What a hint is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// A counter or state file of the kernel: `memory.events`, `cgroup.events`, `pids.events` …
    Events,
    /// A file of values: somebody wrote it, perhaps we did.
    Setting(InterfaceFile),
    /// `cgroup.subtree_control`: so did somebody who switches controllers.
    Controllers,
}

/// A raw notice, on its way from the watching thread to the one that knows the paths.
#[derive(Clone, Debug)]
pub enum Notice {
    /// Something happened in the watched directory.
    At(WatchDescriptor, Hint),
    /// The cgroup of this name in the watched directory was removed. The kernel does not tell the
    /// watch of a cgroup itself that it is gone (seen on Linux 6.1 and 6.12).
    Removed(WatchDescriptor, String),
    /// Notices were lost: look everywhere.
    Overflow,
}

/// The watches on all cgroups.
#[derive(Debug)]
pub struct Watch {
    inotify: Arc<Inotify>,
    /// The watching thread, and what keeps it going while it is open.
    thread: Option<(PipeWriter, JoinHandle<()>)>,
    mount: PathBuf,
    watched: HashMap<CgroupPath, Held>,
    paths: HashMap<WatchDescriptor, CgroupPath>,
}

/// A watch and the files that must stay open for it.
#[derive(Debug)]
struct Held {
    watch: WatchDescriptor,
    _files: Vec<File>,
}

/// The files whose notices the kernel sends only while they are open.
const NOTIFYING: [&str; 3] = ["memory.events", "cgroup.events", "pids.events"];

impl Watch {
    /// Watches cgroups below the directory of the top cgroup. Each notice is handed to `deliver` on
    /// a thread of its own, which ends when `deliver` returns false, and with this.
    ///
    /// # Errors
    /// No inotify instance or no thread can be had.
    pub fn start(
        top: &Path,
        deliver: impl Fn(Notice) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let inotify = Arc::new(Inotify::init(
            InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK,
        )?);
        let source = Arc::clone(&inotify);
        let (end, alive) = io::pipe()?;
        let thread = std::thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || read_notices(&source, &end, &deliver))?;
        Ok(Self {
            inotify,
            thread: Some((alive, thread)),
            mount: top.to_owned(),
            watched: HashMap::new(),
            paths: HashMap::new(),
        })
    }

    /// Watches a cgroup; a second call for the same one does nothing. Whether it was not watched
    /// before: what happened until now is then unknown.
    ///
    /// # Errors
    /// The cgroup is gone, or the kernel's number of watches or files is used up.
    pub fn add(&mut self, path: &CgroupPath) -> io::Result<bool> {
        if self.watched.contains_key(path) {
            return Ok(false);
        }
        let dir = self.mount.join(path.as_str());
        let watch = self.inotify.add_watch(
            &dir,
            AddWatchFlags::IN_MODIFY
                | AddWatchFlags::IN_DELETE
                | AddWatchFlags::IN_ONLYDIR
                | AddWatchFlags::IN_DONT_FOLLOW,
        )?;
        let files = NOTIFYING
            .into_iter()
            .filter_map(|name| open_once(&dir.join(name)))
            .collect();
        let held = Held {
            watch,
            _files: files,
        };
        self.watched.insert(path.clone(), held);
        self.paths.insert(watch, path.clone());
        Ok(true)
    }

    /// Stops watching a cgroup and all below it.
    pub fn remove_within(&mut self, above: &CgroupPath) {
        self.watched.retain(|path, held| {
            if !path.is_within(above) {
                return true;
            }
            // The kernel has dropped the watch already if the directory is gone.
            let _ = self.inotify.rm_watch(held.watch);
            self.paths.remove(&held.watch);
            false
        });
    }

    /// The cgroup of a notice; `None` if it is no longer watched.
    pub fn path(&self, watch: WatchDescriptor) -> Option<&CgroupPath> {
        self.paths.get(&watch)
    }

    /// All cgroups that are watched.
    pub fn paths(&self) -> impl Iterator<Item = &CgroupPath> {
        self.watched.keys()
    }
}

/// Opens a file and reads it once, which arms its notices.
fn open_once(path: &Path) -> Option<File> {
    let mut file = File::open(path).ok()?;
    let mut text = [0; 512];
    let _ = file.read(&mut text);
    Some(file)
}

impl Drop for Watch {
    /// The number of inotify instances of a user is small: this one is free at once.
    fn drop(&mut self) {
        if let Some((alive, thread)) = self.thread.take() {
            drop(alive);
            let _ = thread.join();
        }
    }
}

/// Hands notices on until the other end of `end` is closed.
fn read_notices(inotify: &Inotify, end: &PipeReader, deliver: &dyn Fn(Notice) -> bool) {
    loop {
        match inotify.read_events() {
            Ok(events) => {
                for notice in events.into_iter().filter_map(notice) {
                    if !deliver(notice) {
                        return;
                    }
                }
            }
            Err(Errno::EAGAIN) => {
                let notices = PollFd::new(inotify.as_fd(), PollFlags::POLLIN);
                let end = PollFd::new(end.as_fd(), PollFlags::POLLIN);
                let mut ready = [notices, end];
                // An interrupted wait is tried again by the loop.
                let _ = nix::poll::poll(&mut ready, PollTimeout::NONE);
                let [_, end] = ready;
                if end.any().unwrap_or(false) {
                    return;
                }
            }
            Err(Errno::EINTR) => {}
            Err(_) => return,
        }
    }
}

fn notice(event: InotifyEvent) -> Option<Notice> {
    if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
        return Some(Notice::Overflow);
    }
    let name = event.name?.into_string().ok()?;
    if event.mask.contains(AddWatchFlags::IN_MODIFY) {
        return hint(&name).map(|hint| Notice::At(event.wd, hint));
    }
    let removed = event.mask.contains(AddWatchFlags::IN_DELETE);
    removed.then_some(Notice::Removed(event.wd, name))
}

/// What a written file means; most others, such as `cgroup.procs`, mean nothing for what is enforced.
fn hint(name: &str) -> Option<Hint> {
    if name.split('.').any(|part| part == "events") {
        return Some(Hint::Events);
    }
    if name == "cgroup.subtree_control" {
        return Some(Hint::Controllers);
    }
    name.parse().ok().map(Hint::Setting)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn writes_are_noticed_by_directory_and_kind() {
        let dir = tempfile::tempdir().unwrap();
        let (send, receive) = mpsc::channel();
        let mut watch = Watch::start(dir.path(), move |notice| send.send(notice).is_ok()).unwrap();
        let pod = CgroupPath::top().child("pod1").unwrap();
        assert!(watch.add(&pod).is_err(), "no such directory");
        std::fs::create_dir(dir.path().join("pod1")).unwrap();
        assert!(watch.add(&pod).unwrap());
        assert!(!watch.add(&pod).unwrap());
        for (file, expected) in [
            ("pids.max", Hint::Setting(InterfaceFile::PidsMax)),
            ("memory.events", Hint::Events),
            ("cgroup.subtree_control", Hint::Controllers),
        ] {
            // One that means nothing comes before.
            std::fs::write(dir.path().join("pod1/cgroup.procs"), "1").unwrap();
            std::fs::write(dir.path().join("pod1").join(file), "1").unwrap();
            match receive.recv_timeout(Duration::from_secs(10)).unwrap() {
                Notice::At(at, hint) => {
                    assert_eq!((watch.path(at), hint), (Some(&pod), expected), "{file}");
                }
                other => panic!("{other:?}"),
            }
            while receive.try_recv().is_ok() {}
        }
        std::fs::create_dir(dir.path().join("pod1/app")).unwrap();
        std::fs::remove_dir(dir.path().join("pod1/app")).unwrap();
        match receive.recv_timeout(Duration::from_secs(10)).unwrap() {
            Notice::Removed(at, name) => {
                assert_eq!((watch.path(at), name.as_str()), (Some(&pod), "app"));
            }
            other => panic!("{other:?}"),
        }
        watch.remove_within(&CgroupPath::top());
        assert_eq!(watch.paths().count(), 0);
    }

    #[test]
    fn a_watch_that_is_gone_holds_no_instance() {
        let dir = tempfile::tempdir().unwrap();
        // More than a user may have at once.
        for _ in 0..1000 {
            drop(Watch::start(dir.path(), |_| true).unwrap());
        }
    }
}
