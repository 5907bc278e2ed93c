//! Quantities, one a line: what is read has one value, one printed form and one place in the order.

use allotd::units::Quantity;

const NANO: i128 = 1_000_000_000;

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut before = Quantity::ZERO;
    for line in text.lines() {
        let number: Option<Quantity> = serde_json::from_str(line).ok();
        match line.parse::<Quantity>() {
            Ok(quantity) => {
                // Of longer tokens, JSON's reader has cut digits off; of smaller ones, it has made 0.
                let digits = line.bytes().filter(u8::is_ascii_digit).count();
                let number = number.filter(|number| digits <= 15 && !number.is_zero());
                if let Some(number) = number {
                    assert_eq!(number, quantity, "{line:?} as a JSON token");
                }
                one(quantity);
                two(before, quantity);
                before = quantity;
            }
            Err(error) => advice(&error.to_string()),
        }
    }
}

fn one(quantity: Quantity) {
    let printed = quantity.to_string();
    let again: Quantity = printed.parse().expect(&printed);
    assert_eq!(again, quantity, "{printed}");
    assert_eq!(again.to_string(), printed);
    let json = serde_json::to_string(&quantity).unwrap();
    assert_eq!(serde_json::from_str::<Quantity>(&json).unwrap(), quantity);
    assert_eq!(-(-quantity), quantity);

    // Rounded away from zero, by less than one step.
    let whole = quantity.value() * NANO;
    assert!((whole.abs() - quantity.nano().abs()) < NANO && whole.abs() >= quantity.nano().abs());
    assert_eq!(quantity.is_integer(), whole == quantity.nano());
    let rounded = quantity.round_up(Quantity::MILLI);
    assert_eq!(rounded, rounded.round_up(Quantity::MILLI));
    assert_eq!(rounded.milli_value(), quantity.milli_value());
}

fn two(a: Quantity, b: Quantity) {
    assert_eq!(a.cmp(&b), a.nano().cmp(&b.nano()));
    assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
    assert_eq!(a.checked_add(b), b.checked_add(a));
    match a.checked_add(b) {
        Some(sum) => {
            assert_eq!(sum, a.saturating_add(b));
            assert_eq!(sum.checked_sub(b), Some(a));
        }
        None => assert_eq!(a.saturating_add(b).is_negative(), a.is_negative()),
    }
}

/// A message is short, and what it proposes can be read.
fn advice(message: &str) {
    assert!(message.len() < 2048, "{message}");
    let proposals = message
        .rsplit_once("did you mean ")
        .and_then(|(_, rest)| rest.strip_suffix('?'));
    for proposal in proposals.into_iter().flat_map(|all| all.split(" or ")) {
        assert!(proposal.parse::<Quantity>().is_ok(), "{message}");
    }
}
