//! Every figure that a cgroup's files show, read for reports and metrics.
//!
//! Apart from `Counters`, which are the few that the owner decides by and reads at each hint: these
//! are some twenty files, read only when somebody asks, on the asker's thread. Parsing is pure, and a
//! figure whose file or key is not there is absent, never zero. It must never judge a figure.

use super::parse::{self, Pressure};
use crate::units::{Bytes, HugePageSize};

/// The figures of one cgroup at one moment; the node as a whole is the cgroup above all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// What tells this cgroup from a later one at the same path: the inode of its directory.
    pub identity: Option<u64>,
    /// `cpu.stat`
    pub cpu: Cpu,
    /// The memory files.
    pub memory: Memory,
    /// `hugetlb.SIZE.current` by size.
    pub huge_pages: Vec<(HugePageSize, Bytes)>,
    /// `max` of `hugetlb.SIZE.events` by size: how often the bound was met.
    pub huge_pages_refused: Vec<(HugePageSize, u64)>,
    /// The pids files.
    pub pids: Pids,
    /// `io.stat` by device; empty while none was used.
    pub io: Vec<(Device, Io)>,
    /// `cpu.pressure`; absent where the kernel keeps none (`psi=0`).
    pub cpu_pressure: Option<Pressure>,
    /// `memory.pressure`
    pub memory_pressure: Option<Pressure>,
    /// `io.pressure`
    pub io_pressure: Option<Pressure>,
}

/// `cpu.stat`: times in µs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// All CPU time.
    pub usage_usec: Option<u64>,
    /// In user mode.
    pub user_usec: Option<u64>,
    /// In the kernel.
    pub system_usec: Option<u64>,
    /// Periods of `cpu.max` in which something ran.
    pub periods: Option<u64>,
    /// Those in which the quota ran out.
    pub throttled_periods: Option<u64>,
    /// Time in which something wanted to run and might not.
    pub throttled_usec: Option<u64>,
    /// Periods that used saved quota (Linux 5.14).
    pub burst_periods: Option<u64>,
    /// Time run on saved quota.
    pub burst_usec: Option<u64>,
}

/// Memory, in bytes but for the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// `memory.current`
    pub current: Option<Bytes>,
    /// `memory.peak`, Linux 5.19
    pub peak: Option<Bytes>,
    /// `memory.high`, which is not ours to write: absent where it is `max`.
    pub high: Option<Bytes>,
    /// `memory.swap.current`
    pub swap: Option<Bytes>,
    /// `anon` of `memory.stat`: what no file stands behind.
    pub anon: Option<Bytes>,
    /// `file`: page cache, tmpfs included.
    pub file: Option<Bytes>,
    /// `file_mapped`
    pub mapped: Option<Bytes>,
    /// `shmem`
    pub shmem: Option<Bytes>,
    /// `inactive_file`: the part of the page cache that goes first.
    pub inactive_file: Option<Bytes>,
    /// `active_file`
    pub active_file: Option<Bytes>,
    /// `kernel`, Linux 5.18
    pub kernel: Option<Bytes>,
    /// `slab_reclaimable`
    pub slab_reclaimable: Option<Bytes>,
    /// `pgfault`: faults, the major ones included.
    pub faults: Option<u64>,
    /// `pgmajfault`: faults that waited for a disk.
    pub major_faults: Option<u64>,
    /// `high` of `memory.events`
    pub high_events: Option<u64>,
    /// `max` of `memory.events`: how often usage was held at a limit.
    pub max_events: Option<u64>,
}

impl Memory {
    /// What cannot be taken back easily, as Kubernetes counts it: current without inactive file pages.
    pub fn working_set(&self) -> Option<Bytes> {
        Some(self.current?.saturating_sub(self.inactive_file?))
    }
}

/// Tasks: threads count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pids {
    /// `pids.current`
    pub current: Option<u64>,
    /// `pids.peak`, Linux 6.1
    pub peak: Option<u64>,
    /// `max` of `pids.events`: forks refused.
    pub refused: Option<u64>,
    /// Processes in the cgroup itself: lines of `cgroup.procs`.
    pub processes: Option<u64>,
}

/// A block device by its major and minor number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Device(pub u32, pub u32);

impl std::str::FromStr for Device {
    type Err = std::num::ParseIntError;

    /// `MAJOR:MINOR`
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (major, minor) = text.split_once(':').unwrap_or((text, ""));
        Ok(Self(major.parse()?, minor.parse()?))
    }
}

/// What a cgroup did with a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Io {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
}

