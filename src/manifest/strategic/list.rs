//! Lists in strategic merge patches: which are merged, by which key, and in which order.
//!
//! Decides by the names of a list's field and of the field it is in, which is enough for the kinds that are
//! kept; never by the kind.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Directive, PATCH, PatchError, directive, merged as merged_value, noun, wrong};
use crate::manifest::place::Place;

/// How the items of a merged list are known again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Identity {
    /// By a field of each item.
    Key(&'static str),
    /// Each plain value by itself.
    Value,
}

use Identity::{Key, Value as Itself};

/// The lists that are merged: the field around them, the field, what makes an item. All others are replaced.
/// Source: `patchStrategy` and `patchMergeKey` in Kubernetes' types (core, apps, batch, networking, meta, all
/// v1) and in OpenShift's `image/v1`.
const MERGED: &[(&str, &str, Identity)] = &[
    ("", "secrets", Key("name")), // of a ServiceAccount, whose imagePullSecrets are replaced
    ("containers", "env", Key("name")),
    ("containers", "ports", Key("containerPort")),
    ("containers", "volumeDevices", Key("devicePath")),
    ("containers", "volumeMounts", Key("mountPath")),
    ("ephemeralContainers", "env", Key("name")),
    ("ephemeralContainers", "ports", Key("containerPort")),
    ("ephemeralContainers", "volumeDevices", Key("devicePath")),
    ("ephemeralContainers", "volumeMounts", Key("mountPath")),
    ("initContainers", "env", Key("name")),
    ("initContainers", "ports", Key("containerPort")),
    ("initContainers", "volumeDevices", Key("devicePath")),
    ("initContainers", "volumeMounts", Key("mountPath")),
    ("metadata", "finalizers", Itself), // spec.finalizers of a Namespace are replaced
    ("metadata", "ownerReferences", Key("uid")),
    ("spec", "containers", Key("name")),
    ("spec", "ephemeralContainers", Key("name")),
    ("spec", "evictionResponders", Key("name")),
    ("spec", "hostAliases", Key("ip")),
    ("spec", "imagePullSecrets", Key("name")),
    ("spec", "initContainers", Key("name")),
    ("spec", "podCIDRs", Itself),
    ("spec", "ports", Key("port")),
    ("spec", "resourceClaims", Key("name")),
    ("spec", "schedulingGates", Key("name")),
    ("spec", "tags", Key("name")),
    ("spec", "topologySpreadConstraints", Key("topologyKey")),
    ("spec", "volumes", Key("name")),
    ("status", "addresses", Key("type")),
    ("status", "conditions", Key("type")),
    ("status", "hostIPs", Key("ip")),
    ("status", "podIPs", Key("ip")),
    ("status", "resourceClaimStatuses", Key("name")),
    ("status", "tags", Key("tag")),
];

/// What makes an item of the list at this place; nothing where it is replaced.
fn identity(at: &Place) -> Option<Identity> {
    let (around, field) = match at {
        Place::Field(Place::Top(_), field) => ("", field),
        Place::Field(Place::Field(_, around) | Place::Item(Place::Field(_, around), _), field) => {
            (*around, field)
        }
        _ => return None,
    };
    let mut rules = MERGED.iter();
    rules
        .find(|rule| rule.0 == around && rule.1 == *field)
        .map(|rule| rule.2)
}

impl Identity {
    /// What an item is known by.
    fn of(self, item: &Value) -> Option<String> {
        match self {
            Key(key) => item.get(key).map(ToString::to_string),
            Itself => Some(item.to_string()),
        }
    }
}

/// A list after its part of the patch.
pub(super) fn merged(
    before: Vec<Value>,
    patch: &[Value],
    order: Option<&[Value]>,
    at: &Place,
    depth: usize,
) -> Result<Vec<Value>, PatchError> {
    let Some(identity) = identity(at) else {
        return replaced(patch, at, depth);
    };
    let live = ranks(&before, identity);
    let items = match identity {
        Key(key) => keyed(before, patch, key, at, depth)?,
        Itself => united(before, patch, at)?,
    };
    if let Some(order) = order.filter(|order| !order.is_empty()) {
        agrees(patch, order, identity, at)?;
    }
    Ok(arranged(items, order.unwrap_or(patch), &live, identity))
}

/// A list that the patch takes the place of.
fn replaced(patch: &[Value], at: &Place, depth: usize) -> Result<Vec<Value>, PatchError> {
    let numbered = patch.iter().enumerate();
    numbered
        .map(|(index, item)| {
            let at = Place::Item(at, index);
            if item.get(PATCH).is_some() {
                let why = "the list is replaced as a whole, so that $patch has no place in it";
                return wrong(&at, why.to_owned());
            }
            merged_value(None, item, None, &at, depth)
        })
        .collect()
}

