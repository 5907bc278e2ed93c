//! What is there of pods that have no record: their cgroups, their files, their shims.
//!
//! A pod is in the store before anything else of it is made and leaves it last, so such things are left only
//! where the store was lost, replaced or damaged. Decides what becomes of them: cgroups go with their
//! processes, in the pass that finds them, because nobody counts what they use; with the processes end their
//! shims. Files stay and are told, because what a pod wrote is its owner's. Where a record cannot be read
//! nobody knows whose cgroups these are: then they stay too, until somebody says that they shall go.

use std::collections::BTreeSet;

use super::events::Severity;
use super::request::Refusal;
use super::run::Agent;
use crate::cgroup::{CgroupPath, Op, Tree};
use crate::enforcement::Plan;
use crate::model::PodUid;
use crate::report::Orphan;
use crate::runtime::left::LeftBehind;
use crate::store::{Change, Expect, REBUILT_KEY, Rebuilt};
use crate::translation::Place;

/// So many are told one by one.
const TOLD: usize = 32;
/// So many are named in one sentence.
const NAMED: usize = 8;

/// The store key of the boot in which something of the store was lost.
pub(super) const LOSS_KEY: &str = "node/lost-in";

/// What that means.
const LEFT_ALONE: &str =
    "what runs without a record is left alone and not counted until the next boot";

/// What is known of them.
#[derive(Debug, Default)]
pub(super) struct Orphans {
    /// A record is lost or cannot be read, not even its uid.
    pub spared: bool,
    told: BTreeSet<CgroupPath>,
    /// What the files are, in one sentence.
    pub note: Option<String>,
}

impl Agent {
    /// What a store that was made anew means. Its journal may have lacked the last changes, so nobody can tell a pod
    /// whose record is among them from what is left over, until a new boot has ended both.
    pub(super) fn heed_loss(&mut self) {
        match self.store.rebuilt() {
            Ok(Some(rebuilt)) => self.tell_of_loss(&rebuilt),
            Ok(None) => {}
            Err(error) => tracing::error!("{error}"),
        }
        let since = self.store.get(LOSS_KEY).ok().flatten();
        self.orphans.spared |=
            since.is_some_and(|entry| entry.value == self.system.boot_id.as_bytes());
    }

    /// The event, the loss and that it is told are durable at once: whoever is killed before leaves all of it to the
    /// next agent.
    fn tell_of_loss(&mut self, rebuilt: &Rebuilt) {
        let told = rebuilt.to_string();
        self.problems.insert(REBUILT_KEY.to_owned(), told.clone());
        self.orphans.spared = true;
        let boot = self.system.boot_id.clone().into_bytes();
        let changes = vec![
            Change::Delete(REBUILT_KEY.to_owned(), Expect::Any),
            Change::Put(LOSS_KEY.to_owned(), boot, Expect::Any),
        ];
        let told = format!("{told}; {LEFT_ALONE}");
        self.node_event(Severity::Warning, "StoreRebuilt", &told);
        // What the disk does not take is told again by the next agent.
        drop(self.commit(changes));
    }

    /// Tells how much is left alone, as of a look at everything.
    pub(super) fn tell_of_spared(&mut self, found: &Tree) {
        let count = if self.orphans.spared {
            self.without_record(found).count()
        } else {
            0
        };
        if count == 0 {
            self.problems.remove(LOSS_KEY);
            return;
        }
        let problem = format!(
            "records of pods were lost or cannot be read: {LEFT_ALONE} ({count} cgroups of pods); allot orphans names \
             them, allot orphans --end ends them now"
        );
        self.problems.insert(LOSS_KEY.to_owned(), problem);
    }

    /// The cgroups of pods of which there is no record, not even one that cannot be used.
    fn without_record(&self, found: &Tree) -> impl Iterator<Item = CgroupPath> {
        let is_known = |uid: &PodUid| self.by_uid.contains_key(uid) || self.stranded.contains(uid);
        let paths = found.iter().map(|(path, _)| path);
        paths
            .filter(move |path| match Place::of(path) {
                Some(Place::Pod(_, uid)) => !is_known(&uid),
                _ => false,
            })
            .cloned()
    }

    /// Whether a cgroup is left alone because it may be that of a pod whose record is of no use to this agent.
    pub(super) fn is_spared(&self, path: &CgroupPath) -> bool {
        let place = Place::of(path);
        let uid = place.as_ref().and_then(Place::uid);
        uid.is_some_and(|uid| {
            self.stranded.contains(uid) || (self.orphans.spared && !self.by_uid.contains_key(uid))
        })
    }

