//! Which CPUs does a container get to itself?
//!
//! Decides who gets any, which ones, and what is said where too few are left. Pure: who has them and what
//! the machine looks like are given. It must never hand out a CPU twice, nor one of the system's.
//!
//! CPUs of its own gets a container with a whole number of CPUs as its request, in a Guaranteed pod without
//! pod-level resources, that runs for as long as the pod does: sidecars and the pod's own containers. Init
//! containers share what nobody has: they run before, and CPUs kept for them would lie idle afterwards.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{AdmittedPod, Reason};
use crate::model::{ContainerKind, QosClass, ResourceName, Topology};
use crate::units::CpuSet;

/// The CPUs of each container that has some to itself.
pub type Assigned = BTreeMap<String, CpuSet>;

/// What there is to choose from.
#[derive(Clone, Copy, Debug)]
pub struct CpuRoom<'a> {
    /// The machine.
    pub topology: &'a Topology,
    /// Those that stay with the system and with all who share.
    pub reserved: CpuSet,
    /// Those that containers have to themselves.
    pub taken: CpuSet,
}

impl CpuRoom<'_> {
    /// Those that can be given away.
    pub fn free(&self) -> CpuSet {
        let all = self.topology.all();
        all.difference(self.reserved).difference(self.taken)
    }
}

/// The containers of a pod that get CPUs of their own, and how many.
pub fn wishes(pod: &AdmittedPod) -> Vec<(&str, u64)> {
    if pod.qos() != QosClass::Guaranteed || pod.pod().resources.is_some() {
        return Vec::new();
    }
    let containers = pod.effective().containers.iter();
    containers
        .filter(|container| container.kind != ContainerKind::Init)
        .filter_map(|container| {
            let request = container.resources.requests.cpu()?;
            let whole = request.0 >= 1000 && request.0.is_multiple_of(1000);
            whole.then_some((container.name.as_str(), request.0 / 1000))
        })
        .collect()
}

/// Chooses the CPUs of all containers of a pod that get some.
///
/// # Errors
/// There are too few left.
pub fn assign(pod: &AdmittedPod, room: &CpuRoom<'_>) -> Result<Assigned, Reason> {
    let wishes = wishes(pod);
    let mut free = room.free();
    let asked = wishes
        .iter()
        .fold(0, |sum: u64, (_, count)| sum.saturating_add(*count));
    if asked > free.count() {
        return Err(too_few(&wishes, asked, room));
    }
    let mut assigned = Assigned::new();
    for (container, count) in wishes {
        let cpus = choose(room.topology, free, count);
        free = free.difference(cpus);
        assigned.insert(container.to_owned(), cpus);
    }
    Ok(assigned)
}

/// The best so many of some CPUs: at the one NUMA node that has least room among those that have enough; if
/// none has, at as few as possible. There, whole cores come before single threads. Fewer than asked for only
/// if there are no more.
pub fn choose(topology: &Topology, free: CpuSet, count: u64) -> CpuSet {
    let mut left = free;
    let mut chosen = CpuSet::EMPTY;
    while chosen.count() < count {
        let missing = count.saturating_sub(chosen.count());
        let rooms = topology
            .nodes()
            .into_iter()
            .map(|(_, cpus)| cpus.intersection(left));
        let rooms: Vec<_> = rooms.filter(|room| !room.is_empty()).collect();
        let enough = rooms.iter().filter(|room| room.count() >= missing);
        // Of several the first: `min_by_key` keeps it.
        let room = enough.min_by_key(|room| room.count());
        let Some(room) = room.or_else(|| rooms.iter().min_by_key(|room| Reverse(room.count())))
        else {
            break;
        };
        let here = within(topology, *room, missing);
        chosen = chosen.union(here);
        left = left.difference(here);
    }
    chosen
}

/// So many CPUs of one node, or all of them.
fn within(topology: &Topology, room: CpuSet, count: u64) -> CpuSet {
    let cores = topology.cores();
    let mut chosen = CpuSet::EMPTY;
    loop {
        let missing = count.saturating_sub(chosen.count());
        let left = room.difference(chosen);
        if missing == 0 || left.is_empty() {
            return chosen;
        }
        let whole = cores
            .iter()
            .filter(|core| core.is_subset(left) && core.count() <= missing)
            // The largest first: cores of several kinds can be in one machine.
            .min_by_key(|core| Reverse(core.count()));
        if let Some(core) = whole {
            chosen = chosen.union(*core);
            continue;
        }
        // Threads of cores that are in use already, before a whole core is broken.
        let parts = cores.iter().map(|core| core.intersection(left));
        let part = parts
            .filter(|part| !part.is_empty())
            .min_by_key(|part| part.count())
            .unwrap_or(left);
        for thread in part
            .iter()
            .take(usize::try_from(missing).unwrap_or(usize::MAX))
        {
            // It is in a set already, so it fits into another.
            let _ = chosen.insert(thread);
        }
    }
}

