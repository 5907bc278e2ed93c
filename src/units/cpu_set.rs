//! Sets of CPUs, or of memory nodes: both are numbered from 0 and written as the kernel's lists.
//!
//! Decides spelling and set arithmetic. Numbers above 511 are refused, never dropped: a set that lost some
//! of its members would put a container on other CPUs than it was given.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How many 64-bit words a set has.
const WORDS: usize = 8;

/// A set of numbers from 0 to 511.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuSet([u64; WORDS]);

/// Why a text is no set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuListError {
    /// It is no list.
    #[error(
        "{0:?} is no list of CPUs: numbers and ranges with commas between, such as 0-3,5, are right"
    )]
    Malformed(String),
    /// A number is too large to be kept.
    #[error("CPU {0} is beyond {max}, the last that can be placed on", max = CpuSet::LAST)]
    Beyond(u64),
}

impl CpuSet {
    /// No CPU.
    pub const EMPTY: Self = Self([0; WORDS]);
    /// The greatest number that a set can hold.
    pub const LAST: u64 = 511;

    /// Puts a number into the set.
    ///
    /// # Errors
    /// A number above 511.
    pub fn insert(&mut self, number: u64) -> Result<(), CpuListError> {
        let word = usize::try_from(number / 64).unwrap_or(WORDS);
        let word = self.0.get_mut(word);
        *word.ok_or(CpuListError::Beyond(number))? |= 1 << (number % 64);
        Ok(())
    }

    /// Whether a number is in the set.
    pub fn contains(self, number: u64) -> bool {
        let word = usize::try_from(number / 64).unwrap_or(WORDS);
        let word = self.0.get(word).copied().unwrap_or(0);
        word & (1 << (number % 64)) != 0
    }

    /// How many are in the set.
    pub fn count(self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self == Self::EMPTY
    }

    /// Those in either set.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        self.zip(other, |one, other| one | other)
    }

    /// Those in both sets.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        self.zip(other, |one, other| one & other)
    }

    /// Those in this set that are not in the other.
    #[must_use]
    pub fn difference(self, other: Self) -> Self {
        self.zip(other, |one, other| one & !other)
    }

    /// Whether the other set has all of this one.
    pub fn is_subset(self, other: Self) -> bool {
        self.difference(other).is_empty()
    }

    /// The least number of the set.
    pub fn first(self) -> Option<u64> {
        self.iter().next()
    }

    /// The numbers, the least first.
    pub fn iter(self) -> impl Iterator<Item = u64> {
        (0..=Self::LAST).filter(move |number| self.contains(*number))
    }

    fn zip(self, other: Self, step: impl Fn(u64, u64) -> u64) -> Self {
        let mut words = self.0;
        for (word, other) in words.iter_mut().zip(other.0) {
            *word = step(*word, other);
        }
        Self(words)
    }
}

/// How many numbers a list has, however large they are: a machine can have more CPUs than can be placed on.
///
/// # Errors
/// A text that is no list.
pub fn count_listed(list: &str) -> Result<u64, CpuListError> {
    let mut count = 0_u64;
    for range in ranges(list) {
        let (from, to) = range?;
        count = count.saturating_add(to.saturating_sub(from).saturating_add(1));
    }
    Ok(count)
}

/// The ranges of a list; one number is a range of itself. An empty list has none.
fn ranges(list: &str) -> impl Iterator<Item = Result<(u64, u64), CpuListError>> {
    let items = list.split(',').filter(move |_| !list.is_empty());
    items.map(|item| {
        let (from, to) = item.split_once('-').unwrap_or((item, item));
        let number = |text: &str| {
            let digits = text.bytes().all(|b| b.is_ascii_digit());
            text.parse::<u64>().ok().filter(|_| digits)
        };
        match (number(from), number(to)) {
            (Some(from), Some(to)) if from <= to => Ok((from, to)),
            _ => Err(CpuListError::Malformed(list.chars().take(64).collect())),
        }
    })
}

impl FromStr for CpuSet {
    type Err = CpuListError;

