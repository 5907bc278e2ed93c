//! What the kernel's log adds to the OOM kills that were counted: names and sizes.
//!
//! It must never make a kill: a line of the log is a reason to look at the counters.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::entry::Live;
use super::kills::Witness;
use super::request::PodKey;
use super::run::Agent;
use crate::model::PodUid;
use crate::observation::kmsg::{Kill, Told};
use crate::observation::oom::OomRise;
use crate::report::oom::{OomKill, OomLimit, OomLog};
use crate::translation::layout::POD_PREFIX;

/// So long after a kill in the log its count is waited for: the kernel counts first.
const WAITS: SignedDuration = SignedDuration::from_secs(5);

/// The processes of a group kill are counted within this time of each other.
const GROUP_WITHIN: SignedDuration = SignedDuration::from_secs(1);

/// At the most so many records are made at once; no more are kept anyway.
const AT_ONCE: u64 = 1000;

impl Agent {
    /// Hears what the log tells; `None`: all is told that was there when the agent started.
    pub(super) fn hear(&mut self, told: Option<Told>) {
        match told {
            Some(Told::Kill(kill)) => self.hear_of_kill(&kill),
            Some(Told::Group(_)) => {}
            Some(Told::Lost(records)) => {
                tracing::warn!("{records} records of the kernel's log were overwritten");
            }
            None => self.caught_up = true,
        }
        self.name_kills();
    }

    fn hear_of_kill(&mut self, kill: &Kill) {
        let (sizes, cause) = (&kill.sizes, &kill.cause);
        let found = self.container_of(kill);
        // A process of somebody else, and the log says so.
        let is_foreign = cause.task_memcg.is_some() || cause.group.is_some();
        if found.is_none() && is_foreign {
            return;
        }
        let victim = found.as_ref().and_then(|(key, container)| {
            let uid = self.pods.get(key)?.uid().to_string();
            Some((uid, container.clone()))
        });
        let constraint = cause.constraint.and_then(|constraint| {
            let text = serde_json::to_value(constraint).ok()?;
            Some(text.as_str()?.to_owned())
        });
        let pid = kill.process.unwrap_or(kill.pid);
        self.kills.hear(Witness {
            victim,
            time: wall_time(kill.micros),
            pids: [pid, kill.pid],
            limit: cause.limit_bytes,
            usage: cause.usage_bytes,
            cgroup: cause
                .oom_memcg
                .as_deref()
                .and_then(|path| self.below_top(path)),
            group: cause.group.is_some(),
            log: OomLog {
                sequence: kill.sequence,
                monotonic_usec: kill.micros,
                pid,
                name: kill.name.clone(),
                uid: kill.uid,
                total_vm_bytes: sizes.total_vm_bytes,
                anon_rss_bytes: sizes.anon_rss_bytes,
                file_rss_bytes: sizes.file_rss_bytes,
                shmem_rss_bytes: sizes.shmem_rss_bytes,
                page_table_bytes: sizes.page_table_bytes,
                oom_score_adj: sizes.oom_score_adj,
                constraint,
                oom_memcg: cause.oom_memcg.clone(),
                task_memcg: cause.task_memcg.clone(),
                stat: cause
                    .stat
                    .iter()
                    .map(|(name, bytes)| ((*name).to_owned(), *bytes))
                    .collect(),
                asked_by: cause.asked_by.clone(),
                gfp_mask: cause.gfp_mask.clone(),
                order: cause.order,
                inferred: false,
            },
        });
        if let Some((key, _)) = found {
            self.look_for_oom(&key);
        }
    }

    /// The container of a victim: by the path of its cgroup, or where a report was cut short by the id of
    /// its main process.
    fn container_of(&self, kill: &Kill) -> Option<(PodKey, String)> {
        let cause = &kill.cause;
        // A group kill names its cgroup even then.
        if let Some(path) = cause.task_memcg.as_ref().or(cause.group.as_ref()) {
            return self.container_at(path);
        }
        self.pods.iter().find_map(|(key, entry)| {
            let main = entry.live.iter().find(
                |(_, live)| matches!(live, Live::Running(main) if main.process.pid == kill.pid),
            )?;
            Some((key.clone(), main.0.clone()))
        })
    }

    /// The container at or above a path from the kernel's root. What a container makes for itself lies
    /// below, so the first pod on the way is the one.
    fn container_at(&self, path: &str) -> Option<(PodKey, String)> {
        let mut names = path.split('/');
        let key = names.find_map(|name| {
            let uid = PodUid::new(name.strip_prefix(POD_PREFIX)?)?;
            self.by_uid.get(&uid)
        })?;
        let container = names.next()?;
        let entry = self.pods.get(key)?;
        let known = entry.container_names().any(|name| name == container);
        known.then(|| (key.clone(), container.to_owned()))
    }

