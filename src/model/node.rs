//! The node: what it has, what it keeps for itself, what it gives to pods.
//!
//! Decides the arithmetic from capacity to allocatable (Kubernetes 1.36 `GetNodeAllocatableAbsolute`).
//! It must never measure anything: `observation::node` does.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::eviction::Signal;
use super::{ResourceList, ResourceName};
use crate::units::{Bytes, HugePageSize, PageSize, Quantity};

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// `metadata.name`
    pub name: String,
    /// All it has: `status.capacity`.
    pub capacity: ResourceList,
    /// What the system and the node's daemons keep: `systemReserved` + `kubeReserved`.
    pub reserved: ResourceList,
    /// What pods may ask for: `status.allocatable`.
    pub allocatable: ResourceList,
    /// The kernel's page size.
    pub page_size: PageSize,
    /// The greatest number of tasks the kernel allows: the lesser of `kernel.pid_max` and
    /// `kernel.threads-max`. `None`: not known.
    pub max_pids: Option<u64>,
    /// Tasks kept for the system.
    pub reserved_pids: u64,
    /// Swap space in all.
    pub swap: Bytes,
}

impl Node {
    /// The sizes of huge page the node has, smallest first.
    pub fn huge_page_sizes(&self) -> Vec<HugePageSize> {
        self.capacity
            .iter()
            .filter_map(|(name, _)| match name {
                ResourceName::HugePages(size) => Some(*size),
                _ => None,
            })
            .collect()
    }
}

/// 100 % in thousandths of a percent.
const WHOLE: i128 = 100_000;
/// Nano-units in one unit.
const NANO: i128 = 1_000_000_000;

/// How much of a resource must stay free, or pods are evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvictionThreshold {
    /// An amount.
    Amount(Quantity),
    /// A part of the capacity.
    Percent {
        /// Thousandths of a percent, below 100,000.
        thousandths: u32,
    },
}

impl EvictionThreshold {
    /// Nothing must stay free.
    pub const NONE: Self = Self::Amount(Quantity::ZERO);

    /// The amount for this capacity; a part is rounded down to whole units.
    pub fn of(self, capacity: Quantity) -> Quantity {
        match self {
            Self::Amount(amount) => amount,
            Self::Percent { thousandths } => {
                // At most 10^29 units, so the product fits.
                let units = capacity.nano() / NANO * i128::from(thousandths) / WHOLE;
                Quantity::from_nano(units * NANO, capacity.format()).unwrap_or(capacity)
            }
        }
    }
}

impl FromStr for EvictionThreshold {
    type Err = String;

    /// Reads `100Mi` or `7.5%`.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some(percent) = text.strip_suffix('%') else {
            let amount: Quantity = text.parse().map_err(|error| format!("{error}"))?;
            if amount.is_negative() {
                return Err(format!("{text} is negative: 0 or more is right"));
            }
            return Ok(Self::Amount(amount));
        };
        let wrong = || format!("{text} is no part: 0% to 99.999%, in steps of 0.001%, is right");
        let plain = percent.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let percent: Quantity = percent.parse().map_err(|_| wrong())?;
        let exact = percent.round_up(Quantity::MILLI) == percent;
        match u32::try_from(percent.milli()) {
            Ok(thousandths) if plain && exact && i128::from(thousandths) < WHOLE => {
                Ok(Self::Percent { thousandths })
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for EvictionThreshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Amount(amount) => amount.fmt(f),
            Self::Percent { thousandths } => {
                let percent = Quantity::from_milli(i64::from(*thousandths)).exact();
                write!(f, "{percent}%")
            }
        }
    }
}

/// What must stay free for the node's own sake (`evictionHard`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HardEviction {
    /// `memory.available`
    pub memory: EvictionThreshold,
    /// `nodefs.available`
    pub disk: EvictionThreshold,
}

impl HardEviction {
    /// Nothing must stay free.
    pub const NONE: Self = Self {
        memory: EvictionThreshold::NONE,
        disk: EvictionThreshold::NONE,
    };

