//! Objects in protobuf (tests/data/protobuf.json), and bytes that only look like some.

#[path = "../support/protobuf.rs"]
mod data;

use allotd::manifest::protobuf::{Unreadable, read};
use proptest::prelude::*;
use serde_json::{Value, json};

use self::data::rows;

/// Kubernetes' JSON without what is not read: a status, and a time that is none.
fn said(mut value: Value) -> Value {
    match &mut value {
        Value::Object(fields) => {
            for (_, field) in fields.iter_mut() {
                *field = said(field.take());
            }
            fields.retain(|name, field| !field.is_null() && name != "status");
        }
        Value::Array(items) => {
            for item in items {
                *item = said(item.take());
            }
        }
        _ => {}
    }
    value
}

#[test]
fn objects_say_the_same_in_both_forms() {
    for row in rows() {
        let read = read(&row.body).unwrap_or_else(|why| panic!("{}: {why}", row.name));
        assert_eq!(read, said(row.object), "{}", row.name);
    }
}

#[test]
fn what_is_cut_off_is_never_an_object() {
    for row in rows() {
        // Behind the object the envelope has two empty texts.
        let whole = row.body.strip_suffix(&[0x1a, 0, 0x22, 0]).unwrap();
        for length in 0..whole.len() {
            match read(&whole[..length]) {
                Err(Unreadable::Body { at, .. }) => assert!(at <= length, "{}: {at}", row.name),
                other => panic!("{} to {length}: {other:?}", row.name),
            }
        }
    }
}

/// A field of these bytes.
fn block(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut length = bytes.len();
    let mut field = vec![number << 3 | 2];
    while length > 0x7f {
        field.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    field.push(u8::try_from(length).unwrap());
    [&field, bytes].concat()
}

/// A body with these bytes of an object.
fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let of_type = [block(1, api_version.as_bytes()), block(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), block(1, &of_type), block(2, raw)].concat()
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let config_map = |raw: &[u8]| body("v1", "ConfigMap", raw);
    // The object begins at byte 23 in all of them.
    for (bytes, expected) in [
        (
            b"{}".to_vec(),
            "byte 0: does not begin with \"k8s\" and a zero byte",
        ),
        (b"k8s\0".to_vec(), "byte 4: ends before the object"),
        (
            b"k8s\0\x0a\x02v1".to_vec(),
            "byte 6: wire type 6 is in no message of Kubernetes",
        ),
        (
            b"k8s\0\x12\0\x1a\x04gzip".to_vec(),
            "byte 6: the object is packed as \"gzip\", not as it is",
        ),
        (
            config_map(&[0x7a, 0]),
            "byte 23: field 15 of ConfigMap is not known here",
        ),
        (
            config_map(&[0x0a, 2, 0x92, 7, 0]),
            "byte 27: metadata: a number begins here and is cut off",
        ),
        (
            config_map(&[0x0a, 3, 0x82, 7, 0]),
            "byte 25: metadata: field 112 of ObjectMeta is not known here",
        ),
        (
            config_map(&[0x0a, 9, 0]),
            "byte 24: 9 bytes are to follow, 1 do",
        ),
        (
            config_map(&[0x08, 9]),
            "byte 23: metadata: is a number; a length and bytes are right",
        ),
        (
            config_map(&[0x22, 0]),
            "byte 23: immutable: is a length and bytes; a number is right",
        ),
        (
            config_map(&[0x0a, 3, 0x0a, 1, 0xff]),
            "byte 27: metadata.name: is not UTF-8",
        ),
        (
            config_map(&[0x20, 1, 0x20, 1]),
            "byte 25: immutable: is given twice",
        ),
        (
            config_map(&[0x12, 3, 0x0a, 1, b'k', 0x12, 3, 0x0a, 1, b'k']),
            "byte 30: data[k]: is given twice",
        ),
        (
            config_map(&[0x12, 2, 0x1a, 0]),
            "byte 25: data: field 3 of a map is not known here",
        ),
        (
            body("v1", "Role", &[]),
            "\"v1\" \"Role\" is not read as protobuf here: application/json is right",
        ),
    ] {
        let why = read(&bytes).unwrap_err().to_string();
        assert!(why.starts_with(expected), "{why}, not {expected}");
    }
    let service = |port: &[u8]| {
        let ports = block(1, &block(4, port));
        body("v1", "Service", &block(2, &ports))
    };
    let why = read(&service(&[0x08, 7])).unwrap_err().to_string();
    assert!(
        why.ends_with(
            "spec.ports[0].targetPort: is of type 7: 0, a number, or 1, a text, is right"
        ),
        "{why}"
    );
}

#[test]
fn zero_is_left_out_only_where_it_says_nothing() {
    // metadata.name "", deletionGracePeriodSeconds 0, generation 0, a label without value, a data entry
    // without anything, immutable false
    let metadata = block(1, &[0x0a, 0, 0x50, 0, 0x38, 0, 0x5a, 3, 0x0a, 1, b'l']);
    let raw = [&metadata, &[0x12, 0, 0x20, 0][..]].concat();
    assert_eq!(
        read(&body("v1", "ConfigMap", &raw)).unwrap(),
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"deletionGracePeriodSeconds": 0, "labels": {"l": ""}},
            "data": {"": ""}, "immutable": false,
        })
    );
}

#[test]
fn many_small_values_are_bounded() {
    let volumes = block(1, &[]).repeat(500_000);
    let why = read(&body("v1", "Pod", &block(2, &volumes))).unwrap_err();
    assert!(
        why.to_string()
            .ends_with("spec.volumes[499999]: the object holds more than 500000 values"),
        "{why}"
    );
}

proptest! {
    #[test]
    fn changed_bytes_are_read_or_refused(
        at in 0..100_usize,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let rows = rows();
        let mut body = rows[at % rows.len()].body.clone();
        for (index, byte) in changes {
            let at = index.index(body.len());
            body[at] = byte;
        }
        match read(&body) {
            Ok(object) => prop_assert!(object.to_string().len() < 10 * body.len() + 1000),
            Err(Unreadable::Body { at, .. }) => prop_assert!(at <= body.len()),
            Err(Unreadable::Kind { .. }) => {}
        }
    }
}