    /// Reads a list such as `0-3,5`; an empty one is the empty set.
    fn from_str(list: &str) -> Result<Self, CpuListError> {
        let mut set = Self::EMPTY;
        for range in ranges(list) {
            let (from, to) = range?;
            if to > Self::LAST {
                return Err(CpuListError::Beyond(to));
            }
            for number in from..=to {
                set.insert(number)?;
            }
        }
        Ok(set)
    }
}

impl fmt::Display for CpuSet {
    /// The kernel's spelling: ranges as long as they can be, the least first.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for from in self.iter() {
            let begins = from
                .checked_sub(1)
                .is_none_or(|before| !self.contains(before));
            if !begins {
                continue;
            }
            let to = (from..=Self::LAST)
                .take_while(|number| self.contains(*number))
                .last()
                .unwrap_or(from);
            if to == from {
                write!(f, "{comma}{from}")?;
            } else {
                write!(f, "{comma}{from}-{to}")?;
            }
            comma = ",";
        }
        Ok(())
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    #[test]
    fn lists_are_read_and_printed_as_by_the_kernel() {
        for (text, printed, count) in [
            ("", "", 0),
            ("0", "0", 1),
            ("0-3,5", "0-3,5", 5),
            ("5,0,1", "0-1,5", 3),
            ("0-1,1-2,3", "0-3", 4),
            ("63-64,511", "63-64,511", 3),
            ("0-511", "0-511", 512),
        ] {
            assert_eq!(set(text).to_string(), printed);
            assert_eq!(set(text).count(), count, "{text}");
        }
        for bad in [
            "-", "1-", "-1", "3-1", "1,", ",1", "+1", " 1", "a", "0x1", "1;2",
        ] {
            let error = bad.parse::<CpuSet>().unwrap_err();
            assert_eq!(error, CpuListError::Malformed(bad.to_owned()));
            assert!(count_listed(bad).is_err());
        }
        for (text, beyond) in [
            ("512", 512),
            ("0-512", 512),
            ("0-18446744073709551615", u64::MAX),
        ] {
            assert_eq!(text.parse::<CpuSet>(), Err(CpuListError::Beyond(beyond)));
        }
        assert_eq!(
            CpuListError::Beyond(600).to_string(),
            "CPU 600 is beyond 511, the last that can be placed on"
        );
    }

    #[test]
    fn lists_of_any_length_are_counted() {
        for (list, count) in [("", 0), ("0", 1), ("0-1,4,6-7", 5), ("0-1023", 1024)] {
            assert_eq!(count_listed(list), Ok(count), "{list:?}");
        }
        assert_eq!(count_listed("0-18446744073709551615"), Ok(u64::MAX));
    }

    proptest! {
        #[test]
        fn a_set_reads_back_what_it_prints(numbers in prop::collection::btree_set(0..512_u64, 0..80)) {
            let mut made = CpuSet::EMPTY;
            for number in &numbers {
                made.insert(*number).unwrap();
            }
            prop_assert_eq!(set(&made.to_string()), made);
            prop_assert!(made.iter().eq(numbers.iter().copied()));
            prop_assert_eq!(count_listed(&made.to_string()), Ok(made.count()));
            let json = serde_json::to_string(&made).unwrap();
            prop_assert_eq!(serde_json::from_str::<CpuSet>(&json).unwrap(), made);
        }

        #[test]
        fn sets_are_sets(
            one in prop::collection::btree_set(0..130_u64, 0..60),
            other in prop::collection::btree_set(0..130_u64, 0..60),
        ) {
            let of = |numbers: &std::collections::BTreeSet<u64>| {
                let mut set = CpuSet::EMPTY;
                for number in numbers {
                    set.insert(*number).unwrap();
                }
                set
            };
            let (a, b) = (of(&one), of(&other));
            prop_assert!(a.union(b).iter().eq(one.union(&other).copied()));
            prop_assert!(a.difference(b).iter().eq(one.difference(&other).copied()));
            prop_assert!(a.intersection(b).iter().eq(one.intersection(&other).copied()));
            prop_assert_eq!(a.is_subset(b), one.is_subset(&other));
        }
    }
}
