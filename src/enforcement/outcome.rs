//! What came of a plan: what the kernel shows now, and everything that is not as it should be.
//!
//! Every step of a plan is accounted for: it is read back as in effect, or it is held, failed,
//! pending or removed. Nothing is called enforced that was not read back.

use std::collections::BTreeMap;
use std::fmt;

use super::hold::Held;
use crate::cgroup::{CgroupPath, ErrorKind, Op, Setting, Tree};

/// The result of one pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The planned values and controllers that the kernel showed afterwards.
    pub enforced: Tree,
    /// What others had changed and is again as wanted.
    pub repaired: Vec<Repaired>,
    /// What was written again after others had changed it, and did not stay: each is in `failed` too.
    pub undone: Vec<Repaired>,
    /// Bounds that wait until less is in use.
    pub held: Vec<Held>,
    /// What did not succeed.
    pub failed: Vec<Failed>,
    /// The cgroups that were removed with all below them.
    pub removed: Vec<CgroupPath>,
    /// The cgroups that will be removed when their processes have ended.
    pub pending: Vec<CgroupPath>,
    /// The cgroups that were touched and are not there any more: somebody else removed them.
    pub gone: Vec<CgroupPath>,
    /// Every other cgroup that was touched, as it is now.
    pub seen: Tree,
}

/// A step that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// What was to be done.
    pub op: Op,
    /// How to react.
    pub kind: ErrorKind,
    /// What the kernel answered, or what it shows instead.
    pub why: String,
}

/// A difference that somebody else had made, and that the agent undid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// What was done.
    pub op: Op,
    /// For a write: what the file held; `None` where the file was missing.
    pub found: Option<Setting>,
}

impl Outcome {
    /// Whether everything planned is in effect.
    pub fn is_complete(&self) -> bool {
        self.held.is_empty() && self.failed.is_empty() && self.pending.is_empty()
    }

    /// What the kernel does not offer here, by reason: a controller that is not handed down, a file
    /// that the kernel does not have. Trying again does not help until somebody changes that.
    pub fn missing(&self) -> BTreeMap<&str, Vec<&Op>> {
        let mut by_reason = BTreeMap::<&str, Vec<&Op>>::new();
        for failed in &self.failed {
            if failed.kind == ErrorKind::Unsupported {
                by_reason.entry(&failed.why).or_default().push(&failed.op);
            }
        }
        by_reason
    }

    /// Brings a found tree up to date with what was seen.
    pub fn update(&self, found: &mut Tree) {
        for path in self.removed.iter().chain(&self.gone) {
            found.remove_within(path);
        }
        found.extend(self.seen.clone());
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}", self.op, self.why)
    }
}

impl fmt::Display for Repaired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.op {
            Op::Write(path, now) => {
                let (file, now) = (now.file(), now.value());
                match self.found {
                    Some(was) => write!(f, "{file} of {path} was {}, is {now} again", was.value()),
                    None => write!(f, "{file} of {path} was missing, is {now} again"),
                }
            }
            Op::Create(path) => write!(f, "{path} was removed, is there again"),
            Op::Enable(path, controllers) => {
                write!(f, "{controllers} in {path} was disabled, is enabled again")
            }
            other => other.fmt(f),
        }
    }
}
