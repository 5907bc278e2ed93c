//! What holds for every quantity and every text.

use std::cmp::Ordering;

use allotd::units::{Format, Quantity};
use proptest::prelude::*;

use super::quantity;

/// Every quantity there is, small ones and round ones as likely as large ones.
fn any_quantity() -> impl Strategy<Value = Quantity> {
    const MAX: i128 = 10_i128.pow(38);
    let nano = prop_oneof![
        -MAX..=MAX,
        (any::<i64>(), 0..20_u32).prop_map(|(n, power)| i128::from(n) * 10_i128.pow(power) % MAX),
        (any::<i32>(), 0..8_u32).prop_map(|(n, power)| (i128::from(n) << (10 * power))
            % 10_i128.pow(29)
            * 1_000_000_000),
    ];
    let format = prop_oneof![
        Just(Format::BinarySi),
        Just(Format::DecimalSi),
        Just(Format::DecimalExponent)
    ];
    (nano, format).prop_map(|(nano, format)| Quantity::from_nano(nano, format).unwrap())
}

/// Compares two plain decimal numbers digit by digit, without any arithmetic.
fn compare_decimals(a: &str, b: &str) -> Ordering {
    let key = |text: &str| {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        format!("{whole:0>40}{fraction:0<9}")
    };
    match (a.strip_prefix('-'), b.strip_prefix('-')) {
        (None, None) => key(a).cmp(&key(b)),
        (Some(a), Some(b)) => key(b).cmp(&key(a)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
    }
}

const SUFFIXES: [(&str, u32, u32); 16] = [
    ("n", 1, 0),
    ("u", 1, 3),
    ("m", 1, 6),
    ("", 1, 9),
    ("k", 1, 12),
    ("M", 1, 15),
    ("G", 1, 18),
    ("T", 1, 21),
    ("P", 1, 24),
    ("E", 1, 27),
    ("Ki", 10, 9),
    ("Mi", 20, 9),
    ("Gi", 30, 9),
    ("Ti", 40, 9),
    ("Pi", 50, 9),
    ("Ei", 60, 9),
];

proptest! {
    #[test]
    fn printing_keeps_the_value(q in any_quantity()) {
        prop_assert_eq!(quantity(&q.to_string()), q);
        prop_assert_eq!(quantity(&q.exact()), q);
        let json = serde_json::to_string(&q).unwrap();
        prop_assert_eq!(serde_json::from_str::<Quantity>(&json).unwrap(), q);
    }

    #[test]
    fn canonical_text_has_no_fraction_and_no_plus(q in any_quantity()) {
        let text = q.to_string();
        prop_assert!(!text.contains('.') && !text.contains('+'), "{}", text);
        prop_assert!(text.len() <= 42, "{}", text);
    }

    #[test]
    fn order_is_that_of_the_exact_decimals(a in any_quantity(), b in any_quantity()) {
        prop_assert_eq!(a.cmp(&b), compare_decimals(&a.exact(), &b.exact()));
        prop_assert_eq!(a == b, a.exact() == b.exact());
    }

    #[test]
    fn subtraction_undoes_addition(a in any_quantity(), b in any_quantity()) {
        if let Some(sum) = a.checked_add(b) {
            prop_assert_eq!(sum.checked_sub(b), Some(a));
            prop_assert_eq!(b.checked_add(a), Some(sum));
            prop_assert_eq!(a.saturating_add(b), sum);
        } else {
            prop_assert_eq!(a.is_negative(), b.is_negative());
        }
    }

    #[test]
    fn multiplication_is_repeated_addition(a in any_quantity(), n in 0..20_i64) {
        let sum = (0..n).try_fold(Quantity::ZERO, |sum, _| sum.checked_add(a));
        prop_assert_eq!(a.checked_mul(n), sum);
    }

    #[test]
    fn rounding_goes_to_the_next_step_away_from_zero(q in any_quantity(), scale in -12..20_i32) {
        let rounded = q.round_up(scale);
        let step = if scale < -9 { quantity("1n") } else { quantity(&format!("1e{scale}")) };
        let size = |q: Quantity| if q.is_negative() { -q } else { q };
        prop_assert_eq!(rounded.nano() % step.nano(), 0);
        prop_assert!(size(q) <= size(rounded));
        prop_assert!(size(rounded).checked_sub(size(q)).unwrap() < step);
        prop_assert_eq!(i128::from(q.value() != 0) * q.value().signum(), q.nano().signum());
        prop_assert_eq!(q.round_up(0).nano(), q.value() * 1_000_000_000);
        prop_assert_eq!(q.round_up(Quantity::MILLI).nano(), q.milli_value() * 1_000_000);
    }

    /// The digits as one whole number, times the suffix, divided by the digits behind the point.
    #[test]
    fn reading_is_exact(whole in 0..10_000_u32, fraction in "[0-9]{0,8}", suffix in 0..SUFFIXES.len(), negative: bool) {
        let (suffix, twos, tens) = SUFFIXES[suffix];
        let power = if twos == 1 { 0 } else { twos };
        let sign = if negative { "-" } else { "" };
        let digits: u128 = format!("{whole}{fraction}").parse().unwrap();
        let divisor = 10_u128.pow(u32::try_from(fraction.len()).unwrap());
        // Cut to what fits before multiplying: the largest suffixes leave no room for all digits.
        let multiplier = (1_u128 << power) * 10_u128.pow(tens);
        let Some(product) = digits.checked_mul(multiplier) else { return Ok(()); };
        let mut nano = i128::try_from(product.div_ceil(divisor)).unwrap();
        if power > 0 {
            nano = nano.min(i128::from(i64::MAX) * 1_000_000_000);
        }
        let read = quantity(&format!("{sign}{whole}.{fraction}{suffix}"));
        prop_assert_eq!(read.nano(), if negative { -nano } else { nano });
    }

    #[test]
    fn exponents_move_the_point(digits in 1..1_000_000_u32, exponent in -40..20_i32) {
        let written = quantity(&format!("{digits}e{exponent}"));
        let plain = if exponent < 0 {
            let places = usize::try_from(-exponent).unwrap();
            let padded = format!("{digits:0>width$}", width = places + 1);
            let (whole, fraction) = padded.split_at(padded.len() - places);
            format!("{whole}.{fraction}")
        } else {
            format!("{digits}{}", "0".repeat(usize::try_from(exponent).unwrap()))
        };
        prop_assert_eq!(written, quantity(&plain));
    }

    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        answered(&text);
    }

    #[test]
    fn any_text_of_the_right_letters_is_answered(text in "[-+0-9.eEinumkKMGTPB _]{0,70}") {
        answered(&text);
    }

    #[test]
    fn almost_quantities_are_answered(text in "[-+]?[0-9]{0,40}[.]?[0-9]{0,20}([eE][-+]?[0-9]{0,6}|[numkKMGTPE]?i?)") {
        answered(&text);
    }

    #[test]
    fn json_numbers_are_exact(signed: i64, unsigned: u64, thousandths in -999_999_999_999_i64..=999_999_999_999) {
        let read = |json: String| serde_json::from_str::<Quantity>(&json).unwrap();
        prop_assert_eq!(read(signed.to_string()).nano(), i128::from(signed) * 1_000_000_000);
        prop_assert_eq!(read(unsigned.to_string()), Quantity::from_units(unsigned, Format::BinarySi));
        let milli = Quantity::from_milli(thousandths);
        prop_assert_eq!(read(milli.exact()), milli);
    }
}

/// A text is either read and survives printing, or refused with a message of bounded length.
fn answered(text: &str) {
    match text.parse::<Quantity>() {
        Ok(read) => assert_eq!(quantity(&read.to_string()), read, "{text:?}"),
        Err(error) => assert!(error.to_string().len() < 1200, "{text:?}"),
    }
}
