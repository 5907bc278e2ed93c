//! The pools of huge pages that the kernel has.

use crate::cgroup::KernelError;
use crate::units::HugePageSize;

/// The sizes that the kernel keeps pools of, and so has hugetlb files for; none where it has no
/// huge pages.
pub(super) fn huge_page_sizes() -> Result<Vec<HugePageSize>, KernelError> {
    const POOLS: &str = "/sys/kernel/mm/hugepages";
    let failed = |error| KernelError::new("read", POOLS, error);
    let entries = match std::fs::read_dir(POOLS) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut sizes = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed)?.file_name();
        let kib = name.to_str().and_then(|name| {
            name.strip_prefix("hugepages-")?
                .strip_suffix("kB")?
                .parse()
                .ok()
        });
        sizes.extend(kib.and_then(|kib: u64| HugePageSize::new(kib.checked_mul(1024)?)));
    }
    sizes.sort_unstable();
    Ok(sizes)
}
