//! All objects of an input, judged as the daemon would judge them.
//!
//! It must never pass over an object: one that cannot be kept is refused.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::admission::reason::Code;
use crate::admission::validate::identity;
use crate::admission::{Demand, Finding, Lint, Reason, definition, limit_range, lint};
use crate::agent::usage;
use crate::cli::input::{self, InputPod};
use crate::cli::kinds;
use crate::cli::offline::policies::{self, Policies, Policy, ReadPolicy, namespace_of};
use crate::cli::offline::{self, Asked, Room, is_over};
use crate::manifest::convert;
use crate::manifest::{Located, Manifest, Object, Other, Problem};
use crate::model::kind::{CLAIM, DEFINITION};
use crate::model::{Kinds, Node, Words, name};
use crate::report::check::{Check, ObjectCheck, Summary, WarningRow, share};
use crate::report::explain::{self, NodeExplanation, QuotaExplanation, ReasonRow};

/// The objects of an input by how they are judged.
#[derive(Default)]
struct Sorted<'a> {
    policies: Vec<(&'a Located<Object>, ReadPolicy)>,
    others: Vec<&'a Located<Object>>,
    /// By their place among `others`.
    pods: BTreeMap<usize, InputPod<'a>>,
}

/// Judges an input. Findings of the `allowed` lints are left out.
pub fn check(manifest: &Manifest, asked: &Asked<'_>, allowed: &[Lint]) -> Check {
    let mut problems = manifest.problems.clone();
    let mut nodes = Vec::new();
    let mut sorted = Sorted::default();
    let mut seen = BTreeSet::new();
    let mut pods = Vec::new();
    let kinds = defined(manifest);
    for located in &manifest.objects {
        match &located.object {
            Object::Node(node) => {
                nodes.push((located, node.as_ref()));
                continue;
            }
            Object::Pod(written) => match input::pod(located, written, asked.namespace) {
                Ok(pod) => pods.push((located, pod)),
                Err(more) => problems.extend(more),
            },
            _ => problems.extend(policies::twice(located, asked.namespace, &kinds, &mut seen)),
        }
        match policies::read(&located.object, asked.namespace) {
            Some(policy) => {
                let unreadable = policy.unreadable.iter();
                problems.extend(unreadable.map(|it| located.problem(&it.field, &it.message)));
                sorted.policies.push((located, policy));
            }
            None => sorted.others.push(located),
        }
    }
    problems.extend(offline::twins(&pods));
    let node = offline::node(&nodes, asked.config, &mut problems);
    if sorted.policies.is_empty() && sorted.others.is_empty() && problems.is_empty() {
        let message = "there is no object in the input but a Node".to_owned();
        problems.push(offline::of_input(message));
    }
    let Some((node, source)) = node.filter(|_| problems.is_empty()) else {
        return refused_input(problems);
    };
    // Without problems every pod could be converted, so they stand in the same order.
    let is_pod = |located: &&Located<Object>| matches!(located.object, Object::Pod(_));
    let places = sorted.others.iter().enumerate();
    let places = places.filter(|(_, located)| is_pod(located));
    let places = places.map(|(place, _)| place).collect::<Vec<_>>();
    let pods = pods.into_iter().map(|(_, pod)| pod);
    sorted.pods = places.into_iter().zip(pods).collect();

    let mut judge = Judge {
        asked,
        allowed,
        node: &node,
        room: Room::new(&node, asked.config, Policies::default()),
        kinds,
        untold: BTreeMap::new(),
        objects: Vec::new(),
    };
    judge.all(sorted);
    let objects = judge.objects;
    Check {
        node: Some(NodeExplanation {
            name: node.name.clone(),
            source: source.to_owned(),
            allocatable: explain::amounts(&node.allocatable),
        }),
        summary: Summary::of(&objects),
        objects,
        quotas: judge
            .room
            .policies
            .quotas()
            .map(QuotaExplanation::from)
            .collect(),
        problems,
    }
}

