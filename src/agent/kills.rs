//! The processes that OOM kills took: one record each, the latest thousand.
//!
//! A record is made where a count is taken, and must be committed with what was taken. Names come from
//! the kernel's log, before the count or after it; nothing here counts anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::report::oom::{OomKill, OomLog};
use crate::store::{Change, Entry, Expect};

/// At the most so many records are kept; the oldest go first.
const KEPT: usize = 1000;
/// At the most so many kills of the log wait for their count.
const WITNESSES: usize = 1000;
/// A kill in the log and its record are this far apart at the most.
const NEAR: SignedDuration = SignedDuration::from_secs(5);
/// The directory of the records in the store.
pub(super) const DIRECTORY: &str = "oom/";

/// A kill as the log tells it.
#[derive(Clone, Debug)]
pub(super) struct Witness {
    /// The pod's uid and the container, if the log says so.
    pub victim: Option<(String, String)>,
    /// When the process was killed.
    pub time: Timestamp,
    /// The process, and the thread that the log names.
    pub pids: [i32; 2],
    /// What the log says.
    pub log: OomLog,
    /// The limit (bytes).
    pub limit: Option<u64>,
    /// What was used of it (bytes).
    pub usage: Option<u64>,
    /// The cgroup with that limit, below the top one, where it is one of the victim's pod.
    pub cgroup: Option<String>,
    /// Whether the log says that it was one of a group.
    pub group: bool,
}

/// All records.
#[derive(Debug, Default)]
pub(super) struct Kills {
    kept: BTreeMap<u64, Arc<OomKill>>,
    /// What the store does not have yet.
    pending: BTreeMap<u64, Change>,
    /// Kills that the log told and no count so far.
    witnesses: Vec<Witness>,
    boot_id: String,
    /// Up to here the log has named the kills of this boot.
    named: Option<u64>,
    next: u64,
}

impl Kills {
    /// The records of earlier runs, from the store.
    pub fn restore(entries: &[Entry], boot_id: &str) -> Self {
        let mut kills = Self {
            boot_id: boot_id.to_owned(),
            ..Self::default()
        };
        for entry in entries {
            match serde_json::from_slice::<OomKill>(&entry.value) {
                Ok(kill) => {
                    kills.next = kills.next.max(kill.id.saturating_add(1));
                    if let Some(log) = kill.log.as_ref().filter(|_| kill.boot_id == boot_id) {
                        kills.named = kills.named.max(Some(log.sequence));
                    }
                    kills.kept.insert(kill.id, Arc::new(kill));
                }
                Err(error) => tracing::error!("record {} cannot be read: {error}", entry.key),
            }
        }
        kills
    }

    /// Keeps a kill that was counted. Its id, boot and name come from here.
    pub fn add(&mut self, mut kill: OomKill) {
        kill.id = self.next;
        self.next = self.next.saturating_add(1);
        kill.boot_id.clone_from(&self.boot_id);
        self.put(kill);
        while self.kept.len() > KEPT
            && let Some((id, _)) = self.kept.pop_first()
        {
            self.pending
                .insert(id, Change::Delete(store_key(id), Expect::Any));
        }
    }

    /// Hears of a kill from the log; one that has named a record already is passed over.
    pub fn hear(&mut self, witness: Witness) {
        let known = self
            .named
            .is_some_and(|named| witness.log.sequence <= named);
        if !known && self.witnesses.len() < WITNESSES {
            self.witnesses.push(witness);
        }
    }

    /// Puts names to the records of this boot that have none, the oldest first. What was told of kills
    /// before this time and named nothing is forgotten.
    pub fn name(&mut self, forget_before: Timestamp) {
        if !self.witnesses.is_empty() {
            let nameless: Vec<_> = self
                .kept
                .values()
                .filter(|kill| kill.log.is_none() && kill.boot_id == self.boot_id)
                .cloned()
                .collect();
            for kill in nameless {
                let its = |witness: &Witness| {
                    let victim = witness.victim.as_ref();
                    victim.is_some_and(|(uid, name)| *uid == kill.uid && *name == kill.container)
                };
                if let Some(at) = self.witnesses.iter().position(its) {
                    let witness = self.witnesses.remove(at);
                    self.put(named(&kill, witness));
                }
            }
            self.infer();
        }
        let named = self.kept.values().filter_map(|kill| kill.log.as_ref());
        self.named = self.named.max(named.map(|log| log.sequence).max());
        self.witnesses
            .retain(|witness| witness.time >= forget_before);
    }