    /// A path from the kernel's root as one from the top cgroup, if it is that of a pod or below one.
    fn below_top(&self, path: &str) -> Option<String> {
        let (_, rest) = path.split_once(&format!("/{POD_PREFIX}"))?;
        let (uid, inner) = rest.split_once('/').unwrap_or((rest, ""));
        let key = self.by_uid.get(&PodUid::new(uid)?)?;
        let pod = self.pods.get(key)?.path();
        Some(format!("{pod}/{inner}").trim_end_matches('/').to_owned())
    }

    /// A record for each process that a container has lost.
    pub(super) fn keep_kills(
        &mut self,
        key: &PodKey,
        container: &str,
        rise: OomRise,
        limit: &OomLimit,
    ) {
        let now = Timestamp::now();
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        let (uid, attempt) = (entry.uid().to_string(), entry.attempt(container));
        let main = match entry.live(container) {
            Live::Running(main) => Some((main.process.pid, main.since)),
            // It may have ended while nobody looked.
            _ => self.main_of_run(key, container, attempt),
        };
        let main_pid = main.map(|(pid, _)| pid);
        let pressure_avg10 = self.pressure_of(key, container);
        // The kernel counts the process it chose, then the group, then one process of it after the other,
        // and any look may come in between.
        let since = now.checked_sub(GROUP_WITHIN).unwrap_or_default();
        let mut group = rise.groups > 0;
        self.kills.change_latest(&uid, container, |kill| {
            let recent = kill.time >= since && kill.main_pid == main_pid;
            if recent && rise.groups > 0 {
                kill.group = true;
            }
            group |= recent && kill.group;
            recent
        });
        for _ in 0..rise.killed.min(AT_ONCE) {
            self.kills.add(OomKill {
                id: 0,
                time: now,
                boot_id: String::new(),
                namespace: key.namespace.clone(),
                pod: key.name.clone(),
                uid: uid.clone(),
                container: container.to_owned(),
                restart_count: attempt,
                group,
                main: None,
                main_pid,
                main_started: main.map(|(_, since)| since),
                pressure_avg10,
                limit: limit.clone(),
                log: None,
            });
        }
        self.name_kills();
    }

    /// `memory.pressure` of a container, as [`OomKill`] has it.
    fn pressure_of(&mut self, key: &PodKey, container: &str) -> Option<[u32; 2]> {
        let path = self.pods.get(key)?.container_path(container)?;
        let sample = self.kernel.reader().sample(&path).ok()??;
        let pressure = sample.memory_pressure?;
        Some([pressure.some?.avg10, pressure.full?.avg10])
    }

    fn main_of_run(&self, key: &PodKey, container: &str, attempt: u32) -> Option<(i32, Timestamp)> {
        let id = self.container_id(key, container)?.attempt(attempt);
        let started = self.runtime.started(&id).ok()??;
        Some((started.process.pid, started.started_at))
    }

    /// The end of a container's main process was an OOM kill: that of the only record there can be.
    pub(super) fn main_was_killed(&mut self, key: &PodKey, container: &str) {
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        let (uid, attempt) = (entry.uid().to_string(), entry.attempt(container));
        let (mut records, mut known) = (0, false);
        self.kills.change_latest(&uid, container, |kill| {
            let of_run = kill.restart_count == attempt;
            records += usize::from(of_run && kill.main.is_none());
            known |= of_run && kill.main == Some(true);
            of_run
        });
        if records == 1 && !known {
            self.kills.change_latest(&uid, container, |kill| {
                let undecided = kill.main.is_none();
                kill.main = kill.main.or(Some(true));
                !undecided
            });
        }
    }

    /// Names what can be named now.
    pub(super) fn name_kills(&mut self) {
        // While the log is read from its beginning, what it tells is old and yet new.
        let forget_before = if self.caught_up {
            Timestamp::now().checked_sub(WAITS).unwrap_or_default()
        } else {
            Timestamp::MIN
        };
        self.kills.name(forget_before);
    }
}

/// When something was that the log dates in microseconds since boot.
fn wall_time(micros: u64) -> Timestamp {
    let now = Timestamp::now();
    let clock = nix::time::ClockId::CLOCK_MONOTONIC;
    let Ok(up) = nix::time::clock_gettime(clock).map(Duration::from) else {
        return now;
    };
    let ago = up.saturating_sub(Duration::from_micros(micros));
    SignedDuration::try_from(ago)
        .ok()
        .and_then(|ago| now.checked_sub(ago).ok())
        .unwrap_or(now)
}
