//! Start-up: what was promised (the store), what runs (the runtime's files), what the kernel holds.
//!
//! Nothing is assumed of the last run, which may have ended at any instant. A pod is brought from
//! wherever it is to where it should be by the same steps as ever.

use std::collections::BTreeMap;
use std::time::Duration;

use super::admit::uid_of;
use super::cpus::Cpus;
use super::entry::{Live, PodEntry};
use super::events::{Events, Severity};
use super::kills::{DIRECTORY, Kills};
use super::node::{ADVERTISED_KEY, build};
use super::node_end::NodeEnd;
use super::record::PodRecord;
use super::request::PodKey;
use super::run::{Agent, LEVELS_KEY, Parts, StartupError};
use super::since::uptime_millis;
use super::statics::Statics;
use k8s_openapi::api::core::v1;

use crate::admission::{self, AdmittedPod};
use crate::cgroup::{CgroupPath, Op, Pid};
use crate::manifest::convert;
use crate::model::{PodUid, ResourceList};
use crate::observation::storage::projects::FileSystems;
use crate::runtime::AttemptState;
use crate::store::Entry;
use crate::units::Quantity;

/// The leaf that shims live in, beside the pods: they outlive the agent under any supervisor.
const SHIMS: &str = "shims";

impl Agent {
    /// What is kept, and the pods that are still to be restored.
    fn open(parts: Parts) -> Result<(Self, Vec<Entry>), StartupError> {
        let advertised: ResourceList = match parts.store.get(ADVERTISED_KEY)? {
            Some(entry) => serde_json::from_slice::<BTreeMap<String, Quantity>>(&entry.value)
                .unwrap_or_default()
                .into_iter()
                .map(|(name, amount)| (name.as_str().into(), amount))
                .collect(),
            None => ResourceList::default(),
        };
        let node = build(&parts.config, &parts.facts, &advertised).map_err(StartupError::Node)?;
        let cpus = Cpus::of(&parts.config, &parts.facts)?;
        let events = Events::restore(parts.store.list("events/")?);
        let revision = parts.store.revision()?;
        let levels = parts.store.get(LEVELS_KEY)?;
        let pods = parts.store.list("pods/")?;
        let kills = Kills::restore(&parts.store.list(DIRECTORY)?, &parts.system.boot_id);
        let mut agent = Self::empty(parts, node, events, revision);
        agent.kills = kills;
        agent.cpus = cpus;
        agent.system.offline_cpus = agent.facts.offline;
        agent.caught_up = agent.log.is_err();
        agent.advertised = advertised;
        if let Some(levels) = levels {
            agent.levels_seen = serde_json::from_slice(&levels.value).unwrap_or_default();
        }
        Ok((agent, pods))
    }

    /// An agent that only ends what runs, within so long.
    pub(super) fn restore_to_end(parts: Parts, most: Duration) -> Result<Self, StartupError> {
        let (mut agent, pods) = Self::open(parts)?;
        agent.node_end = Some(NodeEnd::new(most));
        agent.refresh_levels();
        for entry in pods {
            agent.restore_pod(&entry);
        }
        agent.begin_node_end();
        Ok(agent)
    }

    /// The agent as the last one left it.
    pub(super) fn restore(parts: Parts) -> Result<Self, StartupError> {
        let (mut agent, pods) = Self::open(parts)?;
        agent.heed_loss();
        let objects = agent.store.list("objects/")?;
        agent.restore_objects(&objects);
        agent.make_shim_cgroup();
        agent.projects.file_systems = agent.counting_file_systems();
        agent.refresh_levels();
        for entry in pods {
            agent.restore_pod(&entry);
        }
        agent.forgive_in_a_new_boot();
        agent.reattach_all();
        let doubtful = agent.assume_applied();
        agent.begin_placing();
        // The whole tree at once: what nobody wants any more goes too.
        agent.take_over(&doubtful);
        agent.look_for_orphaned_files();
        agent.stamp();
        for key in agent.pods.keys().cloned().collect::<Vec<_>>() {
            agent.look_for_oom(&key);
            agent.resume(&key);
            agent.drive(&key);
        }
        agent.make_missing_namespaces();
        agent.publish_all();
        agent.end_namespaces();
        agent.statics = Statics::start(&agent.config, &agent.node.name, &agent.handle);
        Ok(agent)
    }

