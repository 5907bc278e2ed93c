//! OOM kills: found in the counters, told once, with the container that lost processes and the limit
//! that was hit.

use std::time::{Duration, Instant};

use super::entry::Live;
use super::events::Severity;
use super::request::PodKey;
use super::run::Agent;
use crate::cgroup::{CgroupPath, Counters, InterfaceFile};
use crate::model::{ContainerKind, QosClass};
use crate::observation::oom::{LimitOwner, OomRise, OomSeen, limit_owner};
use crate::report::oom::OomLimit;
use crate::translation::{Place, qos_path};
use crate::units::Bytes;

/// The kernel counts `oom` before `oom_kill`, and tells of both at most every 12 ms or so: after a
/// rise of `oom` alone the files are read again this much later.
const SECOND_LOOK: Duration = Duration::from_millis(15);

/// How long a rise of `oom` at or above a victim explains its kill.
const EXPLAINS: Duration = Duration::from_secs(1);

/// How long after an OOM kill in its container a main process is asked whether it was the victim.
const SUSPICION: Duration = Duration::from_millis(150);

impl Agent {
    /// Reads the counters of a pod and tells of every kill that is new. Victims are read before the
    /// limits above them: the kernel counts `oom` first, so whatever led to a kill that was seen is
    /// seen too.
    pub(super) fn look_for_oom(&mut self, key: &PodKey) {
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        let (qos, pod) = (entry.admitted.qos(), entry.path());
        let names: Vec<_> = entry.container_names().map(str::to_owned).collect();
        let (mut oom, mut kills) = (false, Vec::new());
        for name in names {
            let Ok(path) = pod.child(&name) else {
                continue;
            };
            let Some((rise, peak)) = self.look_at_container(key, &name, &path) else {
                continue;
            };
            oom |= rise.oom > 0 || rise.inner > 0;
            if rise.killed > 0 {
                kills.push((name, path, rise, peak));
            }
        }
        oom |= self.look_at_pod(key, &pod).oom > 0;
        self.look_at_levels(qos);
        if oom && kills.is_empty() {
            self.wake_pod(key, SECOND_LOOK);
        }
        for (name, path, rise, peak) in kills {
            let owner = self.limit_owner(key, &name, &path, qos);
            self.tell_of_kill(key, &name, rise, owner, peak);
        }
    }

    /// What is new in a container's cgroup, and the peak of its memory.
    fn look_at_container(
        &mut self,
        key: &PodKey,
        name: &str,
        path: &CgroupPath,
    ) -> Option<(OomRise, Option<Bytes>)> {
        let counters = self.kernel.counters(path).ok()?;
        let mut rise = self.take_rise(key, name, &counters);
        if rise.killed > 0 && rise.oom == 0 && rise.inner == 0 {
            // Both are lines of one file, which the kernel does not write at one instant.
            let again = self.kernel.counters(path).ok()?;
            let more = self.take_rise(key, name, &again);
            rise.oom = more.oom;
            rise.inner = more.inner;
            rise.killed = rise.killed.saturating_add(more.killed);
            rise.groups = rise.groups.saturating_add(more.groups);
        }
        if rise.oom > 0 {
            self.oom_rises.insert(path.clone(), Instant::now());
        }
        if rise.inner > 0 {
            self.inner_rises.insert(path.clone(), Instant::now());
        }
        Some((rise, counters.memory_peak))
    }

    fn look_at_pod(&mut self, key: &PodKey, path: &CgroupPath) -> OomRise {
        let (Ok(counters), Some(entry)) = (self.kernel.counters(path), self.pods.get_mut(key))
        else {
            return OomRise::default();
        };
        let before = entry.record.oom_seen;
        let rise = entry.record.oom_seen.take(&counters);
        entry.dirty |= entry.record.oom_seen != before;
        if rise.oom > 0 {
            self.oom_rises.insert(path.clone(), Instant::now());
        }
        rise
    }

