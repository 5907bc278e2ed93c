//! `cpuset.cpus` and `cpuset.mems` of containers, and what becomes of the quotas of those that have CPUs to
//! themselves.
//!
//! Decides values from a placement that was chosen before (`admission::cpus`). It must never choose.

use std::collections::BTreeMap;

use super::cpu;
use super::note::Draft;
use crate::cgroup::{InterfaceFile, Setting};
use crate::model::{EffectiveContainer, Policy, Topology};
use crate::units::CpuSet;

/// Where the containers of a pod run.
#[derive(Clone, Copy, Debug)]
pub struct Placement<'a> {
    /// The CPUs that some of them have to themselves, by name.
    pub exclusive: &'a BTreeMap<String, CpuSet>,
    /// The CPUs that nobody has to himself: all others run there.
    pub shared: CpuSet,
    /// The machine.
    pub topology: &'a Topology,
}

/// The value of a container that has no CPUs to itself.
pub fn sharing(shared: CpuSet) -> Setting {
    Setting::CpusetCpus(shared)
}

pub(super) fn container(
    draft: &mut Draft,
    container: &EffectiveContainer,
    placement: &Placement<'_>,
    policy: &Policy,
) {
    let Some(cpus) = placement.exclusive.get(&container.name).copied() else {
        draft.set(sharing(placement.shared));
        let text = "shared: the CPUs that no container has to itself";
        draft.note(InterfaceFile::CpusetCpus, text);
        // Not an empty list: the kernel takes none from processes that had one before (ENOSPC).
        draft.set(Setting::CpusetMems(placement.topology.memory()));
        return;
    };
    draft.set(Setting::CpusetCpus(cpus));
    let text = format!("{} to itself: whole CPUs are asked for", counted(cpus));
    draft.note(InterfaceFile::CpusetCpus, text);
    let memory = placement.topology.memory_of(cpus);
    draft.set(Setting::CpusetMems(memory));
    draft.note(InterfaceFile::CpusetMems, "the NUMA nodes of its CPUs");
    cpu::unbound(
        draft,
        policy,
        format!("it has CPUs {cpus} to itself: a quota beside them could only throttle it"),
    );
}

/// A container for which none were chosen: it is asked for away from the node.
pub(super) fn unplaced(draft: &mut Draft, count: u64) {
    let text = format!(
        "asks for whole CPUs: {count} of its own and no quota, once the node has chosen them"
    );
    draft.note(InterfaceFile::CpusetCpus, text);
}

/// A pod has no list of its own: its containers' say where they run.
pub(super) fn pod(draft: &mut Draft, placement: &Placement<'_>, policy: &Policy) {
    let names: Vec<_> = placement.exclusive.keys().map(String::as_str).collect();
    let whose = match names.as_slice() {
        [] => return,
        [one] => format!("container {one} has"),
        several => format!("containers {} have", several.join(", ")),
    };
    let text = format!(
        "{whose} CPUs of their own, which a quota of the pod would throttle: the limits of the \
         others hold for each by itself"
    );
    cpu::unbound(draft, policy, text);
}

fn counted(cpus: CpuSet) -> String {
    match cpus.count() {
        1 => "1 CPU".to_owned(),
        several => format!("{several} CPUs"),
    }
}
