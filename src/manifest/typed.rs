//! A tree read as a Kubernetes type, with every misfit at its place.
//!
//! The types name their fields to the deserializer, so an unknown field is known here together with
//! its right neighbours. A value of the wrong type stops serde; `read` takes that value out and reads
//! again, so that all of them are told.

use std::cell::RefCell;

use serde::de::{self, DeserializeOwned, Visitor};
use serde::forward_to_deserialize_any;

use super::access::{List, Map};
use super::misfit::{self, Misfit};
use super::place::Place;
use super::scalar::{Meaning, meaning};
use super::tree::{Content, Entry, Node, Scalar};

/// Wrong values that are told of one object; each costs a reading.
const MAX_WRONG_VALUES: usize = 20;
/// Unknown fields that are told of one object.
const MAX_UNKNOWN_FIELDS: usize = 200;

/// What reading an object gave.
pub(super) struct Reading<T> {
    /// The object; `None` if a value is of the wrong type.
    pub object: Option<T>,
    /// Values of the wrong type.
    pub wrong: Vec<Misfit>,
    /// Fields that are unknown or given twice.
    pub unknown: Vec<Misfit>,
}

/// Reads a tree as a type. `top` is the object's place in its document.
pub(super) fn read<T: DeserializeOwned>(node: &Node, top: &str) -> Reading<T> {
    let mut wrong: Vec<Misfit> = Vec::new();
    loop {
        let notes = Notes {
            left_out: wrong.iter().map(|misfit| misfit.node).collect(),
            unknown: RefCell::default(),
        };
        let place = Place::Top(top);
        let typed = Typed {
            node,
            line: node.line,
            place: &place,
            notes: &notes,
        };
        let result = T::deserialize(typed);
        let unknown = notes.unknown.take();
        let object = match result {
            Ok(object) => wrong.is_empty().then_some(object),
            Err(misfit) if wrong.len() == MAX_WRONG_VALUES => {
                let message = "more values are wrong; they are told when these are right";
                let misfit = Misfit {
                    message: message.to_owned(),
                    ..misfit
                };
                wrong.push(misfit);
                None
            }
            Err(misfit) => {
                let is_new = misfit.node != address(node) && notes.keeps(misfit.node);
                wrong.push(misfit);
                if is_new {
                    continue;
                }
                None
            }
        };
        return Reading {
            object,
            wrong,
            unknown,
        };
    }
}

/// Tells nodes of one tree apart.
pub(super) fn address(node: &Node) -> usize {
    std::ptr::from_ref(node).addr()
}

/// What one reading leaves out and what it finds.
pub(super) struct Notes {
    left_out: Vec<usize>,
    unknown: RefCell<Vec<Misfit>>,
}

impl Notes {
    /// Whether the node at this address is read.
    pub fn keeps(&self, node: usize) -> bool {
        !self.left_out.contains(&node)
    }
}

/// A node that serde reads.
#[derive(Clone, Copy)]
pub(super) struct Typed<'t> {
    /// The node.
    pub node: &'t Node,
    /// The line of its key, where it has one.
    pub line: usize,
    /// Its place.
    pub place: &'t Place<'t>,
    /// What goes with the reading.
    pub notes: &'t Notes,
}

impl<'t> Typed<'t> {
    fn misfit<T>(self, message: String) -> Result<T, Misfit> {
        Err(Misfit::new(message).at(self.place, self.line, address(self.node)))
    }

    /// Gives an error that has no place yet this one.
    fn placed<T>(self, result: Result<T, Misfit>) -> Result<T, Misfit> {
        result.map_err(|misfit| misfit.at(self.place, self.line, address(self.node)))
    }

    fn expected<T>(self, what: &str) -> Result<T, Misfit> {
        self.misfit(misfit::expected(what, &self.node.content))
    }

    fn is_null(self) -> bool {
        is_null(self.node)
    }

    /// The whole number that stands here.
    fn int(self) -> Result<i128, Misfit> {
        match &self.node.content {
            Content::Scalar(scalar) if scalar.plain => match meaning(&scalar.text) {
                Meaning::Int(int) => Ok(int),
                _ => self.expected("a whole number"),
            },
            _ => self.expected("a whole number"),
        }
    }

