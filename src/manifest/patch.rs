//! JSON patches (RFC 6902) within bounds.
//!
//! Decides how much a patch may do to a document, never what may be changed. A patch is hostile: a few
//! `copy` operations double a document each, or nest it deeper than anything that walks it can bear.

use json_patch::{CopyOperation, Patch, PatchOperation, patch_unsafe};
use serde_json::Value;

/// Operations of one patch.
const MAX_OPERATIONS: usize = 100;
/// Steps of one path. With what a value may be nested itself, a document stays below 1000 levels.
const MAX_STEPS: usize = 8;
/// Values that all `copy` operations of a patch may add together.
const MAX_COPIED: usize = 10_000;

/// The document after the patch.
///
/// # Errors
/// Why it does not apply or is too large; nothing has changed then.
pub fn patched(document: &Value, patch: &Patch) -> Result<Value, String> {
    if patch.len() > MAX_OPERATIONS {
        let number = patch.len();
        return Err(format!(
            "it has {number} operations; at most {MAX_OPERATIONS} are carried out"
        ));
    }
    let mut after = document.clone();
    let mut copied = 0_usize;
    for (index, operation) in patch.iter().enumerate() {
        let wrong = |why: String| Err(format!("operation {index}: {why}"));
        if steps(operation) > MAX_STEPS {
            return wrong(format!("its path has more than {MAX_STEPS} steps"));
        }
        if let PatchOperation::Copy(CopyOperation { from, .. }) = operation {
            copied = copied.saturating_add(after.pointer(from.as_str()).map_or(0, values));
            if copied > MAX_COPIED {
                return wrong(format!("more than {MAX_COPIED} values are copied"));
            }
        }
        // Not `patch`: what that undoes after an error it cannot always undo, and then it panics.
        if let Err(error) = patch_unsafe(&mut after, std::slice::from_ref(operation)) {
            return wrong(format!("{} {}", error.kind, error.path));
        }
    }
    Ok(after)
}

/// Steps of the longest path.
fn steps(operation: &PatchOperation) -> usize {
    let from = match operation {
        PatchOperation::Move(operation) => operation.from.count(),
        PatchOperation::Copy(operation) => operation.from.count(),
        _ => 0,
    };
    from.max(operation.path().count())
}

/// How many values a value is.
fn values(value: &Value) -> usize {
    let below = match value {
        Value::Array(items) => items.iter().map(values).sum(),
        Value::Object(fields) => fields.values().map(values).sum(),
        _ => 0_usize,
    };
    below.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn apply(patch: &Value) -> Result<Value, String> {
        let document = json!({"a": {"b": "1"}, "list": [1, 2]});
        patched(&document, &serde_json::from_value(patch.clone()).unwrap())
    }

    #[test]
    fn operations_apply_in_order() {
        let patch = json!([
            {"op": "test", "path": "/a/b", "value": "1"},
            {"op": "move", "from": "/a/b", "path": "/c~1d"},
            {"op": "copy", "from": "/list", "path": "/a/e"},
            {"op": "remove", "path": "/list/0"},
        ]);
        let after = json!({"a": {"e": [1, 2]}, "list": [2], "c/d": "1"});
        assert_eq!(apply(&patch), Ok(after));
    }

    #[test]
    fn a_patch_that_fails_after_others_is_told_and_does_not_panic() {
        // Undoing these would panic: the `move` that fails has taken the element away already.
        let patch = json!([
            {"op": "add", "path": "/list/2", "value": 3},
            {"op": "move", "from": "/list/0", "path": "/list/x"},
        ]);
        let error = apply(&patch).unwrap_err();
        assert!(error.starts_with("operation 1: "), "{error}");
    }

    #[test]
    fn what_would_grow_without_end_is_refused() {
        let double = |n| json!({"op": "copy", "from": "", "path": format!("/a/{n}")});
        let remove = json!({"op": "remove", "path": "/a"});
        for (patch, why) in [
            (
                (0..40).map(double).collect(),
                "more than 10000 values are copied",
            ),
            (vec![remove; 101].into(), "101 operations"),
            (
                json!([{"op": "add", "path": "/1/2/3/4/5/6/7/8/9", "value": 1}]),
                "more than 8 steps",
            ),
        ] {
            let error = apply(&patch).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
