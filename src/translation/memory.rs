//! `memory.max` from limits, `memory.min` or `memory.low` from requests, swap and OOM grouping.
//!
//! Decides how much of a request is protected and at which level. It must never let protection reach
//! the limit beside it, and never set `memory.high` to anything but `max`: a request is a floor, not a ceiling
//! (openjdk/jdk#381). It is among the files that are kept true because a throttle that somebody left there
//! would slow a container down unseen.

use super::note::Draft;
use super::unbounded;
use crate::admission::AdmittedPod;
use crate::cgroup::{InterfaceFile, Setting};
use crate::model::annotation::{self, OOM_POLICY, OomChoices};
use crate::model::effective::sum_of_containers;
use crate::model::policy::{MemoryReservationPolicy, OomPolicy, SwapBehavior};
use crate::model::{
    EffectiveContainer, List, Node, Pod, Policy, QosClass, ResourceName, Resources,
};
use crate::units::{Bytes, Limit, PageSize};

/// What is kept free of protection below a limit: a sixteenth of it, at least 4 MiB (but no more than
/// a quarter of the limit) and at most 16 MiB.
///
/// With protection up to the limit the kernel finds nothing to reclaim when a writer fills the page
/// cache, and kills it. Measured on Linux 6.12: 1 MiB cures a slow writer, but not always a fast one in
/// a container of 16 MiB; 4 MiB cure four.
pub fn margin(limit: Bytes) -> Bytes {
    let least = Bytes(limit.0 / 4).min(Bytes::mib(4));
    Bytes(limit.0 / 16).max(least).min(Bytes::mib(16))
}

/// The most that may be protected below a limit, in whole pages. The limit counts as the kernel holds
/// it: rounded down to a page, which is much of a small limit where pages are large.
pub fn protectable(limit: Bytes, page: PageSize) -> Bytes {
    let limit = page.floor(limit);
    page.floor(limit.saturating_sub(margin(limit)))
}

/// A container's part of the node's swap, in proportion to its memory request and rounded down to a
/// byte; nothing where the request exceeds the node's memory (KEP-2400, Kubernetes 1.36).
pub fn swap_limit(request: Bytes, memory: Bytes, swap: Bytes) -> Bytes {
    if request > memory {
        return Bytes::ZERO;
    }
    proportion(swap, request, memory)
}

/// `amount · part / whole`, rounded down; zero where the whole is.
fn proportion(amount: Bytes, part: Bytes, whole: Bytes) -> Bytes {
    let share = (u128::from(amount.0) * u128::from(part.0)).checked_div(whole.0.into());
    Bytes(u64::try_from(share.unwrap_or(0)).unwrap_or(u64::MAX))
}

/// What is protected from reclaim, and how firmly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// `memory.min`: never reclaimed.
    pub min: Bytes,
    /// `memory.low`: reclaimed when nothing else is left.
    pub low: Bytes,
}

/// How a request is protected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Firmness {
    Hard,
    Soft,
    None,
}

impl Firmness {
    fn of(qos: QosClass, policy: &Policy) -> Self {
        match (policy.memory_reservation, qos) {
            (MemoryReservationPolicy::None, _) | (_, QosClass::BestEffort) => Self::None,
            (MemoryReservationPolicy::Tiered, QosClass::Burstable) => Self::Soft,
            _ => Self::Hard,
        }
    }

    fn protection(self, bytes: Bytes) -> Protection {
        let (min, low) = match self {
            Self::Hard => (bytes, Bytes::ZERO),
            Self::Soft => (Bytes::ZERO, bytes),
            Self::None => (Bytes::ZERO, Bytes::ZERO),
        };
        Protection { min, low }
    }
}

/// The pod's protection, of which its containers' must stay within.
pub(super) struct PodShare {
    pub(super) protection: Protection,
    /// Where the containers ask for more in all than the pod may protect: what it protects, and what
    /// they ask for. Only a limit at pod level leads to this, since the margins of all containers
    /// together are never less than that of their summed limit.
    cut: Option<(Bytes, Bytes)>,
}

