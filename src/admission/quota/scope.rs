//! Which scopes match an object (Kubernetes 1.36 `podMatchesScopeFunc`, `pvcMatchesScopeFunc`).

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Operator, Pod, QosClass, Scope, ScopeTerm};

/// What scopes look at. An object of a kind that knows no scopes has none, and is counted only by quotas
/// without any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    plain: BTreeSet<Scope>,
    /// Scopes that ask for the name of a class, with the names that the object has.
    classes: BTreeMap<Scope, BTreeSet<String>>,
}

impl Traits {
    /// Those of a pod.
    pub(super) fn of_pod(pod: &Pod, qos: QosClass) -> Self {
        let mut plain = BTreeSet::from([
            match pod.active_deadline_seconds {
                Some(_) => Scope::Terminating,
                None => Scope::NotTerminating,
            },
            match qos {
                QosClass::BestEffort => Scope::BestEffort,
                QosClass::Guaranteed | QosClass::Burstable => Scope::NotBestEffort,
            },
        ]);
        if pod.has_cross_namespace_affinity {
            plain.insert(Scope::CrossNamespacePodAffinity);
        }
        Self {
            plain,
            classes: classes(Scope::PriorityClass, [pod.priority_class.clone()]),
        }
    }

    /// Those of a claim: the volume attributes classes that it has and that it is to have.
    pub(super) fn of_claim(names: impl IntoIterator<Item = String>) -> Self {
        Self {
            plain: BTreeSet::new(),
            classes: classes(Scope::VolumeAttributesClass, names),
        }
    }

    /// Those of whatever has a class of this name; an empty name is none.
    pub(in crate::admission) fn of_class(scope: Scope, name: String) -> Self {
        Self {
            plain: BTreeSet::new(),
            classes: classes(scope, [name]),
        }
    }

    /// The scopes that match without looking at values.
    pub fn plain(&self) -> &BTreeSet<Scope> {
        &self.plain
    }

    /// Whether an expression matches.
    pub fn match_term(&self, term: &ScopeTerm) -> bool {
        let Some(names) = self.classes.get(&term.scope) else {
            return self.plain.contains(&term.scope);
        };
        match term.operator {
            Operator::Exists => !names.is_empty(),
            Operator::DoesNotExist => names.is_empty(),
            Operator::In => term.values.iter().any(|value| names.contains(value)),
            Operator::NotIn => !term.values.iter().any(|value| names.contains(value)),
        }
    }
}

/// An empty name is none.
fn classes(
    scope: Scope,
    names: impl IntoIterator<Item = String>,
) -> BTreeMap<Scope, BTreeSet<String>> {
    let names = names.into_iter().filter(|name| !name.is_empty());
    BTreeMap::from([(scope, names.collect())])
}
