//! An interface file and its content as one value.
//!
//! Decides how a value is spelt, read and rounded by the kernel. It must never guess: a file whose
//! text it does not understand is no setting.

mod compare;

use std::fmt;
use std::str::FromStr;

use super::Controller;
use crate::units::{Bytes, CpuMax, CpuSet, CpuWeight, HugePageSize, Limit, Micros, PageSize};

/// A file of a cgroup that the project writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InterfaceFile {
    /// `cpu.weight`
    CpuWeight,
    /// `cpu.max`
    CpuMax,
    /// `cpu.max.burst`, Linux 5.14
    CpuMaxBurst,
    /// `memory.min`
    MemoryMin,
    /// `memory.low`
    MemoryLow,
    /// `memory.high`: throttles what grows beyond it.
    MemoryHigh,
    /// `memory.max`
    MemoryMax,
    /// `memory.swap.max`; absent where the kernel has no swap accounting.
    MemorySwapMax,
    /// `memory.oom.group`, Linux 4.19
    MemoryOomGroup,
    /// `hugetlb.SIZE.max`: counted at the page fault.
    HugetlbMax(HugePageSize),
    /// `hugetlb.SIZE.rsvd.max`: counted when memory is mapped, Linux 5.7.
    HugetlbRsvdMax(HugePageSize),
    /// `pids.max`
    PidsMax,
    /// `cpuset.cpus`
    CpusetCpus,
    /// `cpuset.mems`
    CpusetMems,
}

impl InterfaceFile {
    /// The controller that provides the file.
    pub fn controller(self) -> Controller {
        match self {
            Self::CpuWeight | Self::CpuMax | Self::CpuMaxBurst => Controller::Cpu,
            Self::MemoryMin
            | Self::MemoryLow
            | Self::MemoryHigh
            | Self::MemoryMax
            | Self::MemorySwapMax
            | Self::MemoryOomGroup => Controller::Memory,
            Self::HugetlbMax(_) | Self::HugetlbRsvdMax(_) => Controller::Hugetlb,
            Self::PidsMax => Controller::Pids,
            Self::CpusetCpus | Self::CpusetMems => Controller::Cpuset,
        }
    }

    /// The files of a cgroup on a node with these sizes of huge page, in a fixed order.
    pub fn all(huge_page_sizes: &[HugePageSize]) -> Vec<Self> {
        let mut files = vec![
            Self::CpuWeight,
            Self::CpuMax,
            Self::CpuMaxBurst,
            Self::MemoryMin,
            Self::MemoryLow,
            Self::MemoryHigh,
            Self::MemoryMax,
            Self::MemorySwapMax,
            Self::MemoryOomGroup,
        ];
        for &size in huge_page_sizes {
            files.push(Self::HugetlbMax(size));
            files.push(Self::HugetlbRsvdMax(size));
        }
        files.extend([Self::PidsMax, Self::CpusetCpus, Self::CpusetMems]);
        files
    }
}

impl fmt::Display for InterfaceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CpuWeight => f.write_str("cpu.weight"),
            Self::CpuMax => f.write_str("cpu.max"),
            Self::CpuMaxBurst => f.write_str("cpu.max.burst"),
            Self::MemoryMin => f.write_str("memory.min"),
            Self::MemoryLow => f.write_str("memory.low"),
            Self::MemoryHigh => f.write_str("memory.high"),
            Self::MemoryMax => f.write_str("memory.max"),
            Self::MemorySwapMax => f.write_str("memory.swap.max"),
            Self::MemoryOomGroup => f.write_str("memory.oom.group"),
            Self::HugetlbMax(size) => write!(f, "hugetlb.{size}.max"),
            Self::HugetlbRsvdMax(size) => write!(f, "hugetlb.{size}.rsvd.max"),
            Self::PidsMax => f.write_str("pids.max"),
            Self::CpusetCpus => f.write_str("cpuset.cpus"),
            Self::CpusetMems => f.write_str("cpuset.mems"),
        }
    }
}

impl FromStr for InterfaceFile {
    type Err = ();

    /// Reads a file name; names of files the project does not write are refused.
    fn from_str(name: &str) -> Result<Self, ()> {
        let hugetlb = || {
            let rest = name.strip_prefix("hugetlb.")?;
            let size = |text| HugePageSize::from_kernel_name(text);
            match rest.strip_suffix(".rsvd.max") {
                Some(text) => size(text).map(Self::HugetlbRsvdMax),
                None => size(rest.strip_suffix(".max")?).map(Self::HugetlbMax),
            }
        };
        Self::all(&[])
            .into_iter()
            .find(|file| file.to_string() == name)
            .or_else(hugetlb)
            .ok_or(())
    }
}

