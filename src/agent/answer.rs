//! Answers to questions: what is so, told without changing anything.

use std::path::PathBuf;

use super::entry::{Live, PodEntry};
use super::events::Severity;
use super::request::{PodKey, Refusal, Reply, Request, UsageParts};
use super::run::Agent;
use crate::cgroup::{CgroupPath, ControllerSet, InterfaceFile};
use crate::enforcement;
use crate::report::accounts::Accounts;
use crate::report::explain::{self, PodExplanation};
use crate::report::pod::conditions;
use crate::report::{DiffReport, DiffRow, StatusReport};

/// So many of the settings that are not in effect are named in the status.
const SHOWN: usize = 8;

impl Agent {
    /// Answers one request. An asker that went away is no error.
    pub(super) fn answer(&mut self, request: Request) {
        match request {
            Request::PutPod { object, how, reply } => {
                let answer = self.put_pod(object, how);
                self.send(reply, answer);
            }
            Request::ResizePod {
                object,
                dry_run,
                reply,
            } => {
                let answer = self.resize_pod(&object, dry_run);
                self.send(reply, answer);
            }
            Request::DeletePod {
                key,
                grace_seconds,
                uid,
                dry_run,
                reply,
            } => {
                let answer = self.delete_pod(&key, grace_seconds, uid.as_deref(), dry_run);
                self.send(reply, answer);
            }
            Request::PatchNode(patch, reply) => {
                let answer = self.patch_node(&patch);
                self.send(reply, answer);
            }
            Request::PutObject {
                kind,
                object,
                how,
                reply,
            } => {
                let answer = self.put_object(kind, *object, how);
                self.send(reply, answer);
            }
            Request::DeleteObject {
                key,
                uid,
                dry_run,
                reply,
            } => {
                let answer = self.delete_object(&key, uid.as_deref(), dry_run);
                self.send(reply, answer);
            }
            Request::Attach {
                key,
                container,
                pid,
                children,
                reply,
            } => {
                let answer = self.attach(&key, &container, pid, children);
                self.send(reply, answer);
            }
            Request::Explain(key, reply) => drop(reply.send(self.explain(&key))),
            Request::Usage(key, reply) => drop(reply.send(self.usage(&key))),
            Request::Census(reply) => drop(reply.send(Ok(Box::new(self.census())))),
            Request::Accounts(reply) => {
                drop(reply.send(Ok(Box::new(Accounts::of(&self.ledger)))));
            }
            Request::OomKills {
                namespace,
                pod,
                reply,
            } => drop(reply.send(Ok(self.kills.list(namespace.as_deref(), pod.as_deref())))),
            Request::Evict {
                key,
                grace_seconds,
                reply,
            } => {
                let answer = self.evict_by_hand(&key, grace_seconds);
                self.send(reply, answer);
            }
            Request::Eviction(reply) => drop(reply.send(Ok(Box::new(self.eviction())))),
            Request::Diff(reply) => drop(reply.send(self.diff())),
            Request::Orphans(end, reply) => {
                let answer = self.list_orphans(end);
                self.send(reply, answer);
            }
            Request::Drifts(after, reply) => drop(reply.send(Ok(self.drifts.after(after)))),
            Request::Status(reply) => {
                let answer = (Box::new(self.status()), self.kernel.reader());
                drop(reply.send(Ok(answer)));
            }
            Request::Alive(reply) => drop(reply.send(Ok(()))),
            Request::Config(reply) => drop(reply.send(Ok(Box::new(self.config.clone())))),
            Request::Reload { read, reply } => {
                let answer = self.reload(read);
                self.send(reply, answer);
            }
            Request::LogFile {
                key,
                container,
                previous,
                reply,
            } => drop(reply.send(self.log_file(&key, container.as_deref(), previous))),
        }
    }

    /// Answers somebody who has changed something: who reads after that sees it.
    fn send<T>(&self, reply: Reply<T>, answer: Result<T, Refusal>) {
        self.handle.cache().flush();
        drop(reply.send(answer));
    }

    /// Conditions are kept, so that each knows since when it is so.
    pub(super) fn refresh_conditions(&mut self, key: &PodKey) {
        let Some(entry) = self.pods.get_mut(key) else {
            return;
        };
        let now = conditions(
            entry.phase(),
            &entry.statuses(),
            &entry.enforced,
            entry.resize().as_ref(),
            &entry.record.conditions,
            jiff::Timestamp::now(),
        );
        if now != entry.record.conditions {
            entry.record.conditions = now;
            entry.dirty = true;
        }
    }

    fn explain(&mut self, key: &PodKey) -> Result<Box<PodExplanation>, Refusal> {
        let Some(path) = self.pods.get(key).map(PodEntry::path) else {
            return Err(Refusal::not_found("pods", &key.name));
        };
        let found = self
            .found_around(&path)
            .map_err(|error| Refusal::internal(error.to_string()))?;
        let entry = self
            .pods
            .get(key)
            .ok_or_else(|| Refusal::not_found("pods", &key.name))?;
        let judged = explain::Judged {
            pod: entry.admitted.pod(),
            qos: entry.admitted.qos(),
            effective: entry.admitted.effective(),
            defaults: entry.record.defaults.clone(),
            reasons: &[],
            warnings: entry.record.warnings.clone(),
        };
        Ok(Box::new(explain::pod(
            judged,
            Some((&entry.translated, &self.levels)),
            Some(&found),
        )))
    }

    fn usage(&mut self, key: &PodKey) -> Result<UsageParts, Refusal> {
        let Some(entry) = self.pods.get(key) else {
            return Err(Refusal::not_found("pods", &key.name));
        };
        Ok(UsageParts {
            pod: self.pod_place(entry),
            reader: self.kernel.reader(),
        })
    }

