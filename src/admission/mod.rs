//! May this pod run on this node? Defaults, rules, and what is free decide; every reason against it
//! is told at once.
//!
//! Pure: no clock, no file, no log. Only this module makes an `AdmittedPod`.

pub mod cpus;
pub mod defaults;
pub mod definition;
pub mod fit;
pub mod ledger;
pub mod limit_range;
pub mod lint;
pub mod privilege;
pub mod quota;
pub mod reason;
pub mod resize;
pub mod validate;

use crate::model::security::NonRoot;
use crate::model::{
    ClusterResourceQuota, EffectivePod, LimitRange, LimitedResource, Node, Pod, QosClass,
    ResourceList, ResourceQuota,
};
pub use cpus::{Assigned, CpuRoom};
pub use defaults::{Defaulted, Rule};
pub use ledger::{Holder, Ledger};
pub use lint::{Finding, Lint};
pub use privilege::Secured;
pub use quota::{Charge, Demand};
pub use reason::{Code, Reason};

/// A pod that passed admission: defaulted, valid, and it fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmittedPod {
    pod: Pod,
    qos: QosClass,
    effective: EffectivePod,
}

impl AdmittedPod {
    /// The pod after defaulting.
    pub fn pod(&self) -> &Pod {
        &self.pod
    }

    /// Its class.
    pub fn qos(&self) -> QosClass {
        self.qos
    }

    /// Its sums and its containers' amounts.
    pub fn effective(&self) -> &EffectivePod {
        &self.effective
    }
}

/// What a pod is judged against.
#[derive(Clone, Debug)]
pub struct Situation<'a> {
    /// The node.
    pub node: &'a Node,
    /// What the admitted pods that have not ended ask for together (`fit::used`).
    pub used: &'a ResourceList,
    /// How many pods that is.
    pub pods: u64,
    /// LimitRanges; those of other namespaces are passed over.
    pub limit_ranges: &'a [LimitRange],
    /// Quotas and what is used of them; those of other namespaces are passed over.
    pub quotas: &'a [ResourceQuota],
    /// Cluster quotas that select the pod's namespace, and what is used of them.
    pub cluster_quotas: Vec<&'a ClusterResourceQuota>,
    /// What may be used only where a quota counts it.
    pub limited: &'a [LimitedResource],
    /// The CPUs that containers can have to themselves; `None`: they get none (`cpuManagerPolicy: none`).
    pub cpus: Option<CpuRoom<'a>>,
    /// What holds where no container may be root; `None`: any may.
    pub non_root: Option<&'a NonRoot>,
}

impl<'a> Situation<'a> {
    /// A node and what is used of it; no policy of a namespace.
    pub fn new(node: &'a Node, used: &'a ResourceList, pods: u64) -> Self {
        Self {
            node,
            used,
            pods,
            limit_ranges: &[],
            quotas: &[],
            cluster_quotas: Vec::new(),
            limited: &[],
            cpus: None,
            non_root: None,
        }
    }
}

/// What admission made of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    candidate: AdmittedPod,
    defaults: Vec<Defaulted>,
    secured: Vec<Secured>,
    reasons: Vec<Reason>,
    findings: Vec<Finding>,
    charges: Vec<Charge>,
    cpus: Assigned,
}

impl Verdict {
    /// The pod after defaulting, whether admitted or not.
    pub fn pod(&self) -> &Pod {
        &self.candidate.pod
    }

    /// Its class.
    pub fn qos(&self) -> QosClass {
        self.candidate.qos
    }

    /// Its sums and its containers' amounts.
    pub fn effective(&self) -> &EffectivePod {
        &self.candidate.effective
    }

    /// What was filled in, and by which rule.
    pub fn defaults(&self) -> &[Defaulted] {
        &self.defaults
    }

    /// What its containers were made because they did not say who they are.
    pub fn secured(&self) -> &[Secured] {
        &self.secured
    }

