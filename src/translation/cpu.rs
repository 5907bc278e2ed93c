//! `cpu.weight` from requests, `cpu.max` from limits.
//!
//! Decides one scale of weights for the whole tree, and when a limit becomes a quota. It must never
//! write a quota that the kernel refuses, nor mix two scales.

use super::note::Draft;
use super::unbounded;
use crate::cgroup::{InterfaceFile, Setting};
use crate::model::policy::CpuWeightFormula;
use crate::model::{EffectiveContainer, EffectivePod, Node, Policy, QosClass, ResourceName};
use crate::units::{CpuMax, CpuWeight, Limit, Micros, MilliCpu};

/// Shares of one CPU: the unit of `cpu.shares` on cgroup v1, which Kubernetes still counts in.
const SHARES_PER_CPU: u64 = 1024;
/// The least shares, those of a request of nothing.
const MIN_SHARES: u32 = 2;
/// The most shares: those of 256 CPUs.
const MAX_SHARES: u32 = 262_144;
/// From here on requests weigh the same.
const MAX_WEIGHED: MilliCpu = MilliCpu(256_000);
/// The greatest quota the kernel takes (`MAX_BW` of `kernel/sched/sched.h`, Linux 6.12).
const MAX_QUOTA: u64 = (1 << 44) - 1;

/// CPU shares of a request: 1024 for each CPU, 2 to 262144 (Kubernetes 1.36 `MilliCPUToShares`).
pub fn shares(request: MilliCpu) -> u32 {
    let shares = request.0.saturating_mul(SHARES_PER_CPU) / 1000;
    u32::try_from(shares)
        .unwrap_or(MAX_SHARES)
        .clamp(MIN_SHARES, MAX_SHARES)
}

/// The weight of CPU shares on one of two curves, both from (2, 1) to (262144, 10000).
pub fn weight(shares: u32, formula: CpuWeightFormula) -> CpuWeight {
    let shares = shares.clamp(MIN_SHARES, MAX_SHARES);
    match formula {
        CpuWeightFormula::Quadratic => quadratic(shares),
        CpuWeightFormula::Linear => {
            CpuWeight::clamped(1 + u64::from(shares - MIN_SHARES) * 9999 / 262_142)
        }
    }
}