    /// The cgroups of pods without a record that are there now; whether they are to end.
    pub(super) fn list_orphans(&mut self, end: bool) -> Result<Vec<Orphan>, Refusal> {
        let found = self.found_around(&CgroupPath::top());
        let found = found.map_err(|error| Refusal::internal(error.to_string()))?;
        let reader = self.kernel.reader();
        let orphan = |path: CgroupPath| Orphan {
            cgroup: path.to_string(),
            processes: reader.processes(&path).len(),
        };
        let listed = self.without_record(&found).map(orphan).collect();
        if end {
            self.end_orphans()?;
        }
        Ok(listed)
    }

    /// Somebody says that none of them is left alone any more, for as long as no other record is lost: they go in the
    /// ordinary way.
    fn end_orphans(&mut self) -> Result<(), Refusal> {
        let heeded = vec![Change::Delete(LOSS_KEY.to_owned(), Expect::Any)];
        self.commit(heeded)
            .map_err(|error| Refusal::not_durable(error.to_string()))?;
        self.orphans.spared = false;
        self.enforce(&CgroupPath::top());
        Ok(())
    }

    /// Tells of the cgroups without a record that a plan removes, each once.
    pub(super) fn tell_of_orphans(&mut self, plan: &Plan) {
        let is_orphan = |path: &CgroupPath| match Place::of(path) {
            Some(Place::Pod(_, uid)) => !self.by_uid.contains_key(&uid),
            _ => false,
        };
        let paths: Vec<_> = plan
            .steps()
            .iter()
            .filter_map(|step| match &step.op {
                Op::Remove(path) if is_orphan(path) => Some(path.clone()),
                _ => None,
            })
            .collect();
        if paths.is_empty() {
            return;
        }
        let reader = self.kernel.reader();
        for path in paths {
            if self.orphans.told.len() >= TOLD || !self.orphans.told.insert(path.clone()) {
                tracing::warn!("{path} is removed: no pod has it");
                continue;
            }
            let count = reader.processes(&path).len();
            let message = format!("{path} is removed with its {count} processes: no pod has it");
            self.node_event(Severity::Warning, "OrphanedCgroup", &message);
        }
    }

    /// Looks for files without a record, once, when all records are known.
    pub(super) fn look_for_orphaned_files(&mut self) {
        let is_known = |name: &str| {
            PodUid::new(name)
                .is_some_and(|uid| self.by_uid.contains_key(&uid) || self.stranded.contains(&uid))
        };
        let found = match self.runtime.left_behind(is_known) {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!("cannot look for files of pods without a record: {error}");
                return;
            }
        };
        let directory = self.config.state_dir.join("pods").display().to_string();
        self.orphans.note = sentence(&found, &directory);
        if let Some(note) = self.orphans.note.clone() {
            self.node_event(Severity::Warning, "OrphanedFiles", &note);
        }
    }
}

fn sentence(LeftBehind { pods, shims }: &LeftBehind, directory: &str) -> Option<String> {
    if pods.is_empty() {
        return None;
    }
    let named: Vec<_> = pods.iter().take(NAMED).map(String::as_str).collect();
    let more = match pods.len().checked_sub(NAMED) {
        Some(more) if more > 0 => format!(" and {more} more"),
        _ => String::new(),
    };
    let lived = if shims.is_empty() {
        String::new()
    } else {
        let shims: Vec<_> = shims.iter().take(NAMED).map(ToString::to_string).collect();
        let shims = shims.join(", ");
        format!("; shims lived there, which end with their programs: {shims}")
    };
    Some(format!(
        "{} of the directories in {directory} were of no pod at the start, and are left: {}{more}{lived}",
        pods.len(),
        named.join(", "),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_one_sentence_of_bounded_length() {
        let left = |count: usize, shims: &[i32]| LeftBehind {
            pods: (0..count).map(|n| format!("u{n}")).collect(),
            shims: shims.to_vec(),
        };
        assert_eq!(sentence(&left(0, &[]), "/pods"), None);
        let text = sentence(&left(2, &[7, 9]), "/pods").unwrap();
        let expected = "2 of the directories in /pods were of no pod at the start, and are left: u0, u1; shims lived \
                        there, which end with their programs: 7, 9";
        assert_eq!(text, expected);
        let text = sentence(&left(1000, &[]), "/pods").unwrap();
        assert!(text.ends_with("u6, u7 and 992 more"), "{text}");
    }
}
