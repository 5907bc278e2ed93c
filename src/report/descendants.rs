//! Cgroups that were removed and that the kernel still holds: how many beside those that live, and whether
//! that is many. It must never take an unknown figure for zero.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cgroup::Descendants;

/// More dying cgroups than this are many, however many live.
const MANY: u64 = 1000;
/// More than so many for each one that lives are many too,
const RATIO: u64 = 10;
/// but fewer than this are nothing, even where hardly any live.
const FEW: u64 = 100;

/// The cgroups below the top one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CgroupCounts {
    /// Those that are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<u64>,
    /// Those that were removed, but not given up by the kernel; absent where it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dying: Option<u64>,
}

impl CgroupCounts {
    /// Of a cgroup; both unknown where nothing could be read.
    pub fn of(descendants: Option<Descendants>) -> Self {
        let Descendants { live, dying } = descendants.unwrap_or_default();
        Self { live, dying }
    }

    /// What is to be said where the dying are many.
    pub fn many(self) -> Option<Many> {
        let dying = self.dying?;
        let live = self.live.unwrap_or(0);
        let beyond_ratio = self.live.is_some() && dying > live.saturating_mul(RATIO);
        let is_many = dying > MANY || (beyond_ratio && dying >= FEW);
        is_many.then_some(Many {
            live: self.live,
            dying,
        })
    }
}

/// Too many dying cgroups, and what they mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Many {
    live: Option<u64>,
    dying: u64,
}

impl fmt::Display for Many {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { live, dying } = self;
        write!(f, "{dying} cgroups")?;
        if let Some(live) = live {
            write!(f, " beside {live} that live")?;
            if let Some(ratio) = dying.checked_div(*live) {
                write!(f, ", {ratio} to one")?;
            }
        }
        f.write_str(
            ": removed, but held by what they left in memory, such as page cache; each costs memory and makes \
             reclaim slower",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(live: Option<u64>, dying: Option<u64>) -> CgroupCounts {
        CgroupCounts::of(Some(Descendants { live, dying }))
    }

    /// Report zombie-memory-cgroup: 68,680 counted against 240 directories.
    #[test]
    fn many_dying_ones_are_told_and_unknown_ones_are_not() {
        for (live, dying, expected) in [
            (Some(240), Some(68_680), true),
            (Some(240), Some(100), false),
            (Some(240), Some(1000), false),
            (Some(240), Some(1001), true),
            (Some(10), Some(101), true),
            (Some(10), Some(100), false),
            (Some(0), Some(99), false),
            (Some(0), Some(100), true),
            (None, Some(500), false),
            (None, Some(2000), true),
            (Some(240), None, false),
            (None, None, false),
        ] {
            let many = counts(live, dying).many();
            assert_eq!(many.is_some(), expected, "{live:?} {dying:?}");
        }
        assert_eq!(CgroupCounts::of(None), counts(None, None));
        let many = counts(Some(240), Some(68_680)).many().unwrap().to_string();
        assert!(
            many.starts_with("68680 cgroups beside 240 that live, 286 to one: removed"),
            "{many}"
        );
        let many = counts(Some(0), Some(100)).many().unwrap().to_string();
        assert!(
            many.starts_with("100 cgroups beside 0 that live: removed"),
            "{many}"
        );
    }
}