    /// Gives the kills of which the log does not say whose they were to the one container that has lost
    /// processes without a name at that time; to nobody if there are several.
    fn infer(&mut self) {
        while let Some(at) = self.witnesses.iter().position(|it| it.victim.is_none()) {
            let Some(witness) = self.witnesses.get(at) else {
                return;
            };
            let near = |kill: &&Arc<OomKill>| {
                let apart = kill.time.duration_since(witness.time).abs();
                kill.log.is_none() && kill.boot_id == self.boot_id && apart <= NEAR
            };
            let candidates: Vec<_> = self.kept.values().filter(near).cloned().collect();
            let Some(first) = candidates.first() else {
                return;
            };
            let is_same =
                |kill: &Arc<OomKill>| kill.uid == first.uid && kill.container == first.container;
            if !candidates.iter().all(is_same) {
                return;
            }
            let mut witness = self.witnesses.remove(at);
            witness.log.inferred = true;
            self.put(named(first, witness));
        }
    }

    /// Changes the latest records of a container, as long as `change` says so.
    pub fn change_latest(
        &mut self,
        uid: &str,
        container: &str,
        mut change: impl FnMut(&mut OomKill) -> bool,
    ) {
        let of_it = |kill: &&Arc<OomKill>| kill.uid == uid && kill.container == container;
        let latest: Vec<_> = self.kept.values().rev().filter(of_it).cloned().collect();
        for kill in latest {
            let mut changed = OomKill::clone(&kill);
            if !change(&mut changed) {
                return;
            }
            if changed != *kill {
                self.put(changed);
            }
        }
    }

    /// The records of a namespace or of all, of a pod or of all; the oldest first.
    pub fn list(&self, namespace: Option<&str>, pod: Option<&str>) -> Vec<Arc<OomKill>> {
        let wanted = |kill: &&Arc<OomKill>| {
            namespace.is_none_or(|namespace| kill.namespace == namespace)
                && pod.is_none_or(|pod| kill.pod == pod)
        };
        self.kept.values().filter(wanted).cloned().collect()
    }

    /// The changes that the store does not have yet, and the pods (namespace and name) whose counts they
    /// were made from.
    pub fn pending(&self) -> impl Iterator<Item = (&Change, Option<(&str, &str)>)> {
        self.pending.iter().map(|(id, change)| {
            let kill = self.kept.get(id);
            (change, kill.map(|kill| (&*kill.namespace, &*kill.pod)))
        })
    }

    /// Whether there is anything for the store.
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The store has taken all that was pending.
    pub fn committed(&mut self) {
        self.pending.clear();
    }

    fn put(&mut self, kill: OomKill) {
        let id = kill.id;
        match serde_json::to_vec(&kill) {
            Ok(value) => {
                self.pending
                    .insert(id, Change::Put(store_key(id), value, Expect::Any));
            }
            Err(error) => tracing::error!("OOM kill {id} has no JSON form: {error}"),
        }
        self.kept.insert(id, Arc::new(kill));
    }
}

fn store_key(id: u64) -> String {
    format!("{DIRECTORY}{id:020}")
}

