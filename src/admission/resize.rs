//! May a pod that is kept take other amounts of cpu and memory?
//!
//! Decides what of a pod may change while it runs, and whether there is room for it: policies refuse what
//! is too much, a node that is full for the moment only lets it wait. Rules and texts are those of
//! Kubernetes 1.36 (`ValidatePodResize`, KEP-1287). Pure: it changes nothing.

use super::{
    AdmittedPod, Assigned, Demand, Holder, Reason, Situation, fit, judge_alone, limit_range,
};
use crate::model::{
    Container, ContainerKind, EffectivePod, List, Node, Pod, QosClass, ResourceList, ResourceName,
    Resources,
};

use super::ledger::Ledger;

/// The same as [`Ledger::situation`] is judged against, and who asks.
pub struct Asker<'a> {
    /// What is in use.
    pub ledger: &'a Ledger,
    /// The pod in the ledger.
    pub holder: &'a Holder,
    /// The CPUs that its containers have to themselves.
    pub exclusive: &'a Assigned,
    /// The node and the policies.
    pub situation: Situation<'a>,
}

/// A resize that nothing but room speaks against.
#[derive(Clone, Debug)]
pub struct Resized {
    /// The pod with its new amounts.
    pub admitted: AdmittedPod,
    /// Of what the node has too little left for the moment; empty: there is room.
    pub shortages: Vec<Reason>,
}

/// Judges a resize. `kept` is the pod as it is, `new` as it shall be; `allocated` is what it takes of the
/// node now, which is something else where an earlier resize still waits.
///
/// # Errors
/// Every reason for which it can never be, as things stand: what may not change, a broken rule, a policy of
/// the namespace, more than the whole node has.
pub fn resize(
    kept: &Pod,
    new: Pod,
    allocated: &EffectivePod,
    asker: &Asker<'_>,
) -> Result<Resized, Vec<Reason>> {
    let mut reasons = forbidden(kept, &new);
    reasons.extend(placed(kept, &new, asker.exclusive));
    let situation = &asker.situation;
    let ranges = limit_range::in_force(situation.limit_ranges, &new.namespace);
    let verdict = judge_alone(new, &ranges);
    reasons.extend(verdict.reasons);
    let admitted = verdict.candidate;
    if QosClass::of(kept) != admitted.qos {
        reasons.push(Reason::invalid(
            "spec",
            admitted.qos,
            format!(
                "Pod QOS Class may not change as a result of resizing: it is {}",
                QosClass::of(kept)
            ),
        ));
    }
    let demand = Demand::of_pod(&admitted.pod, &admitted.effective);
    let charged = asker.ledger.judge(asker.holder, &demand, situation.limited);
    reasons.extend(charged.err().unwrap_or_default());
    reasons.extend(infeasible(&admitted.effective, allocated, situation.node));
    if !reasons.is_empty() {
        return Err(reasons);
    }
    let shortages = shortages(&admitted.effective, allocated, situation);
    Ok(Resized {
        admitted,
        shortages,
    })
}

/// Of what the node has too little left for a pod to grow to these amounts. What does not grow always fits.
pub fn shortages(
    wanted: &EffectivePod,
    allocated: &EffectivePod,
    situation: &Situation<'_>,
) -> Vec<Reason> {
    let mut used = situation.used.clone();
    used.subtract(&allocated.requests);
    fit::fit(&grown(wanted, allocated), situation.node, &used, 0)
}

/// Of what not even the whole node has enough.
pub fn infeasible(wanted: &EffectivePod, allocated: &EffectivePod, node: &Node) -> Vec<Reason> {
    fit::fit(&grown(wanted, allocated), node, &ResourceList::default(), 0)
}

