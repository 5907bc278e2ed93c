//! Looks at what the node has left, as soon as the kernel tells of stalls and otherwise in time.
//!
//! Decides when to look and whether what was seen is worth the owner's time; what becomes of it is
//! `eviction`'s. The thread sleeps on a PSI trigger for memory and on the notices of the pods' own limit;
//! without either it looks by time alone. Stalls of I/O say nothing of disk that is left, so they are
//! not watched.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, PipeWriter, Read, Seek, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout};
use rustix::fs::StatVfs;

use super::eviction::facts::{Disk, Facts, Memory, PodsMemory, Space, Tasks, readings};
use super::eviction::pace::{Past, pause};
use super::eviction::{Reading, State};
use super::machine::uptime;
use crate::cgroup::parse;
use crate::model::eviction::{Signal, Threshold};

/// The kernel's pressure file for memory.
const PSI: &str = "/proc/pressure/memory";
/// Tasks that waited for memory for 100 ms in one second; and the same for kernels that grant only windows
/// of two seconds.
const TRIGGERS: [&str; 2] = ["some 100000 1000000", "some 200000 2000000"];
/// The owner is told so often even if there is nothing new, so that it knows that somebody looks: well
/// within the time after which it takes what it knows for stale.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// With less than this part of the memory available, pages that processors keep count too.
const LOW: u64 = 4;
/// The kernel may tell of the pods' limit a hundred times a second: one look in this time is enough.
const APART: Duration = Duration::from_millis(100);

/// Where the figures are.
#[derive(Clone, Debug)]
pub struct Places {
    /// The cgroup of all pods.
    pub pods: PathBuf,
    /// The directory of their files.
    pub files: PathBuf,
    /// That of their logs.
    pub logs: PathBuf,
}

/// The looking thread; it ends with this.
#[derive(Debug)]
pub struct Pressure {
    thread: Option<(PipeWriter, JoinHandle<()>)>,
}

impl Pressure {
    /// Looks from now on. What is seen is handed to `deliver` the first time, and whenever a threshold is
    /// met, was met, or something has become unknown or known, and four times a minute; the thread ends when that returns false.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn start(
        places: Places,
        thresholds: Vec<Threshold>,
        deliver: impl Fn(Facts) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let (end, alive) = io::pipe()?;
        let mut watcher = Watcher::new(places, thresholds);
        let thread = std::thread::Builder::new()
            .name("pressure".to_owned())
            .spawn(move || watcher.run(&end, &deliver))?;
        Ok(Self {
            thread: Some((alive, thread)),
        })
    }
}

impl Drop for Pressure {
    fn drop(&mut self) {
        if let Some((alive, thread)) = self.thread.take() {
            drop(alive);
            let _ = thread.join();
        }
    }
}

struct Watcher {
    places: Places,
    thresholds: Vec<Threshold>,
    /// What the kernel tells of stalls on; or why it does not.
    psi: Result<File, String>,
    /// `memory.events.local` of all pods: it tells when their limit is reached.
    limit: Option<File>,
    last: Option<(Vec<Reading>, Instant)>,
    met_since: Option<Instant>,
    delivered: Option<Instant>,
}

impl Watcher {
    fn new(places: Places, thresholds: Vec<Threshold>) -> Self {
        let psi = trigger(Path::new(PSI));
        if let Err(why) = &psi {
            tracing::warn!(
                "stalls for memory are not told by the kernel, so they are looked for by time alone: {why}"
            );
        }
        Self {
            limit: File::open(places.pods.join("memory.events.local")).ok(),
            places,
            thresholds,
            psi,
            last: None,
            met_since: None,
            delivered: None,
        }
    }