/// A list of plain values with those of the patch, each once.
fn united(mut items: Vec<Value>, patch: &[Value], at: &Place) -> Result<Vec<Value>, PatchError> {
    let mut known: BTreeSet<_> = items.iter().map(ToString::to_string).collect();
    for (index, item) in patch.iter().enumerate() {
        if item.is_object() || item.is_array() || item.is_null() {
            let why = format!("is {}; the list has plain values", noun(item));
            return wrong(&Place::Item(at, index), why);
        }
        if known.insert(item.to_string()) {
            items.push(item.clone());
        }
    }
    Ok(items)
}

/// A list of objects with those of the patch merged into the first of the same key, or behind all others.
fn keyed(
    mut items: Vec<Value>,
    patch: &[Value],
    key: &'static str,
    at: &Place,
    depth: usize,
) -> Result<Vec<Value>, PatchError> {
    let mut gone = BTreeSet::new();
    let mut changes = Vec::new();
    for (index, item) in patch.iter().enumerate() {
        let at = Place::Item(at, index);
        let Value::Object(fields) = item else {
            return wrong(&at, format!("is {}, not an object with {key}", noun(item)));
        };
        let directive = directive(fields, &at)?;
        if directive == Directive::Replace {
            if fields.len() > 1 {
                let why = "$patch: replace stands alone in an item: it replaces the whole list";
                return wrong(&at, why.to_owned());
            }
            items.clear();
            continue;
        }
        let Some(id) = Key(key).of(item) else {
            return wrong(&at, format!("has no {key}, by which the items are merged"));
        };
        if directive == Directive::Delete {
            gone.insert(id);
        } else {
            changes.push((index, id, item));
        }
    }
    if !gone.is_empty() {
        items.retain(|item| Key(key).of(item).is_none_or(|id| !gone.contains(&id)));
    }
    // Two new items of one key are both taken where there were none before: a Service may have port 53 twice.
    let all_new = items.is_empty();
    let mut known = ranks(&items, Key(key));
    for (index, id, change) in changes {
        let at = Place::Item(at, index);
        let there = known.get(&id).and_then(|rank| items.get_mut(*rank));
        if let Some(item) = there {
            *item = merged_value(Some(item.take()), change, None, &at, depth)?;
        } else {
            if !all_new {
                known.insert(id, items.len());
            }
            items.push(merged_value(None, change, None, &at, depth)?);
        }
    }
    Ok(items)
}

/// A list that the patch only orders.
pub(super) fn ordered(items: Vec<Value>, order: &[Value], at: &Place) -> Vec<Value> {
    match identity(at) {
        Some(identity) => {
            let live = ranks(&items, identity);
            arranged(items, order, &live, identity)
        }
        None => items,
    }
}

/// Takes plain values out of a list.
pub(super) fn remove(items: &mut Vec<Value>, gone: &[Value]) {
    let gone: BTreeSet<_> = gone.iter().map(ToString::to_string).collect();
    items.retain(|item| !gone.contains(&item.to_string()));
}

/// Where each item stands; of several that are known by the same, the first.
fn ranks(items: &[Value], identity: Identity) -> BTreeMap<String, usize> {
    let mut ranks = BTreeMap::new();
    for (rank, item) in items.iter().enumerate() {
        if let Some(id) = identity.of(item) {
            ranks.entry(id).or_insert(rank);
        }
    }
    ranks
}

/// Whether the patch has its items in the order it asks for, and none that the order does not name.
fn agrees(
    patch: &[Value],
    order: &[Value],
    identity: Identity,
    at: &Place,
) -> Result<(), PatchError> {
    let mut order = order.iter().map(|item| identity.of(item));
    for (index, item) in patch.iter().enumerate() {
        if item.get(PATCH).is_none() && !order.any(|next| next == identity.of(item)) {
            let why = "does not stand in $setElementOrder, or not in this order";
            return wrong(&Place::Item(at, index), why.to_owned());
        }
    }
    Ok(())
}

/// The items in Kubernetes' order: those that `wanted` names as they stand there, and each other one before
/// the first of these that it stood before in the live list.
fn arranged(
    items: Vec<Value>,
    wanted: &[Value],
    live: &BTreeMap<String, usize>,
    identity: Identity,
) -> Vec<Value> {
    let wanted = ranks(wanted, identity);
    let rank = |ranks: &BTreeMap<String, usize>, item: &Value| {
        identity.of(item).and_then(|id| ranks.get(&id).copied())
    };
    let (mut named, others): (Vec<_>, Vec<_>) = items
        .into_iter()
        .partition(|item| rank(&wanted, item).is_some());
    named.sort_by_cached_key(|item| rank(&wanted, item));
    let mut all = Vec::with_capacity(named.len().saturating_add(others.len()));
    let mut others = others.into_iter().peekable();
    for item in named {
        let here = rank(live, &item);
        let before = |other: &Value| {
            let there = rank(live, other);
            there.is_some() && here.is_some() && there < here
        };
        while let Some(other) = others.next_if(before) {
            all.push(other);
        }
        all.push(item);
    }
    all.extend(others);
    all
}