    fn make_shim_cgroup(&mut self) {
        let made = CgroupPath::top()
            .child(SHIMS)
            .map_err(|error| error.to_string())
            .and_then(|path| {
                let made = match self.kernel.look(&path) {
                    Ok(Some(_)) => Ok(()),
                    _ => self.kernel.perform(&Op::Create(path)),
                };
                made.map_err(|error| error.to_string())
            });
        match made {
            Ok(()) => self.runtime.shim_cgroup = Some(self.config.cgroup_root.join(SHIMS)),
            Err(why) => tracing::warn!("shims stay in the agent's own cgroup: {why}"),
        }
    }

    /// The file systems of the pods' files, if they count by project.
    fn counting_file_systems(&self) -> Option<FileSystems> {
        let directories = [self.runtime.state.as_path(), self.runtime.logs.as_path()];
        for directory in directories {
            if let Err(error) = std::fs::create_dir_all(directory) {
                tracing::warn!("cannot make {}: {error}", directory.display());
            }
        }
        let counting = FileSystems::look(&directories);
        let how = if counting.is_some() {
            "counted by the file system (project quotas)"
        } else {
            "measured by walks: the file system has no project quotas"
        };
        tracing::info!("disk use is {how}");
        counting
    }

    /// One pod from the store. A record that cannot be used is told and left where it is.
    fn restore_pod(&mut self, stored: &Entry) {
        let mut record: PodRecord = match serde_json::from_slice(&stored.value) {
            Ok(record) => record,
            Err(error) => {
                let problem = format!("record {} cannot be read: {error}", stored.key);
                tracing::error!("{problem}");
                self.problems.insert(stored.key.clone(), problem);
                match uid_in(&stored.value) {
                    Some(uid) => drop(self.stranded.insert(uid)),
                    None => self.orphans.spared = true,
                }
                return;
            }
        };
        let Some(uid) = uid_of(&record.object) else {
            let problem = format!("record {} has no usable uid", stored.key);
            self.problems.insert(stored.key.clone(), problem);
            self.orphans.spared = true;
            return;
        };
        if let Some(deletion) = &mut record.deletion {
            deletion.date(uptime_millis());
        }
        // What was kept before probes had an effect is shown like all others.
        if let Some(spec) = record.object.spec.as_mut() {
            convert::fill_in_probes(spec);
        }
        match readmit(&record.allocated(), &uid) {
            Ok(admitted) => {
                let lost = self.sift_cpus(&mut record);
                let translated = self.translate(&admitted, &record.cpus);
                self.projects.take(record.projects.values().copied());
                let mut entry = PodEntry::new(record, stored.revision, admitted, translated);
                let key = entry.key();
                entry.restore_resize();
                entry.overlay_adopted();
                if entry.desired.is_some() {
                    self.waiting.insert(key.clone());
                }
                self.by_uid.insert(uid, key.clone());
                self.pods.insert(key.clone(), entry);
                self.adopt(&key);
                self.account(&key);
                self.tell_of_lost_cpus(&key, &lost);
            }
            Err(why) => {
                self.stranded.insert(uid);
                let problem = format!(
                    "pod {} is not valid any more, so it is left as it is: {why}",
                    stored.key
                );
                tracing::error!("{problem}");
                self.problems.insert(stored.key.clone(), problem);
            }
        }
    }

