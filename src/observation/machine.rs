//! The node as a whole, in the figures of a cgroup: the root of all cgroups shows only some of them.
//!
//! CPU time is that of `/proc/stat`, idle and waiting left out. Memory in use is what is not free, so
//! the working set is what is neither free nor inactive page cache. Nothing here is kept.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use jiff::Timestamp;

use crate::cgroup::parse;
use crate::cgroup::sample::{Cpu, Device, Memory, Pids, Sample, pressure};
use crate::units::Bytes;

/// The figures now; what cannot be read is absent.
pub fn sample() -> Sample {
    let text = |file: &str| fs::read_to_string(file).ok();
    let pressure_of = |file: &str| text(file).as_deref().and_then(pressure);
    let ticks = rustix::param::clock_ticks_per_second();
    Sample {
        identity: None,
        cpu: text("/proc/stat").map_or_else(Cpu::default, |text| cpu(&text, ticks)),
        memory: Memory {
            faults: text("/proc/vmstat").and_then(|text| parse::value(&text, "pgfault")),
            major_faults: text("/proc/vmstat").and_then(|text| parse::value(&text, "pgmajfault")),
            ..text("/proc/meminfo").map_or_else(Memory::default, |text| memory(&text))
        },
        pids: Pids {
            current: text("/proc/loadavg").and_then(|text| tasks(&text)),
            ..Pids::default()
        },
        cpu_pressure: pressure_of("/proc/pressure/cpu"),
        memory_pressure: pressure_of("/proc/pressure/memory"),
        io_pressure: pressure_of("/proc/pressure/io"),
        ..Sample::default()
    }
}

/// The block devices by number.
pub fn devices() -> BTreeMap<Device, String> {
    fs::read_to_string("/proc/partitions").map_or_else(|_| BTreeMap::new(), |text| named(&text))
}

/// `MAJOR MINOR BLOCKS NAME`, below a head.
fn named(partitions: &str) -> BTreeMap<Device, String> {
    let lines = partitions.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let device = Device(words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some((device, words.nth(1)?.to_owned()))
    });
    lines.collect()
}

/// A clock that nobody sets: the time since the machine was started, without sleep.
pub fn uptime() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::try_from(now).unwrap_or_default()
}

/// When the machine was started.
pub fn booted() -> Option<Timestamp> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let seconds = parse::value(&text, "btime")?;
    Timestamp::from_second(i64::try_from(seconds).ok()?).ok()
}

/// The first line of `/proc/stat`, in ticks: user, nice, system, idle, iowait, irq, softirq, steal; then
/// the time of guests, which is in user and nice already. What was stolen nobody here used.
fn cpu(stat: &str, ticks: u64) -> Cpu {
    let read = || {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let fields: Option<Vec<_>> = line.split_whitespace().map(parse::number).collect();
        let fields = fields?;
        let micros = |places: &[usize]| {
            let sum = places
                .iter()
                .map(|place| fields.get(*place).copied())
                .sum::<Option<u64>>()?;
            sum.checked_mul(1_000_000)?.checked_div(ticks)
        };
        let (user, kernel) = (micros(&[0, 1])?, micros(&[2, 5, 6])?);
        Some(Cpu {
            usage_usec: user.checked_add(kernel),
            user_usec: Some(user),
            system_usec: Some(kernel),
            ..Cpu::default()
        })
    };
    read().unwrap_or_default()
}

/// `/proc/meminfo`.
fn memory(meminfo: &str) -> Memory {
    let bytes = |key: &str| kib_line(meminfo, key);
    let difference = |all: &str, part: &str| Some(bytes(all)?.saturating_sub(bytes(part)?));
    Memory {
        current: difference("MemTotal", "MemFree"),
        swap: difference("SwapTotal", "SwapFree"),
        anon: bytes("AnonPages"),
        file: bytes("Cached"),
        mapped: bytes("Mapped"),
        shmem: bytes("Shmem"),
        inactive_file: bytes("Inactive(file)"),
        active_file: bytes("Active(file)"),
        slab_reclaimable: bytes("SReclaimable"),
        ..Memory::default()
    }
}

