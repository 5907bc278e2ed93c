//! Patches of a node, JSON patches and strategic ones: whatever they do, the document can still be walked.

use allotd::manifest::patch::patched;
use allotd::manifest::strategic::merge;
use serde_json::{Value, json};

pub fn run(data: &[u8]) {
    strategic(data);
    let Ok(patch) = serde_json::from_slice::<json_patch::Patch>(data) else {
        return;
    };
    match patched(&node(), &patch) {
        Ok(after) => {
            assert!(levels(&after) < 1000);
            // All that may go in is the text itself, and what it copies of the node.
            let written = after.to_string();
            assert!(written.len() < 8 * data.len() + 10_000 * (data.len() + 100));
            assert_eq!(after, after.clone());
        }
        Err(message) => assert!(!message.is_empty()),
    }
}

fn strategic(data: &[u8]) {
    let Ok(patch) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    let mut after = node();
    match merge(&mut after, &patch) {
        Ok(()) => {
            assert!(levels(&after) < 100);
            assert!(after.to_string().len() < node().to_string().len() + 8 * data.len());
        }
        Err(error) => {
            assert!(!error.message.is_empty());
            assert_eq!(after, node());
        }
    }
}

fn levels(value: &Value) -> usize {
    let below = match value {
        Value::Array(items) => items.iter().map(levels).max(),
        Value::Object(fields) => fields.values().map(levels).max(),
        _ => None,
    };
    below.unwrap_or(0) + 1
}

fn node() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "n", "labels": {"a": "b"}, "finalizers": ["a", "b"], "resourceVersion": "7"},
        "status": {
            "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110", "example.com/foo": "3"},
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "X", "status": "False"}],
        },
    })
}