/// All kinds that are known once the definitions of an input are taken up; those that are refused define
/// nothing.
fn defined(manifest: &Manifest) -> Kinds {
    let (mut kinds, mut words) = (Kinds::default(), Words::default());
    for located in &manifest.objects {
        let Object::Other(other) = &located.object else {
            continue;
        };
        let kind = kinds.of_object(&other.api_version, &other.kind);
        if kind == Some(DEFINITION) && against(&other.value, &kinds).is_empty() {
            let definition = convert::definition(&other.value).object;
            // More than the daemon would take are told by what is of their kinds.
            let _ = kinds.define(&definition, &mut words);
        }
    }
    kinds
}

/// What speaks against a definition.
fn against(object: &Value, kinds: &Kinds) -> Vec<Reason> {
    let read = convert::definition(object);
    let unread = read.problems.into_iter();
    let unread = unread.map(|it| Reason::policy(Code::Invalid, it.field, &it.message));
    let mut reasons: Vec<_> = unread.collect();
    reasons.extend(definition::validate(&read.object));
    reasons.extend(definition::taken(&read.object, kinds));
    reasons
}

/// The name; of a pod that is named when it is made, what it begins with.
fn shown_name(object: &Object) -> &str {
    match object {
        Object::Pod(pod) if object.name().is_empty() => {
            pod.metadata.generate_name.as_deref().unwrap_or_default()
        }
        _ => object.name(),
    }
}

fn refused_input(problems: Vec<Problem>) -> Check {
    Check {
        problems,
        ..Check::default()
    }
}

struct Judge<'a> {
    asked: &'a Asked<'a>,
    allowed: &'a [Lint],
    node: &'a Node,
    room: Room<'a>,
    /// With those that the input defines.
    kinds: Kinds,
    /// What is to be told once of a namespace.
    untold: BTreeMap<String, Finding>,
    objects: Vec<ObjectCheck>,
}