    /// Takes what is new in a container's counters, and remembers it as told.
    fn take_rise(&mut self, key: &PodKey, container: &str, counters: &Counters) -> OomRise {
        let Some(entry) = self.pods.get_mut(key) else {
            return OomRise::default();
        };
        let before = entry
            .container_record(container)
            .map_or_else(OomSeen::default, |record| record.oom_seen);
        let mut seen = before;
        let rise = seen.take(counters);
        if seen != before {
            let record = entry.change(container);
            record.oom_seen = seen;
            record.oom_kills = record.oom_kills.saturating_add(rise.killed);
        }
        rise
    }

    /// New rises at the levels above the pods of a class.
    pub(super) fn look_at_levels(&mut self, qos: QosClass) {
        for path in qos_path(qos).self_and_above() {
            let Ok(counters) = self.kernel.counters(&path) else {
                continue;
            };
            let seen = self.levels_seen.entry(path.to_string()).or_default();
            let before = *seen;
            let rise = seen.take(&counters);
            self.levels_dirty |= *seen != before;
            if rise.oom > 0 {
                self.oom_rises.insert(path, Instant::now());
            }
        }
    }

    /// A cgroup was made: whatever was told of an earlier one at its place, this one counts from 0.
    pub(super) fn count_from_zero(&mut self, path: &CgroupPath) {
        let place = Place::of(path);
        let Some(uid) = place.as_ref().and_then(Place::uid) else {
            self.levels_dirty |= self.levels_seen.remove(&path.to_string()).is_some();
            return;
        };
        let Some(entry) = self.by_uid.get(uid).and_then(|key| self.pods.get_mut(key)) else {
            return;
        };
        match place.as_ref().and_then(Place::container) {
            None => {
                let told =
                    entry.record.oom_seen != OomSeen::default() || entry.record.pids_refused > 0;
                entry.record.oom_seen = OomSeen::default();
                entry.record.pids_refused = 0;
                entry.dirty |= told;
            }
            Some(name) => {
                let told = entry
                    .container_record(name)
                    .is_some_and(|record| record.oom_seen != OomSeen::default());
                if told {
                    entry.change(name).oom_seen = OomSeen::default();
                }
            }
        }
    }

    /// Whose limit led to a kill in a container.
    fn limit_owner(
        &mut self,
        key: &PodKey,
        container: &str,
        path: &CgroupPath,
        qos: QosClass,
    ) -> (LimitOwner, Option<CgroupPath>) {
        self.oom_rises.retain(|_, at| at.elapsed() < EXPLAINS);
        self.inner_rises.retain(|_, at| at.elapsed() < EXPLAINS);
        let inner = self.inner_rises.contains_key(path);
        let rose = |path: &CgroupPath| self.oom_rises.contains_key(path);
        let pod = path.parent().filter(rose);
        let above = qos_path(qos).self_and_above().find(rose);
        let owner = match limit_owner([inner, rose(path), pod.is_some(), above.is_some()]) {
            LimitOwner::Pod if self.is_alone_in_its_limit(key, container) => LimitOwner::Container,
            owner => owner,
        };
        let at = match owner {
            LimitOwner::Container => Some(path.clone()),
            LimitOwner::Pod => pod,
            LimitOwner::Pods => above,
            // The log names it, if anybody does.
            LimitOwner::Inner | LimitOwner::Node => None,
        };
        (owner, at)
    }

    /// Whether the pod's limit is only that of this container: the kernel, charging from the
    /// container upwards, then blames the pod, a few pages earlier, for what the container's limit
    /// would have stopped anyway.
    fn is_alone_in_its_limit(&self, key: &PodKey, container: &str) -> bool {
        let Some(entry) = self.pods.get(key) else {
            return false;
        };
        let own = entry
            .container(container)
            .and_then(|container| container.resources.limits.memory());
        let pod = entry.admitted.pod();
        // A limit of the pod itself may be as large as that of each of several containers.
        let shared = pod
            .resources
            .as_ref()
            .is_some_and(|resources| resources.limits.memory().is_some())
            && pod
                .all_containers()
                .any(|(_, _, other)| other.kind != ContainerKind::Init && other.name != container);
        own.is_some() && own == entry.admitted.effective().limits.memory() && !shared
    }

