//! `cpu.max.burst` from the pod's annotation: run time that was not used and can be later.
//!
//! Decides that a burst is an amount of CPU, as limits are, whatever the period of quotas is, and never above
//! the quota that it adds to. It must never set a burst where nobody asked for one.

use super::cpu;
use super::note::Draft;
use crate::cgroup::{InterfaceFile, Setting};
use crate::model::annotation::{self, CPU_BURST, CpuBursts};
use crate::model::{EffectiveContainer, EffectivePod, Pod, Policy};
use crate::units::{Limit, Micros, MilliCpu};

/// What a pod chose; nothing where its choice cannot be read, which no admitted pod's is.
pub(super) fn chosen(pod: &Pod) -> CpuBursts<'_> {
    annotation::cpu_bursts(pod).unwrap_or_default()
}

pub(super) fn container(
    draft: &mut Draft,
    container: &EffectiveContainer,
    chosen: &CpuBursts<'_>,
    policy: &Policy,
) {
    if let Some(burst) = chosen.of(&container.name) {
        set(draft, burst, &format!("{CPU_BURST} {burst}"), policy);
    }
}

/// The pod's quota must not stop what its containers saved up.
pub(super) fn pod(draft: &mut Draft, pod: &EffectivePod, chosen: &CpuBursts<'_>, policy: &Policy) {
    if chosen.is_empty() {
        return;
    }
    let sum = pod
        .containers
        .iter()
        .filter(|container| container.resources.limits.cpu().is_some())
        .filter_map(|container| chosen.of(&container.name))
        .fold(MilliCpu::ZERO, MilliCpu::saturating_add);
    set(
        draft,
        sum,
        &format!("{CPU_BURST} of all containers, {sum}"),
        policy,
    );
}

fn set(draft: &mut Draft, burst: MilliCpu, whose: &str, policy: &Policy) {
    let file = InterfaceFile::CpuMaxBurst;
    let quota = match draft.get(InterfaceFile::CpuMax) {
        Some(Setting::CpuMax(max)) => max.quota,
        _ => Limit::Max,
    };
    let Limit::At(quota) = quota else {
        draft.note(
            file,
            format!("{whose} means nothing: there is no quota to go beyond"),
        );
        draft.set(Setting::CpuMaxBurst(Micros(0)));
        return;
    };
    let time = cpu::run_time(burst, policy);
    let kept = time.min(quota);
    draft.note(file, whose);
    if kept < time {
        draft.note(file, format!("{time} µs are cut to the quota: {kept} µs"));
    }
    draft.set(Setting::CpuMaxBurst(kept));
}