/// What an interface file holds or shall hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Share of CPU among siblings.
    CpuWeight(CpuWeight),
    /// Bound of CPU time.
    CpuMax(CpuMax),
    /// Run time that was not used and can be, beyond the quota of a period. At most the quota.
    CpuMaxBurst(Micros),
    /// Memory that is never reclaimed.
    MemoryMin(Limit<Bytes>),
    /// Memory that is reclaimed last.
    MemoryLow(Limit<Bytes>),
    /// Bound of memory beyond which growth is throttled.
    MemoryHigh(Limit<Bytes>),
    /// Bound of memory; above it the OOM killer.
    MemoryMax(Limit<Bytes>),
    /// Bound of swap.
    MemorySwapMax(Limit<Bytes>),
    /// Whether an OOM kill takes all processes of the cgroup.
    MemoryOomGroup(bool),
    /// Bound of huge pages in use, in bytes.
    HugetlbMax(HugePageSize, Limit<Bytes>),
    /// Bound of huge pages reserved, in bytes.
    HugetlbRsvdMax(HugePageSize, Limit<Bytes>),
    /// Bound of tasks: processes and threads.
    PidsMax(Limit<u64>),
    /// CPUs that its processes may run on; none: those of the cgroup above.
    CpusetCpus(CpuSet),
    /// NUMA nodes that its processes get memory from; none: those of the cgroup above.
    CpusetMems(CpuSet),
}

impl Setting {
    /// The file that holds it.
    pub fn file(&self) -> InterfaceFile {
        match self {
            Self::CpuWeight(_) => InterfaceFile::CpuWeight,
            Self::CpuMax(_) => InterfaceFile::CpuMax,
            Self::CpuMaxBurst(_) => InterfaceFile::CpuMaxBurst,
            Self::MemoryMin(_) => InterfaceFile::MemoryMin,
            Self::MemoryLow(_) => InterfaceFile::MemoryLow,
            Self::MemoryHigh(_) => InterfaceFile::MemoryHigh,
            Self::MemoryMax(_) => InterfaceFile::MemoryMax,
            Self::MemorySwapMax(_) => InterfaceFile::MemorySwapMax,
            Self::MemoryOomGroup(_) => InterfaceFile::MemoryOomGroup,
            Self::HugetlbMax(size, _) => InterfaceFile::HugetlbMax(*size),
            Self::HugetlbRsvdMax(size, _) => InterfaceFile::HugetlbRsvdMax(*size),
            Self::PidsMax(_) => InterfaceFile::PidsMax,
            Self::CpusetCpus(_) => InterfaceFile::CpusetCpus,
            Self::CpusetMems(_) => InterfaceFile::CpusetMems,
        }
    }

    /// The text to write, without a line end.
    pub fn value(&self) -> String {
        match self {
            Self::CpuWeight(weight) => weight.to_string(),
            Self::CpuMax(max) => max.to_string(),
            Self::CpuMaxBurst(burst) => burst.to_string(),
            Self::MemoryMin(bytes)
            | Self::MemoryLow(bytes)
            | Self::MemoryHigh(bytes)
            | Self::MemoryMax(bytes)
            | Self::MemorySwapMax(bytes)
            | Self::HugetlbMax(_, bytes)
            | Self::HugetlbRsvdMax(_, bytes) => bytes.to_string(),
            Self::MemoryOomGroup(group) => u8::from(*group).to_string(),
            Self::PidsMax(tasks) => tasks.to_string(),
            Self::CpusetCpus(set) | Self::CpusetMems(set) => set.to_string(),
        }
    }

    /// Reads the content of `file`. `None` if the text is none that the kernel prints there: it has one
    /// spelling for each value, without plus signs and leading zeros. A new cgroup on Linux 6.18 has
    /// hugetlb limits of 2^63 − 4096, which is none: it is read as `max`.
    pub fn parse(file: InterfaceFile, text: &str) -> Option<Self> {
        let text = text.trim_end();
        let setting = Self::read(file, text).filter(|setting| setting.value() == text)?;
        Some(match setting {
            Self::HugetlbMax(size, bytes) => {
                Self::HugetlbMax(size, countable(bytes, size.bytes().0))
            }
            Self::HugetlbRsvdMax(size, bytes) => {
                Self::HugetlbRsvdMax(size, countable(bytes, size.bytes().0))
            }
            other => other,
        })
    }