    fn tell_of_kill(
        &mut self,
        key: &PodKey,
        container: &str,
        rise: OomRise,
        (owner, at): (LimitOwner, Option<CgroupPath>),
        peak: Option<Bytes>,
    ) {
        let killed = rise.killed;
        self.tallies.oom_kills = self.tallies.oom_kills.saturating_add(killed);
        let limit = at
            .as_ref()
            .and_then(|path| self.wanted.get(path))
            .and_then(|node| node.get(InterfaceFile::MemoryMax))
            .map(|setting| setting.value());
        let told = OomLimit {
            level: owner.to_string(),
            cgroup: at.map(|path| path.to_string()),
            limit_bytes: limit.as_ref().and_then(|limit| limit.parse().ok()),
            usage_bytes: None,
            container_peak_bytes: peak.map(|Bytes(peak)| peak),
        };
        self.keep_kills(key, container, rise, &told);
        let Some(entry) = self.pods.get_mut(key) else {
            return;
        };
        let whose = match owner {
            LimitOwner::Node => "the node ran out of memory".to_owned(),
            LimitOwner::Pods => "the limit of all pods was hit".to_owned(),
            LimitOwner::Inner => {
                "memory.max of a cgroup that the container made itself was hit".to_owned()
            }
            LimitOwner::Container | LimitOwner::Pod => format!(
                "memory.max of the {owner}, {}, was hit",
                limit.unwrap_or_else(|| "unknown".to_owned())
            ),
        };
        let peak = peak.map_or_else(String::new, |Bytes(peak)| format!("; peak {peak} bytes"));
        let message = format!(
            "OOM killer took {} of container {container}: {whose}{peak}",
            processes(killed)
        );
        if let Some(Live::Running(main)) = entry.live.get_mut(container) {
            main.suspected = Some(Instant::now() + SUSPICION);
        }
        self.event(key, container, Severity::Warning, "OOMKilling", &message);
        self.wake_pod(key, SUSPICION);
    }

    /// Main processes that outlived an OOM kill in their container: only others died.
    pub(super) fn clear_suspects(&mut self, key: &PodKey) {
        let Some(entry) = self.pods.get_mut(key) else {
            return;
        };
        let now = Instant::now();
        let (mut spared, mut next) = (Vec::new(), None::<Instant>);
        for (name, main) in entry.mains() {
            let Some(decide) = main.suspected else {
                continue;
            };
            if decide > now {
                next = Some(next.map_or(decide, |next| next.min(decide)));
                continue;
            }
            main.suspected = None;
            // One that is about to end tells by its end.
            if !main.process.is_ending().unwrap_or(true) {
                spared.push((name.to_owned(), main.process.pid));
            }
        }
        for (container, pid) in spared {
            let Some(entry) = self.pods.get_mut(key) else {
                return;
            };
            let uid = entry.uid().to_string();
            let record = entry.change(&container);
            let killed = record.oom_kills.saturating_sub(record.oom_kills_before);
            // Whatever ends the main process later, these kills did not.
            record.oom_kills_before = record.oom_kills;
            self.kills.change_latest(&uid, &container, |kill| {
                let undecided = kill.main.is_none() && kill.main_pid == Some(pid);
                kill.main = kill.main.or(undecided.then_some(false));
                undecided
            });
            let message = format!(
                "{} of container {container} fell to the OOM killer; its main process {pid} lives",
                processes(killed)
            );
            self.event(
                key,
                &container,
                Severity::Warning,
                "ContainerChildOOMKilled",
                &message,
            );
        }
        if let Some(next) = next {
            self.wake_pod(key, next.saturating_duration_since(now));
        }
    }
}

fn processes(number: u64) -> String {
    match number {
        1 => "1 process".to_owned(),
        number => format!("{number} processes"),
    }
}