/// The pod with those of its requests alone that are greater than before.
fn grown(wanted: &EffectivePod, allocated: &EffectivePod) -> EffectivePod {
    let grows = |name: &ResourceName, amount| {
        allocated
            .requests
            .get(name)
            .is_none_or(|before| amount > before)
    };
    EffectivePod {
        requests: wanted
            .requests
            .iter()
            .filter(|(name, amount)| grows(name, *amount))
            .map(|(name, amount)| (name.clone(), amount))
            .collect(),
        ..EffectivePod::default()
    }
}

/// What of the amounts may not change. That nothing else has changed is seen elsewhere.
fn forbidden(kept: &Pod, new: &Pod) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if kept.is_static {
        // Its file would bring the old amounts back.
        let message = "static pods cannot be resized: change the file that it comes from";
        reasons.push(Reason::forbidden("spec", message));
    }
    if let (Some(kept), Some(new)) = (&kept.resources, &new.resources) {
        removed("spec.resources", kept, new, &mut reasons);
    }
    if kept.resources.is_some() && new.resources.is_none() {
        let message = "pod-level resources cannot be removed";
        reasons.push(Reason::forbidden("spec.resources", message));
    }
    for ((list, index, kept), (_, _, new)) in kept.all_containers().zip(new.all_containers()) {
        let field = format!("spec.{list}[{index}]");
        let before = reasons.len();
        removed(
            &format!("{field}.resources"),
            &kept.resources,
            &new.resources,
            &mut reasons,
        );
        if kept.kind == ContainerKind::Init && restarts(kept, new) {
            let message = "non-sidecar init containers with a resize policy of RestartContainer \
                           cannot be resized";
            reasons.push(Reason::forbidden(field, message));
        }
        let own = reasons.split_off(before);
        reasons.extend(own.into_iter().map(|reason| reason.about(&kept.name)));
    }
    reasons
}

/// A container that has CPUs to itself has as many as it asked for (Kubernetes 1.36 holds every resize of cpu
/// in a pod like that for infeasible).
fn placed(kept: &Pod, new: &Pod, exclusive: &Assigned) -> Vec<Reason> {
    let both = kept.all_containers().zip(new.all_containers());
    let changed = both.filter_map(|((list, index, kept), (_, _, new))| {
        let cpus = exclusive.get(&kept.name)?;
        differs(kept, new, &ResourceName::Cpu).then(|| {
            let field = format!("spec.{list}[{index}].resources");
            let message = format!(
                "infeasible: it has CPUs {cpus} to itself (cpuManagerPolicy static), and no others can take \
                 their place while it runs; other amounts of memory are possible"
            );
            Reason::forbidden(field, &message).about(&kept.name)
        })
    });
    changed.collect()
}

fn differs(kept: &Container, new: &Container, name: &ResourceName) -> bool {
    [List::Requests, List::Limits]
        .into_iter()
        .any(|list| kept.resources.list(list).get(name) != new.resources.list(list).get(name))
}

/// A limit or request that was given must stay given.
fn removed(field: &str, kept: &Resources, new: &Resources, reasons: &mut Vec<Reason>) {
    for (list, what) in [(List::Limits, "limits"), (List::Requests, "requests")] {
        let gone: Vec<_> = kept
            .list(list)
            .iter()
            .filter(|(name, _)| is_resizable(name) && !new.list(list).contains(name))
            .map(|(name, _)| name.to_string())
            .collect();
        if !gone.is_empty() {
            let message = format!("resource {what} cannot be removed: {}", gone.join(", "));
            reasons.push(Reason::forbidden(format!("{field}.{what}"), &message));
        }
    }
}

/// Whether a resource may be given in other amounts while a container runs.
pub fn is_resizable(name: &ResourceName) -> bool {
    matches!(name, ResourceName::Cpu | ResourceName::Memory)
}

/// Whether a container needs another run to have its new amounts (`resizePolicy`).
pub fn restarts(kept: &Container, new: &Container) -> bool {
    let policy = new.resize_policy;
    (policy.restarts_for_cpu && differs(kept, new, &ResourceName::Cpu))
        || (policy.restarts_for_memory && differs(kept, new, &ResourceName::Memory))
}