impl Judge<'_> {
    fn all(&mut self, mut sorted: Sorted<'_>) {
        for (located, policy) in sorted.policies {
            self.policy(located, policy);
        }
        self.policy_findings();
        let namespaces = sorted.others.iter();
        let namespaces: Vec<_> = namespaces
            .map(|located| namespace_of(&located.object, self.asked.namespace, &self.kinds))
            .collect();
        for (namespace, told) in offline::unlabelled(&self.room.policies, namespaces) {
            let finding = Finding {
                lint: Lint::UnknownNamespace,
                owner: lint::Owner::Object,
                field: "metadata.namespace".to_owned(),
                message: told,
            };
            self.untold.insert(namespace.to_owned(), finding);
        }
        for (place, located) in sorted.others.into_iter().enumerate() {
            let (row, findings) = match (sorted.pods.remove(&place), &located.object) {
                (Some(pod), _) => self.pod(located, pod),
                (None, Object::Other(other)) => self.other(located, other),
                (None, _) => continue,
            };
            let once = self.untold.remove(&row.namespace);
            let findings: Vec<_> = findings.into_iter().chain(once).collect();
            self.push(row, &findings);
        }
    }

    fn push(&mut self, mut row: ObjectCheck, findings: &[Finding]) {
        self.warn(&mut row, findings);
        self.objects.push(row);
    }

    fn warn(&self, row: &mut ObjectCheck, findings: &[Finding]) {
        let findings = findings.iter();
        let told = findings.filter(|finding| !self.allowed.contains(&finding.lint));
        row.warnings.extend(told.map(WarningRow::from));
    }

    fn row(&self, located: &Located<Object>) -> ObjectCheck {
        let object = &located.object;
        ObjectCheck {
            api_version: object.api_version().to_owned(),
            kind: object.kind().to_owned(),
            namespace: namespace_of(object, self.asked.namespace, &self.kinds).to_owned(),
            name: shown_name(object).to_owned(),
            source: located.source.clone(),
            line: located.line_of(""),
            ..ObjectCheck::default()
        }
    }

    /// Puts down a verdict on what is only counted, and counts it.
    fn decide(&mut self, row: &mut ObjectCheck, mut reasons: Vec<Reason>, demand: Option<&Demand>) {
        let policies = &self.room.policies;
        let judged = demand.map(|it| policies.judge(&row.namespace, it, self.room.limited()));
        reasons.extend(judged.and_then(Result::err).unwrap_or_default());
        row.admitted = reasons.is_empty();
        row.reasons = reasons.iter().map(ReasonRow::from).collect();
        if let Some(demand) = demand.filter(|_| row.admitted) {
            self.room.policies.charge(&row.namespace, demand);
        }
    }

    /// What is used of the quotas that count an object, once it is there.
    fn shares(&self, row: &mut ObjectCheck, demand: &Demand) {
        let shares = self.room.policies.shares(&row.namespace, demand);
        let shares = shares.iter();
        row.quotas = shares.map(|(quota, keys)| share(quota, keys)).collect();
    }

    fn policy(&mut self, located: &Located<Object>, read: ReadPolicy) {
        let mut row = self.row(located);
        let kind = self.kinds.of_object(&row.api_version, &row.kind);
        let demand = kind.map(|kind| Demand::of_object(&kind.resource()));
        // Only what has a namespace is counted by its quotas.
        let demand = demand.filter(|_| !row.namespace.is_empty());
        let mut reasons = read.reasons;
        if let Policy::Namespace(namespace) = &read.policy {
            let problems = name::dns_label(&namespace.name);
            let field = "metadata.name";
            reasons.extend(
                problems
                    .iter()
                    .map(|problem| Reason::invalid(field, &namespace.name, problem)),
            );
        }
        self.decide(&mut row, reasons, demand.as_ref());
        if row.admitted {
            self.room.policies.add(read.policy);
            if let Some(demand) = demand {
                self.shares(&mut row, &demand);
            }
        }
        self.push(row, &[]);
    }

    /// What is odd about the policies that hold now.
    fn policy_findings(&mut self) {
        let mut objects = std::mem::take(&mut self.objects);
        for (namespace, finding) in self.room.policies.findings() {
            let lint::Owner::Policy(kind, name) = &finding.owner else {
                continue;
            };
            let mut own = objects.iter_mut();
            if let Some(row) =
                own.find(|row| row.kind == *kind && row.namespace == namespace && row.name == *name)
            {
                self.warn(row, std::slice::from_ref(&finding));
            }
        }
        self.objects = objects;
    }

    fn pod(
        &mut self,
        located: &Located<Object>,
        input: InputPod<'_>,
    ) -> (ObjectCheck, Vec<Finding>) {
        let mut row = self.row(located);
        let is_over = is_over(input.written);
        let verdict = self.room.admit(input.pod, is_over);
        row.note(&verdict);
        if row.admitted {
            self.shares(&mut row, &offline::demand(&verdict, is_over));
        }
        let mut findings = lint::pod(&verdict, self.node);
        findings.extend(input.notes.into_iter().map(|note| Finding {
            lint: Lint::NoEffect,
            owner: lint::Owner::Object,
            field: note.field,
            message: note.message,
        }));
        (row, findings)
    }

    /// An object that is kept and counted, and never acted on.
    fn other(&mut self, located: &Located<Object>, other: &Other) -> (ObjectCheck, Vec<Finding>) {
        let mut row = self.row(located);
        let kind = self.kinds.of_object(&other.api_version, &other.kind);
        let Some(kind) = kind.filter(|kind| !kind.is_own()) else {
            let message = match kind {
                Some(_) => kinds::OWN,
                None => kinds::UNKNOWN,
            };
            let reason = Reason::policy(Code::NotSupported, "kind", message);
            self.decide(&mut row, vec![reason], None);
            return (row, Vec::new());
        };
        let mut reasons = identity(kind, &row.namespace, &row.name);
        if kind == DEFINITION {
            reasons.extend(against(&other.value, &self.kinds));
        }
        let mut findings = Vec::new();
        let ranges = &self.room.policies.limit_ranges;
        let ranges = limit_range::in_force(ranges, &row.namespace);
        reasons.extend(usage::out_of_range(kind, &other.value, None, &ranges));
        if kind == CLAIM {
            findings.extend(usage::storage(&other.value).and_then(lint::claim));
        }
        let demand = usage::demand(kind, &other.value);
        self.decide(&mut row, reasons, Some(&demand));
        if row.admitted {
            self.shares(&mut row, &demand);
        }
        (row, findings)
    }
}