    /// Reads `evictionHard`; a signal that is absent keeps nothing free.
    ///
    /// # Errors
    /// Every setting that cannot be read.
    pub fn read(settings: &BTreeMap<String, String>) -> Result<Self, Vec<String>> {
        let mut read = Self::NONE;
        let mut problems = Vec::new();
        for (signal, text) in settings {
            let place = match signal.as_str() {
                "memory.available" => &mut read.memory,
                "nodefs.available" => &mut read.disk,
                // It keeps nothing of what pods may ask for.
                other if Signal::of_setting(other).is_some() => continue,
                _ => {
                    problems.push(format!(
                        "evictionHard.{signal} is not known: {} are",
                        Signal::settable_names()
                    ));
                    continue;
                }
            };
            match text.parse() {
                Ok(threshold) => *place = threshold,
                Err(problem) => problems.push(format!("evictionHard.{signal}: {problem}")),
            }
        }
        if problems.is_empty() {
            Ok(read)
        } else {
            Err(problems)
        }
    }

    fn threshold(&self, name: &ResourceName) -> EvictionThreshold {
        match name {
            ResourceName::Memory => self.memory,
            ResourceName::EphemeralStorage => self.disk,
            _ => EvictionThreshold::NONE,
        }
    }
}

/// What pods may not ask for: what is reserved, and what must stay free of each resource that the
/// node has.
pub fn reservation(
    capacity: &ResourceList,
    reserved: &ResourceList,
    eviction: &HardEviction,
) -> ResourceList {
    let mut kept = reserved.clone();
    for (name, all) in capacity.iter() {
        let free = eviction.threshold(name).of(all);
        if !free.is_zero() {
            kept.add(&[(name.clone(), free)].into_iter().collect());
        }
    }
    kept
}

/// What pods may ask for: capacity less `reservation`, and of memory also less all huge pages, which
/// the kernel has set apart already. Not below zero.
///
/// # Errors
/// Every resource of which more is kept than there is, in the kubelet's words; and every one that
/// cannot be reserved.
pub fn allocatable(
    capacity: &ResourceList,
    reserved: &ResourceList,
    eviction: &HardEviction,
) -> Result<ResourceList, Vec<String>> {
    let kept = reservation(capacity, reserved, eviction);
    let problems = problems(capacity, reserved, &kept);
    if !problems.is_empty() {
        return Err(problems);
    }
    let huge_pages = capacity
        .iter()
        .filter(|(name, _)| matches!(name, ResourceName::HugePages(_)))
        .fold(Quantity::ZERO, |sum, (_, amount)| {
            sum.saturating_add(amount)
        });
    let left = |name: &ResourceName, all: Quantity| {
        let kept = kept.get(name).unwrap_or(Quantity::ZERO);
        let apart = match name {
            ResourceName::Memory => huge_pages,
            _ => Quantity::ZERO,
        };
        let less = kept.saturating_add(apart);
        all.checked_sub(less)
            .unwrap_or(Quantity::ZERO)
            .max(Quantity::ZERO)
    };
    Ok(capacity
        .iter()
        .map(|(name, all)| (name.clone(), left(name, all)))
        .collect())
}

fn problems(capacity: &ResourceList, reserved: &ResourceList, kept: &ResourceList) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, amount) in reserved.iter() {
        let can_be = matches!(
            name,
            ResourceName::Cpu | ResourceName::Memory | ResourceName::EphemeralStorage
        );
        if !can_be {
            problems.push(format!("cannot reserve {:?} resource", name.to_string()));
        }
        if amount.is_negative() {
            problems.push(format!(
                "a reservation of {amount} {name} is negative: 0 or more is right"
            ));
        }
    }
    for (name, amount) in kept.iter() {
        let all = capacity.get(name).unwrap_or(Quantity::ZERO);
        if amount > all {
            problems.push(format!(
                "invalid Node Allocatable configuration. Resource {:?} has a reservation of {amount} but \
                 capacity of {all}. Expected capacity >= reservation.",
                name.to_string()
            ));
        }
    }
    problems
}