/// Quadratic in the logarithm, through (1024, 100), so that one CPU weighs as much as a cgroup that
/// nobody touched (opencontainers/cgroups 0.0.3 `ConvertCPUSharesToCgroupV2Value`).
///
/// Between the three fixed points no value comes nearer to a whole number than 4 parts in 10^10 (a
/// test looks at all of them), so rounding up is safe from the last digits of `log2` and `powf`.
fn quadratic(shares: u32) -> CpuWeight {
    match shares {
        ..=MIN_SHARES => CpuWeight::MIN,
        1024 => CpuWeight::DEFAULT,
        MAX_SHARES.. => CpuWeight::MAX,
        _ => {
            let exact = quadratic_exact(shares);
            let (mut low, mut high) = (1_u16, 10_000);
            while low < high {
                let middle = u16::midpoint(low, high);
                if f64::from(middle) < exact {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            CpuWeight::clamped(low.into())
        }
    }
}

fn quadratic_exact(shares: u32) -> f64 {
    let log = f64::from(shares).log2();
    10_f64.powf(log * (log + 125.0) / 612.0 - 7.0 / 34.0)
}

/// The requests that lead to a weight, the least and the greatest; none where no request does. From
/// 256 CPUs on all weigh the same, so there the greatest is not the end.
///
/// A weight is coarser than a request: what was asked for cannot be read back from the kernel, and must
/// not be shown as if it could (kubernetes#137660).
pub fn requests_of(weight: CpuWeight, formula: CpuWeightFormula) -> Option<(MilliCpu, MilliCpu)> {
    let of = |milli| self::weight(shares(MilliCpu(milli)), formula);
    // How many requests, from 0m on, have a weight of which `is_below` holds.
    let below = |is_below: &dyn Fn(CpuWeight) -> bool| {
        let (mut low, mut high) = (0, MAX_WEIGHED.0 + 1);
        while low < high {
            let middle = u64::midpoint(low, high);
            if is_below(of(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    };
    let first = below(&|other| other < weight);
    let end = below(&|other| other <= weight);
    (first < end).then(|| (MilliCpu(first), MilliCpu(end - 1)))
}

/// The quota of a limit in each period, at least the kernel's 1000 µs; a limit of zero is none, and
/// one beyond the kernel's range is none either.
pub fn quota(limit: MilliCpu, period: Micros) -> Limit<Micros> {
    if limit == MilliCpu::ZERO {
        return Limit::Max;
    }
    match u64::try_from(exact_quota(limit, period)) {
        Ok(run) if run <= MAX_QUOTA => Limit::At(Micros(run).max(CpuMax::MIN_QUOTA)),
        _ => Limit::Max,
    }
}

fn exact_quota(limit: MilliCpu, period: Micros) -> u128 {
    u128::from(limit.0) * u128::from(period.0) / 1000
}

/// The weight of the pods against the system, whose cgroups weigh 100 each: as allocatable CPU to
/// reserved CPU, rounded to the nearest, whatever the number of cores (kubernetes#139807). Where
/// nothing is reserved the pods get the greatest weight.
pub fn top_weight(allocatable: MilliCpu, reserved: MilliCpu) -> CpuWeight {
    let (ours, theirs) = (u128::from(allocatable.0), u128::from(reserved.0));
    (ours * 100 + theirs / 2)
        .checked_div(theirs)
        .map_or(CpuWeight::MAX, |weight| {
            CpuWeight::clamped(u64::try_from(weight).unwrap_or(u64::MAX))
        })
}

pub(super) fn container(draft: &mut Draft, container: &EffectiveContainer, policy: &Policy) {
    let requests = container.resources.requests.cpu();
    let limit = bound(container.resources.limits.cpu());
    if let (None, Some(limit)) = (requests, limit) {
        let text = format!("no cpu request: the weight follows the limit of {limit}");
        draft.note(InterfaceFile::CpuWeight, text);
    }
    set_weight(draft, requests.or(limit).unwrap_or_default(), policy);
    set_max(draft, limit, policy);
}

pub(super) fn pod(draft: &mut Draft, qos: QosClass, pod: &EffectivePod, policy: &Policy) {
    let request = match qos {
        QosClass::BestEffort => MilliCpu::ZERO,
        _ => pod.requests.cpu().unwrap_or_default(),
    };
    set_weight(draft, request, policy);
    let limit = if pod.is_bounded(&ResourceName::Cpu) {
        bound(pod.limits.cpu())
    } else {
        if let Some(text) = unbounded(pod, &ResourceName::Cpu) {
            draft.note(InterfaceFile::CpuMax, text);
        }
        None
    };
    set_max(draft, limit, policy);
}

/// The level above the pods of a class. `requests`: the sum of theirs.
pub(super) fn qos(draft: &mut Draft, requests: MilliCpu, policy: &Policy) {
    set_weight(draft, requests, policy);
    draft.set(Setting::CpuMax(CpuMax::unlimited(period(policy))));
}

/// The top. Its `cpu.max` is left to the node's owner (kubernetes#138431).
pub(super) fn top(draft: &mut Draft, node: &Node) {
    let allocatable = node.allocatable.cpu().unwrap_or_default();
    let reserved = node.reserved.cpu().unwrap_or_default();
    draft.set(Setting::CpuWeight(top_weight(allocatable, reserved)));
    draft.note(
        InterfaceFile::CpuWeight,
        format!(
            "pods stand to the system's 100 as {allocatable} allocatable to {reserved} reserved"
        ),
    );
}

/// Zero is no limit.
fn bound(limit: Option<MilliCpu>) -> Option<MilliCpu> {
    limit.filter(|limit| *limit > MilliCpu::ZERO)
}

/// The period of the policy, held in the kernel's range.
fn period(policy: &Policy) -> Micros {
    Micros(policy.cpu_cfs_quota_period.0.clamp(1000, 1_000_000))
}

/// The run time of an amount of CPU in each period.
pub(super) fn run_time(amount: MilliCpu, policy: &Policy) -> Micros {
    Micros(u64::try_from(exact_quota(amount, period(policy))).unwrap_or(u64::MAX))
}

/// No bound of CPU time, whatever the limit is.
pub(super) fn unbound(draft: &mut Draft, policy: &Policy, why: impl Into<String>) {
    draft.forget(InterfaceFile::CpuMax);
    draft.note(InterfaceFile::CpuMax, why);
    draft.set(Setting::CpuMax(CpuMax::unlimited(period(policy))));
}

fn set_weight(draft: &mut Draft, request: MilliCpu, policy: &Policy) {
    let weight = weight(shares(request), policy.cpu_weight_formula);
    if request > MAX_WEIGHED {
        let text = format!("a request of {request} weighs as {MAX_WEIGHED}: {weight} is the most");
        draft.note(InterfaceFile::CpuWeight, text);
    }
    draft.set(Setting::CpuWeight(weight));
}

fn set_max(draft: &mut Draft, limit: Option<MilliCpu>, policy: &Policy) {
    let period = period(policy);
    let quota = match limit {
        Some(limit) if policy.cpu_cfs_quota => {
            let quota = quota(limit, period);
            if let Some(text) = quota_note(limit, period, quota) {
                draft.note(InterfaceFile::CpuMax, text);
            }
            quota
        }
        Some(limit) => {
            let text = format!("the limit of {limit} is not enforced: cpuCFSQuota is off");
            draft.note(InterfaceFile::CpuMax, text);
            Limit::Max
        }
        None => Limit::Max,
    };
    draft.set(Setting::CpuMax(CpuMax { quota, period }));
}

fn quota_note(limit: MilliCpu, period: Micros, quota: Limit<Micros>) -> Option<String> {
    let Limit::At(quota) = quota else {
        return Some(format!(
            "limit {limit} is not enforced: the kernel takes no quota above {MAX_QUOTA} µs"
        ));
    };
    if exact_quota(limit, period) < u128::from(quota.0) {
        // The floor as a limit; the period is at least 1000 µs, so this is at most 1 CPU.
        let floor = MilliCpu(CpuMax::MIN_QUOTA.0.saturating_mul(1000).div_ceil(period.0));
        return Some(format!(
            "limit {limit} is raised to {floor}: the kernel takes no quota below {} µs",
            CpuMax::MIN_QUOTA
        ));
    }
    let is_whole = (u128::from(limit.0) * u128::from(period.0)).is_multiple_of(1000);
    (!is_whole).then(|| format!("limit {limit} is cut to {quota} µs in {period}: whole µs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_weight_hangs_on_the_last_digit() {
        let mut last = CpuWeight::MIN;
        for shares in 3..MAX_SHARES {
            let exact = quadratic_exact(shares);
            let distance = (exact - exact.round()).abs() / exact;
            assert!(shares == 1024 || distance > 4e-10, "{shares}: {exact}");
            let weight = weight(shares, CpuWeightFormula::Quadratic);
            assert!(weight >= last, "{shares}");
            last = weight;
        }
        assert_eq!(last, CpuWeight::MAX);
    }

    /// Report runc#4772: 1 CPU weighs as much as what nobody touched, and small requests do not collapse.
    #[test]
    fn one_cpu_weighs_a_hundred() {
        let table = [
            (2, 1),
            (10, 4),
            (102, 17),
            (256, 35),
            (512, 59),
            (1024, 100),
            (2048, 174),
            (8192, 532),
            (262_144, 10_000),
        ];
        for (shares, expected) in table {
            let found = weight(shares, CpuWeightFormula::Quadratic).get();
            assert_eq!(found, expected, "{shares} shares");
        }
        let of = |milli| weight(shares(MilliCpu(milli)), CpuWeightFormula::Quadratic).get();
        let requests = [
            (0, 1),
            (1, 1),
            (2, 1),
            (100, 17),
            (250, 35),
            (500, 59),
            (1000, 100),
            (2000, 174),
            (8000, 532),
            (256_000, 10_000),
            (u64::MAX, 10_000),
        ];
        for (milli, expected) in requests {
            assert_eq!(of(milli), expected, "{milli}m");
        }
        let mut small: Vec<_> = (1..100).map(of).collect();
        small.dedup();
        assert!(small.len() >= 16, "{small:?}");
        assert!(small.is_sorted());
    }

    #[test]
    fn a_weight_stands_for_a_range_of_requests() {
        for formula in [CpuWeightFormula::Quadratic, CpuWeightFormula::Linear] {
            for milli in (0..4000).chain([100_000, 255_999, 256_000]) {
                let request = MilliCpu(milli);
                let (least, most) = requests_of(weight(shares(request), formula), formula).unwrap();
                assert!(least <= request && request <= most, "{milli}");
                let of = |milli| weight(shares(MilliCpu(milli)), formula);
                assert_eq!(of(least.0), of(most.0));
                assert!(most.0 == 256_000 || of(most.0 + 1) > of(most.0));
                assert!(least.0 == 0 || of(least.0 - 1) < of(least.0));
            }
        }
        let quadratic =
            |weight| requests_of(CpuWeight::clamped(weight), CpuWeightFormula::Quadratic);
        assert_eq!(quadratic(1), Some((MilliCpu(0), MilliCpu(2))));
        assert_eq!(quadratic(35), Some((MilliCpu(250), MilliCpu(258))));
    }

    #[test]
    fn pods_stand_to_the_system_as_allocatable_to_reserved() {
        // kubernetes#139807: half reserved means 1 : 1 at any number of cores.
        for cores in [4, 16, 64, 1024] {
            let half = MilliCpu(cores * 500);
            assert_eq!(top_weight(half, half), CpuWeight::DEFAULT);
            let quarter = MilliCpu(cores * 250);
            assert_eq!(top_weight(MilliCpu(cores * 750), quarter).get(), 300);
        }
        assert_eq!(top_weight(MilliCpu(1), MilliCpu::ZERO), CpuWeight::MAX);
        assert_eq!(top_weight(MilliCpu::ZERO, MilliCpu(1)), CpuWeight::MIN);
        assert_eq!(top_weight(MilliCpu(u64::MAX), MilliCpu(1)), CpuWeight::MAX);
        assert_eq!(top_weight(MilliCpu(15_800), MilliCpu(200)).get(), 7900);
    }

    #[test]
    fn quotas_stay_within_what_the_kernel_takes() {
        let period = CpuMax::DEFAULT_PERIOD;
        // kubernetes#23113
        for (limit, expected) in [(1, 1000), (5, 1000), (9, 1000), (10, 1000), (11, 1100)] {
            let quota = quota(MilliCpu(limit), period);
            assert_eq!(quota, Limit::At(Micros(expected)));
            let note = quota_note(MilliCpu(limit), period, quota);
            assert_eq!(note.is_some(), limit < 10, "{limit}: {note:?}");
        }
        assert_eq!(
            quota_note(MilliCpu(5), period, Limit::At(Micros(1000))).unwrap(),
            "limit 5m is raised to 10m: the kernel takes no quota below 1000 µs"
        );
        assert_eq!(quota(MilliCpu(u64::MAX), period), Limit::Max);
        let most = MilliCpu(MAX_QUOTA / 100);
        assert_eq!(
            quota(most, period),
            Limit::At(Micros(MAX_QUOTA / 100 * 100))
        );
        assert_eq!(quota(MilliCpu(most.0 + 1), period), Limit::Max);
    }
}
