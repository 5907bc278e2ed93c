//! The words by which kinds of object are named on the command line, and which kind an object is.
//!
//! Kinds that are built in are known without the daemon; it is asked for its definitions of others once one is
//! needed.

use serde_json::Value;

use super::client::Client;
use super::error::CliError;
use super::target::Target;
use crate::manifest::{Object, convert};
use crate::model::kind::{ALL, DEFINITION};
use crate::model::{Kind, Kinds, Words};

/// Why objects of a kind are not kept that only the agent makes.
pub const OWN: &str = "allotd makes the objects of this kind itself";

/// Why objects of a kind are not kept that nobody knows.
pub const UNKNOWN: &str =
    "allotd keeps objects of this kind only once a CustomResourceDefinition says what it is";

/// What finds kinds.
#[derive(Debug, Default)]
pub struct Lookup {
    kinds: Kinds,
    words: Words,
}

/// One kind or several: `pods`, `quota,limits`, `all`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen(Vec<Kind>);

impl Chosen {
    /// The kinds in their order.
    pub fn as_slice(&self) -> &[Kind] {
        &self.0
    }

    /// The kind, if there is just one.
    pub fn single(&self) -> Option<Kind> {
        match self.0.as_slice() {
            [kind] => Some(*kind),
            _ => None,
        }
    }
}

impl Lookup {
    /// The kinds of a comma list, each once; `all` is what runs, and what would run or serve something.
    ///
    /// # Errors
    /// A word that names no kind; or one that only the daemon may know, and there is none.
    pub fn chosen(&mut self, words: &str, client: &Client) -> Result<Chosen, CliError> {
        let mut kinds: Vec<Kind> = Vec::new();
        for word in words.split(',') {
            let named = if word.eq_ignore_ascii_case(ALL) {
                self.ask(client)?;
                let all = self.kinds.all();
                all.filter(|kind| kind.categories.contains(&ALL)).collect()
            } else {
                vec![self.word(word, client)?]
            };
            for kind in named {
                // Versions of a kind are the same objects.
                if !kinds
                    .iter()
                    .any(|known| known.resource() == kind.resource())
                {
                    kinds.push(kind);
                }
            }
        }
        Ok(Chosen(kinds))
    }

    /// The kind of a word; one that people put into the other number is known as well.
    ///
    /// # Errors
    /// As for `chosen`.
    pub fn word(&mut self, word: &str, client: &Client) -> Result<Kind, CliError> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        if let Some(kind) = self.known(word) {
            return Ok(kind);
        }
        if !word.is_empty() && word.chars().all(is_word) {
            self.ask(client)?;
        }
        self.known(word).ok_or_else(|| {
            let mut known: Vec<_> = self.kinds.all().map(|kind| kind.plural).collect();
            known.dedup();
            CliError::Usage(format!(
                "{word:?} is no kind: it is one of {}, or all",
                known.join(", ")
            ))
        })
    }

    fn known(&self, word: &str) -> Option<Kind> {
        let singular = word.strip_suffix('s').unwrap_or(word);
        [word, &format!("{word}s"), singular]
            .into_iter()
            .find_map(|word| self.kinds.of_word(word))
    }

    /// The kind of an object that allotd keeps.
    ///
    /// # Errors
    /// It keeps none like this; or the daemon would have to know, and there is none.
    pub fn object(&mut self, object: &Object, client: &Client) -> Result<Kind, CliError> {
        let of = |kinds: &Kinds| kinds.of_object(object.api_version(), object.kind());
        let mut kind = of(&self.kinds);
        if kind.is_none() {
            self.ask(client)?;
            kind = of(&self.kinds);
        }
        let why = match kind {
            Some(kind) if !kind.is_own() => return Ok(kind),
            Some(_) => OWN,
            None => UNKNOWN,
        };
        let message = format!("{} {}: {why}", object.kind(), object.name());
        Err(CliError::Failed(message))
    }

    /// Asks the daemon for its definitions; of what it sends only what it would take itself is taken.
    fn ask(&mut self, client: &Client) -> Result<(), CliError> {
        let list: Value = client.get(&Target::kind(DEFINITION, None))?;
        let mut kinds = Kinds::default();
        for item in list
            .get("items")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let definition = convert::definition(item).object;
            kinds
                .define(&definition, &mut self.words)
                .map_err(|why| CliError::Failed(format!("{}: {why}", definition.name)))?;
        }
        self.kinds = kinds;
        Ok(())
    }
}

/// The word in front of names where several kinds meet: `pod`, `deployment.apps`.
pub fn prefix(kind: Kind) -> String {
    match kind.group {
        "" => kind.singular(),
        group => format!("{}.{group}", kind.singular()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Without a daemon.
    fn chosen(words: &str) -> Result<Chosen, CliError> {
        let client = Client::new(Path::new("/nonexistent/socket")).unwrap();
        Lookup::default().chosen(words, &client)
    }

    fn plurals(words: &str) -> Vec<&'static str> {
        let kinds = chosen(words).unwrap();
        kinds.as_slice().iter().map(|kind| kind.plural).collect()
    }

    #[test]
    fn kinds_are_named_alone_or_together() {
        assert_eq!(plurals("po"), ["pods"]);
        assert_eq!(plurals("quota,limits"), ["resourcequotas", "limitranges"]);
        assert_eq!(
            plurals("Quotas,limit,quota"),
            ["resourcequotas", "limitranges"]
        );
        for words in ["", "pods,", ",", "pods, quota", "a/b"] {
            let error = chosen(words).unwrap_err();
            assert!(matches!(error, CliError::Usage(_)), "{words:?}: {error}");
        }
        for words in ["gadgets", "pods,gadgets.example.com", "all"] {
            let error = chosen(words).unwrap_err();
            let is_unreachable = matches!(error, CliError::Unreachable { .. });
            assert!(is_unreachable, "the daemon may know {words:?}: {error}");
        }
    }

    #[test]
    fn names_say_their_group() {
        let kinds = chosen("deploy,pod").unwrap();
        let words: Vec<_> = kinds.as_slice().iter().copied().map(prefix).collect();
        assert_eq!(words, ["deployment.apps", "pod"]);
    }
}
