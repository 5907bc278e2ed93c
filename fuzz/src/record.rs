//! What a crash or a bad disk may leave of the agent's and the shim's records. The first byte chooses the
//! kind.

use std::collections::BTreeMap;
use std::fmt::Debug;

use allotd::admission::readmit;
use allotd::agent::record::PodRecord;
use allotd::manifest::convert::{self, placeholder_uid};
use allotd::model::Policy;
use allotd::runtime::record::Spec;
use allotd::runtime::{Exit, Started};
use allotd::translation::translate_pod;
use allotd::units::Quantity;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub fn run(data: &[u8]) {
    let Some((kind, text)) = data.split_first() else {
        return;
    };
    match kind {
        b'e' => drop(same::<Exit>(text)),
        b's' => drop(same::<Started>(text)),
        b'c' => drop(same::<Spec>(text)),
        b'n' => drop(same::<BTreeMap<String, Quantity>>(text)),
        b'v' => drop(same::<k8s_openapi::api::core::v1::Event>(text)),
        _ => {
            if let Some(record) = same::<PodRecord>(text) {
                take_up(&record);
            }
        }
    }
}

/// A record that is read reads the same when it is written again.
fn same<T: DeserializeOwned + Serialize + Debug>(text: &[u8]) -> Option<T> {
    let record: T = serde_json::from_slice(text).ok()?;
    let written = serde_json::to_string(&record).unwrap();
    let again: T = serde_json::from_str(&written).unwrap_or_else(|e| panic!("{written}: {e}"));
    assert_eq!(serde_json::to_string(&again).unwrap(), written);
    Some(record)
}

/// What a restart of the agent does with it.
fn take_up(record: &PodRecord) {
    let uid = placeholder_uid("default", "web").unwrap();
    let pod = convert::pod(&record.object, &uid).object;
    if let Ok(admitted) = readmit(pod) {
        let node = super::admission::node();
        let tree = translate_pod(&admitted, &node, &Policy::default());
        assert_eq!(tree.cgroups.len(), tree.tree.len());
    }
}
