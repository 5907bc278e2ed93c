//! Objects that are only kept, in the layout of `kubectl describe`; what a secret holds is never shown, only
//! how long it is.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Event;
use serde_json::Value;

use super::{map, write_events};
use crate::cli::render::{Clock, Page};
use crate::model::Kind;
use crate::model::kind::{CONFIG_MAP, NAMESPACE, SECRET};

/// One object.
pub fn page(kind: Kind, object: &Value, events: &[Event], clock: &Clock) -> Page {
    let mut page = Page::description();
    let text = |place: &str| object.pointer(place).and_then(Value::as_str);
    page.texts(0, &["Name:", text("/metadata/name").unwrap_or_default()]);
    if kind.namespaced {
        let namespace = text("/metadata/namespace").unwrap_or_default();
        page.texts(0, &["Namespace:", namespace]);
    }
    let pairs = |place: &str| -> Option<BTreeMap<String, String>> {
        serde_json::from_value(object.pointer(place)?.clone()).ok()
    };
    let labels = pairs("/metadata/labels");
    map(&mut page, "Labels:", labels.as_ref(), "=");
    let annotations = pairs("/metadata/annotations");
    map(&mut page, "Annotations:", annotations.as_ref(), ": ");
    match kind {
        SECRET => {
            page.texts(0, &[""]);
            page.texts(0, &["Type:", text("/type").unwrap_or("Opaque")]);
            data(&mut page, object, true, secret_line);
        }
        CONFIG_MAP => data(&mut page, object, false, config_line),
        NAMESPACE => page.texts(0, &["Status:", text("/status/phase").unwrap_or_default()]),
        _ => {
            let api_version = kind.api_version();
            page.texts(0, &["API Version:", &api_version]);
            page.texts(0, &["Kind:", kind.kind]);
            rest(&mut page, object);
        }
    }
    let uid = text("/metadata/uid");
    let own = events.iter().filter(|event| {
        let about = &event.involved_object;
        about.uid.as_deref() == uid && about.kind.as_deref() == Some(kind.kind)
    });
    let own: Vec<_> = own.cloned().collect();
    write_events(&mut page, &own, clock);
    page
}

/// Everything else that somebody wrote, as YAML.
fn rest(page: &mut Page, object: &Value) {
    for (field, value) in object.as_object().into_iter().flatten() {
        if ["apiVersion", "kind", "metadata"].contains(&field.as_str()) {
            continue;
        }
        let mut letters = field.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        let title: String = first.into_iter().chain(letters).collect();
        page.texts(0, &[format!("{title}:")]);
        let text = serde_saphyr::to_string(value).unwrap_or_default();
        for line in text.lines() {
            page.texts(1, &[line]);
        }
    }
}

/// What an object holds by key, `line` for each.
fn data(
    page: &mut Page,
    object: &Value,
    is_secret: bool,
    line: impl Fn(&mut Page, &str, &str, bool),
) {
    page.texts(0, &[""]);
    page.texts(0, &["Data"]);
    page.texts(0, &["===="]);
    for (field, is_base64) in [
        ("data", is_secret),
        ("stringData", false),
        ("binaryData", true),
    ] {
        let entries = object.get(field).and_then(Value::as_object);
        for (key, value) in entries.into_iter().flatten() {
            line(page, key, value.as_str().unwrap_or_default(), is_base64);
        }
    }
    page.texts(0, &[""]);
}

fn secret_line(page: &mut Page, key: &str, value: &str, is_base64: bool) {
    page.texts(0, &[&format!("{key}:"), &length(value, is_base64)]);
}

fn config_line(page: &mut Page, key: &str, value: &str, is_base64: bool) {
    page.texts(0, &[format!("{key}:")]);
    page.texts(0, &["----"]);
    if is_base64 {
        page.texts(0, &[length(value, is_base64)]);
        return;
    }
    for line in value.lines() {
        page.texts(0, &[line]);
    }
    page.texts(0, &[""]);
}

/// How many bytes a value has.
fn length(value: &str, is_base64: bool) -> String {
    let bytes = if is_base64 {
        let digits = value.bytes().filter(|byte| !byte.is_ascii_whitespace());
        let digits = digits.filter(|byte| *byte != b'=').count();
        // Four digits are three bytes.
        digits.saturating_mul(3) / 4
    } else {
        value.len()
    };
    let s = if bytes == 1 { "" } else { "s" };
    format!("{bytes} byte{s}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_of_what_is_encoded() {
        for (text, bytes) in [
            ("", "0 bytes"),
            ("YQ==", "1 byte"),
            ("YWI=", "2 bytes"),
            ("YWJj", "3 bytes"),
            ("YWJj\nZA==", "4 bytes"),
        ] {
            assert_eq!(length(text, true), bytes, "{text}");
        }
        assert_eq!(length("YQ==", false), "4 bytes");
    }
}
