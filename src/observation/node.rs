//! What the machine has: CPUs, memory, huge pages, disk, process ids.
//!
//! Reads facts; what of them pods may use is decided in `model::node`.

use std::io;
use std::path::{Path, PathBuf};

use crate::model::topology::Cpu;
use crate::model::{ResourceList, ResourceName, Topology};
use crate::units::cpu_set::{CpuSet, count_listed};
use crate::units::quantity::Format;
use crate::units::{Bytes, HugePageSize, PageSize, Quantity};

/// The facts of one machine.
#[derive(Clone, Debug)]
pub struct NodeFacts {
    /// cpu, memory, ephemeral-storage and huge pages.
    pub capacity: ResourceList,
    /// The kernel's page size.
    pub page_size: PageSize,
    /// The lesser of `kernel.pid_max` and `kernel.threads-max`.
    pub max_pids: Option<u64>,
    /// Swap in all.
    pub swap: Bytes,
    /// How its CPUs belong together; or why that is not known.
    pub topology: Result<Topology, String>,
    /// The CPUs that are there and off; they are not in the topology, and capacity does not count them.
    pub offline: CpuSet,
    /// Where the kernel tells of CPUs, to look again: they go on and off while the machine runs.
    pub devices: PathBuf,
}

/// Where the kernel tells of them on every machine.
pub const DEVICES: &str = "/sys/devices/system";

/// Reads the facts; `disk` is a directory on the file system that holds the pods' files.
///
/// # Errors
/// `/proc/meminfo` or the file system cannot be read: without them no number would be true.
pub fn read(disk: &Path) -> io::Result<NodeFacts> {
    use procfs::Current;
    let meminfo = procfs::Meminfo::current().map_err(io::Error::other)?;
    let mut capacity = ResourceList::default();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    capacity.set(
        ResourceName::Cpu,
        Quantity::from_units(
            online_cpus().unwrap_or(u64::try_from(cpus).unwrap_or(1)),
            Format::DecimalSi,
        ),
    );
    let bytes = |bytes| Quantity::from_units(bytes, Format::BinarySi);
    capacity.set(ResourceName::Memory, bytes(meminfo.mem_total));
    let disk = rustix::fs::statvfs(disk)?;
    capacity.set(
        ResourceName::EphemeralStorage,
        bytes(disk.f_blocks.saturating_mul(disk.f_frsize)),
    );
    for (size, pages) in huge_pages(Path::new("/sys/kernel/mm/hugepages")) {
        capacity.set(
            ResourceName::HugePages(size),
            bytes(pages.saturating_mul(size.bytes().0)),
        );
    }
    Ok(NodeFacts {
        capacity,
        page_size: u64::try_from(rustix::param::page_size())
            .ok()
            .and_then(PageSize::new)
            .unwrap_or(PageSize::FOUR_KIB),
        max_pids: ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"]
            .into_iter()
            .filter_map(|file| read_number(Path::new(file)))
            .min(),
        swap: Bytes(meminfo.swap_total),
        topology: topology(Path::new(DEVICES)),
        offline: offline_cpus(Path::new(DEVICES)).unwrap_or_default(),
        devices: DEVICES.into(),
    })
}

/// The CPUs that are there and off now, as told in `cpu` below a directory; `None`: that is not known. The kernel's own
/// list `offline` also has numbers for which there is no CPU.
pub fn offline_cpus(devices: &Path) -> Option<CpuSet> {
    let list = |name: &str| {
        let text = std::fs::read_to_string(devices.join("cpu").join(name)).ok()?;
        text.trim().parse::<CpuSet>().ok()
    };
    Some(list("present")?.difference(list("online")?))
}

/// The CPUs that are on, from a list such as `0-3,5`; not those this process may use, because pods
/// are not bound to its affinity.
fn online_cpus() -> Option<u64> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    count_listed(text.trim()).ok().filter(|count| *count > 0)
}