    fn run(&mut self, end: &PipeReader, deliver: &dyn Fn(Facts) -> bool) {
        loop {
            let mut facts = facts(&self.places);
            facts.slow = self.psi.as_ref().err().cloned();
            let (is_news, wait) = self.look(&facts, Instant::now());
            if is_news && !deliver(facts) {
                return;
            }
            let looked = Instant::now();
            if self.sleep(end, wait) {
                return;
            }
            // Notices in a row lead to one look.
            let early = APART.saturating_sub(looked.elapsed());
            if !early.is_zero() && Self::sleep_undisturbed(end, early) {
                return;
            }
        }
    }

    /// Whether the owner has to know, and how long until the next look.
    fn look(&mut self, facts: &Facts, now: Instant) -> (bool, Duration) {
        let seen = readings(facts);
        let was_met = self.met_since.is_some();
        let is_met = seen.iter().any(|reading| {
            let mut thresholds = self.thresholds.iter();
            thresholds.any(|it| reading.meets(it, was_met) == Some(true))
        });
        self.met_since = is_met.then(|| self.met_since.unwrap_or(now));
        let past = Past {
            last: self
                .last
                .take()
                .map(|(seen, at)| (seen, now.duration_since(at))),
            met_for: self.met_since.map(|since| now.duration_since(since)),
        };
        let changed = past
            .last
            .as_ref()
            .is_none_or(|(last, _)| shape(last) != shape(&seen));
        let heard = |at: Instant| now.duration_since(at) < HEARTBEAT;
        let is_news = is_met || was_met || changed || !self.delivered.is_some_and(heard);
        if is_news {
            self.delivered = Some(now);
        }
        let wait = pause(&seen, &self.thresholds, &past);
        self.last = Some((seen, now));
        (is_news, wait)
    }

    /// Sleeps until the kernel tells of something, or for so long. Whether it is over.
    fn sleep(&mut self, end: &PipeReader, wait: Duration) -> bool {
        let mut polled = vec![PollFd::new(end.as_fd(), PollFlags::POLLIN)];
        let files = self.psi.iter().chain(self.limit.iter());
        polled.extend(files.map(|file| PollFd::new(file.as_fd(), PollFlags::POLLPRI)));
        let timeout = PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX);
        // An interrupted sleep is a short one.
        let _ = nix::poll::poll(&mut polled, timeout);
        let told: Vec<_> = polled
            .iter()
            .map(|fd| fd.revents().unwrap_or(PollFlags::empty()))
            .collect();
        drop(polled);
        let mut told = told.into_iter();
        if told.next().is_some_and(|end| !end.is_empty()) {
            return true;
        }
        if self.psi.is_ok()
            && let Some(flags) = told.next()
            && flags.contains(PollFlags::POLLERR)
        {
            tracing::warn!("the kernel tells of no more stalls for memory");
            self.psi = Err("the pressure file is gone".to_owned());
        }
        if let Some(flags) = told.next()
            && !flags.is_empty()
        {
            self.read_again();
        }
        false
    }

    /// Only a read makes the kernel tell of the next event. A cgroup that is gone would tell for ever.
    fn read_again(&mut self) {
        let read = |file: &mut File| {
            file.rewind()?;
            file.read(&mut [0; 512])
        };
        if self.limit.as_mut().is_some_and(|file| read(file).is_err()) {
            self.limit = None;
        }
    }

    fn sleep_undisturbed(end: &PipeReader, wait: Duration) -> bool {
        let mut end = [PollFd::new(end.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX);
        nix::poll::poll(&mut end, timeout).is_ok_and(|told| told > 0)
    }
}

/// Which signals there are and which of them are known: what else is new is none while no threshold is
/// met.
fn shape(readings: &[Reading]) -> Vec<(Signal, &str, bool)> {
    let each = readings.iter();
    each.map(|it| {
        (
            it.signal,
            it.place.as_str(),
            matches!(it.state, State::Unknown(_)),
        )
    })
    .collect()
}

