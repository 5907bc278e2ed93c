//! Bytes, pages and huge pages.
//!
//! Decides how the kernel rounds sizes and how huge page sizes are spelt; never how large anything
//! should be.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

/// A number of bytes. Prints as the kernel writes it: plain decimal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// `n` mebibytes; saturates.
    pub const fn mib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 20))
    }

    /// The sum, or the largest number of bytes.
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

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Bytes {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        text.parse().map(Self)
    }
}

/// The kernel's page size in bytes, a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSize(u64);

impl PageSize {
    /// 4 KiB, the page of x86-64 and of most arm64 kernels.
    pub const FOUR_KIB: Self = Self(4096);

    /// A page of `bytes`; `None` unless a power of two.
    pub fn new(bytes: u64) -> Option<Self> {
        bytes.is_power_of_two().then_some(Self(bytes))
    }

    /// The size in bytes.
    pub fn bytes(self) -> u64 {
        self.0
    }

    /// Rounds down to a whole page, as the kernel does with every memory limit
    /// (`mm/page_counter.c`).
    pub fn floor(self, bytes: Bytes) -> Bytes {
        Bytes(bytes.0 & !(self.0 - 1))
    }
}

/// A size of huge page, a power of two of at least 1 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HugePageSize(u64);

impl HugePageSize {
    /// 2 MiB.
    pub const TWO_MIB: Self = Self(2 << 20);
    /// 1 GiB.
    pub const ONE_GIB: Self = Self(1 << 30);

    /// Pages of `bytes`; `None` unless a power of two of at least 1 KiB.
    pub fn new(bytes: u64) -> Option<Self> {
        (bytes >= 1024 && bytes.is_power_of_two()).then_some(Self(bytes))
    }

    /// The size of one page.
    pub fn bytes(self) -> Bytes {
        Bytes(self.0)
    }

    /// Rounds down to whole huge pages, as the kernel does (`mm/hugetlb_cgroup.c`).
    pub fn floor(self, bytes: Bytes) -> Bytes {
        Bytes(bytes.0 - bytes.0 % self.0)
    }

    /// The size in the kernel's file names: `64KB`, `2MB`, `1GB`.
    pub fn kernel_name(self) -> String {
        self.spelt(["KB", "MB", "GB"])
    }

    /// The size in Kubernetes' resource names: `64Ki`, `2Mi`, `1Gi`.
    pub fn kubernetes_name(self) -> String {
        self.spelt(["Ki", "Mi", "Gi"])
    }

    /// Reads the kernel's spelling (`2MB`).
    pub fn from_kernel_name(text: &str) -> Option<Self> {
        let split = text.find(|c: char| !c.is_ascii_digit())?;
        let (digits, unit) = text.split_at(split);
        let shift = match unit {
            "KB" => 10,
            "MB" => 20,
            "GB" => 30,
            _ => return None,
        };
        let number: u64 = digits.parse().ok()?;
        Self::new(number.checked_mul(1 << shift)?)
    }

    fn spelt(self, [kilo, mega, giga]: [&str; 3]) -> String {
        match self.0 {
            bytes if bytes >= 1 << 30 => format!("{}{giga}", bytes >> 30),
            bytes if bytes >= 1 << 20 => format!("{}{mega}", bytes >> 20),
            bytes => format!("{}{kilo}", bytes >> 10),
        }
    }
}

impl fmt::Display for HugePageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kernel_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_page_sizes_are_spelt_both_ways() {
        for (bytes, kernel, kubernetes) in [
            (1024, "1KB", "1Ki"),
            (65_536, "64KB", "64Ki"),
            (2_097_152, "2MB", "2Mi"),
            (33_554_432, "32MB", "32Mi"),
            (17_179_869_184, "16GB", "16Gi"),
        ] {
            let size = HugePageSize::new(bytes).unwrap();
            assert_eq!(size.kernel_name(), kernel);
            assert_eq!(size.kubernetes_name(), kubernetes);
            assert_eq!(HugePageSize::from_kernel_name(kernel), Some(size));
        }
        for bad in ["", "MB", "3MB", "2mb", "2", "99999999999999999999GB"] {
            assert_eq!(HugePageSize::from_kernel_name(bad), None, "{bad}");
        }
    }

    #[test]
    fn sizes_round_down_as_in_the_kernel() {
        assert_eq!(PageSize::FOUR_KIB.floor(Bytes(4097)), Bytes(4096));
        assert_eq!(PageSize::FOUR_KIB.floor(Bytes(4095)), Bytes(0));
        assert_eq!(HugePageSize::TWO_MIB.floor(Bytes(3 << 20)), Bytes(2 << 20));
        assert_eq!(PageSize::new(3000), None);
    }
}
