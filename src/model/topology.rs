//! How the CPUs of a machine belong together: which are threads of one core, which lie at one NUMA node.
//!
//! Plain data and what follows from it. It must never measure anything (`observation::node` does) and
//! never choose (`admission::cpus` does).

use crate::units::CpuSet;

/// One CPU that is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cpu {
    /// The kernel's number.
    pub number: u64,
    /// The core: the least number among its threads that are on.
    pub core: u64,
    /// The NUMA node; 0 where the kernel knows of none.
    pub node: u64,
}

/// The CPUs of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    cpus: Vec<Cpu>,
    /// The NUMA nodes that have memory.
    memory: CpuSet,
    all: CpuSet,
}

impl Topology {
    /// A machine with these CPUs, and memory at these nodes.
    ///
    /// # Errors
    /// A number that no set can hold.
    pub fn new(mut cpus: Vec<Cpu>, memory: CpuSet) -> Result<Self, String> {
        cpus.sort_unstable();
        let mut all = CpuSet::EMPTY;
        for cpu in &cpus {
            all.insert(cpu.number).map_err(|error| error.to_string())?;
        }
        Ok(Self { cpus, memory, all })
    }

    /// All CPUs.
    pub fn all(&self) -> CpuSet {
        self.all
    }

    /// The NUMA nodes, each with its CPUs; the least number first.
    pub fn nodes(&self) -> Vec<(u64, CpuSet)> {
        self.groups(|cpu| cpu.node)
    }

    /// The cores, each with its threads; those at the first node first, there the least number first.
    pub fn cores(&self) -> Vec<CpuSet> {
        let cores = self.groups(|cpu| (cpu.node, cpu.core));
        cores.into_iter().map(|(_, threads)| threads).collect()
    }

    /// The nodes of some CPUs, as far as they have memory.
    pub fn memory_of(&self, cpus: CpuSet) -> CpuSet {
        let mut nodes = CpuSet::EMPTY;
        for (node, here) in self.nodes() {
            if !here.intersection(cpus).is_empty() {
                // A node beyond the set's reach has no memory in it either.
                let _ = nodes.insert(node);
            }
        }
        nodes.intersection(self.memory)
    }

    /// The nodes that have memory.
    pub fn memory(&self) -> CpuSet {
        self.memory
    }

    /// The first so many CPUs, core by core.
    pub fn first(&self, count: u64) -> CpuSet {
        let mut first = CpuSet::EMPTY;
        for cpu in self.cores().into_iter().flat_map(CpuSet::iter) {
            if first.count() < count {
                let _ = first.insert(cpu);
            }
        }
        first
    }

    fn groups<K: Ord>(&self, key: impl Fn(&Cpu) -> K) -> Vec<(K, CpuSet)> {
        let mut groups = std::collections::BTreeMap::<K, CpuSet>::new();
        for cpu in &self.cpus {
            // All numbers fit: `new` has tried.
            let _ = groups.entry(key(cpu)).or_default().insert(cpu.number);
        }
        groups.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_make_cores_and_cores_make_nodes() {
        // Two nodes of two cores each; the second threads come after all first ones.
        let cpu = |number| Cpu {
            number,
            core: number % 4,
            node: number % 4 / 2,
        };
        let machine = Topology::new((0..8).map(cpu).collect(), "1".parse().unwrap()).unwrap();
        let cores: Vec<_> = machine.cores().iter().map(CpuSet::to_string).collect();
        assert_eq!(cores, ["0,4", "1,5", "2,6", "3,7"]);
        let nodes: Vec<_> = machine
            .nodes()
            .iter()
            .map(|(node, cpus)| format!("{node}: {cpus}"))
            .collect();
        assert_eq!(nodes, ["0: 0-1,4-5", "1: 2-3,6-7"]);
        for (count, first) in [(0, ""), (1, "0"), (2, "0,4"), (3, "0-1,4"), (9, "0-7")] {
            assert_eq!(machine.first(count).to_string(), first);
        }
        // Node 0 has no memory.
        for (cpus, memory) in [("0-1", ""), ("1-2", "1"), ("7", "1"), ("", "")] {
            assert_eq!(machine.memory_of(cpus.parse().unwrap()).to_string(), memory);
        }
        let far = Cpu {
            number: 512,
            core: 0,
            node: 0,
        };
        assert!(Topology::new(vec![far], CpuSet::EMPTY).is_err());
    }
}
