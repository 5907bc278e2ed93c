//! The cgroup v2 controllers that the project uses, and sets of them.

use std::collections::BTreeSet;
use std::fmt;

/// A controller, by the name in `cgroup.controllers`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Controller {
    /// `cpu`, on v2 since Linux 4.15.
    Cpu,
    /// `memory`
    Memory,
    /// `pids`
    Pids,
    /// `hugetlb`, on v2 since Linux 5.6.
    Hugetlb,
    /// `cpuset`, on v2 since Linux 5.0.
    Cpuset,
}

impl Controller {
    /// All that the project uses.
    pub const ALL: [Self; 5] = [
        Self::Cpu,
        Self::Memory,
        Self::Pids,
        Self::Hugetlb,
        Self::Cpuset,
    ];

    /// The kernel's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Hugetlb => "hugetlb",
            Self::Cpuset => "cpuset",
        }
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of controllers, such as the content of `cgroup.subtree_control`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerSet(BTreeSet<Controller>);

impl ControllerSet {
    /// Every controller the project uses.
    pub fn all() -> Self {
        Controller::ALL.into_iter().collect()
    }

    /// Reads `cgroup.controllers` or `cgroup.subtree_control`; names the project does not use are
    /// passed over.
    pub fn parse(text: &str) -> Self {
        text.split_ascii_whitespace()
            .filter_map(|name| Controller::ALL.into_iter().find(|c| c.name() == name))
            .collect()
    }

    /// The same without one.
    #[must_use]
    pub fn except(mut self, controller: Controller) -> Self {
        self.0.remove(&controller);
        self
    }

    /// Whether the controller is in the set.
    pub fn contains(&self, controller: Controller) -> bool {
        self.0.contains(&controller)
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The controllers in this set that are not in `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }

    /// The controllers in both sets.
    #[must_use]
    pub fn common(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// Adds one.
    pub fn insert(&mut self, controller: Controller) {
        self.0.insert(controller);
    }

    /// The controllers in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = Controller> + '_ {
        self.0.iter().copied()
    }
}

impl FromIterator<Controller> for ControllerSet {
    fn from_iter<I: IntoIterator<Item = Controller>>(controllers: I) -> Self {
        Self(controllers.into_iter().collect())
    }
}

impl fmt::Display for ControllerSet {
    /// Space-separated names, as in `cgroup.controllers`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, controller) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            controller.fmt(f)?;
        }
        Ok(())
    }
}