impl Sample {
    /// Made from the texts of a cgroup's files, which `text` gets by name; `None` is a file that is
    /// not there.
    ///
    /// # Errors
    /// The first that `text` has.
    pub fn read<E>(
        sizes: &[HugePageSize],
        mut text: impl FnMut(&str) -> Result<Option<String>, E>,
    ) -> Result<Self, E> {
        let mut number = |name: &str| -> Result<Option<u64>, E> {
            Ok(text(name)?.as_deref().and_then(parse::number))
        };
        let current = number("memory.current")?.map(Bytes);
        let peak = number("memory.peak")?.map(Bytes);
        let high = number("memory.high")?.map(Bytes);
        let swap = number("memory.swap.current")?.map(Bytes);
        let tasks = (number("pids.current")?, number("pids.peak")?);
        let mut huge_pages = Vec::new();
        for size in sizes {
            let used = number(&format!("hugetlb.{size}.current"))?;
            huge_pages.extend(used.map(|bytes| (*size, Bytes(bytes))));
        }
        let mut huge_pages_refused = Vec::new();
        for size in sizes {
            let events = text(&format!("hugetlb.{size}.events"))?.unwrap_or_default();
            let met = parse::value(&events, "max");
            huge_pages_refused.extend(met.map(|met| (*size, met)));
        }
        let stat = text("memory.stat")?.unwrap_or_default();
        let events = text("memory.events")?.unwrap_or_default();
        let refused = text("pids.events")?.unwrap_or_default();
        Ok(Self {
            identity: None,
            cpu: cpu(&text("cpu.stat")?.unwrap_or_default()),
            memory: Memory {
                current,
                peak,
                high,
                swap,
                high_events: parse::value(&events, "high"),
                max_events: parse::value(&events, "max"),
                ..memory(&stat)
            },
            huge_pages,
            huge_pages_refused,
            pids: Pids {
                current: tasks.0,
                peak: tasks.1,
                refused: parse::value(&refused, "max"),
                processes: None,
            },
            io: text("io.stat")?.as_deref().map_or_else(Vec::new, parse_io),
            cpu_pressure: text("cpu.pressure")?.as_deref().and_then(pressure),
            memory_pressure: text("memory.pressure")?.as_deref().and_then(pressure),
            io_pressure: text("io.pressure")?.as_deref().and_then(pressure),
        })
    }
}

/// A pressure file; `None` where it says nothing.
pub fn pressure(text: &str) -> Option<Pressure> {
    Some(parse::pressure(text)).filter(|pressure| *pressure != Pressure::default())
}

fn cpu(text: &str) -> Cpu {
    let value = |key| parse::value(text, key);
    Cpu {
        usage_usec: value("usage_usec"),
        user_usec: value("user_usec"),
        system_usec: value("system_usec"),
        periods: value("nr_periods"),
        throttled_periods: value("nr_throttled"),
        throttled_usec: value("throttled_usec"),
        burst_periods: value("nr_bursts"),
        burst_usec: value("burst_usec"),
    }
}

fn memory(stat: &str) -> Memory {
    let bytes = |key| parse::value(stat, key).map(Bytes);
    Memory {
        anon: bytes("anon"),
        file: bytes("file"),
        mapped: bytes("file_mapped"),
        shmem: bytes("shmem"),
        inactive_file: bytes("inactive_file"),
        active_file: bytes("active_file"),
        kernel: bytes("kernel"),
        slab_reclaimable: bytes("slab_reclaimable"),
        faults: parse::value(stat, "pgfault"),
        major_faults: parse::value(stat, "pgmajfault"),
        ..Memory::default()
    }
}