/// Sets the pod's own files.
pub(super) fn pod(
    draft: &mut Draft,
    admitted: &AdmittedPod,
    node: &Node,
    policy: &Policy,
) -> PodShare {
    let pod = admitted.effective();
    let limit = if pod.is_bounded(&ResourceName::Memory) {
        bound(pod.limits.memory())
    } else {
        if let Some(text) = unbounded(pod, &ResourceName::Memory) {
            draft.note(InterfaceFile::MemoryMax, text);
        }
        None
    };
    let firmness = Firmness::of(admitted.qos(), policy);
    let request = pod.requests.memory().unwrap_or_default();
    let bytes = protect(draft, firmness, request, limit, node.page_size);

    draft.set(Setting::MemoryHigh(Limit::Max));
    draft.set(Setting::MemoryMax(limit.into()));
    let protection = set_protection(draft, firmness.protection(bytes));
    // A group kill is a container's business: here it would take the sidecars along.
    draft.set(Setting::MemoryOomGroup(false));
    let at_pod_level = |resources: &Resources| resources.limits.contains(&ResourceName::Memory);
    let cut = (firmness == Firmness::Hard
        && admitted.pod().resources.as_ref().is_some_and(at_pod_level))
    .then(|| sum_of_containers(admitted.pod(), List::Requests).memory())
    .flatten()
    .filter(|asked| *asked > bytes)
    .map(|asked| (bytes, asked));
    PodShare { protection, cut }
}

/// Sets a container's files.
pub(super) fn container(
    draft: &mut Draft,
    admitted: &AdmittedPod,
    share: &PodShare,
    container: &EffectiveContainer,
    node: &Node,
    policy: &Policy,
) {
    let limit = bound(container.resources.limits.memory());
    draft.set(Setting::MemoryHigh(Limit::Max));
    draft.set(Setting::MemoryMax(limit.into()));

    let firmness = Firmness::of(admitted.qos(), policy);
    let request = container.resources.requests.memory().unwrap_or_default();
    let mut bytes = protect(draft, firmness, request, limit, node.page_size);
    if let Some((protected, asked)) = share.cut {
        let part = node.page_size.floor(proportion(protected, request, asked));
        if part < bytes {
            let text = format!(
                "{part} of {request} bytes are protected: the containers ask for {asked}, the pod \
                 protects {protected}"
            );
            draft.note(InterfaceFile::MemoryMin, text);
            bytes = part;
        }
    }
    set_protection(draft, firmness.protection(bytes));

    let swap = swap(draft, admitted, request, limit, node, policy);
    draft.set(Setting::MemorySwapMax(Limit::At(swap)));
    let group = kills_group(draft, admitted.pod(), &container.name, policy);
    draft.set(Setting::MemoryOomGroup(group));
}

/// Whether an OOM kill takes all of a container: the pod chooses, else the node.
fn kills_group(draft: &mut Draft, pod: &Pod, container: &str, policy: &Policy) -> bool {
    let choices = annotation::oom_policies(pod).unwrap_or_else(|wrong| {
        let text = format!("{OOM_POLICY} {wrong}");
        draft.note(InterfaceFile::MemoryOomGroup, text);
        OomChoices::default()
    });
    choices.of(container).unwrap_or(policy.oom_policy) == OomPolicy::Group
}

/// The level above the pods of a class, with the sum of what they protect.
pub(super) fn qos(draft: &mut Draft, sum: Protection) {
    draft.set(Setting::MemoryHigh(Limit::Max));
    draft.set(Setting::MemoryMax(Limit::Max));
    set_protection(draft, sum);
    draft.set(Setting::MemoryOomGroup(false));
}

/// The top: all memory but what is reserved and what huge pages took in advance
/// (kubernetes#84426). A node of unknown capacity has no bound.
pub(super) fn top(draft: &mut Draft, sum: Protection, node: &Node) {
    let reserved = node.reserved.memory().unwrap_or_default();
    let huge = node
        .huge_page_sizes()
        .into_iter()
        .filter_map(|size| node.capacity.bytes(&ResourceName::HugePages(size)))
        .fold(Bytes::ZERO, Bytes::saturating_add);
    let limit = node.capacity.memory().map(|capacity| {
        let text = format!("{capacity} bytes less {reserved} reserved and {huge} in huge pages");
        draft.note(InterfaceFile::MemoryMax, text);
        capacity.saturating_sub(reserved).saturating_sub(huge)
    });
    draft.set(Setting::MemoryHigh(Limit::Max));
    draft.set(Setting::MemoryMax(limit.into()));
    let min = below_limit(draft, sum.min, limit, node.page_size);
    set_protection(draft, Protection { min, ..sum });
    draft.set(Setting::MemoryOomGroup(false));
}

/// Zero is no limit.
fn bound(limit: Option<Bytes>) -> Option<Bytes> {
    limit.filter(|limit| *limit > Bytes::ZERO)
}

fn set_protection(draft: &mut Draft, protection: Protection) -> Protection {
    draft.set(Setting::MemoryMin(Limit::At(protection.min)));
    draft.set(Setting::MemoryLow(Limit::At(protection.low)));
    protection
}