    fn diff(&mut self) -> Result<DiffReport, Refusal> {
        let top = CgroupPath::top();
        let found = self
            .found_around(&top)
            .map_err(|error| Refusal::internal(error.to_string()))?;
        let rows: Vec<_> = enforcement::diff(&top, &self.wanted, &found, self.kernel.page_size())
            .into_iter()
            .map(|row| DiffRow {
                path: row.path.to_string(),
                file: row.file.unwrap_or_default(),
                wanted: row.wanted.unwrap_or_default(),
                kernel: row.kernel.unwrap_or_default(),
                verdict: row.verdict.to_string(),
            })
            .collect();
        Ok(DiffReport {
            drift: rows.iter().any(|row| row.verdict != "same"),
            rows,
        })
    }

    fn status(&mut self) -> StatusReport {
        let controllers = self.kernel.controllers().unwrap_or_default();
        let names = |set: &ControllerSet| set.iter().map(|c| c.to_string()).collect();
        let missing = crate::translation::controllers(&self.policy).without(&controllers);
        let mut problems: Vec<_> = self.problems.values().cloned().collect();
        problems.extend(self.kernel.remarks());
        problems.extend(self.store.journal_problem());
        problems.extend(self.evictor.faults());
        problems.extend(self.statics.problems());
        let unenforced: Vec<_> = self.unenforced.values().flatten().collect();
        problems.extend(unenforced.iter().copied().take(SHOWN).cloned());
        if let Some(more) = unenforced.len().checked_sub(SHOWN)
            && more > 0
        {
            problems.push(format!("{more} more like these; allot diff shows all"));
        }
        StatusReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            node: self.node.name.clone(),
            cgroup_root: self.config.cgroup_root.display().to_string(),
            controllers: names(&controllers),
            missing_controllers: names(&missing),
            pods: self.ledger.pods(),
            running_containers: u64::try_from(
                self.pods
                    .values()
                    .flat_map(|entry| entry.live.values())
                    .filter(|live| matches!(live, Live::Running(_)))
                    .count(),
            )
            .unwrap_or(u64::MAX),
            cgroups: None,
            uptime_seconds: u64::try_from(
                jiff::Timestamp::now()
                    .duration_since(self.started)
                    .as_secs(),
            )
            .unwrap_or(0),
            tallies: self.tallies.clone(),
            problems,
            notes: self
                .log
                .as_ref()
                .err()
                .map(|why| format!("OOM kills are counted but not named: {why}"))
                .into_iter()
                .chain(self.evictor.notes())
                .chain(self.orphans.note.clone())
                .collect(),
        }
    }

    fn log_file(
        &self,
        key: &PodKey,
        container: Option<&str>,
        previous: bool,
    ) -> Result<PathBuf, Refusal> {
        let entry = self
            .pods
            .get(key)
            .ok_or_else(|| Refusal::not_found("pods", &key.name))?;
        let names: Vec<_> = entry.container_names().collect();
        let list = names.join(" ");
        let name = match (container, names.as_slice()) {
            (Some(name), _) if names.contains(&name) => name,
            (Some(name), _) => {
                return Err(Refusal::bad_request(format!(
                    "container {name} is not valid for pod {}: its containers are [{list}]",
                    key.name
                )));
            }
            (None, [only]) => only,
            (None, _) => {
                return Err(Refusal::bad_request(format!(
                    "a container name must be specified for pod {}, choose one of: [{list}]",
                    key.name
                )));
            }
        };
        let attempt = entry.attempt(name);
        let waiting = matches!(entry.live(name), Live::Idle)
            && entry
                .container_record(name)
                .is_none_or(|record| record.end.is_none());
        // Between two runs the last one that ended is the present one.
        let back = u32::from(previous) + u32::from(waiting && attempt > 0);
        let Some(attempt) = attempt.checked_sub(back) else {
            return Err(Refusal::bad_request(format!(
                "previous terminated container {name:?} in pod {:?} not found",
                key.name
            )));
        };
        let id = self
            .container_id(key, name)
            .ok_or_else(|| Refusal::internal("the container has no name for the runtime"))?;
        Ok(self.runtime.log_path(&id.attempt(attempt)))
    }

    /// Forks that the kernel refused for a pod's bound, told once for each rise. Before Linux 6.11
    /// they are counted where the fork was tried, which is in a container, since then where the bound
    /// is.
    pub(super) fn look_for_refused_forks(&mut self, key: &PodKey) {
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        let path = entry.path();
        let containers: Vec<_> = entry
            .translated
            .oom_scores
            .iter()
            .filter_map(|(name, _)| entry.container_path(name))
            .collect();
        let refused = self.refused_forks(&path).max(
            containers
                .iter()
                .map(|container| self.refused_forks(container))
                .sum(),
        );
        let Some(entry) = self.pods.get_mut(key) else {
            return;
        };
        if refused <= entry.record.pids_refused {
            return;
        }
        entry.record.pids_refused = refused;
        entry.dirty = true;
        let bound = match self
            .applied
            .get(&path)
            .and_then(|node| node.get(InterfaceFile::PidsMax))
        {
            Some(setting) => setting.value(),
            None => "unknown".to_owned(),
        };
        let message = format!("forks are refused: pids.max of the pod, {bound}, is reached");
        self.event(key, "", Severity::Warning, "PIDLimitReached", &message);
    }

    fn refused_forks(&mut self, path: &CgroupPath) -> u64 {
        self.kernel
            .counters(path)
            .ok()
            .and_then(|counters| counters.pids_refused)
            .unwrap_or(0)
    }
}