/// `MAJOR:MINOR KEY=VALUE …` for each device; a line without these keys is of no device that did anything.
fn parse_io(text: &str) -> Vec<(Device, Io)> {
    let device = |line: &str| {
        let (device, fields) = line.split_once(' ')?;
        let value = |key: &str| {
            let mut fields = fields.split_ascii_whitespace();
            let value = fields.find_map(|field| field.strip_prefix(key)?.strip_prefix('='));
            value.and_then(parse::number)
        };
        let io = Io {
            read_bytes: value("rbytes")?,
            written_bytes: value("wbytes")?,
            reads: value("rios")?,
            writes: value("wios")?,
        };
        Some((device.parse().ok()?, io))
    };
    text.lines().filter_map(device).collect()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    fn read(files: &[(&str, &str)]) -> Sample {
        let sizes = [HugePageSize::TWO_MIB, HugePageSize::ONE_GIB];
        let Ok(sample) = Sample::read(&sizes, |name| {
            let text = files.iter().find(|(file, _)| *file == name);
            Ok::<_, Infallible>(text.map(|(_, text)| (*text).to_owned()))
        });
        sample
    }

    #[test]
    fn a_whole_cgroup_is_read() {
        let sample = read(&[
            ("memory.current", "10485760\n"),
            ("memory.peak", "20971520\n"),
            ("memory.high", "33554432\n"),
            ("memory.swap.current", "4096\n"),
            (
                "memory.stat",
                "anon 4194304\nfile 6291456\nkernel 8192\nfile_mapped 12288\nshmem 1\ninactive_file 2097152\n\
                 active_file 3\nslab_reclaimable 5\npgfault 77\npgmajfault 7\n",
            ),
            ("memory.events", "low 0\nhigh 2\nmax 31\noom 2\n"),
            ("hugetlb.2MB.current", "2097152\n"),
            ("pids.current", "3\n"),
            ("pids.peak", "9\n"),
            ("pids.events", "max 4\n"),
            (
                "cpu.stat",
                "usage_usec 100\nuser_usec 60\nsystem_usec 40\nnr_periods 10\nnr_throttled 4\n\
                 throttled_usec 900\nnr_bursts 1\nburst_usec 5\n",
            ),
            (
                "io.stat",
                "8:0 rbytes=4096 wbytes=512 rios=1 wios=2 dbytes=0 dios=0\n8:16 rbytes=4 wbytes=5 rios=6 wios=7\n",
            ),
            (
                "cpu.pressure",
                "some avg10=1.00 avg60=0.00 avg300=0.00 total=12\n",
            ),
        ]);
        assert_eq!(
            sample.cpu,
            Cpu {
                usage_usec: Some(100),
                user_usec: Some(60),
                system_usec: Some(40),
                periods: Some(10),
                throttled_periods: Some(4),
                throttled_usec: Some(900),
                burst_periods: Some(1),
                burst_usec: Some(5),
            }
        );
        let memory = sample.memory;
        assert_eq!(memory.working_set(), Some(Bytes::mib(8)));
        assert_eq!(memory.high, Some(Bytes::mib(32)));
        assert_eq!(memory.anon, Some(Bytes::mib(4)));
        assert_eq!(memory.file, Some(Bytes::mib(6)));
        assert_eq!((memory.faults, memory.major_faults), (Some(77), Some(7)));
        assert_eq!((memory.high_events, memory.max_events), (Some(2), Some(31)));
        assert_eq!(
            sample.huge_pages,
            [(HugePageSize::TWO_MIB, Bytes::mib(2))],
            "a size without a file is absent"
        );
        let pids = (sample.pids.current, sample.pids.peak, sample.pids.refused);
        assert_eq!(pids, (Some(3), Some(9), Some(4)));
        let io = |read_bytes, written_bytes, reads, writes| Io {
            read_bytes,
            written_bytes,
            reads,
            writes,
        };
        let expected = [
            (Device(8, 0), io(4096, 512, 1, 2)),
            (Device(8, 16), io(4, 5, 6, 7)),
        ];
        assert_eq!(sample.io, expected);
        let some = sample.cpu_pressure.and_then(|pressure| pressure.some);
        assert_eq!(some.map(|stall| stall.total_usec), Some(12));
        assert_eq!(sample.memory_pressure, None);
    }

    #[test]
    fn what_is_not_there_is_absent() {
        assert_eq!(read(&[]), Sample::default());
        // Without a device, and with psi=0 as some kernels show it.
        let silent = read(&[("io.stat", ""), ("cpu.pressure", "")]);
        assert_eq!(silent, Sample::default());
        let lines = "8:0 \n8:16 rbytes=1\nx rbytes=1 wbytes=1 rios=1 wios=1\n";
        let half = read(&[("io.stat", lines)]);
        assert_eq!(half.io, [], "half a line is no figure");
    }

    #[test]
    fn the_working_set_needs_both_figures_and_is_never_below_nothing() {
        for (current, inactive, expected) in [
            (Some(5), Some(2), Some(3)),
            // The two files are not read in the same moment.
            (Some(2), Some(5), Some(0)),
            (Some(2), None, None),
            (None, Some(5), None),
        ] {
            let memory = Memory {
                current: current.map(Bytes),
                inactive_file: inactive.map(Bytes),
                ..Memory::default()
            };
            assert_eq!(memory.working_set(), expected.map(Bytes));
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(?s).{0,300}") {
            let all = Sample::read(&[HugePageSize::TWO_MIB], |_| Ok::<_, Infallible>(Some(text.clone())));
            prop_assert!(all.is_ok());
        }
    }
}
