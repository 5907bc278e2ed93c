//! Quantities: against the answers of Kubernetes' own code, as properties, and at their bounds.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its helpers too"
)]

mod properties;
mod vectors;

use allotd::units::{Format, Quantity, QuantityError};

const NO_DIGITS: &str = "unable to parse numeric part of quantity";

fn quantity(text: &str) -> Quantity {
    text.parse()
        .unwrap_or_else(|error: QuantityError| panic!("{text:?}: {error}"))
}

#[test]
fn numbers_in_yaml() {
    let read = |yaml: &str| serde_saphyr::from_str::<Quantity>(yaml).map(|q| q.to_string());
    for (yaml, expected) in [
        ("64Mi", "64Mi"),
        ("\" 250m \"", "250m"),
        ("2", "2"),
        ("0.5", "500m"),
        ("1e3", "1k"),
        ("9223372036854775807", "9223372036854775807"),
        ("18446744073709551615", "18446744073709551615"),
        ("-1", "-1"),
    ] {
        assert_eq!(read(yaml).unwrap(), expected, "{yaml}");
    }
    for yaml in ["true", "[1]", "{a: 1}", ".nan", ".inf", "1GB"] {
        assert!(read(yaml).is_err(), "{yaml}");
    }
}

#[test]
fn inexact_numbers_are_refused() {
    for json in [
        "0.30000000000000004",
        "123456789.123456789",
        "100000000000000000001",
        "1e300",
    ] {
        let message = serde_json::from_str::<Quantity>(json)
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("write the quantity in quotes"),
            "{json}: {message}"
        );
    }
    assert_eq!(
        serde_json::from_str::<Quantity>("0.1").unwrap(),
        quantity("100m")
    );
    assert_eq!(
        serde_json::from_str::<Quantity>("1e-300").unwrap(),
        quantity("1n")
    );
}

#[test]
fn bounds() {
    assert_eq!(quantity("1e29").exact(), format!("1{}", "0".repeat(29)));
    assert_eq!(quantity("-1e29").to_string(), "-100e27");
    assert_eq!(quantity("100000000000E"), quantity("1e29"));
    assert_eq!(quantity("1e-999").to_string(), "1e-9");
    assert_eq!(quantity("0e999"), Quantity::ZERO);
    assert_eq!(quantity(&format!("{}1n", "0".repeat(62))).nano(), 1);
    assert_eq!(
        quantity(&format!("{}Ei", "9".repeat(62))).value(),
        i128::from(i64::MAX)
    );

    let max = quantity("1e29");
    let step = quantity("1n");
    assert_eq!(max.checked_add(step), None);
    assert_eq!((-max).checked_sub(step), None);
    assert_eq!(max.checked_mul(2), None);
    assert_eq!(max.checked_mul(i64::MIN), None);
    assert_eq!(max.saturating_add(max), max);
    assert_eq!((-max).saturating_add(-max), -max);
    assert_eq!(max.round_up(i32::MAX), max);
    assert_eq!(max.round_up(i32::MIN), max);
    assert_eq!(step.round_up(29), max);
    assert_eq!(max.to_u64_ceil(), None);
    assert_eq!(
        (max.bytes(), (-max).bytes(), max.milli()),
        (u64::MAX, 0, u64::MAX)
    );
    assert_eq!(
        quantity("18446744073709551614.1").to_u64_ceil(),
        Some(u64::MAX)
    );
    assert_eq!(quantity("-1n").to_u64_ceil(), None);
    assert_eq!(Quantity::from_nano(max.nano() + 1, Format::DecimalSi), None);
}

/// A sum beyond what a binary suffix can carry keeps its value when it is printed and read again.
#[test]
fn binary_sums_survive_printing() {
    let sum = quantity("7Ei").checked_add(quantity("7Ei")).unwrap();
    assert_eq!(sum.to_string(), "16140901064495857664");
    assert_eq!(quantity(&sum.to_string()), sum);
}

#[test]
fn parts_of_a_unit_have_no_binary_form() {
    assert_eq!(
        quantity("0.0000000000000000001Ki").format(),
        Format::DecimalSi
    );
    assert_eq!(quantity("0.0000000000000000001Ki").nano(), 1);
    assert_eq!(quantity("0.0009765625Ki").format(), Format::BinarySi);
    assert_eq!(quantity("0.0009765625Ki").value(), 1);
}

#[test]
fn messages() {
    let format = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$': ";
    let suffix = "unable to parse quantity's suffix: ";
    let generic = "write a number with one of the suffixes n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as e3";
    let long = "1".repeat(65);
    for (text, expected) in [
        ("", format!("{format}the text is empty; write a number such as 100m, 1.5 or 64Mi")),
        ("1GB", format!("{format}\"1GB\" is not a quantity; did you mean 1G or 1Gi?")),
        ("512MiB", format!("{format}\"512MiB\" is not a quantity; did you mean 512Mi?")),
        ("1 Gi", format!("{format}\"1 Gi\" is not a quantity; did you mean 1Gi?")),
        ("1_000", format!("{format}\"1_000\" is not a quantity; did you mean 1000?")),
        ("1g", format!("{format}\"1g\" is not a quantity; did you mean 1G or 1Gi?")),
        ("1,5", format!("{format}\"1,5\" is not a quantity; {generic}")),
        ("1\u{7}", format!("{format}\"1\\u{{7}}\" is not a quantity; {generic}")),
        ("64mi", format!("{suffix}\"mi\" in \"64mi\" is not a suffix; did you mean 64Mi?")),
        ("1K", format!("{suffix}\"K\" in \"1K\" is not a suffix; did you mean 1k or 1Ki?")),
        ("1e", format!("{suffix}\"e\" in \"1e\" is not a suffix; did you mean 1E or 1Ei?")),
        ("1i", format!("{suffix}\"i\" in \"1i\" is not a suffix; {generic}")),
        ("1e1000", format!("{suffix}the exponent of \"1e1000\" lies outside -999 to 999")),
        ("1e4294967296", format!("{suffix}the exponent of \"1e4294967296\" lies outside -999 to 999")),
        (".", format!("{NO_DIGITS}: \".\" has no digits; write a number such as 100m, 1.5 or 64Mi")),
        ("m", format!("{NO_DIGITS}: \"m\" has no digits; write a number such as 100m, 1.5 or 64Mi")),
        (
            "100000000000000000000000000000.000000001",
            "quantity \"100000000000000000000000000000.000000001\" is too large; the magnitude may be at most 1e29".to_owned(),
        ),
        ("-1e999", "quantity \"-1e999\" is too large; the magnitude may be at most 1e29".to_owned()),
        (long.as_str(), "quantity has 65 bytes of text; at most 64 are read".to_owned()),
    ] {
        assert_eq!(text.parse::<Quantity>().unwrap_err().to_string(), expected, "{text:?}");
    }
}
