//! Which containers have CPUs to themselves, and what is left for all others.
//!
//! Decides when CPUs are had and when they are free again; which ones is chosen in `admission::cpus`. Who has
//! which is durable in the pods' records, in the commit that admits the pod. What is shared is never kept: it
//! is what nobody has.

use super::entry::PodEntry;
use super::events::Severity;
use super::record::PodRecord;
use super::request::PodKey;
use super::run::{Agent, StartupError};
use crate::admission::{AdmittedPod, Assigned, CpuRoom};
use crate::cgroup::{CgroupPath, InterfaceFile, Setting};
use crate::config::Config;
use crate::model::Topology;
use crate::model::policy::CpuManagerPolicy;
use crate::observation::node::{NodeFacts, offline_cpus};
use crate::store::{Change, Expect};
use crate::translation::{Place, Placement, PodTree, cpuset, translate_placed};
use crate::units::CpuSet;

/// The store key that says that containers were placed on CPUs.
const PLACED_KEY: &str = "node/cpus-placed";

/// The problem that CPUs went off.
const OFFLINE: &str = "cpus/offline";

/// The CPUs of the node.
#[derive(Debug, Default)]
pub(super) struct Cpus {
    /// The machine; `None`: containers are not placed on CPUs.
    topology: Option<Topology>,
    reserved: CpuSet,
    taken: CpuSet,
    /// What is shared has changed, and the kernel does not have it yet.
    pub moved: bool,
}

impl Cpus {
    /// Those of a machine, as far as the configuration wants containers to be placed on them.
    pub fn of(config: &Config, facts: &NodeFacts) -> Result<Self, StartupError> {
        if config.cpu_manager_policy == CpuManagerPolicy::None {
            return Ok(Self::default());
        }
        let topology = facts.topology.clone().map_err(StartupError::Cpus)?;
        let mut reserved = config.reserved_cpus().map_err(StartupError::Cpus)?;
        let unknown = reserved.difference(topology.all());
        if !unknown.is_empty() {
            let all = topology.all();
            let (off, missing) = (
                unknown.intersection(facts.offline),
                unknown.difference(facts.offline),
            );
            let parts = [(off, "off"), (missing, "not there")];
            let parts = parts.iter().filter(|(cpus, _)| !cpus.is_empty());
            let parts: Vec<_> = parts
                .map(|(cpus, what)| format!("{cpus} ({what})"))
                .collect();
            let named = parts.join(" and ");
            let problem = format!("reservedSystemCPUs names CPUs {named}; on are {all}");
            return Err(StartupError::Cpus(problem));
        }
        if reserved.is_empty() {
            let whole = config
                .reserved_cpu()
                .milli_value()
                .unsigned_abs()
                .div_ceil(1000);
            reserved = topology.first(u64::try_from(whole).unwrap_or(u64::MAX));
        }
        Ok(Self {
            topology: Some(topology),
            reserved,
            taken: CpuSet::EMPTY,
            moved: false,
        })
    }

    /// What there is to choose from; `None`: nobody gets any.
    pub fn room(&self) -> Option<CpuRoom<'_>> {
        Some(CpuRoom {
            topology: self.topology.as_ref()?,
            reserved: self.reserved,
            taken: self.taken,
        })
    }

    /// The CPUs that no container has to itself.
    fn shared(&self) -> CpuSet {
        let all = self.topology.as_ref().map_or(CpuSet::EMPTY, Topology::all);
        all.difference(self.taken)
    }

    /// Takes out of an assignment what cannot be given any more: each container and what is to be told.
    fn sift(&self, assigned: &mut Assigned) -> Vec<(String, String)> {
        let mut lost = Vec::new();
        assigned.retain(|container, cpus| {
            let why = self.objection(*cpus);
            let is_kept = why.is_none();
            lost.extend(why.map(|why| {
                let had = format!(
                    "container {container} shares the CPUs that no container has to itself: it had {cpus}, \
                     and {why}"
                );
                (container.clone(), had)
            }));
            is_kept
        });
        lost
    }

    fn objection(&self, cpus: CpuSet) -> Option<String> {
        let Some(room) = self.room() else {
            return Some("cpuManagerPolicy is none".to_owned());
        };
        let all = room.topology.all();
        [
            (cpus.difference(all), "not there or off"),
            (cpus.intersection(room.reserved), "reserved now"),
            (cpus.intersection(room.taken), "another container's"),
        ]
        .into_iter()
        .find(|(cpus, _)| !cpus.is_empty())
        .map(|(cpus, what)| format!("{cpus} are {what}"))
    }
}

impl Agent {
    /// The wanted cgroups of a pod of which some containers have these CPUs to themselves.
    pub(super) fn translate(&self, admitted: &AdmittedPod, own: &Assigned) -> PodTree {
        let placement = self.cpus.topology.as_ref().map(|topology| Placement {
            exclusive: own,
            shared: self.cpus.shared().difference(together(own)),
            topology,
        });
        translate_placed(admitted, &self.node, &self.policy, placement.as_ref())
    }

    /// Counts anew which CPUs are had. Where that changes what is shared, it changes what is wanted of all who
    /// share; `follow_cpus` brings it into the kernel.
    pub(super) fn count_cpus(&mut self) {
        if self.cpus.topology.is_none() {
            return;
        }
        let owners = self.pods.values();
        let owners = owners.filter(|entry| !entry.record.cpus.is_empty() && entry.takes_of_node());
        let taken = owners.fold(CpuSet::EMPTY, |all, entry| {
            all.union(together(&entry.record.cpus))
        });
        if taken == self.cpus.taken {
            return;
        }
        self.cpus.taken = taken;
        self.cpus.moved = true;
        let setting = cpuset::sharing(self.cpus.shared());
        for entry in self.pods.unseen() {
            for path in entry.sharing() {
                for tree in [&mut entry.translated.tree, &mut self.wanted] {
                    if let Some(node) = tree.get_mut(&path) {
                        node.set(setting);
                    }
                }
            }
        }
    }

