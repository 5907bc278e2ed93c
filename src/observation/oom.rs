//! Whose limit an OOM kill was, and how many processes it took.
//!
//! The kernel's counters are the truth (measured on Linux 6.1 and 6.12): `oom` of
//! `memory.events.local` rises at the cgroup whose limit was hit, `oom_kill` of `memory.events` at the
//! victim's cgroup and all above it, so what a container's own cgroups lose is the container's loss.
//! Where no `oom` rose in our tree, the whole node was out of memory. Nothing here reads a file.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::cgroup::Counters;

/// How much of a cgroup's OOM counters has been told already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OomSeen {
    /// `oom` of `memory.events.local`
    pub oom: u64,
    /// What `oom` of `memory.events` had more than that.
    #[serde(default)]
    pub inner: u64,
    /// `oom_kill` of `memory.events`
    pub oom_kill: u64,
    /// `oom_group_kill` of `memory.events`
    #[serde(default)]
    pub group: u64,
}

/// What is new in a cgroup's OOM counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OomRise {
    /// How often the cgroup's own limit led to the OOM killer.
    pub oom: u64,
    /// How often that of a cgroup below did.
    pub inner: u64,
    /// Processes of this cgroup and those below that were killed.
    pub killed: u64,
    /// How often that was all of them, as a group.
    pub groups: u64,
}

impl OomSeen {
    /// What has risen since; and takes the new counts as told. A counter that went down belongs to
    /// a new cgroup of the same name, so all of it is new. One that could not be read says nothing.
    pub fn take(&mut self, counters: &Counters) -> OomRise {
        let now = Self {
            oom: counters.oom_local.unwrap_or(self.oom),
            // The two are read one after the other, so between two looks the difference may shrink; it
            // never shows too much.
            inner: counters
                .oom
                .zip(counters.oom_local)
                .map_or(0, |(all, local)| all.saturating_sub(local))
                .max(self.inner),
            // Where the mount keeps events local, nothing below is known.
            oom_kill: counters
                .oom_kill
                .or(counters.oom_kill_local)
                .unwrap_or(self.oom_kill),
            group: counters
                .oom_group_kill
                .or(counters.oom_group_kill_local)
                .unwrap_or(self.group),
        };
        if now.oom < self.oom || now.oom_kill < self.oom_kill || now.group < self.group {
            *self = Self::default();
        }
        let before = std::mem::replace(self, now);
        OomRise {
            oom: now.oom - before.oom,
            inner: now.inner.saturating_sub(before.inner),
            killed: now.killed().saturating_sub(before.killed()),
            groups: now.group - before.group,
        }
    }

    /// Processes that were killed. A group kill takes the process that was chosen and then every
    /// process of the group, so the kernel counts the chosen one twice, unless it has given up its
    /// memory by then (`oom_kill_process`, Linux 6.1 and 6.12). Each group kill took one at least.
    fn killed(self) -> u64 {
        self.oom_kill.saturating_sub(self.group).max(self.group)
    }
}

/// The level whose limit led to an OOM kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitOwner {
    /// `memory.max` of a cgroup that the container made below its own.
    Inner,
    /// The container's own `memory.max`.
    Container,
    /// The pod's.
    Pod,
    /// That of a QoS level or of the top cgroup.
    Pods,
    /// None of ours: the node ran out of memory.
    Node,
}

impl fmt::Display for LimitOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inner => "inner",
            Self::Container => "container",
            Self::Pod => "pod",
            Self::Pods => "pods",
            Self::Node => "node",
        })
    }
}