    fn text(self) -> Result<&'t str, Misfit> {
        match &self.node.content {
            Content::Scalar(Scalar { text, plain: false }) => Ok(text),
            Content::Scalar(Scalar { text, plain: true }) => match meaning(text) {
                Meaning::Text => Ok(text),
                // As in Go, a null leaves the empty text that was there.
                Meaning::Null => Ok(""),
                _ => self.expected("text"),
            },
            _ => self.expected("text"),
        }
    }

    /// The text of a quantity: numbers keep the digits they were written with.
    fn quantity(self) -> Result<&'t str, Misfit> {
        const WHAT: &str = "a quantity such as 500m or 1Gi";
        let Content::Scalar(Scalar { text, plain }) = &self.node.content else {
            return self.expected(WHAT);
        };
        match meaning(text) {
            Meaning::Null | Meaning::Bool(_) if *plain => self.expected(WHAT),
            Meaning::Int(octal) if *plain && misfit::is_octal(text) => self.misfit(format!(
                "{text} is octal, {octal}, to kubectl: write {octal}, or the number without its leading zero"
            )),
            _ => Ok(text.trim()),
        }
    }

    /// The entries of the map that stands here, without those left out and those that another of
    /// the same key follows.
    fn entries(self, what: &str, child: ChildPlace) -> Result<Vec<&'t Entry>, Misfit> {
        let Content::Map(entries) = &self.node.content else {
            return self.expected(what);
        };
        let mut by_key: Vec<(&str, usize)> = entries
            .iter()
            .enumerate()
            .map(|(index, entry)| (entry.key.as_str(), index))
            .collect();
        by_key.sort_unstable();
        let mut is_kept: Vec<bool> = entries
            .iter()
            .map(|entry| self.notes.keeps(address(&entry.value)))
            .collect();
        for pair in by_key.windows(2) {
            if let [(first_key, first), (key, second)] = pair
                && first_key == key
                && let (Some(first_entry), Some(entry)) =
                    (entries.get(*first), entries.get(*second))
            {
                is_kept
                    .get_mut(*first)
                    .into_iter()
                    .for_each(|is_kept| *is_kept = false);
                self.note(&child.of(self.place, key), entry, || {
                    format!("is given twice, first in line {}", first_entry.line)
                });
            }
        }
        let kept = entries.iter().zip(is_kept);
        Ok(kept
            .filter_map(|(entry, is_kept)| is_kept.then_some(entry))
            .collect())
    }

    fn note(self, place: &Place, entry: &Entry, message: impl FnOnce() -> String) {
        let mut unknown = self.notes.unknown.borrow_mut();
        let message = match unknown.len() {
            0..MAX_UNKNOWN_FIELDS => message(),
            MAX_UNKNOWN_FIELDS => {
                "more fields are unknown; they are told when these are right".to_owned()
            }
            _ => return,
        };
        unknown.push(Misfit::new(message).at(place, entry.line, address(&entry.value)));
    }
}

/// Whether a node is nothing at all.
pub(super) fn is_null(node: &Node) -> bool {
    matches!(&node.content, Content::Scalar(scalar) if scalar.plain && meaning(&scalar.text) == Meaning::Null)
}

/// How the children of a map are called.
#[derive(Clone, Copy)]
pub(super) enum ChildPlace {
    /// The map is a struct.
    Field,
    /// The map is a map.
    Key,
}

impl ChildPlace {
    /// The place of a child.
    pub fn of<'p>(self, parent: &'p Place<'p>, key: &'p str) -> Place<'p> {
        match self {
            Self::Field => Place::Field(parent, key),
            Self::Key => Place::Key(parent, key),
        }
    }
}

/// Implements whole numbers of one size.
macro_rules! whole_numbers {
    ($($method:ident $visit:ident $type:ty),*) => { $(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
            let int = self.int()?;
            match <$type>::try_from(int) {
                Ok(int) => self.placed(visitor.$visit(int)),
                Err(_) => self.misfit(format!(
                    "{int} is out of range: it is from {} to {}", <$type>::MIN, <$type>::MAX
                )),
            }
        }
    )* };
}

impl<'de> de::Deserializer<'de> for Typed<'_> {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let scalar = match &self.node.content {
            Content::List(_) => return self.deserialize_seq(visitor),
            Content::Map(_) => {
                let entries = self.entries("a map", ChildPlace::Field)?;
                return self.placed(visitor.visit_map(Map::new(self, entries, ChildPlace::Field)));
            }
            Content::Scalar(scalar) => scalar,
        };
        if !scalar.plain {
            return self.placed(visitor.visit_str(&scalar.text));
        }
        self.placed(match meaning(&scalar.text) {
            Meaning::Null => visitor.visit_unit(),
            Meaning::Bool(flag) => visitor.visit_bool(flag),
            Meaning::Int(int) => match (i64::try_from(int), u64::try_from(int)) {
                (Ok(int), _) => visitor.visit_i64(int),
                (_, Ok(int)) => visitor.visit_u64(int),
                _ => visitor.visit_str(&scalar.text),
            },
            Meaning::Float(float) => visitor.visit_f64(float),
            Meaning::Text => visitor.visit_str(&scalar.text),
        })
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        match &self.node.content {
            Content::Scalar(scalar) if scalar.plain => match meaning(&scalar.text) {
                Meaning::Bool(flag) => self.placed(visitor.visit_bool(flag)),
                _ => self.expected("true or false"),
            },
            _ => self.expected("true or false"),
        }
    }

    whole_numbers!(
        deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64, deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32, deserialize_u64 visit_u64 u64
    );

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let text = self.text()?;
        self.placed(visitor.visit_str(text))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        if self.is_null() {
            return self.placed(visitor.visit_none());
        }
        self.placed(visitor.visit_some(self))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        if name == "Quantity" {
            let text = self.quantity()?;
            return self.placed(visitor.visit_str(text));
        }
        self.placed(visitor.visit_newtype_struct(self))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let Content::List(items) = &self.node.content else {
            return self.expected("a list");
        };
        self.placed(visitor.visit_seq(List::new(self, items)))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        let entries = self.entries("a map", ChildPlace::Key)?;
        self.placed(visitor.visit_map(Map::new(self, entries, ChildPlace::Key)))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Misfit> {
        let mut entries = self.entries("a map of fields", ChildPlace::Field)?;
        entries.retain(|entry| {
            let is_known = fields.contains(&entry.key.as_str());
            if !is_known {
                let place = Place::Field(self.place, &entry.key);
                self.note(&place, entry, || {
                    misfit::unknown_field(&entry.key, name, fields)
                });
            }
            // A field that is null is not given.
            is_known && !is_null(&entry.value)
        });
        self.placed(visitor.visit_map(Map::new(self, entries, ChildPlace::Field)))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Misfit> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct enum identifier
    }
}