    /// Looks which CPUs are off now. What went off since the start is still counted as there, which is told: without
    /// them pods run on fewer than they were promised.
    pub(super) fn look_for_offline_cpus(&mut self) {
        let Some(off) = offline_cpus(&self.facts.devices) else {
            return;
        };
        if self.system.offline_cpus == off {
            return;
        }
        self.system.offline_cpus = off;
        // The node is shown anew.
        self.node_told.0 = 0;
        let gone = off.difference(self.facts.offline);
        if gone.is_empty() {
            self.problems.remove(OFFLINE);
            return;
        }
        let owners = self.pods.iter();
        let owners =
            owners.filter(|(_, it)| !together(&it.record.cpus).intersection(gone).is_empty());
        let owners: Vec<_> = owners.map(|(key, _)| key.to_string()).collect();
        let whose = if owners.is_empty() {
            String::new()
        } else {
            format!("; some of them were alone those of {}", owners.join(", "))
        };
        let problem = format!(
            "CPUs {gone} went off: capacity counts them until allotd starts anew, and pods run on the others{whose}"
        );
        self.node_event(Severity::Warning, "CPUsOffline", &problem);
        self.problems.insert(OFFLINE.to_owned(), problem);
    }

    /// Those who share run where they may from now on: one pass over the tree.
    pub(super) fn follow_cpus(&mut self) {
        if std::mem::take(&mut self.cpus.moved) {
            self.enforce(&CgroupPath::top());
        }
    }

    /// A pod that takes nothing of the node any more has no CPUs either.
    pub(super) fn free_cpus(&mut self, key: &PodKey) {
        if let Some(entry) = self.pods.get_mut(key)
            && !entry.takes_of_node()
            && !entry.record.cpus.is_empty()
        {
            entry.record.cpus.clear();
            entry.dirty = true;
        }
        self.count_cpus();
    }

    /// Takes up the CPUs of a pod that is restored. What it cannot have any more it has lost: it runs where
    /// all others do.
    pub(super) fn sift_cpus(&self, record: &mut PodRecord) -> Vec<(String, String)> {
        self.cpus.sift(&mut record.cpus)
    }

    /// Tells what a restored pod has lost, unless it needs nothing any more.
    pub(super) fn tell_of_lost_cpus(&mut self, key: &PodKey, lost: &[(String, String)]) {
        let Some(entry) = self.pods.get_mut(key) else {
            return;
        };
        if lost.is_empty() {
            return;
        }
        entry.dirty = true;
        if entry.is_over() {
            return;
        }
        for (container, message) in lost {
            tracing::warn!("pod {key}: {message}");
            self.event(key, container, Severity::Warning, "CPUsLost", message);
        }
    }

    /// Notes that containers are placed on CPUs; or, where they were and are not any more, wants them to run
    /// everywhere. Nothing is wanted of files that no agent like this one has written.
    pub(super) fn begin_placing(&mut self) {
        let was_placed = matches!(self.store.get(PLACED_KEY), Ok(Some(_)));
        if self.cpus.topology.is_some() {
            if !was_placed {
                let mark = Change::Put(PLACED_KEY.to_owned(), b"{}".to_vec(), Expect::Any);
                // Without it a change back to none leaves containers where they are.
                drop(self.commit(vec![mark]));
            }
            return;
        }
        let (true, Ok(topology)) = (was_placed, self.facts.topology.clone()) else {
            return;
        };
        let Ok(found) = self.kernel.found(&CgroupPath::top()) else {
            return;
        };
        let placed = found.iter().filter(|(path, node)| {
            let list = node.get(InterfaceFile::CpusetCpus);
            let has_list = list.is_some_and(|list| list != Setting::initial(list.file()));
            has_list && Place::of(path).is_some_and(|place| place.container().is_some())
        });
        for (path, _) in placed {
            if let Some(node) = self.wanted.get_mut(path) {
                node.set(Setting::CpusetCpus(topology.all()));
                node.set(Setting::CpusetMems(topology.memory()));
            }
        }
        if self.enforce(&CgroupPath::top()) {
            drop(self.commit(vec![Change::Delete(PLACED_KEY.to_owned(), Expect::Any)]));
        }
    }
}

impl PodEntry {
    /// Whether it takes its requests of the node: it is not over, or still has cgroups.
    pub(super) fn takes_of_node(&self) -> bool {
        self.placed || !self.is_over()
    }

    /// The cgroups of its containers that share CPUs. Where somebody set a list that was adopted, it holds.
    pub(super) fn sharing(&self) -> Vec<CgroupPath> {
        let file = InterfaceFile::CpusetCpus.to_string();
        let is_adopted = |name: &str| {
            let own = self.record.adopted.get(name);
            own.is_some_and(|values| values.contains_key(&file))
        };
        self.container_names()
            .filter(|name| !self.record.cpus.contains_key(*name) && !is_adopted(name))
            .filter_map(|name| self.container_path(name))
            .collect()
    }
}

fn together(assigned: &Assigned) -> CpuSet {
    let sets = assigned.values();
    sets.fold(CpuSet::EMPTY, |all, cpus| all.union(*cpus))
}
