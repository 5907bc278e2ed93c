//! The words for what does not fit a type: what was expected, what stands there, and what would be
//! right.

use std::fmt;

use super::place::Place;
use super::scalar::{Meaning, meaning};
use super::tree::{Content, Scalar};

/// Characters of a value that a message repeats.
const MAX_SHOWN: usize = 40;

/// Something that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    /// The path of the field; `None` until the place is known.
    pub field: Option<String>,
    /// The line of the field, from 1.
    pub line: usize,
    /// What is wrong and what would be right.
    pub message: String,
    /// Tells the node apart from the others of its tree.
    pub node: usize,
}

impl Misfit {
    /// A misfit whose place is not known yet.
    pub fn new(message: String) -> Self {
        Self {
            field: None,
            line: 0,
            message,
            node: 0,
        }
    }

    /// Gives it a place unless it has one.
    pub fn at(mut self, place: &Place, line: usize, node: usize) -> Self {
        if self.field.is_none() {
            self.field = Some(place.to_string());
            self.line = line;
            self.node = node;
        }
        self
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Misfit {}

impl serde::de::Error for Misfit {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(format!("cannot be read: {message}"))
    }
}

/// What to say when something else stands where `what` is expected.
pub(super) fn expected(what: &str, found: &Content) -> String {
    let (found, hint) = match found {
        Content::List(_) => ("a list".to_owned(), None),
        Content::Map(_) if what == "a list" => {
            let hint = "begin each item with \"- \"";
            ("a map".to_owned(), Some(hint.to_owned()))
        }
        Content::Map(_) => ("a map".to_owned(), None),
        Content::Scalar(scalar) => (named(scalar), hint(what, scalar)),
    };
    let hint = hint.map_or_else(String::new, |hint| format!("; {hint}"));
    format!("is {found}, expected {what}{hint}")
}

/// What a scalar is, in words.
fn named(scalar: &Scalar) -> String {
    let shown = shown(&scalar.text);
    if !scalar.plain {
        return format!("the text {shown:?}");
    }
    match meaning(&scalar.text) {
        Meaning::Null => "empty".to_owned(),
        Meaning::Bool(flag) if scalar.text == flag.to_string() => format!("the boolean {shown}"),
        Meaning::Bool(flag) => format!("{shown}, which YAML reads as the boolean {flag}"),
        Meaning::Int(_) | Meaning::Float(_) => format!("the number {shown}"),
        Meaning::Text => format!("the text {shown:?}"),
    }
}

fn hint(what: &str, scalar: &Scalar) -> Option<String> {
    let shown = shown(&scalar.text);
    match (what, meaning(&scalar.text)) {
        ("text", _) => Some(format!("quote it: \"{shown}\"")),
        ("a list", _) if !scalar.text.is_empty() => Some(format!("write [{shown:?}]")),
        ("a whole number", Meaning::Int(_)) | ("true or false", Meaning::Bool(_))
            if !scalar.plain =>
        {
            Some("take the quotes away".to_owned())
        }
        (_, Meaning::Null) if scalar.plain => {
            Some("give a value or take the field away".to_owned())
        }
        _ => None,
    }
}

/// What to say of a field that the type does not have.
pub(super) fn unknown_field(key: &str, type_name: &str, fields: &[&str]) -> String {
    let shown = shown(key);
    let advice = match closest(key, fields) {
        Some(field) => format!("; did you mean {field}?"),
        None if fields.len() <= 8 => format!("; it has {}", fields.join(", ")),
        None => String::new(),
    };
    format!("{shown:?} is not a field of {type_name}{advice}")
}

/// The candidate that a misspelt word most likely stands for, if one is near enough.
pub(super) fn closest<'c>(word: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let word = word.to_lowercase();
    let length = word.chars().count();
    let allowed = (length / 3).max(1);
    candidates
        .iter()
        // Lengths first: they are cheap, and a distance is never less than their difference.
        .filter(|candidate| candidate.len().abs_diff(length) <= allowed)
        .map(|candidate| {
            (
                strsim::osa_distance(&word, &candidate.to_lowercase()),
                *candidate,
            )
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The beginning of a value, without anything that could act on a terminal.
pub(super) fn shown(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(MAX_SHOWN)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// Whether a number is written with a leading zero that makes it another number in YAML 1.1.
pub(super) fn is_octal(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-']);
    digits.len() > 1
        && digits.starts_with('0')
        && digits.bytes().all(|b| (b'0'..=b'7').contains(&b))
        && digits.trim_start_matches('0').len() > 1
}