/// The CPUs that are on, their cores and their NUMA nodes, as told in `cpu` and `node` below `system`. A
/// kernel without NUMA has no directory `node`: one node has all then.
fn topology(system: &Path) -> Result<Topology, String> {
    let read = |path: &Path| {
        let text = std::fs::read_to_string(path);
        text.map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let list = |path: &Path| {
        let set = read(path)?.trim().parse::<CpuSet>();
        set.map_err(|error| format!("{}: {error}", path.display()))
    };
    let online = list(&system.join("cpu/online"))?;
    let nodes = system.join("node");
    let numbered = if nodes.is_dir() {
        let numbers = list(&nodes.join("online"))?;
        let cpus = |number| Ok((number, list(&nodes.join(format!("node{number}/cpulist")))?));
        numbers
            .iter()
            .map(cpus)
            .collect::<Result<Vec<_>, String>>()?
    } else {
        vec![(0, online)]
    };
    let memory = if nodes.is_dir() {
        list(&nodes.join("has_memory"))?
    } else {
        let mut first = CpuSet::EMPTY;
        first.insert(0).map_err(|error| error.to_string())?;
        first
    };
    let mut cpus = Vec::new();
    for number in online.iter() {
        let siblings = system.join(format!("cpu/cpu{number}/topology/thread_siblings_list"));
        let core = list(&siblings)?.intersection(online).first();
        let node = numbered.iter().find(|(_, cpus)| cpus.contains(number));
        cpus.push(Cpu {
            number,
            core: core.unwrap_or(number),
            node: node.map_or(0, |(node, _)| *node),
        });
    }
    Topology::new(cpus, memory)
}

/// Sizes and numbers of reserved huge pages, from directories such as `hugepages-2048kB`.
fn huge_pages(dir: &Path) -> Vec<(HugePageSize, u64)> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut found: Vec<_> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name();
            let kib: u64 = name
                .to_str()?
                .strip_prefix("hugepages-")?
                .strip_suffix("kB")?
                .parse()
                .ok()?;
            let size = HugePageSize::new(kib.checked_mul(1024)?)?;
            Some((size, read_number(&entry.path().join("nr_hugepages"))?))
        })
        .collect();
    found.sort_unstable();
    found
}

fn read_number(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn cores_and_nodes_are_read_as_far_as_they_are_on() {
        let dir = tempfile::tempdir().unwrap();
        let system = dir.path();
        write(&system.join("cpu/online"), "0-1,3-5\n");
        for (cpu, siblings) in [(0, "0,4"), (1, "1,5"), (3, "2-3"), (4, "0,4"), (5, "1,5")] {
            let file = format!("cpu/cpu{cpu}/topology/thread_siblings_list");
            write(&system.join(file), &format!("{siblings}\n"));
        }
        let one = topology(system).unwrap();
        assert_eq!(one.nodes(), [(0, "0-1,3-5".parse().unwrap())]);
        assert_eq!(one.memory().to_string(), "0");
        let cores: Vec<_> = one.cores().iter().map(CpuSet::to_string).collect();
        assert_eq!(cores, ["0,4", "1,5", "3"]);

        write(&system.join("node/online"), "0,2-3\n");
        write(&system.join("node/has_memory"), "0,3\n");
        for (node, cpus) in [(0, "0,4"), (2, "1-3,5"), (3, "")] {
            write(
                &system.join(format!("node/node{node}/cpulist")),
                &format!("{cpus}\n"),
            );
        }
        let several = topology(system).unwrap();
        let nodes: Vec<_> = several
            .nodes()
            .iter()
            .map(|(node, cpus)| format!("{node}: {cpus}"))
            .collect();
        assert_eq!(nodes, ["0: 0,4", "2: 1,3,5"]);
        assert_eq!(several.memory().to_string(), "0,3");

        write(&system.join("cpu/online"), "0-600\n");
        let why = topology(system).unwrap_err();
        assert!(
            why.ends_with("cpu/online: CPU 600 is beyond 511, the last that can be placed on"),
            "{why}"
        );
        std::fs::remove_file(system.join("cpu/online")).unwrap();
        assert!(topology(system).unwrap_err().starts_with("cannot read "));
    }

    #[test]
    fn a_cpu_is_off_only_if_it_is_there() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(offline_cpus(dir.path()), None);
        write(&dir.path().join("cpu/present"), "0-5\n");
        assert_eq!(offline_cpus(dir.path()), None);
        write(&dir.path().join("cpu/online"), "0-2,5\n");
        write(&dir.path().join("cpu/offline"), "3-4,6-127\n");
        let off = offline_cpus(dir.path()).unwrap();
        assert_eq!(off.to_string(), "3-4");
    }

    #[test]
    fn huge_page_directories_are_read_and_others_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        for (name, pages) in [
            ("hugepages-2048kB", "64\n"),
            ("hugepages-1048576kB", "0\n"),
            ("hugepages-akB", "1\n"),
            ("hugepages-1024gB", "1\n"),
            ("1024kB", "1\n"),
        ] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            std::fs::write(dir.path().join(name).join("nr_hugepages"), pages).unwrap();
        }
        assert_eq!(
            huge_pages(dir.path()),
            [(HugePageSize::TWO_MIB, 64), (HugePageSize::ONE_GIB, 0)]
        );
    }

    #[test]
    fn this_machine_has_something() {
        let facts = read(Path::new("/")).unwrap();
        assert!(facts.capacity.cpu().unwrap().0 >= 1000);
        assert!(facts.capacity.memory().unwrap() > Bytes::mib(1));
        assert!(facts.max_pids.unwrap() > 1);
        let topology = facts.topology.unwrap();
        assert_eq!(
            topology.all().count() * 1000,
            facts.capacity.cpu().unwrap().0
        );
        assert!(!topology.memory_of(topology.all()).is_empty());
    }
}
