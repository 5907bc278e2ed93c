//! The answers of Kubernetes' own code (tests/data/quantity.json).
//!
//! Where that code is wrong, the answer in the table is already the right one (`canonical`), or the vector
//! stands in `OURS` with our answer and the reason.

use std::cmp::Ordering;

use allotd::units::{Format, Quantity};
use serde_json::Value;

use super::{NO_DIGITS, quantity};

const VECTORS: &str = include_str!("../data/quantity.json");

/// What we answer instead.
enum Ours {
    /// The text is refused with a message that contains this.
    Refused(&'static str),
    /// The result is printed like this.
    Prints(&'static str),
}

/// Vectors whose recorded answer is not ours, each with the reason.
const OURS: [(&str, Ours, &str); 6] = [
    ("parse \"Gi\"", Ours::Refused(NO_DIGITS), NOT_ZERO),
    ("parse \"+\"", Ours::Refused(NO_DIGITS), NOT_ZERO),
    ("parse \"-\"", Ours::Refused(NO_DIGITS), NOT_ZERO),
    ("parse \"e3\"", Ours::Refused(NO_DIGITS), NOT_ZERO),
    (
        "json 1e3",
        Ours::Prints("1k"),
        "a number token has lost its notation before it reaches us; the value is the same",
    ),
    (
        "json \"+1\"",
        Ours::Prints("1"),
        "Kubernetes echoes the text until somebody touches the value",
    ),
];

const NOT_ZERO: &str = "a suffix or a sign without a number is a slip of the pen, not a zero";

fn ours(name: &str) -> Option<&'static Ours> {
    OURS.iter()
        .find(|(known, ..)| *known == name)
        .map(|(_, ours, _)| ours)
}

fn text<'a>(object: &'a Value, key: &str) -> &'a str {
    object[key]
        .as_str()
        .unwrap_or_else(|| panic!("no text {key:?} in {object}"))
}

fn format_name(format: Format) -> &'static str {
    match format {
        Format::BinarySi => "BinarySI",
        Format::DecimalSi => "DecimalSI",
        Format::DecimalExponent => "DecimalExponent",
    }
}

#[test]
fn kubernetes_vectors() {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    assert_eq!(vectors.len(), 293, "the table is not to be cut");
    let mut own = 0;
    for vector in &vectors {
        let name = text(vector, "name");
        let (input, expected) = (&vector["input"], &vector["expected"]);
        let ours = ours(name);
        own += usize::from(ours.is_some());
        match text(input, "op") {
            "parse" => check_parse(name, text(input, "text"), expected, ours),
            "cmp" => check_cmp(name, input, expected),
            "json" => check_json(name, text(input, "json"), expected, ours),
            op => check_arithmetic(name, op, input, expected),
        }
    }
    assert_eq!(
        own,
        OURS.len(),
        "an exception names a vector that does not exist"
    );
}

fn check_parse(name: &str, input: &str, expected: &Value, ours: Option<&Ours>) {
    let result = input.parse::<Quantity>();
    if let Some(Ours::Refused(words)) = ours {
        let message = result.expect_err(name).to_string();
        assert!(message.contains(words), "{name}: {message}");
        assert_eq!(expected["ok"], true, "{name}: no exception needed");
        return;
    }
    if expected["ok"] == false {
        let message = result.expect_err(name).to_string();
        assert!(
            message.starts_with(text(expected, "error_text")),
            "{name}: {message}"
        );
        return;
    }
    let quantity = result.expect(name);
    let sign = expected["sign"].as_i64().expect(name);
    assert_eq!(quantity.to_string(), text(expected, "canonical"), "{name}");
    assert_eq!(
        format_name(quantity.format()),
        text(expected, "format"),
        "{name}"
    );
    assert_eq!(quantity.exact(), text(expected, "exact_decimal"), "{name}");
    assert_eq!(
        quantity.value().to_string(),
        text(expected, "ceil_value"),
        "{name}"
    );
    assert_eq!(
        quantity.milli_value().to_string(),
        text(expected, "ceil_milli"),
        "{name}"
    );
    assert_eq!(quantity.is_negative(), sign < 0, "{name}");
    assert_eq!(quantity.is_zero(), sign == 0, "{name}");
    let rounded = match &expected["after_api_milli_rounding"] {
        Value::String(rounded) => rounded,
        _ => text(expected, "canonical"),
    };
    assert_eq!(
        quantity.round_up(Quantity::MILLI).to_string(),
        rounded,
        "{name}"
    );
}

fn check_cmp(name: &str, input: &Value, expected: &Value) {
    let order = match expected["cmp"].as_i64() {
        Some(-1) => Ordering::Less,
        Some(0) => Ordering::Equal,
        Some(1) => Ordering::Greater,
        other => panic!("{name}: {other:?}"),
    };
    let (a, b) = (quantity(text(input, "a")), quantity(text(input, "b")));
    assert_eq!(a.cmp(&b), order, "{name}");
    assert_eq!(b.cmp(&a), order.reverse(), "{name}");
    assert_eq!(a == b, order.is_eq(), "{name}");
}

fn check_arithmetic(name: &str, op: &str, input: &Value, expected: &Value) {
    let a = quantity(text(input, "a"));
    let result = match op {
        "add" => a.checked_add(quantity(text(input, "b"))),
        "sub" => a.checked_sub(quantity(text(input, "b"))),
        "mul" => a.checked_mul(input["n"].as_i64().expect(name)),
        "roundUp" => {
            let scale = i32::try_from(input["scale"].as_i64().expect(name)).expect(name);
            let rounded = a.round_up(scale);
            assert_eq!(rounded == a, expected["exact"] == true, "{name}");
            Some(rounded)
        }
        other => panic!("{name}: unknown operation {other}"),
    };
    let result = result.expect(name);
    assert_eq!(result.to_string(), text(expected, "string"), "{name}");
    if let Value::String(format) = &expected["format"] {
        assert_eq!(format_name(result.format()), format, "{name}");
    }
}

fn check_json(name: &str, input: &str, expected: &Value, ours: Option<&Ours>) {
    let result = serde_json::from_str::<Quantity>(input);
    if expected["error"].is_string() {
        let message = result.expect_err(name).to_string();
        assert!(message.contains("expected a quantity"), "{name}: {message}");
        return;
    }
    let read = result.expect(name);
    let prints = match ours {
        Some(Ours::Prints(prints)) => prints,
        _ => text(expected, "string"),
    };
    assert_eq!(
        serde_json::to_string(&read).unwrap(),
        format!("{prints:?}"),
        "{name}"
    );
    assert_eq!(read, quantity(text(expected, "string")), "{name}");
}
