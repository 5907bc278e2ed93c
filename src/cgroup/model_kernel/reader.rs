//! The figures of the model as they are when a reader is handed out.
//!
//! Time and pressure are not modelled, so CPU time is what a test says and pressure is absent.

use std::collections::BTreeMap;

use super::{Charged, ModelKernel};
use crate::cgroup::sample::{Cpu, Memory, Pids, Sample};
use crate::cgroup::{CgroupPath, Controller, Descendants, KernelError, Pid, Reader};
use crate::units::Bytes;

/// What every cgroup showed at one moment, and how many were dying.
#[derive(Debug)]
pub(super) struct Snapshot(BTreeMap<CgroupPath, (Sample, Vec<Pid>)>, Option<u64>);

impl Reader for Snapshot {
    fn sample(&self, path: &CgroupPath) -> Result<Option<Sample>, KernelError> {
        Ok(self.0.get(path).map(|(sample, _)| sample.clone()))
    }

    fn descendants(&self, path: &CgroupPath) -> Result<Option<Descendants>, KernelError> {
        let below = self.0.keys().filter(|at| at.is_within(path));
        let live = below.count().checked_sub(1);
        // Where the dead hang is not modelled: all below the top.
        let dying = self.1.filter(|_| path.is_top());
        Ok(live.map(|live| Descendants {
            live: u64::try_from(live).ok(),
            dying,
        }))
    }

    fn processes(&self, path: &CgroupPath) -> Vec<Pid> {
        let within = self.0.iter().filter(|(at, _)| at.is_within(path));
        within.flat_map(|(_, (_, pids))| pids).copied().collect()
    }
}

impl ModelKernel {
    pub(super) fn snapshot(&self) -> Snapshot {
        let paths = self.cgroups.keys();
        Snapshot(
            paths
                .map(|path| (path.clone(), (self.sample(path), self.occupants(path))))
                .collect(),
            self.dying,
        )
    }

    fn sample(&self, path: &CgroupPath) -> Sample {
        let has = self.controllers_of(path);
        let Some(cgroup) = self.cgroups.get(path) else {
            return Sample::default();
        };
        let count = |n: usize| u64::try_from(n).ok();
        let mut sample = Sample {
            cpu: Cpu {
                usage_usec: Some(cgroup.cpu_usec),
                ..Cpu::default()
            },
            ..Sample::default()
        };
        if has.contains(Controller::Cpu) {
            sample.cpu.throttled_usec = Some(0);
            sample.cpu.periods = Some(0);
            sample.cpu.throttled_periods = Some(0);
        }
        if has.contains(Controller::Memory) {
            let current = self.usage(path, Charged::Memory);
            let within = self.cgroups.iter().filter(|(at, _)| at.is_within(path));
            let cache = within.fold(Bytes::ZERO, |sum, (_, cgroup)| {
                sum.saturating_add(cgroup.cache)
            });
            sample.memory = Memory {
                current: Some(current),
                peak: Some(cgroup.peak),
                swap: Some(Bytes::ZERO),
                anon: Some(current.saturating_sub(cache)),
                file: Some(cache),
                inactive_file: Some(cache),
                active_file: Some(Bytes::ZERO),
                ..Memory::default()
            };
        }
        if has.contains(Controller::Pids) {
            sample.pids = Pids {
                current: count(self.inhabitants(path).len()),
                refused: Some(0),
                ..Pids::default()
            };
        }
        sample.pids.processes = count(self.occupants(path).len());
        if has.contains(Controller::Hugetlb) {
            let sizes = self.huge_page_sizes.iter();
            sample.huge_pages = sizes
                .map(|size| (*size, self.usage(path, Charged::Huge(*size))))
                .collect();
        }
        sample
    }
}