/// A line of `/proc/meminfo`.
pub(super) fn kib_line(meminfo: &str, key: &str) -> Option<Bytes> {
    let mut lines = meminfo.lines();
    let line = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    let kib = parse::number(line.trim().strip_suffix(" kB")?)?;
    kib.checked_mul(1024).map(Bytes)
}

/// Free pages that processors keep for themselves: the `count` of each page set in `/proc/zoneinfo`.
pub fn kept_pages(zoneinfo: &str) -> u64 {
    let counts = zoneinfo.lines().filter_map(|line| {
        let count = line.trim().strip_prefix("count:")?;
        parse::number(count.trim())
    });
    counts.fold(0, u64::saturating_add)
}

/// Tasks, threads included: the number behind the slash of `/proc/loadavg`.
pub(super) fn tasks(loadavg: &str) -> Option<u64> {
    let (_, all) = loadavg.split_whitespace().nth(3)?.split_once('/')?;
    parse::number(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proc_files_are_figures_of_a_cgroup() {
        let stat = "cpu  100 20 30 4000 50 6 7 8 9 10\ncpu0 1 2 3\nbtime 1700000000\n";
        let cpu = cpu(stat, 100);
        assert_eq!(cpu.user_usec, Some(1_200_000));
        assert_eq!(cpu.system_usec, Some(430_000));
        assert_eq!(cpu.usage_usec, Some(1_630_000));
        let memory = memory(
            "MemTotal:  1000 kB\nMemFree:  400 kB\nInactive(file):  100 kB\nSwapTotal: 8 kB\nSwapFree: 5 kB\n",
        );
        assert_eq!(memory.current, Some(Bytes(600 * 1024)));
        assert_eq!(memory.working_set(), Some(Bytes(500 * 1024)));
        assert_eq!(memory.swap, Some(Bytes(3 * 1024)));
        assert_eq!(memory.anon, None, "a line that is not there is absent");
        assert_eq!(tasks("0.1 0.2 0.3 2/345 678\n"), Some(345));
    }

    #[test]
    fn pages_that_processors_keep_are_summed() {
        let text = "Node 0, zone    DMA32\n  pages free     1000\n  pagesets\n    cpu: 0\n\
                    \x20             count:    1553\n              high:     1797\n    cpu: 1\n\
                    \x20             count:    7\n  node_unreclaimable:  0\n\
                    Node 0, zone   Normal\n  pagesets\n    cpu: 0\n              count: 40\n";
        assert_eq!(kept_pages(text), 1600);
        assert_eq!(kept_pages("count: x\ncount:\n"), 0);
    }

    #[test]
    fn devices_have_names() {
        let text = "major minor  #blocks  name\n\n 259        0    4194304 nvme0n1\n   8       16  1 sdb\n 8 x\n";
        let expected = [(Device(8, 16), "sdb"), (Device(259, 0), "nvme0n1")];
        let found = named(text);
        let found: Vec<_> = found
            .iter()
            .map(|(device, name)| (*device, &**name))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_no_proc_file_has_no_figures() {
        for text in ["", "cpu", "cpu  1 2 x", "cpu  1 2 3", "MemTotal: 5\n"] {
            assert_eq!(cpu(text, 100), Cpu::default(), "{text}");
            assert_eq!(memory(text), Memory::default(), "{text}");
            assert_eq!(tasks(text), None, "{text}");
        }
        assert_eq!(cpu("cpu  1 2 3 4 5 6 7 8", 0), Cpu::default());
    }

    #[test]
    fn this_machine_has_figures() {
        let sample = sample();
        assert!(sample.cpu.usage_usec > Some(0));
        assert!(sample.memory.working_set() > Some(Bytes::mib(1)));
        assert!(booted().is_some_and(|time| time < Timestamp::now()));
    }
}