    /// The value of a text, however it is spelt.
    fn read(file: InterfaceFile, text: &str) -> Option<Self> {
        let bytes = || text.parse::<Limit<Bytes>>().ok();
        Some(match file {
            InterfaceFile::CpuWeight => Self::CpuWeight(text.parse().ok()?),
            InterfaceFile::CpuMax => Self::CpuMax(text.parse().ok()?),
            InterfaceFile::CpuMaxBurst => Self::CpuMaxBurst(Micros(text.parse().ok()?)),
            InterfaceFile::MemoryMin => Self::MemoryMin(bytes()?),
            InterfaceFile::MemoryLow => Self::MemoryLow(bytes()?),
            InterfaceFile::MemoryHigh => Self::MemoryHigh(bytes()?),
            InterfaceFile::MemoryMax => Self::MemoryMax(bytes()?),
            InterfaceFile::MemorySwapMax => Self::MemorySwapMax(bytes()?),
            InterfaceFile::MemoryOomGroup => Self::MemoryOomGroup(match text {
                "0" => false,
                "1" => true,
                _ => return None,
            }),
            InterfaceFile::HugetlbMax(size) => Self::HugetlbMax(size, bytes()?),
            InterfaceFile::HugetlbRsvdMax(size) => Self::HugetlbRsvdMax(size, bytes()?),
            InterfaceFile::PidsMax => Self::PidsMax(text.parse().ok()?),
            InterfaceFile::CpusetCpus => Self::CpusetCpus(text.parse().ok()?),
            InterfaceFile::CpusetMems => Self::CpusetMems(text.parse().ok()?),
        })
    }

    /// What the kernel will show after this was written: sizes go down to whole pages, and from the
    /// counter's last whole page on a size becomes `max` (`mm/page_counter.c`,
    /// `mm/hugetlb_cgroup.c`, Linux 6.12).
    #[must_use]
    pub fn kept(self, page: PageSize) -> Self {
        let memory = |limit| countable(limit, page.bytes()).map(|bytes| page.floor(bytes));
        let huge = |size: HugePageSize, limit| {
            countable(limit, size.bytes().0).map(|bytes| size.floor(bytes))
        };
        match self {
            Self::MemoryMin(bytes) => Self::MemoryMin(memory(bytes)),
            Self::MemoryLow(bytes) => Self::MemoryLow(memory(bytes)),
            Self::MemoryHigh(bytes) => Self::MemoryHigh(memory(bytes)),
            Self::MemoryMax(bytes) => Self::MemoryMax(memory(bytes)),
            Self::MemorySwapMax(bytes) => Self::MemorySwapMax(memory(bytes)),
            Self::HugetlbMax(size, bytes) => Self::HugetlbMax(size, huge(size, bytes)),
            Self::HugetlbRsvdMax(size, bytes) => Self::HugetlbRsvdMax(size, huge(size, bytes)),
            other => other,
        }
    }

    /// What a new cgroup has in `file`.
    pub fn initial(file: InterfaceFile) -> Self {
        match file {
            InterfaceFile::CpuWeight => Self::CpuWeight(CpuWeight::DEFAULT),
            InterfaceFile::CpuMax => Self::CpuMax(CpuMax::unlimited(CpuMax::DEFAULT_PERIOD)),
            InterfaceFile::CpuMaxBurst => Self::CpuMaxBurst(Micros(0)),
            InterfaceFile::MemoryMin => Self::MemoryMin(Limit::At(Bytes::ZERO)),
            InterfaceFile::MemoryLow => Self::MemoryLow(Limit::At(Bytes::ZERO)),
            InterfaceFile::MemoryHigh => Self::MemoryHigh(Limit::Max),
            InterfaceFile::MemoryMax => Self::MemoryMax(Limit::Max),
            InterfaceFile::MemorySwapMax => Self::MemorySwapMax(Limit::Max),
            InterfaceFile::MemoryOomGroup => Self::MemoryOomGroup(false),
            InterfaceFile::HugetlbMax(size) => Self::HugetlbMax(size, Limit::Max),
            InterfaceFile::HugetlbRsvdMax(size) => Self::HugetlbRsvdMax(size, Limit::Max),
            InterfaceFile::PidsMax => Self::PidsMax(Limit::Max),
            InterfaceFile::CpusetCpus => Self::CpusetCpus(CpuSet::EMPTY),
            InterfaceFile::CpusetMems => Self::CpusetMems(CpuSet::EMPTY),
        }
    }
}

/// `max` in place of a size that a counter in units of `unit` bytes cannot hold.
fn countable(limit: Limit<Bytes>, unit: u64) -> Limit<Bytes> {
    // `PAGE_COUNTER_MAX` of 64-bit kernels: the last whole unit before 2^63.
    let end = (1_u64 << 63).saturating_sub(unit);
    match limit {
        Limit::At(Bytes(bytes)) if bytes < end => limit,
        _ => Limit::Max,
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.file(), self.value())
    }
}

#[cfg(test)]
mod tests;