fn too_few(wishes: &[(&str, u64)], asked: u64, room: &CpuRoom<'_>) -> Reason {
    let (free, all) = (room.free().count(), room.topology.all());
    let who: Vec<_> = wishes
        .iter()
        .map(|(container, count)| format!("{count} by container {container}"))
        .collect();
    let message = format!(
        "not enough cpus available to satisfy request: requested={asked}, available={free}; {} to \
         themselves asked for, of {} CPUs {} are reserved ({}) and {} are taken ({})",
        who.join(", "),
        all.count(),
        room.reserved.count(),
        room.reserved,
        room.taken.count(),
        room.taken,
    );
    Reason::out_of(ResourceName::Cpu, &message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::topology::Cpu;

    fn set(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    fn machine(cpus: impl Iterator<Item = (u64, u64, u64)>) -> Topology {
        let cpus = cpus.map(|(number, core, node)| Cpu { number, core, node });
        Topology::new(cpus.collect(), set("0-7")).unwrap()
    }

    /// Four cores, one thread each.
    fn plain() -> Topology {
        machine((0..4).map(|cpu| (cpu, cpu, 0)))
    }

    /// Two sockets of four cores of two threads: 0-3,8-11 and 4-7,12-15.
    fn two_sockets() -> Topology {
        machine((0..16).map(|cpu| (cpu, cpu % 8, cpu % 8 / 4)))
    }

    /// Two cores of two threads (0-1, 2-3), three of one (4, 5, 7), CPU 6 is off; 7 lies at a node alone.
    fn odd() -> Topology {
        let list = [
            (0, 0, 0),
            (1, 0, 0),
            (2, 2, 0),
            (3, 2, 0),
            (4, 4, 0),
            (5, 5, 0),
            (7, 7, 1),
        ];
        machine(list.into_iter())
    }

    #[test]
    fn the_best_cpus_are_chosen() {
        for (name, topology, free, count, expected) in [
            ("plain", plain(), "0-3", 1, "0"),
            ("plain", plain(), "1-3", 2, "1-2"),
            ("plain", plain(), "1,3", 2, "1,3"),
            ("plain", plain(), "0-3", 4, "0-3"),
            ("plain", plain(), "2", 3, "2"),
            ("plain", plain(), "0-3", 0, ""),
            // Whole cores.
            ("two", two_sockets(), "0-15", 2, "0,8"),
            ("two", two_sockets(), "0-15", 4, "0-1,8-9"),
            // A whole core and half of another.
            ("two", two_sockets(), "0-15", 3, "0-1,8"),
            // The half that is left of a core, not half of a whole one.
            ("two", two_sockets(), "1-15", 1, "8"),
            // Where least room is that is enough.
            ("two", two_sockets(), "0-3,8-11,5-7,13-15", 4, "5-6,13-14"),
            ("two", two_sockets(), "0-3,8-11,5-7,13-15", 8, "0-3,8-11"),
            ("two", two_sockets(), "0-3,8-11,5,13", 2, "5,13"),
            // More than one node has: all of the larger room, the rest of the other.
            (
                "two",
                two_sockets(),
                "1-3,9-11,4-7,12-15",
                10,
                "1,4-7,9,12-15",
            ),
            ("two", two_sockets(), "0-15", 16, "0-15"),
            // Halves only.
            ("two", two_sockets(), "8-11", 2, "8-9"),
            // One is had where nobody else is: the least room, and no core is broken.
            ("odd", odd(), "0-5,7", 1, "7"),
            ("odd", odd(), "0-5", 1, "4"),
            ("odd", odd(), "0-5", 2, "0-1"),
            ("odd", odd(), "0-5", 3, "0-1,4"),
            ("odd", odd(), "0-5", 5, "0-4"),
            ("odd", odd(), "1-3", 1, "1"),
            ("odd", odd(), "0-3", 1, "0"),
            ("odd", odd(), "0-5,7", 7, "0-5,7"),
        ] {
            let chosen = choose(&topology, set(free), count);
            assert_eq!(chosen.to_string(), expected, "{name}: {count} of {free}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_given_twice_and_nothing_that_is_not_free(
            free in 0_u64..1 << 16,
            count in 0_u64..20,
        ) {
            let mut bits = CpuSet::EMPTY;
            for bit in (0..16).filter(|bit| free & (1 << bit) != 0) {
                bits.insert(bit).unwrap();
            }
            for topology in [two_sockets(), odd(), plain()] {
                let free = bits.intersection(topology.all());
                let chosen = choose(&topology, free, count);
                assert!(chosen.is_subset(free));
                assert_eq!(chosen.count(), count.min(free.count()));
                let nodes = topology.nodes();
                let fits = nodes.iter().any(|(_, here)| here.intersection(free).count() >= count);
                let spread = nodes.iter().filter(|(_, here)| !here.intersection(chosen).is_empty());
                assert!(!fits || spread.count() <= 1);
            }
        }
    }
}
