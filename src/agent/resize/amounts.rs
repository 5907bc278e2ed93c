//! The cpu and memory of a pod and its containers, as its object spells them.
//!
//! What of an object a resize changes, taken out of it and put into it. It judges nothing.

use std::collections::BTreeMap;
use std::str::FromStr;

use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use serde::{Deserialize, Serialize};

use crate::admission::resize::is_resizable;
use crate::model::ResourceName;
use crate::units::Quantity;

/// Requests and limits by resource.
type List = BTreeMap<String, Text>;

/// Requests and limits of cpu and memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Amounts {
    /// `spec.resources`
    pod: Pair,
    /// Those of each container, by its name.
    containers: BTreeMap<String, Pair>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Pair {
    #[serde(default)]
    requests: List,
    #[serde(default)]
    limits: List,
}

impl Amounts {
    /// Those of an object.
    pub fn of(object: &v1::Pod) -> Self {
        let Some(spec) = &object.spec else {
            return Self::default();
        };
        let own = |container: &v1::Container| {
            (
                container.name.clone(),
                Pair::of(container.resources.as_ref()),
            )
        };
        let init = spec.init_containers.iter().flatten();
        Self {
            pod: Pair::of(spec.resources.as_ref()),
            containers: init.chain(&spec.containers).map(own).collect(),
        }
    }

    /// An object with these in place of its own.
    pub fn put_into(&self, object: &v1::Pod) -> v1::Pod {
        let mut object = object.clone();
        let Some(spec) = object.spec.as_mut() else {
            return object;
        };
        self.pod.put_into(&mut spec.resources);
        let init = spec.init_containers.iter_mut().flatten();
        for container in init.chain(&mut spec.containers) {
            if let Some(pair) = self.containers.get(&container.name) {
                pair.put_into(&mut container.resources);
            }
        }
        object
    }

    /// The larger of both, amount by amount.
    pub fn raise_to(&mut self, other: &Self) {
        self.pod.raise_to(&other.pod);
        for (name, pair) in &other.containers {
            self.containers
                .entry(name.clone())
                .or_default()
                .raise_to(pair);
        }
    }

    /// What differs, in words: `container app: requests.cpu 100m → 200m`; empty if nothing does.
    pub fn difference(&self, new: &Self) -> String {
        let mut texts = Vec::new();
        let mut tell = |whose: &str, old: &Pair, new: &Pair| {
            let changes = old.changes(new);
            if !changes.is_empty() {
                texts.push(format!("{whose}: {}", changes.join(", ")));
            }
        };
        tell("pod", &self.pod, &new.pod);
        let none = Pair::default();
        for (name, new) in &new.containers {
            let old = self.containers.get(name).unwrap_or(&none);
            tell(&format!("container {name}"), old, new);
        }
        texts.join("; ")
    }
}

impl Pair {
    fn of(resources: Option<&v1::ResourceRequirements>) -> Self {
        let own = |list: Option<&List>| -> List {
            list.into_iter()
                .flatten()
                .filter(|(name, _)| is_amount(name))
                .map(|(name, amount)| (name.clone(), amount.clone()))
                .collect()
        };
        Self {
            requests: own(resources.and_then(|resources| resources.requests.as_ref())),
            limits: own(resources.and_then(|resources| resources.limits.as_ref())),
        }
    }

    fn put_into(&self, resources: &mut Option<v1::ResourceRequirements>) {
        let mut into = resources.take().unwrap_or_default();
        for (own, list) in [
            (&self.requests, &mut into.requests),
            (&self.limits, &mut into.limits),
        ] {
            let mut all = list.take().unwrap_or_default();
            all.retain(|name, _| !is_amount(name));
            all.extend(own.clone());
            *list = (!all.is_empty()).then_some(all);
        }
        if into != v1::ResourceRequirements::default() {
            *resources = Some(into);
        }
    }

    fn raise_to(&mut self, other: &Self) {
        for (own, other) in [
            (&mut self.requests, &other.requests),
            (&mut self.limits, &other.limits),
        ] {
            for (name, amount) in other {
                let is_larger = own
                    .get(name)
                    .is_none_or(|own| quantity(own) < quantity(amount));
                if is_larger {
                    own.insert(name.clone(), amount.clone());
                }
            }
        }
    }

    fn changes(&self, new: &Self) -> Vec<String> {
        let mut texts = Vec::new();
        for (what, old, new) in [
            ("requests", &self.requests, &new.requests),
            ("limits", &self.limits, &new.limits),
        ] {
            for (name, Text(amount)) in new {
                match old.get(name) {
                    Some(Text(before)) if before == amount => {}
                    Some(Text(before)) => {
                        texts.push(format!("{what}.{name} {before} → {amount}"));
                    }
                    None => texts.push(format!("{what}.{name} none → {amount}")),
                }
            }
        }
        texts
    }
}

fn is_amount(name: &str) -> bool {
    is_resizable(&ResourceName::from(name))
}

/// What cannot be read is less than anything else.
fn quantity(Text(text): &Text) -> Option<Quantity> {
    Quantity::from_str(text.trim()).ok()
}