/// What of a request is protected beside a limit. Soft protection yields by itself and needs no margin.
fn protect(
    draft: &mut Draft,
    firmness: Firmness,
    request: Bytes,
    limit: Option<Bytes>,
    page: PageSize,
) -> Bytes {
    match firmness {
        Firmness::Hard => below_limit(draft, request, limit, page),
        Firmness::Soft | Firmness::None => request,
    }
}

fn below_limit(draft: &mut Draft, wish: Bytes, limit: Option<Bytes>, page: PageSize) -> Bytes {
    let Some(limit) = limit else { return wish };
    let most = protectable(limit, page);
    if wish <= most {
        return wish;
    }
    let limit = page.floor(limit);
    let text = format!(
        "{most} of {wish} bytes are protected: the limit of {limit} less a margin of {}",
        margin(limit)
    );
    draft.note(InterfaceFile::MemoryMin, text);
    most
}

/// Swap is for Burstable containers that are not critical and leave room between request and limit.
fn swap(
    draft: &mut Draft,
    admitted: &AdmittedPod,
    request: Bytes,
    limit: Option<Bytes>,
    node: &Node,
    policy: &Policy,
) -> Bytes {
    if policy.swap_behavior == SwapBehavior::NoSwap {
        return Bytes::ZERO;
    }
    let memory = node.capacity.memory().unwrap_or_default();
    let why_not = if admitted.qos() != QosClass::Burstable {
        Some(format!("the pod is {}", admitted.qos()))
    } else if admitted.pod().is_critical() {
        Some("the pod is critical".to_owned())
    } else if request == Bytes::ZERO {
        Some("there is no memory request".to_owned())
    } else if limit == Some(request) {
        Some(format!("request and limit are both {request} bytes"))
    } else {
        None
    };
    let (bytes, text) = match why_not {
        Some(why) => (Bytes::ZERO, format!("no swap: {why}")),
        None => (
            swap_limit(request, memory, node.swap),
            format!(
                "{request} of {memory} bytes of memory, so as much of {} of swap",
                node.swap
            ),
        ),
    };
    draft.note(InterfaceFile::MemorySwapMax, text);
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_margin_is_a_sixteenth_within_bounds() {
        // KiB
        for (limit, expected) in [
            (4, 1),
            (8 << 10, 2 << 10),
            (16 << 10, 4 << 10),
            (64 << 10, 4 << 10),
            (128 << 10, 8 << 10),
            (256 << 10, 16 << 10),
            (4096 << 10, 16 << 10),
        ] {
            let kib = |n: u64| Bytes(n << 10);
            assert_eq!(margin(kib(limit)), kib(expected), "{limit} Ki");
        }
        let page = PageSize::FOUR_KIB;
        assert_eq!(protectable(Bytes::mib(256), page), Bytes::mib(240));
        assert_eq!(protectable(Bytes(4096), page), Bytes::ZERO);
        // The kernel keeps 16384 of it: no more than that less its margin.
        let page = PageSize::new(16 << 10).unwrap();
        assert_eq!(protectable(Bytes(21_845), page), Bytes::ZERO);
    }

    #[test]
    fn swap_is_counted_without_overflow() {
        let gib = |n: u64| Bytes(n << 30);
        // kubernetes#118764
        assert_eq!(
            swap_limit(Bytes::mib(512), gib(400), gib(40)),
            Bytes(53_687_091)
        );
        assert_eq!(swap_limit(gib(1024), gib(4096), gib(1024)), gib(256));
        assert_eq!(
            swap_limit(Bytes(u64::MAX), Bytes(u64::MAX), Bytes(u64::MAX)),
            Bytes(u64::MAX)
        );
        assert_eq!(swap_limit(Bytes::ZERO, Bytes::ZERO, gib(1)), Bytes::ZERO);
    }

    proptest! {
        #[test]
        fn protection_stays_below_the_limit_that_the_kernel_keeps(limit in prop_oneof![1..u64::MAX, 1..1_u64 << 20], shift in 12_u32..17) {
            let page = PageSize::new(1 << shift).unwrap();
            let kept = page.floor(Bytes(limit));
            let most = protectable(Bytes(limit), page);
            prop_assert!(most < kept || kept == Bytes::ZERO && most == Bytes::ZERO);
        }

        /// Why containers within the margins of their own limits fit into their pod.
        #[test]
        fn margins_of_parts_cover_the_margin_of_the_sum(limits in prop::collection::vec(1..1_u64 << 40, 1..9)) {
            let page = PageSize::FOUR_KIB;
            let parts: u64 = limits.iter().map(|limit| protectable(Bytes(*limit), page).0).sum();
            prop_assert!(Bytes(parts) <= protectable(Bytes(limits.iter().sum()), page));
        }
    }
}
