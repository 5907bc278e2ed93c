//! CPU amounts, as Kubernetes counts them and as the kernel takes them.
//!
//! Decides ranges and spellings; how a request becomes a weight is decided in `translation::cpu`.

use std::fmt;
use std::str::FromStr;

use super::Limit;

/// Thousandths of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MilliCpu(pub u64);

impl MilliCpu {
    /// No CPU.
    pub const ZERO: Self = Self(0);

    /// The sum, or the largest amount.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, or zero.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for MilliCpu {
    /// Kubernetes' spelling: `250m`, `2`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_multiple_of(1000) {
            write!(f, "{}", self.0 / 1000)
        } else {
            write!(f, "{}m", self.0)
        }
    }
}

/// Microseconds (µs).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(pub u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A value of `cpu.weight`: 1 to 10000, the kernel's default is 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuWeight(u16);

impl CpuWeight {
    /// The least weight, that of pods which asked for nothing.
    pub const MIN: Self = Self(1);
    /// The greatest weight.
    pub const MAX: Self = Self(10_000);
    /// What the kernel gives a new cgroup.
    pub const DEFAULT: Self = Self(100);

    /// The weight, brought into 1..=10000.
    pub fn clamped(weight: u64) -> Self {
        Self(u16::try_from(weight.clamp(1, 10_000)).unwrap_or(10_000))
    }

    /// The number written into the file.
    pub fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for CpuWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for CpuWeight {
    type Err = ();

    /// Reads what the kernel prints. `0` (a cgroup with `cpu.idle`) and anything above 10000 is
    /// refused.
    fn from_str(text: &str) -> Result<Self, ()> {
        match text.parse::<u16>() {
            Ok(weight @ 1..=10_000) => Ok(Self(weight)),
            _ => Err(()),
        }
    }
}

/// A value of `cpu.max`: at most `quota` of run time in each `period`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CpuMax {
    /// Run time per period; the kernel refuses less than 1000 µs.
    pub quota: Limit<Micros>,
    /// Length of a period, 1000 to 1,000,000 µs.
    pub period: Micros,
}

impl CpuMax {
    /// The kernel's default period.
    pub const DEFAULT_PERIOD: Micros = Micros(100_000);
    /// The least quota the kernel takes (`min_cfs_quota_period`, 1 ms).
    pub const MIN_QUOTA: Micros = Micros(1000);

    /// No bound, with the given period.
    pub const fn unlimited(period: Micros) -> Self {
        Self {
            quota: Limit::Max,
            period,
        }
    }
}

impl fmt::Display for CpuMax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.quota, self.period)
    }
}

impl FromStr for CpuMax {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (quota, period) = text.split_once(' ').ok_or(())?;
        let micros = |text: &str| text.parse().map(Micros).map_err(|_| ());
        Ok(Self {
            quota: if quota == "max" {
                Limit::Max
            } else {
                Limit::At(micros(quota)?)
            },
            period: micros(period)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_max_reads_back_what_it_prints() {
        for text in ["max 100000", "50000 100000", "1000 1000000"] {
            assert_eq!(text.parse::<CpuMax>().unwrap().to_string(), text);
        }
        for bad in ["", "max", "1 2 3", "-1 100000", "50000"] {
            assert!(bad.parse::<CpuMax>().is_err(), "{bad}");
        }
    }

    #[test]
    fn weights_stay_in_range() {
        assert_eq!(CpuWeight::clamped(0), CpuWeight::MIN);
        assert_eq!(CpuWeight::clamped(u64::MAX), CpuWeight::MAX);
        assert!("0".parse::<CpuWeight>().is_err());
        assert!("10001".parse::<CpuWeight>().is_err());
        assert_eq!("35".parse::<CpuWeight>().unwrap().get(), 35);
    }
}