/// A file that polls as urgent when tasks wait for memory for too long.
fn trigger(path: &Path) -> Result<File, String> {
    let mut why = String::new();
    for trigger in TRIGGERS {
        let opened = OpenOptions::new().read(true).write(true).open(path);
        let set = opened.and_then(|mut file| {
            // The kernel wants the final zero in the same write.
            file.write_all(format!("{trigger}\0").as_bytes())?;
            Ok(file)
        });
        match set {
            Ok(file) => return Ok(file),
            Err(error) => why = format!("{}: {error}", path.display()),
        }
    }
    Err(why)
}

/// Reads all that signals are made from.
pub fn facts(places: &Places) -> Facts {
    let text = |path: &str| std::fs::read_to_string(path).ok();
    let at = uptime();
    let mut memory = text("/proc/meminfo").map_or_else(Memory::default, |text| memory(&text));
    if let (Some(available), Some(total)) = (memory.available, memory.total)
        && available < total / LOW
    {
        // Long on a machine of many processors, so it is only read where it may decide.
        let kept = text("/proc/zoneinfo").map_or(0, |text| super::machine::kept_pages(&text));
        let page = u64::try_from(rustix::param::page_size()).unwrap_or(0);
        let kept = kept.saturating_mul(page);
        memory.available = Some(available.saturating_add(kept).min(total));
    }
    Facts {
        at,
        memory,
        pods: pods(&places.pods),
        disks: disks(places),
        tasks: Tasks {
            in_use: text("/proc/loadavg").and_then(|text| super::machine::tasks(&text)),
            pid_max: number(Path::new("/proc/sys/kernel/pid_max")),
            threads_max: number(Path::new("/proc/sys/kernel/threads-max")),
            pods: number(&places.pods.join("pids.current"))
                .zip(number(&places.pods.join("pids.max"))),
        },
        slow: None,
    }
}

fn number(path: &Path) -> Option<u64> {
    parse::number(&std::fs::read_to_string(path).ok()?)
}

fn memory(meminfo: &str) -> Memory {
    let bytes = |key: &str| super::machine::kib_line(meminfo, key).map(|bytes| bytes.0);
    let parts = ["AnonPages", "Cached", "Buffers"].map(bytes);
    Memory {
        total: bytes("MemTotal"),
        available: bytes("MemAvailable"),
        in_use: parts
            .into_iter()
            .try_fold(0_u64, |sum, part| sum.checked_add(part?)),
        inactive_file: bytes("Inactive(file)"),
    }
}

/// `None` too where the limit is `max`.
fn pods(cgroup: &Path) -> Option<PodsMemory> {
    let stat = std::fs::read_to_string(cgroup.join("memory.stat")).ok()?;
    let value = |key| parse::value(&stat, key).unwrap_or(0);
    let cache = value("file").saturating_sub(value("shmem"));
    Some(PodsMemory {
        limit: number(&cgroup.join("memory.max"))?,
        current: number(&cgroup.join("memory.current"))?,
        reclaimable: cache.saturating_add(value("slab_reclaimable")),
        inactive_file: value("inactive_file"),
    })
}

/// Each file system once, that of the files first.
fn disks(places: &Places) -> Vec<Disk> {
    use std::os::unix::fs::MetadataExt;
    let look = |place: &Path, has_files| Disk {
        place: place.display().to_string(),
        has_files,
        space: rustix::fs::statvfs(place)
            .map(|found| space(&found))
            .map_err(|error| format!("{}: {error}", place.display())),
    };
    let device = |path: &Path| std::fs::metadata(path).map(|metadata| metadata.dev());
    let mut disks = vec![look(&places.files, true)];
    match (device(&places.files), device(&places.logs)) {
        (Ok(files), Ok(logs)) if files == logs => {}
        _ => disks.push(look(&places.logs, false)),
    }
    disks
}

fn space(found: &StatVfs) -> Space {
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Space {
        bytes: bytes(found.f_blocks),
        bytes_available: bytes(found.f_bavail),
        inodes: found.f_files,
        inodes_free: found.f_ffree,
    }
}

#[cfg(test)]
mod tests;
