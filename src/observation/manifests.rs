//! The files of a directory of manifests: looked at when the kernel tells of a change, and from time to time.
//!
//! Decides which files may be read at all (regular ones of root that nobody else can write) and when one
//! is at rest; never what is in them. It never follows a symlink below the directory, which itself is the
//! administrator's and may be one.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, statat};

/// How a manifest's name ends.
const SUFFIXES: [&str; 3] = [".yaml", ".yml", ".json"];
/// A manifest may be this long (bytes).
const MAX_LENGTH: u64 = 1 << 20;
/// A directory may hold so many.
const MAX_FILES: usize = 256;
/// A file that was changed a shorter time ago may be half written.
const REST: Duration = Duration::from_millis(500);
/// How long to gather notices before the files are looked at.
const GATHER: Duration = Duration::from_millis(50);
/// How often to look where no notice can come: there is no directory.
const MISSING: Duration = Duration::from_secs(5);
/// How often to look though no notice came: the kubelet's `fileCheckFrequency`.
const EVERY: Duration = Duration::from_secs(20);

/// A file of the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name in the directory.
    pub name: String,
    /// What is in it.
    pub content: Content,
}

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// This, and it is at rest.
    Text(Arc<[u8]>),
    /// It must not be read, and what would be right; or it cannot be.
    Refused(String),
    /// It is perhaps being written.
    Unsettled,
}

/// All files in the order of their names; or why none of them can be known.
pub type Seen = Result<Vec<Found>, String>;

/// Looks at a directory as long as this is held.
#[derive(Debug)]
pub struct Manifests {
    thread: Option<(PipeWriter, JoinHandle<()>)>,
}

impl Manifests {
    /// Hands what is in the directory to `deliver`, and again after each change, on a thread of its own,
    /// which ends when `deliver` returns false, and with this. A directory that is not there is empty.
    ///
    /// # Errors
    /// No inotify instance or no thread can be had.
    pub fn start(dir: &Path, deliver: impl Fn(Seen) -> bool + Send + 'static) -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        let (end, alive) = io::pipe()?;
        let mut looker = Looker {
            dir: dir.to_owned(),
            inotify,
            watch: None,
            known: BTreeMap::new(),
        };
        let thread = std::thread::Builder::new()
            .name("manifests".to_owned())
            .spawn(move || looker.run(&end, &deliver))?;
        Ok(Self {
            thread: Some((alive, thread)),
        })
    }
}

impl Drop for Manifests {
    fn drop(&mut self) {
        if let Some((alive, thread)) = self.thread.take() {
            drop(alive);
            let _ = thread.join();
        }
    }
}

/// What tells one state of a file from every other: once at rest, a file cannot change without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    file: (u64, u64),
    size: u64,
    access: (u32, u32, u32),
    changed: (i64, i64),
}

