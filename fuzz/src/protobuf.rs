//! An object in protobuf of any bytes: what is read is as long as the bytes at most allow, and can be read
//! as a manifest; what is not says where.

use allotd::manifest::protobuf::{Unreadable, read};
use allotd::manifest::{self, Strictness};

pub fn run(data: &[u8]) {
    one(data);
    // What stands before every object costs the fuzzer much to find.
    for kind in ["Pod", "Service", "ResourceQuota", "Secret"] {
        one(&body(kind, data));
    }
}

fn one(data: &[u8]) {
    match read(data) {
        Ok(object) => {
            let json = object.to_string();
            // The longest that few bytes become is the name of an empty field.
            assert!(json.len() < 100 * (data.len() + 1), "{json}");
            let manifest = manifest::read("-", json.as_bytes(), Strictness::Warn);
            assert_eq!(read(data).as_ref(), Ok(&object));
            assert!(!manifest.objects.is_empty() || !manifest.problems.is_empty());
        }
        Err(Unreadable::Body { at, message, .. }) => {
            assert!(at <= data.len(), "{at}: {message}");
            assert!(!message.is_empty());
        }
        Err(Unreadable::Kind { .. }) => {}
    }
}

/// A body with these bytes of an object.
fn body(kind: &str, raw: &[u8]) -> Vec<u8> {
    let field = |number: u8, bytes: &[u8]| {
        let mut field = vec![number << 3 | 2];
        let mut length = bytes.len();
        while length > 0x7f {
            field.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        field.push(length as u8);
        field.extend(bytes);
        field
    };
    let of_type = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &of_type), field(2, raw)].concat()
}
