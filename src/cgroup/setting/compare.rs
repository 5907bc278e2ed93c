//! Which of two values of a file gives more.

use std::cmp::Ordering;

use super::Setting;
use crate::units::{CpuSet, Limit};

impl Setting {
    /// Compares two amounts of the same file; `None` where they are of two, or of one without amounts.
    pub fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Setting::CpuMax(one), Setting::CpuMax(other)) => {
                Some(match (one.quota, other.quota) {
                    (Limit::At(a), Limit::At(b)) => {
                        let (a, b) = (u128::from(a.0), u128::from(b.0));
                        let (a, b) = (a * u128::from(other.period.0), b * u128::from(one.period.0));
                        a.cmp(&b)
                    }
                    (a, b) => a.cmp(&b),
                })
            }
            (Setting::MemoryMin(one), Setting::MemoryMin(other))
            | (Setting::MemoryLow(one), Setting::MemoryLow(other))
            | (Setting::MemoryHigh(one), Setting::MemoryHigh(other))
            | (Setting::MemoryMax(one), Setting::MemoryMax(other))
            | (Setting::MemorySwapMax(one), Setting::MemorySwapMax(other))
            | (Setting::HugetlbMax(_, one), Setting::HugetlbMax(_, other))
            | (Setting::HugetlbRsvdMax(_, one), Setting::HugetlbRsvdMax(_, other)) => {
                Some(one.cmp(&other))
            }
            (Setting::PidsMax(one), Setting::PidsMax(other)) => Some(one.cmp(&other)),
            (Setting::CpuMaxBurst(one), Setting::CpuMaxBurst(other)) => Some(one.cmp(&other)),
            (Setting::CpusetCpus(one), Setting::CpusetCpus(other))
            | (Setting::CpusetMems(one), Setting::CpusetMems(other)) => compare_sets(one, other),
            _ => None,
        }
    }
}

/// The empty set stands for all that there is above. Of two sets of which neither has all of the other, none
/// is the larger.
fn compare_sets(one: CpuSet, other: CpuSet) -> Option<Ordering> {
    match (one.is_empty(), other.is_empty()) {
        (true, true) => Some(Ordering::Equal),
        (true, false) => Some(Ordering::Greater),
        (false, true) => Some(Ordering::Less),
        (false, false) if one == other => Some(Ordering::Equal),
        (false, false) if one.is_subset(other) => Some(Ordering::Less),
        (false, false) if other.is_subset(one) => Some(Ordering::Greater),
        (false, false) => None,
    }
}
