//! Why a text is not a quantity, and what its writer probably meant.
//!
//! Messages begin with the words of the Kubernetes API, which people search for, and then say what is
//! wrong in this text. A text proposed here must be one that can be read.

use thiserror::Error;

use super::parse::{MAX_EXPONENT, MAX_TEXT, read};

/// Why a text cannot be read as a quantity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QuantityError {
    /// A character that has no place in a quantity, or nothing at all.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$': {}",
        explain_format(.text)
    )]
    Format {
        /// The text as given.
        text: String,
    },
    /// Letters that may stand in a suffix, but not like this.
    #[error("unable to parse quantity's suffix: {suffix:?} in {text:?} is not a suffix; {}", advise(.text))]
    Suffix {
        /// The text as given.
        text: String,
        /// The part that was taken for the suffix.
        suffix: String,
    },
    /// A suffix or a sign without a number. Kubernetes reads it as zero.
    #[error(
        "unable to parse numeric part of quantity: {text:?} has no digits; write a number such as 100m, 1.5 or 64Mi"
    )]
    NoDigits {
        /// The text as given.
        text: String,
    },
    /// An exponent beyond what is read.
    #[error(
        "unable to parse quantity's suffix: the exponent of {text:?} lies outside -{MAX_EXPONENT} to {MAX_EXPONENT}"
    )]
    Exponent {
        /// The text as given.
        text: String,
    },
    /// A figure beyond what can be held exactly.
    #[error("quantity {text:?} is too large; the magnitude may be at most 1e29")]
    TooLarge {
        /// The text as given.
        text: String,
    },
    /// A text longer than any sensible figure. The text itself is not kept.
    #[error("quantity has {length} bytes of text; at most {MAX_TEXT} are read")]
    TooLong {
        /// Bytes of the text as given.
        length: usize,
    },
}

fn explain_format(text: &str) -> String {
    if text.is_empty() {
        return "the text is empty; write a number such as 100m, 1.5 or 64Mi".to_owned();
    }
    format!("{text:?} is not a quantity; {}", advise(text))
}

/// Proposes texts that can be read: without blanks and underscores, without the unit of bytes, and with the
/// suffix in its right case.
fn advise(text: &str) -> String {
    let squeezed: String = text
        .chars()
        .filter(|c| !c.is_whitespace() && *c != '_')
        .collect();
    let bare = squeezed.trim_end_matches(['b', 'B']);
    let (number, suffix) = bare.split_at(
        bare.find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(bare.len()),
    );
    let suffixes: &[&str] = match suffix.to_ascii_lowercase().as_str() {
        "" => &[""],
        "k" => &["k", "Ki"],
        "ki" => &["Ki"],
        "m" => &["M", "Mi"],
        "mi" => &["Mi"],
        "g" => &["G", "Gi"],
        "gi" => &["Gi"],
        "t" => &["T", "Ti"],
        "ti" => &["Ti"],
        "p" => &["P", "Pi"],
        "pi" => &["Pi"],
        "e" => &["E", "Ei"],
        "ei" => &["Ei"],
        _ => &[],
    };
    let proposals: Vec<String> = suffixes
        .iter()
        .map(|suffix| format!("{number}{suffix}"))
        .filter(|proposal| read(proposal).is_ok())
        .collect();
    if proposals.is_empty() {
        "write a number with one of the suffixes n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent such as e3"
            .to_owned()
    } else {
        format!("did you mean {}?", proposals.join(" or "))
    }
}
