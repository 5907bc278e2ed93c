//! Strategic merge patches, in which `kubectl apply`, `edit`, `label`, `scale` and others say what changes.
//!
//! Decides what an object is after a patch, never what may be changed. A patch is hostile: its depth is
//! bounded, and what it costs grows with its size and the object's, not with their product.
//!
//! The rules are those of Kubernetes' `apimachinery/pkg/util/strategicpatch`. A patch that could mean two
//! things is told and not guessed: a directive that is unknown or has no place where it stands, and
//! `$patch: replace` beside other fields of an item, which Kubernetes drops. `$patch: merge` is what happens
//! anyway, and allowed.

mod list;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::{Map, Value};

use super::place::Place;

/// Levels of a patch. A pod has about 12.
const MAX_DEPTH: usize = 64;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList/";
const ELEMENT_ORDER: &str = "$setElementOrder/";

/// Why a patch does not apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchError {
    /// The field of the patch, such as `spec.containers[0]`; empty where all of it is meant.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for PatchError {}

/// Changes an object as a patch says.
///
/// Nulls delete, objects are merged, lists are merged or replaced by what their field is, and everything
/// else is replaced. What a patch puts where nothing was has no nulls and directives any more.
///
/// # Errors
/// Why the patch does not apply; the object is as it was then.
pub fn merge(object: &mut Value, patch: &Value) -> Result<(), PatchError> {
    let top = Place::Top("");
    if !patch.is_object() {
        return wrong(&top, format!("a patch is an object, not {}", noun(patch)));
    }
    *object = merged(Some(object.clone()), patch, None, &top, 0)?;
    Ok(())
}

/// One value after its part of the patch; `order` is what `$setElementOrder` says of a list.
fn merged(
    before: Option<Value>,
    patch: &Value,
    order: Option<&[Value]>,
    at: &Place,
    depth: usize,
) -> Result<Value, PatchError> {
    if depth > MAX_DEPTH {
        return wrong(at, format!("the patch is deeper than {MAX_DEPTH} levels"));
    }
    let depth = depth.saturating_add(1);
    match patch {
        Value::Object(patch) => {
            let before = match before {
                Some(Value::Object(fields)) => fields,
                _ => Map::new(),
            };
            object(before, patch, at, depth).map(Value::Object)
        }
        Value::Array(patch) => {
            let before = match before {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            };
            list::merged(before, patch, order, at, depth).map(Value::Array)
        }
        plain => Ok(plain.clone()),
    }
}

fn object(
    mut fields: Map<String, Value>,
    patch: &Map<String, Value>,
    at: &Place,
    depth: usize,
) -> Result<Map<String, Value>, PatchError> {
    match directive(patch, at)? {
        Directive::Delete => return Ok(Map::new()),
        Directive::Replace => fields.clear(),
        Directive::Merge => {}
    }
    let mut orders = BTreeMap::new();
    for (name, value) in patch {
        if let Some(field) = name.strip_prefix(ELEMENT_ORDER) {
            orders.insert(field, items(value, name, at)?);
        }
    }
    retain_keys(&mut fields, patch, at)?;
    // All at once: taking them out one by one would move all others each time.
    fields.retain(|name, _| !patch.get(name).is_some_and(Value::is_null));
    for (name, change) in patch {
        if change.is_null() || is_directive(name, at)? {
            continue;
        }
        let at = Place::Field(at, name);
        let order = orders.remove(name.as_str());
        // Taken and put back where it was, so that fields keep their order.
        if let Some(value) = fields.get_mut(name) {
            *value = merged(Some(value.take()), change, order, &at, depth)?;
        } else {
            fields.insert(name.clone(), merged(None, change, order, &at, depth)?);
        }
    }
    for (field, order) in orders {
        if let Some(Value::Array(items)) = fields.get_mut(field) {
            *items = list::ordered(std::mem::take(items), order, &Place::Field(at, field));
        }
    }
    for (name, gone) in patch {
        let Some(field) = name.strip_prefix(DELETE_FROM_LIST) else {
            continue;
        };
        let gone = items(gone, name, at)?;
        if let Some(Value::Array(items)) = fields.get_mut(field) {
            list::remove(items, gone);
        }
    }
    Ok(fields)
}

/// What becomes of what is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Directive {
    /// The patch goes into it.
    Merge,
    /// The patch takes its place.
    Replace,
    /// Nothing of it stays.
    Delete,
}

/// What `$patch` says.
fn directive(patch: &Map<String, Value>, at: &Place) -> Result<Directive, PatchError> {
    match patch.get(PATCH).map(Value::as_str) {
        None | Some(Some("merge")) => Ok(Directive::Merge),
        Some(Some("replace")) => Ok(Directive::Replace),
        Some(Some("delete")) => Ok(Directive::Delete),
        Some(_) => wrong(at, "$patch is replace, delete or merge".to_owned()),
    }
}

/// Whether a name is a directive and not a field. No field of Kubernetes begins with `$`.
fn is_directive(name: &str, at: &Place) -> Result<bool, PatchError> {
    let known = [PATCH, RETAIN_KEYS].contains(&name)
        || name.starts_with(ELEMENT_ORDER)
        || name.starts_with(DELETE_FROM_LIST);
    if name.starts_with('$') && !known {
        return wrong(at, format!("{name} is not a directive that is known"));
    }
    Ok(known)
}

/// Carries out `$retainKeys`: fields that it does not name go.
fn retain_keys(
    fields: &mut Map<String, Value>,
    patch: &Map<String, Value>,
    at: &Place,
) -> Result<(), PatchError> {
    let Some(keys) = patch.get(RETAIN_KEYS) else {
        return Ok(());
    };
    let keys: BTreeSet<_> = items(keys, RETAIN_KEYS, at)?
        .iter()
        .filter_map(Value::as_str)
        .collect();
    for (name, change) in patch {
        if !name.starts_with('$') && !change.is_null() && !keys.contains(name.as_str()) {
            return wrong(at, format!("{RETAIN_KEYS} must name {name}, which is set"));
        }
    }
    fields.retain(|name, _| keys.contains(name.as_str()));
    Ok(())
}

/// The list that a directive takes.
fn items<'p>(value: &'p Value, directive: &str, at: &Place) -> Result<&'p [Value], PatchError> {
    match value {
        Value::Array(items) => Ok(items),
        _ => wrong(at, format!("{directive} is a list, not {}", noun(value))),
    }
}

fn noun(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn wrong<T>(at: &Place, message: String) -> Result<T, PatchError> {
    Err(PatchError {
        field: at.to_string(),
        message,
    })
}
