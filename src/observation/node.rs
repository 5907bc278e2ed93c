//! What the machine has: CPUs, memory, huge pages, disk, process ids.
//!
//! Reads facts; what of them pods may use is decided in `model::node`.

use std::io;
use std::path::Path;

use crate::model::{ResourceList, ResourceName};
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
}

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
    })
}

/// The CPUs that are on, from a list such as `0-3,5`; not those this process may use, because pods
/// are not bound to its affinity.
fn online_cpus() -> Option<u64> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").ok()?;
    count_list(text.trim())
}

fn count_list(list: &str) -> Option<u64> {
    list.split(',').try_fold(0u64, |count, range| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let (from, to) = (from.parse::<u64>().ok()?, to.parse::<u64>().ok()?);
        count.checked_add(to.checked_sub(from)?.checked_add(1)?)
    })
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

    #[test]
    fn cpu_lists_are_counted() {
        for (list, count) in [
            ("0", Some(1)),
            ("0-3", Some(4)),
            ("0-1,4,6-7", Some(5)),
            ("", None),
            ("3-1", None),
        ] {
            assert_eq!(count_list(list), count, "{list:?}");
        }
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
    }
}
