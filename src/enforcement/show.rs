//! A plan as text, and the difference between wanted and found as rows.
//!
//! Decides wording only.

use std::fmt;

use super::plan::{Plan, unwanted};
use crate::cgroup::{CgroupPath, ControllerSet, Node, Op, Setting, Tree};
use crate::units::PageSize;

impl fmt::Display for Plan {
    /// One line for each step: its cause, the operation, and what the file held.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in self.steps() {
            write!(f, "{:<9}{}", step.cause, step.op)?;
            match (&step.op, step.before) {
                (Op::Write(..), Some(before)) => writeln!(f, ", was {}", before.value())?,
                _ => writeln!(f)?,
            }
        }
        Ok(())
    }
}

/// One line of `allot diff`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The cgroup.
    pub path: CgroupPath,
    /// The file; `None` where the row stands for the whole cgroup.
    pub file: Option<String>,
    /// What is wanted, as the kernel would show it.
    pub wanted: Option<String>,
    /// What the kernel has.
    pub kernel: Option<String>,
    /// How the two compare.
    pub verdict: Verdict,
}

/// How what is wanted compares with what the kernel has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The kernel has what is wanted.
    Same,
    /// The kernel has another value.
    Drift,
    /// There is no such cgroup.
    Missing,
    /// The cgroup is not wanted.
    Unwanted,
    /// The cgroup has no such file: the controller is not enabled or the kernel is too old.
    NotEnforced,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Same => "same",
            Self::Drift => "drift",
            Self::Missing => "missing",
            Self::Unwanted => "unwanted",
            Self::NotEnforced => "not enforced",
        })
    }
}

/// Compares the trees in `scope` (as in `plan`): a row for each wanted file, in the order of paths and
/// files, then one for each cgroup that is not wanted.
pub fn diff(scope: &CgroupPath, wanted: &Tree, found: &Tree, page: PageSize) -> Vec<Row> {
    let mut rows = Vec::new();
    for (path, node) in wanted.around(scope) {
        let there = found.get(path);
        if there.is_none() && node.settings.is_empty() && node.enabled.is_empty() {
            rows.push(whole(path, Verdict::Missing));
        }
        rows.extend(controllers(path, node, there));
        rows.extend(node.settings.values().map(|setting| {
            let wanted = setting.kept(page);
            let shown = there.and_then(|there| there.get(wanted.file()));
            let verdict = match (there, shown) {
                (None, _) => Verdict::Missing,
                (_, None) => Verdict::NotEnforced,
                (_, Some(shown)) if shown == wanted => Verdict::Same,
                _ => Verdict::Drift,
            };
            Row {
                path: path.clone(),
                file: Some(wanted.file().to_string()),
                wanted: Some(wanted.value()),
                kernel: shown.as_ref().map(Setting::value),
                verdict,
            }
        }));
    }
    let unwanted = unwanted(scope, wanted, found);
    rows.extend(
        unwanted
            .into_iter()
            .map(|path| whole(path, Verdict::Unwanted)),
    );
    rows
}

fn whole(path: &CgroupPath, verdict: Verdict) -> Row {
    Row {
        path: path.clone(),
        file: None,
        wanted: None,
        kernel: None,
        verdict,
    }
}

/// The row for the controllers that a cgroup hands down, where it shall.
fn controllers(path: &CgroupPath, wanted: &Node, there: Option<&Node>) -> Option<Row> {
    if wanted.enabled.is_empty() {
        return None;
    }
    let enabled = there.map(|there| &there.enabled);
    let missing = wanted
        .enabled
        .without(enabled.unwrap_or(&ControllerSet::default()));
    Some(Row {
        path: path.clone(),
        file: Some("cgroup.subtree_control".to_owned()),
        wanted: Some(wanted.enabled.to_string()),
        kernel: enabled.map(ToString::to_string),
        verdict: match enabled {
            None => Verdict::Missing,
            Some(_) if missing.is_empty() => Verdict::Same,
            Some(_) => Verdict::Drift,
        },
    })
}