    /// What the containers of a restored pod do now. Those that run are noted before anything is
    /// planned, so that nothing is taken for over that is not.
    fn adopt(&mut self, key: &PodKey) {
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        let names: Vec<_> = entry.container_names().map(str::to_owned).collect();
        for name in names {
            let Some(entry) = self.pods.get(key) else {
                return;
            };
            let record = entry.container_record(&name).cloned().unwrap_or_default();
            if let Some(attached) = &record.attached {
                if record.end.is_none() {
                    self.note_attached(key, &name, attached);
                }
                continue;
            }
            if record.end.is_some() {
                continue;
            }
            let Some(id) = self.container_id(key, &name) else {
                continue;
            };
            match self.runtime.inspect(&id.attempt(record.attempt)) {
                Ok(AttemptState::Running(running)) => self.note_running(key, &name, running),
                Ok(AttemptState::Starting) => {
                    // Somebody else's start is under way: asking again waits for it.
                    if let Some(entry) = self.pods.get_mut(key) {
                        entry.live.insert(name, Live::Idle);
                    }
                }
                Ok(AttemptState::NotStarted | AttemptState::Exited(_) | AttemptState::Lost(_)) => {}
                Err(error) => {
                    tracing::error!(
                        POD = key.name,
                        NAMESPACE = key.namespace,
                        CONTAINER = name,
                        "cannot look at container {name} of {key}: {error}"
                    );
                }
            }
        }
        let over = self.pods.get(key).is_some_and(PodEntry::is_over);
        if !over {
            self.place(key);
        }
    }

    /// Runs that ended while nobody looked.
    fn resume(&mut self, key: &PodKey) {
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        let idle: Vec<_> = entry
            .container_names()
            .map(str::to_owned)
            .filter(|name| *entry.live(name) == Live::Idle)
            .filter(|name| {
                entry
                    .container_record(name)
                    .is_none_or(|record| record.end.is_none() && record.attached.is_none())
            })
            .collect();
        for name in idle {
            let attempt = self.pods.get(key).map_or(0, |entry| entry.attempt(&name));
            let Some(id) = self.container_id(key, &name) else {
                continue;
            };
            match self.runtime.inspect(&id.attempt(attempt)) {
                Ok(AttemptState::Exited(exit)) => {
                    self.note_end(key, &name, super::ends::termination(exit));
                }
                Ok(AttemptState::Lost(lost)) => {
                    self.note_end(key, &name, super::ends::lost_termination(&lost));
                }
                _ => {}
            }
        }
    }

    /// Processes whose attachment was promised but perhaps not done.
    fn reattach_all(&mut self) {
        let promised: Vec<_> = self
            .pods
            .iter()
            .flat_map(|(key, entry)| {
                entry
                    .live
                    .iter()
                    .filter_map(move |(name, live)| match live {
                        Live::Running(main) if entry.is_attached(name) => {
                            Some((key.clone(), name.clone(), main.process.clone()))
                        }
                        _ => None,
                    })
            })
            .collect();
        for (key, name, process) in promised {
            let Some(path) = self
                .pods
                .get(&key)
                .and_then(|entry| entry.container_path(&name))
            else {
                continue;
            };
            let there = self.kernel.processes(&path).unwrap_or_default();
            if there.contains(&Pid(process.pid)) || !process.is_alive().unwrap_or(false) {
                continue;
            }
            let scope = path.clone();
            self.enforce(&scope);
            if let Err(error) = self.kernel.perform(&Op::Attach(path, Pid(process.pid))) {
                self.event(
                    &key,
                    &name,
                    Severity::Warning,
                    "FailedAttach",
                    &format!(
                        "process {} is not in container {name}: {error}",
                        process.pid
                    ),
                );
            }
        }
    }
}

/// The uid in a record that is no record any more.
fn uid_in(text: &[u8]) -> Option<PodUid> {
    let record: serde_json::Value = serde_json::from_slice(text).ok()?;
    PodUid::new(record.pointer("/object/metadata/uid")?.as_str()?)
}

/// A pod as it was stored.
///
/// # Errors
/// Why it is not valid any more.
pub(super) fn readmit(object: &v1::Pod, uid: &PodUid) -> Result<AdmittedPod, String> {
    let read = convert::pod(object, uid);
    let texts: Vec<_> = if read.problems.is_empty() {
        match admission::readmit(read.object) {
            Ok(admitted) => return Ok(admitted),
            Err(reasons) => reasons.iter().map(ToString::to_string).collect(),
        }
    } else {
        read.problems.iter().map(ToString::to_string).collect()
    };
    Err(texts.join("; "))
}
