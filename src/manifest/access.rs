//! The items of lists and the entries of maps, one by one, each with its place.

use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeSeed, IntoDeserializer};

use super::misfit::Misfit;
use super::place::Place;
use super::tree::{Entry, Node};
use super::typed::{ChildPlace, Typed, address};

/// The items of a list, without those left out.
pub(super) struct List<'t> {
    of: Typed<'t>,
    items: std::iter::Enumerate<std::slice::Iter<'t, Node>>,
}

impl<'t> List<'t> {
    /// The items of a list.
    pub fn new(of: Typed<'t>, items: &'t [Node]) -> Self {
        Self {
            of,
            items: items.iter().enumerate(),
        }
    }
}

impl<'de> de::SeqAccess<'de> for List<'_> {
    type Error = Misfit;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Misfit> {
        let notes = self.of.notes;
        let Some((index, node)) = self.items.find(|(_, node)| notes.keeps(address(node))) else {
            return Ok(None);
        };
        let place = Place::Item(self.of.place, index);
        let typed = Typed {
            node,
            line: node.line,
            place: &place,
            notes,
        };
        seed.deserialize(typed).map(Some)
    }
}

/// The entries of a map.
pub(super) struct Map<'t> {
    of: Typed<'t>,
    entries: std::vec::IntoIter<&'t Entry>,
    current: Option<&'t Entry>,
    child: ChildPlace,
}

impl<'t> Map<'t> {
    /// These entries of a map.
    pub fn new(of: Typed<'t>, entries: Vec<&'t Entry>, child: ChildPlace) -> Self {
        Self {
            of,
            entries: entries.into_iter(),
            current: None,
            child,
        }
    }
}

impl<'de> de::MapAccess<'de> for Map<'_> {
    type Error = Misfit;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Misfit> {
        self.current = self.entries.next();
        self.current
            .map(|entry| {
                let key: StrDeserializer<Misfit> = entry.key.as_str().into_deserializer();
                seed.deserialize(key)
            })
            .transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Misfit> {
        let Some(entry) = self.current.take() else {
            return Err(Misfit::new("a value without a key".to_owned()));
        };
        let place = self.child.of(self.of.place, &entry.key);
        let typed = Typed {
            node: &entry.value,
            line: entry.line,
            place: &place,
            notes: self.of.notes,
        };
        seed.deserialize(typed)
    }
}