fn named(kill: &OomKill, witness: Witness) -> OomKill {
    let mut kill = kill.clone();
    kill.time = witness.time;
    if let Some(main) = kill.main_pid {
        kill.main = Some(witness.pids.contains(&main));
    }
    kill.group |= witness.group;
    kill.limit.limit_bytes = witness.limit.or(kill.limit.limit_bytes);
    kill.limit.usage_bytes = witness.usage;
    kill.limit.cgroup = kill.limit.cgroup.or(witness.cgroup);
    kill.log = Some(witness.log);
    kill
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::oom::OomLimit;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn kill(container: &str) -> OomKill {
        OomKill {
            id: 0,
            time: at(100),
            boot_id: String::new(),
            namespace: "default".to_owned(),
            pod: "web".to_owned(),
            uid: "u".to_owned(),
            container: container.to_owned(),
            restart_count: 0,
            group: false,
            main: None,
            main_pid: Some(7),
            main_started: None,
            pressure_avg10: None,
            limit: OomLimit::default(),
            log: None,
        }
    }

    fn witness(container: &str, pid: i32, sequence: u64) -> Witness {
        Witness {
            victim: Some(("u".to_owned(), container.to_owned())),
            time: at(99),
            pids: [pid, pid],
            log: OomLog {
                sequence,
                pid,
                ..OomLog::default()
            },
            limit: None,
            usage: None,
            cgroup: None,
            group: false,
        }
    }

    /// What the store would hold, from all that was pending.
    fn stored(kills: &mut Kills, entries: &mut Vec<Entry>) {
        for (change, _) in kills.pending() {
            match change {
                Change::Put(key, value, _) => {
                    entries.retain(|entry| entry.key != *key);
                    entries.push(Entry {
                        key: key.clone(),
                        value: value.clone(),
                        revision: 1,
                    });
                }
                Change::Delete(key, _) => entries.retain(|entry| entry.key != *key),
            }
        }
        kills.committed();
    }

    fn pids(kills: &Kills) -> Vec<Option<i32>> {
        let list = kills.list(None, None);
        let pids = list.iter().map(|kill| kill.log.as_ref().map(|log| log.pid));
        pids.collect()
    }

    #[test]
    fn names_come_before_the_count_or_after_it() {
        let mut kills = Kills::restore(&[], "b");
        kills.add(kill("a"));
        kills.hear(witness("other", 6, 10));
        kills.hear(witness("a", 7, 11));
        kills.hear(witness("a", 8, 12));
        kills.name(at(0));
        assert_eq!(pids(&kills), [Some(7)]);
        kills.add(kill("a"));
        kills.name(at(0));
        assert_eq!(pids(&kills), [Some(7), Some(8)]);
        let list = kills.list(Some("default"), Some("web"));
        let main: Vec<_> = list.iter().map(|kill| kill.main).collect();
        assert_eq!(main, [Some(true), Some(false)]);
        assert_eq!(list[0].time, at(99));
        assert!(kills.list(Some("default"), Some("we")).is_empty());
    }

    #[test]
    fn a_log_that_is_read_again_names_nothing_twice() {
        let mut kills = Kills::restore(&[], "b");
        let mut entries = Vec::new();
        kills.add(kill("a"));
        kills.hear(witness("a", 7, 11));
        kills.name(at(0));
        stored(&mut kills, &mut entries);
        let mut kills = Kills::restore(&entries, "b");
        kills.add(kill("a"));
        kills.hear(witness("a", 7, 11));
        kills.hear(witness("a", 8, 12));
        kills.name(at(0));
        assert_eq!(pids(&kills), [Some(7), Some(8)]);
        stored(&mut kills, &mut entries);
        // Another boot counts its records anew.
        let mut kills = Kills::restore(&entries, "c");
        kills.add(kill("a"));
        kills.hear(witness("a", 9, 3));
        kills.name(at(0));
        assert_eq!(pids(&kills), [Some(7), Some(8), Some(9)]);
    }

    /// Beyond ten kills in five seconds the kernel does not say whose a process was.
    #[test]
    fn a_kill_of_nobody_known_is_that_of_the_only_one_it_can_be() {
        let unknown = |pid| Witness {
            victim: None,
            ..witness("", pid, u64::from(pid.unsigned_abs()))
        };
        let mut kills = Kills::restore(&[], "b");
        kills.add(kill("a"));
        kills.add(kill("a"));
        for pid in [7, 8, 9] {
            kills.hear(unknown(pid));
        }
        kills.name(at(0));
        assert_eq!(pids(&kills), [Some(7), Some(8)]);
        let list = kills.list(None, None);
        assert!(list.iter().all(|kill| kill.log.as_ref().unwrap().inferred));
        // Two that it may be: nobody is named.
        let mut kills = Kills::restore(&[], "b");
        kills.add(kill("a"));
        kills.add(kill("b"));
        kills.hear(unknown(7));
        kills.name(at(0));
        assert_eq!(pids(&kills), [None, None]);
    }

    #[test]
    fn what_was_told_long_ago_names_nothing_new() {
        let mut kills = Kills::restore(&[], "b");
        kills.hear(witness("a", 7, 11));
        kills.name(at(100));
        kills.add(kill("a"));
        kills.name(at(100));
        assert_eq!(pids(&kills), [None]);
    }

    #[test]
    fn no_more_than_a_bounded_number_is_kept() {
        let mut kills = Kills::restore(&[], "b");
        let mut entries = Vec::new();
        for _ in 0..1200 {
            kills.add(kill("a"));
            kills.hear(witness("nobody", 1, 1));
        }
        stored(&mut kills, &mut entries);
        assert_eq!((kills.list(None, None).len(), entries.len()), (KEPT, KEPT));
        assert_eq!(kills.witnesses.len(), WITNESSES);
        let kills = Kills::restore(&entries, "b");
        assert_eq!(kills.list(None, None)[0].id, 200);
    }
}
