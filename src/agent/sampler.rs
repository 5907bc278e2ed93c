//! Reads figures for those who ask, so that all who ask within a second share one read.
//!
//! Nothing is read while nobody asks. The owner only says which cgroups there are; reading happens on a
//! thread for slow work, and only askers wait for one another. Whoever needs rates and finds no earlier
//! round that serves waits for a second one: ten periods of `cpu.max`, because over less a rate says
//! more about where in a period it began than about use.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use super::input::Handle;
use super::request::{Refusal, Request};
use super::walks::{Files, Walks};
use crate::observation::eviction::facts::readings;
use crate::observation::machine;
use crate::observation::pressure::{Places, facts};
use crate::observation::storage;
use crate::report::stats::summary::{Disk, DiskUse, FileSystem};
use crate::report::stats::{Census, Readings, Round, SignalFigure, Timed};

/// An answer this old is read again; and the least time over which a rate is taken.
const FRESH: Duration = Duration::from_secs(1);
/// An earlier round that is older says nothing of the present.
const STALE: Duration = Duration::from_secs(60);
/// What the file systems count is asked for again after this time: it is a call for each part of each pod.
const DISK_FRESH: Duration = Duration::from_secs(10);
/// Who asks waits so long for a walk of files that no file system counts.
pub(super) const PATIENCE: Duration = Duration::from_millis(30);

/// What was read last.
#[derive(Debug, Default)]
pub(super) struct Sampler {
    readings: Mutex<Option<(Instant, Readings)>>,
    disk: Mutex<Option<(Instant, Arc<Disk>)>>,
}

impl Handle {
    /// The figures of the node and all its pods, at most a second old; with `rates` also those of an
    /// earlier round, for which the first to ask waits a second.
    ///
    /// # Errors
    /// The owner is stopping.
    pub async fn readings(&self, rates: bool) -> Result<Readings, Refusal> {
        let mut last = self.sampler().readings.lock().await;
        loop {
            let age = last.as_ref().map(|(at, _)| at.elapsed());
            match (age, &*last) {
                (Some(age), Some((_, readings))) if age < FRESH => {
                    if !rates || readings.earlier.is_some() {
                        return Ok(readings.clone());
                    }
                    tokio::time::sleep(FRESH.saturating_sub(age)).await;
                }
                _ => {
                    let earlier = last.take();
                    let earlier = earlier
                        .filter(|(at, _)| at.elapsed() < STALE)
                        .map(|(_, readings)| readings.later);
                    let census = self.ask(Request::Census).await?;
                    let (census, later) = apart(move || {
                        let round = read(&census);
                        (census, round)
                    })
                    .await?;
                    let readings = Readings {
                        census: *census,
                        later: Arc::new(later),
                        earlier,
                    };
                    *last = Some((Instant::now(), readings));
                }
            }
        }
    }

    /// What the pods' files take of the disk, at most ten seconds old.
    ///
    /// # Errors
    /// The system has no thread for it.
    pub async fn disk(&self, readings: &Readings) -> Result<Arc<Disk>, Refusal> {
        let mut last = self.sampler().disk.lock().await;
        if let Some((at, disk)) = &*last
            && at.elapsed() < DISK_FRESH
        {
            return Ok(Arc::clone(disk));
        }
        let census = readings.census.clone();
        let walks = Arc::clone(self.walks());
        let gather = move || disk(&census, &walks, Instant::now() + PATIENCE);
        let disk = Arc::new(apart(gather).await?);
        *last = Some((Instant::now(), Arc::clone(&disk)));
        Ok(disk)
    }
}

pub(super) async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let done = spawn_blocking(work).await;
    done.map_err(|error| Refusal::internal(error.to_string()))
}

/// Reads all; a cgroup that went away is left out.
pub(super) fn read(census: &Census) -> Round {
    let mut cgroups = BTreeMap::new();
    let levels = census.levels.iter().map(|level| &level.path);
    let pods = census.pods.iter().flat_map(|pod| {
        let containers = pod.containers.iter().map(|container| &container.path);
        std::iter::once(&pod.path).chain(containers)
    });
    for path in levels.chain(pods) {
        match census.reader.sample(path) {
            Ok(Some(sample)) => drop(cgroups.insert(path.clone(), timed(sample))),
            Ok(None) => {}
            Err(error) => tracing::warn!("{error}"),
        }
    }
    let mut descendants = BTreeMap::new();
    for level in &census.levels {
        match census.reader.descendants(&level.path) {
            Ok(Some(counted)) => drop(descendants.insert(level.path.clone(), counted)),
            Ok(None) => {}
            Err(error) => tracing::warn!("{error}"),
        }
    }
    Round {
        descendants,
        node: timed(machine::sample()),
        signals: signals(census),
        devices: machine::devices(),
        cgroups,
    }
}

/// The signals that are known now.
fn signals(census: &Census) -> Vec<SignalFigure> {
    let places = Places {
        pods: census.cgroups.clone(),
        files: census.disk.clone(),
        logs: census.logs.clone(),
    };
    let known = readings(&facts(&places)).into_iter().filter_map(|reading| {
        let figures = reading.figures()?;
        Some(SignalFigure {
            signal: reading.signal.to_string(),
            path: reading.place.clone(),
            available: figures.available,
            capacity: figures.capacity,
        })
    });
    known.collect()
}

/// A sample that was read just now.
fn timed(sample: crate::cgroup::Sample) -> Timed {
    Timed {
        at: machine::uptime(),
        time: Timestamp::now(),
        sample,
    }
}

/// What the pods' files take, as far as that is known by `until`.
pub(super) fn disk(census: &Census, walks: &Walks, until: Instant) -> Disk {
    let (mut spaces, mut logs) = (BTreeMap::new(), BTreeMap::new());
    for pod in &census.pods {
        for place in &pod.files {
            let files = Files {
                uid: &pod.uid,
                place,
                cgroup: &pod.path,
                reader: &census.reader,
            };
            if let Some(used) = walks.measure(&files, until).measured {
                spaces.insert((pod.uid.clone(), place.space.clone()), used);
            }
        }
        for container in &pod.containers {
            let directory = container.logs.as_deref();
            // A few files: not worth a project of their own.
            if let Some(Ok(used)) = directory.map(|directory| storage::usage(&[directory])) {
                let used = DiskUse {
                    bytes: used.bytes,
                    inodes: used.inodes,
                };
                logs.insert((pod.uid.clone(), container.name.clone()), used);
            }
        }
    }
    let file_system = rustix::fs::statvfs(&census.disk).ok();
    Disk {
        time: Timestamp::now(),
        file_system: file_system.map(|all| {
            let bytes = |blocks: u64| blocks.saturating_mul(all.f_frsize);
            FileSystem {
                capacity: bytes(all.f_blocks),
                available: bytes(all.f_bavail),
                used: bytes(all.f_blocks.saturating_sub(all.f_bfree)),
                inodes: all.f_files,
                inodes_free: all.f_ffree,
            }
        }),
        spaces,
        logs,
    }
}
