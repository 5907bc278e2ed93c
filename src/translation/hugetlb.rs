//! `hugetlb.SIZE.max` and `hugetlb.SIZE.rsvd.max` from limits of huge pages.
//!
//! Both files always get the same value: with the first alone a program may map more than its limit
//! and dies of SIGBUS at the first touch; the second makes `mmap` fail (runtime-spec#1050). Every size
//! the node has is set, to zero where it is not asked for: what is left unset is unlimited.

use super::note::Draft;
use crate::cgroup::Setting;
use crate::model::{EffectiveContainer, EffectivePod, Node, ResourceList, ResourceName};
use crate::units::{Bytes, HugePageSize, Limit};

/// The bound of each size in a list of amounts, zero where it is not named.
pub fn bounds(
    amounts: &ResourceList,
    sizes: &[HugePageSize],
) -> impl Iterator<Item = (HugePageSize, Bytes)> {
    sizes.iter().map(|&size| {
        let bytes = amounts.bytes(&ResourceName::HugePages(size));
        (size, bytes.unwrap_or_default())
    })
}

pub(super) fn container(draft: &mut Draft, container: &EffectiveContainer, sizes: &[HugePageSize]) {
    set(draft, bounds(&container.resources.limits, sizes));
}

/// Requests and limits of huge pages are equal; the kubelet reads the sum of the requests.
pub(super) fn pod(draft: &mut Draft, pod: &EffectivePod, sizes: &[HugePageSize]) {
    set(draft, bounds(&pod.requests, sizes));
}

pub(super) fn qos(draft: &mut Draft, sizes: &[HugePageSize]) {
    for &size in sizes {
        set_both(draft, size, Limit::Max);
    }
}

/// What the node has, less what is reserved.
pub(super) fn top(draft: &mut Draft, node: &Node, sizes: &[HugePageSize]) {
    let reserved: Vec<_> = bounds(&node.reserved, sizes).collect();
    let capacity = bounds(&node.capacity, sizes);
    set(
        draft,
        capacity
            .zip(reserved)
            .map(|((size, all), (_, kept))| (size, all.saturating_sub(kept))),
    );
}

fn set(draft: &mut Draft, bounds: impl Iterator<Item = (HugePageSize, Bytes)>) {
    for (size, bytes) in bounds {
        set_both(draft, size, Limit::At(bytes));
    }
}

fn set_both(draft: &mut Draft, size: HugePageSize, bound: Limit<Bytes>) {
    draft.set(Setting::HugetlbMax(size, bound));
    draft.set(Setting::HugetlbRsvdMax(size, bound));
}