/// Whose limit it was: the nearest level above the victim whose `oom` rose. They are a cgroup of the container's
/// own, the container, the pod, and whatever is above.
pub fn limit_owner(rose: [bool; 4]) -> LimitOwner {
    let owners = [
        LimitOwner::Inner,
        LimitOwner::Container,
        LimitOwner::Pod,
        LimitOwner::Pods,
    ];
    let nearest = owners.into_iter().zip(rose).find(|(_, rose)| *rose);
    nearest.map_or(LimitOwner::Node, |(owner, _)| owner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(oom: u64, oom_kill: u64) -> Counters {
        Counters {
            oom: Some(oom),
            oom_local: Some(oom),
            oom_kill: Some(oom_kill),
            ..Counters::default()
        }
    }

    fn rise(oom: u64, killed: u64) -> OomRise {
        OomRise {
            oom,
            inner: 0,
            killed,
            groups: 0,
        }
    }

    #[test]
    fn each_kill_is_told_once() {
        let mut seen = OomSeen::default();
        assert_eq!(seen.take(&counters(1, 1)), rise(1, 1));
        assert_eq!(seen.take(&counters(1, 1)), rise(0, 0));
        assert_eq!(seen.take(&counters(1, 4)), rise(0, 3));
        // The cgroup was made anew: its first kill must not be lost.
        assert_eq!(seen.take(&counters(1, 1)), rise(1, 1));
        assert_eq!(seen.take(&Counters::default()), rise(0, 0));
        assert_eq!(seen.take(&counters(1, 1)), rise(0, 0));
    }

    /// The kernel counts a kill in a cgroup below at every level above it, and `oom` first where the limit
    /// was. The two files are not read in the same moment.
    #[test]
    fn what_happens_below_is_told_apart_from_the_own_limit() {
        let look = |oom, local, kill| Counters {
            oom: Some(oom),
            oom_local: Some(local),
            oom_kill: Some(kill),
            oom_kill_local: Some(0),
            ..Counters::default()
        };
        let mut seen = OomSeen::default();
        let mut take = |oom, local, kill| {
            let rise = seen.take(&look(oom, local, kill));
            (rise.inner, rise.oom, rise.killed)
        };
        assert_eq!(take(1, 0, 1), (1, 0, 1));
        // The own limit rose after the first file was read.
        assert_eq!(take(1, 1, 1), (0, 1, 0));
        assert_eq!(take(2, 1, 2), (0, 0, 1));
        assert_eq!(take(5, 1, 3), (3, 0, 1));
        // Events are local: only what happens in the very cgroup is known.
        let mut seen = OomSeen::default();
        let local = Counters {
            oom_local: Some(1),
            oom_kill_local: Some(2),
            ..Counters::default()
        };
        assert_eq!(seen.take(&local), rise(1, 2));
    }

    #[test]
    fn a_group_kill_is_told_by_its_processes() {
        let counters = |oom_kill, group| Counters {
            oom_group_kill: Some(group),
            ..counters(1, oom_kill)
        };
        // oom_kill and oom_group_kill at successive looks, and the processes told in all.
        for (looks, processes) in [
            (&[(2, 1)][..], 1),
            (&[(1, 0), (2, 1)], 1),
            (&[(1, 1), (2, 1)], 1),
            // The chosen one was gone before it could be counted again.
            (&[(1, 1)], 1),
            (&[(4, 1)], 3),
            (&[(1, 0), (3, 1), (4, 1)], 3),
            (&[(4, 1), (8, 2)], 6),
            (&[(3, 0)], 3),
        ] {
            let mut seen = OomSeen::default();
            let told: u64 = looks
                .iter()
                .map(|(kills, groups)| seen.take(&counters(*kills, *groups)).killed)
                .sum();
            assert_eq!(told, processes, "{looks:?}");
        }
    }

    #[test]
    fn the_nearest_limit_is_to_blame() {
        let (rose, not) = (true, false);
        for (rises, expected) in [
            ([rose, rose, not, not], LimitOwner::Inner),
            ([not, rose, rose, not], LimitOwner::Container),
            ([not, not, rose, not], LimitOwner::Pod),
            ([not, not, not, rose], LimitOwner::Pods),
            ([not; 4], LimitOwner::Node),
        ] {
            assert_eq!(limit_owner(rises), expected);
        }
    }
}
