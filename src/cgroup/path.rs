//! Where a cgroup lies below the top cgroup that the project owns.
//!
//! A path can only be built from checked names, so it never climbs out of our tree.

use std::fmt;
use std::ops::Bound;

/// A cgroup below the top one; the top itself is the empty path. Parents sort before children.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CgroupPath(String);

/// Why a name cannot be a cgroup's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no name for a cgroup: {why}")]
pub struct BadCgroupName {
    /// The name as given.
    pub name: String,
    /// The rule it breaks.
    pub why: &'static str,
}

impl CgroupPath {
    /// The top cgroup.
    pub const fn top() -> Self {
        Self(String::new())
    }

    /// The child called `name`.
    ///
    /// # Errors
    /// A name that is empty, longer than 255 bytes, `.` or `..`, that holds a slash or a control
    /// character, or that could collide with an interface file: the kernel's files are
    /// `cgroup.*` or begin with a controller's name and a dot.
    pub fn child(&self, name: &str) -> Result<Self, BadCgroupName> {
        check(name).map_err(|why| BadCgroupName {
            name: name.to_owned(),
            why,
        })?;
        Ok(Self(if self.0.is_empty() {
            name.to_owned()
        } else {
            format!("{}/{name}", self.0)
        }))
    }

    /// The path as text, relative to the top; empty for the top.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is the top cgroup.
    pub fn is_top(&self) -> bool {
        self.0.is_empty()
    }

    /// The last component; empty for the top.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or("")
    }

    /// The cgroup above; `None` for the top.
    pub fn parent(&self) -> Option<Self> {
        if self.is_top() {
            return None;
        }
        Some(Self(
            self.0
                .rsplit_once('/')
                .map_or(String::new(), |(above, _)| above.to_owned()),
        ))
    }

    /// The number of components: 0 for the top.
    pub fn depth(&self) -> usize {
        if self.is_top() {
            0
        } else {
            self.0.split('/').count()
        }
    }

    /// Whether this is `above` or lies below it.
    pub fn is_within(&self, above: &Self) -> bool {
        above.is_top()
            || self
                .0
                .strip_prefix(&above.0)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The bounds of the paths below this one in sorted order: no others lie between them, while a
    /// sibling such as `a-b` may lie between `a` and `a/c`.
    pub(super) fn below(&self) -> (Bound<Self>, Bound<Self>) {
        if self.is_top() {
            return (Bound::Excluded(Self::top()), Bound::Unbounded);
        }
        // `0` is the character after the slash.
        (
            Bound::Excluded(Self(format!("{}/", self.0))),
            Bound::Excluded(Self(format!("{}0", self.0))),
        )
    }

    /// This cgroup and those above it, nearest first, the top last.
    pub fn self_and_above(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(Some(self.clone()), Self::parent)
    }
}

impl fmt::Display for CgroupPath {
    /// The top prints as `/`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_top() {
            f.write_str("/")
        } else {
            f.write_str(&self.0)
        }
    }
}

fn check(name: &str) -> Result<(), &'static str> {
    const CONTROLLERS: [&str; 9] = [
        "cgroup", "cpu", "cpuset", "hugetlb", "io", "memory", "misc", "pids", "rdma",
    ];
    if name.is_empty() {
        Err("it is empty")
    } else if name.len() > 255 {
        Err("it is longer than 255 bytes")
    } else if name == "." || name == ".." {
        Err("it would climb")
    } else if name.contains(|c: char| c == '/' || c.is_control()) {
        Err("it holds a slash or a control character")
    } else if name
        .split_once('.')
        .is_some_and(|(head, _)| CONTROLLERS.contains(&head))
    {
        Err("it could be one of the kernel's own files")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_cannot_climb_or_collide() {
        let top = CgroupPath::top();
        for bad in [
            "",
            ".",
            "..",
            "a/b",
            "a\nb",
            "memory.max",
            "cgroup.procs",
            "a\0",
        ] {
            assert!(top.child(bad).is_err(), "{bad:?}");
        }
        assert!(top.child(&"x".repeat(256)).is_err());
        assert!(top.child("pod-1.2").is_ok());
    }

    #[test]
    fn parents_sort_before_children() {
        let a = CgroupPath::top().child("a").unwrap();
        let b = a.child("b").unwrap();
        assert!(CgroupPath::top() < a && a < b);
        assert_eq!(b.parent(), Some(a.clone()));
        assert_eq!(a.parent(), Some(CgroupPath::top()));
        assert_eq!(CgroupPath::top().parent(), None);
        assert_eq!(b.self_and_above().count(), 3);
        assert_eq!((b.depth(), b.name()), (2, "b"));
        assert!(b.is_within(&a) && b.is_within(&CgroupPath::top()));
        assert!(!CgroupPath::top().child("ab").unwrap().is_within(&a));
    }
}