impl Mark {
    fn of(metadata: &Metadata) -> Self {
        Self {
            file: (metadata.dev(), metadata.ino()),
            size: metadata.size(),
            access: (metadata.mode(), metadata.uid(), metadata.gid()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Whether the last change was long ago. One that is to come was made before the clock was set back.
    fn is_at_rest(&self) -> bool {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let (seconds, nanos) = self.changed;
        let (Ok(now), Ok(seconds), Ok(nanos)) = (now, seconds.try_into(), nanos.try_into()) else {
            return true;
        };
        now.checked_sub(Duration::new(seconds, nanos))
            .is_none_or(|age| age >= REST)
    }
}

struct Looker {
    dir: PathBuf,
    inotify: Inotify,
    watch: Option<WatchDescriptor>,
    known: BTreeMap<String, (Mark, Content)>,
}

impl Looker {
    fn run(&mut self, end: &PipeReader, deliver: &dyn Fn(Seen) -> bool) {
        let mut told = None;
        loop {
            let seen = self.look();
            let unsettled = |found: &Found| found.content == Content::Unsettled;
            let pause = match &seen {
                Ok(files) if files.iter().any(unsettled) => REST,
                Ok(_) if self.watch.is_some() => EVERY,
                _ => MISSING,
            };
            if told.as_ref() != Some(&seen) {
                if !deliver(seen.clone()) {
                    return;
                }
                told = Some(seen);
            }
            if self.wait(end, pause) || has_ended(end, GATHER) {
                return;
            }
            // What all of it is about is looked at anyway.
            while self.inotify.read_events().is_ok_and(|all| !all.is_empty()) {}
        }
    }

    /// Waits for a notice, but no longer than this; true at the end.
    fn wait(&self, end: &PipeReader, most: Duration) -> bool {
        let notices = PollFd::new(self.inotify.as_fd(), PollFlags::POLLIN);
        let end = PollFd::new(end.as_fd(), PollFlags::POLLIN);
        let mut ready = [notices, end];
        let most = PollTimeout::try_from(most).unwrap_or(PollTimeout::MAX);
        let _ = nix::poll::poll(&mut ready, most);
        let [_, end] = ready;
        end.any().unwrap_or(false)
    }

    /// All files as they are now.
    fn look(&mut self) -> Seen {
        let path = self.dir.display().to_string();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = match openat(CWD, &self.dir, flags, Mode::empty()) {
            Ok(dir) => File::from(dir),
            Err(rustix::io::Errno::NOENT) => {
                self.follow(None);
                return Ok(Vec::new());
            }
            Err(errno) => return Err(format!("cannot open {path}: {errno}")),
        };
        // Before the first look, or a change in between would be missed.
        self.follow(Some(&dir));
        let metadata = dir.metadata();
        let metadata = metadata.map_err(|error| format!("cannot look at {path}: {error}"))?;
        if let Some(why) = distrust(&metadata) {
            return Err(format!("{path} is not read: {why}"));
        }
        let dir = OwnedFd::from(dir);
        let names = names(&dir).map_err(|error| format!("cannot list {path}: {error}"))?;
        if names.len() > MAX_FILES {
            return Err(format!(
                "{path} is not read: it holds more than {MAX_FILES} manifests"
            ));
        }
        let mut known = BTreeMap::new();
        for name in names {
            let last = self.known.remove(&name);
            if let Some(now) = read(&dir, &name, last) {
                known.insert(name, now);
            }
        }
        self.known = known;
        let found = self.known.iter().map(|(name, (_, content))| Found {
            name: name.clone(),
            content: content.clone(),
        });
        Ok(found.collect())
    }

    /// Notices come of this directory and no other; another one may have taken its name.
    fn follow(&mut self, dir: Option<&File>) {
        let flags = AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_MODIFY
            | AddWatchFlags::IN_ATTRIB
            | AddWatchFlags::IN_CREATE
            | AddWatchFlags::IN_DELETE
            | AddWatchFlags::IN_MOVE
            | AddWatchFlags::IN_DELETE_SELF
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_ONLYDIR;
        let watch = dir.and_then(|dir| {
            let path = format!("/proc/self/fd/{}", dir.as_raw_fd());
            // Without one it is looked at every few seconds.
            self.inotify.add_watch(path.as_str(), flags).ok()
        });
        if let Some(last) = self.watch.filter(|last| Some(*last) != watch) {
            let _ = self.inotify.rm_watch(last);
        }
        self.watch = watch;
    }
}

/// Whether the end comes within this time.
fn has_ended(end: &PipeReader, most: Duration) -> bool {
    let mut ready = [PollFd::new(end.as_fd(), PollFlags::POLLIN)];
    let most = PollTimeout::try_from(most).unwrap_or(PollTimeout::ZERO);
    loop {
        match nix::poll::poll(&mut ready, most) {
            Err(Errno::EINTR) => {}
            ready => return ready.unwrap_or(0) > 0,
        }
    }
}

/// The names of manifests, sorted. What an editor keeps beside them begins with a dot or ends otherwise.
fn names(dir: &OwnedFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        let fits = SUFFIXES.iter().any(|suffix| name.ends_with(suffix));
        if fits && !name.starts_with('.') && names.len() <= MAX_FILES {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// A file as it is now, unless it is as it was; `None` if it is gone.
fn read(dir: &OwnedFd, name: &str, last: Option<(Mark, Content)>) -> Option<(Mark, Content)> {
    match try_read(dir, name, last) {
        Ok(now) => Some(now),
        Err(rustix::io::Errno::NOENT) => None,
        Err(errno) => Some(refused(format!("cannot be read: {errno}"))),
    }
}

fn try_read(
    dir: &OwnedFd,
    name: &str,
    last: Option<(Mark, Content)>,
) -> rustix::io::Result<(Mark, Content)> {
    // To open what is no file could do something.
    let stat = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Symlink => return Ok(refused("is a symlink: a regular file is right".into())),
        _ => return Ok(refused("is no regular file".into())),
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(dir, name, flags, Mode::empty())?);
    let look = || file.metadata().map_err(|_| rustix::io::Errno::IO);
    let metadata = look()?;
    let mark = Mark::of(&metadata);
    if let Some((_, content)) =
        last.filter(|(last, content)| *last == mark && *content != Content::Unsettled)
    {
        return Ok((mark, content));
    }
    if !metadata.is_file() {
        return Ok(refused("is no regular file".into()));
    }
    if let Some(why) = distrust(&metadata) {
        return Ok((mark, Content::Refused(format!("is not read: {why}"))));
    }
    if metadata.size() > MAX_LENGTH {
        let why = format!("is longer than {MAX_LENGTH} bytes");
        return Ok((mark, Content::Refused(why)));
    }
    if !mark.is_at_rest() {
        return Ok((mark, Content::Unsettled));
    }
    let mut text = Vec::new();
    let read = (&file).take(MAX_LENGTH).read_to_end(&mut text);
    read.map_err(|_| rustix::io::Errno::IO)?;
    if Mark::of(&look()?) != mark {
        return Ok((mark, Content::Unsettled));
    }
    Ok((mark, Content::Text(text.into())))
}

fn refused(why: String) -> (Mark, Content) {
    let none = Mark {
        file: (0, 0),
        size: 0,
        access: (0, 0, 0),
        changed: (0, 0),
    };
    (none, Content::Refused(why))
}

/// Why what somebody other than root could have made is not to be trusted. Its own user is root to an
/// agent that is run by another one.
fn distrust(metadata: &Metadata) -> Option<String> {
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Some(format!("it belongs to user {owner}: root is right"));
    }
    (mode & 0o022 != 0)
        .then(|| format!("others may write to it (mode {mode:04o}): chmod go-w makes it right"))
}

#[cfg(test)]
mod tests;