    /// Everything that speaks against it; empty: it is admitted.
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// What is allowed and yet is hardly meant; what everybody is told.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The same in one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        self.findings.iter().map(ToString::to_string).collect()
    }

    /// What it adds to the accounts of quotas, to be added where it is kept. Empty if it is refused.
    pub fn charges(&self) -> &[Charge] {
        &self.charges
    }

    /// The CPUs that its containers get to themselves.
    pub fn cpus(&self) -> &Assigned {
        &self.cpus
    }

    /// Whether nothing speaks against it.
    pub fn is_admitted(&self) -> bool {
        self.reasons.is_empty()
    }

    /// The admitted pod.
    ///
    /// # Errors
    /// All the reasons against it.
    pub fn into_admitted(self) -> Result<AdmittedPod, Vec<Reason>> {
        if self.reasons.is_empty() {
            Ok(self.candidate)
        } else {
            Err(self.reasons)
        }
    }
}

/// Judges a pod as it was given: defaults of the API and of LimitRanges, the pod's own rules, the bounds
/// of LimitRanges, then what quotas and the node have left.
pub fn admit(mut pod: Pod, situation: &Situation<'_>) -> Verdict {
    // What people wrote, not what was filled in from it.
    let mut findings = lint::written(&pod);
    let namespace = pod.namespace.clone();
    let ranges = limit_range::in_force(situation.limit_ranges, &namespace);
    let non_root = situation.non_root;
    let secured = non_root.map(|rule| privilege::fill(&mut pod, rule));
    let mut verdict = judge_alone(pod, &ranges);
    verdict.secured = secured.unwrap_or_default();
    findings.extend(lint::tied(&ranges, &verdict.defaults));
    verdict.findings = findings;

    let AdmittedPod { pod, effective, .. } = &verdict.candidate;
    let too_much = non_root.map(|rule| privilege::check(pod, rule));
    verdict.reasons.extend(too_much.unwrap_or_default());
    let demand = Demand::of_pod(pod, effective);
    let mut quotas = quota::in_force(situation.quotas, &namespace);
    let cluster = situation.cluster_quotas.iter();
    quotas.extend(cluster.map(|cluster| &cluster.quota));
    let charges = quota::judge(&demand, None, &quotas, situation.limited);
    let shortages = fit::fit(effective, situation.node, situation.used, situation.pods);
    match charges {
        Ok(charges) => verdict.charges = charges,
        Err(reasons) => verdict.reasons.extend(reasons),
    }
    verdict.reasons.extend(shortages);
    if let Some(room) = &situation.cpus {
        match cpus::assign(&verdict.candidate, room) {
            Ok(cpus) => verdict.cpus = cpus,
            Err(reason) => verdict.reasons.push(reason),
        }
    }
    if !verdict.is_admitted() {
        verdict.charges.clear();
    }
    verdict
}

/// Takes up a pod again that was admitted before, as after a restart of the agent: it holds its place
/// already, so neither what is free nor a policy of its namespace is asked.
///
/// # Errors
/// All the rules that the stored pod breaks.
pub fn readmit(pod: Pod) -> Result<AdmittedPod, Vec<Reason>> {
    judge_alone(pod, &[]).into_admitted()
}

/// Judges a pod by what holds on every node.
fn judge_alone(mut pod: Pod, ranges: &[&LimitRange]) -> Verdict {
    let mut defaults = defaults::apply(&mut pod);
    let mut reasons = validate::validate(&pod);
    let filled = limit_range::fill(&mut pod, ranges);
    if !filled.is_empty() {
        // The pod as a whole may ask for what its containers now ask for. Upstream fills that in when it
        // reads the stored pod; a restart must not find another pod than the one that was admitted.
        defaults.extend(defaults::apply(&mut pod));
        reasons = limit_range::blame(validate::validate(&pod), &reasons, &filled);
    }
    reasons.extend(limit_range::pod(&pod, ranges, &filled));
    defaults.extend(filled);
    let effective = EffectivePod::of(&pod);
    defaults.extend(defaults::inherited(&pod, &effective));
    Verdict {
        candidate: AdmittedPod {
            qos: QosClass::of(&pod),
            pod,
            effective,
        },
        defaults,
        secured: Vec::new(),
        reasons,
        findings: Vec::new(),
        charges: Vec::new(),
        cpus: Assigned::new(),
    }
}
