//! All kinds of object that are known: those that are built in, and those that definitions made known.
//!
//! It finds a kind by whatever it is called. Whether a definition is right is for `admission` to say.

use std::collections::{BTreeMap, BTreeSet};

use super::definition::Definition;
use super::kind::{Defined, Kind};

/// More definitions are not taken.
pub const MAX_DEFINITIONS: usize = 256;

/// All texts of kinds that were ever defined in this process (bytes). It holds the words of as many
/// definitions as there can be several times.
const MAX_WORDS: usize = 8 << 20;

/// The kinds that are known.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    /// By plural and group.
    defined: BTreeMap<String, Versions>,
}

/// One kind that was defined.
#[derive(Clone, Debug)]
struct Versions {
    kept: Kind,
    /// Best first.
    served: Vec<Kind>,
}

/// Why a kind cannot be made known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Full {
    /// There are too many already.
    #[error("{MAX_DEFINITIONS} kinds are defined already: delete some")]
    Kinds,
    /// So many were made and deleted that their names do not fit any more.
    #[error(
        "the kinds that were defined since the start have names of {MAX_WORDS} bytes: no more fit until a restart"
    )]
    Words,
    /// No version of it is kept.
    #[error("it has no version in which objects are kept")]
    NoStorage,
}

impl Kinds {
    /// Every kind in every version that is served.
    pub fn all(&self) -> impl Iterator<Item = Kind> {
        let defined = self.defined.values();
        Kind::built_in().chain(defined.flat_map(|versions| versions.served.iter().copied()))
    }

    /// Every kind once, in the version in which it is kept, be it served or not.
    pub fn each(&self) -> impl Iterator<Item = Kind> {
        let defined = self.defined.values();
        Kind::built_in().chain(defined.map(|versions| versions.kept))
    }

    /// The kind of an object, by what it says of itself.
    pub fn of_object(&self, api_version: &str, kind: &str) -> Option<Kind> {
        self.all()
            .find(|known| known.kind == kind && known.api_version() == api_version)
    }

    /// The kind of an object that is kept, in the version in which it is kept now.
    pub fn of_record(&self, api_version: &str, kind: &str) -> Option<Kind> {
        let group = api_version.split('/').next().unwrap_or_default();
        self.each().find(|known| {
            let is_right = match known.defined {
                Some(_) => known.group == group,
                None => known.api_version() == api_version,
            };
            is_right && known.kind == kind
        })
    }

    /// The kind of a path.
    pub fn of_path(&self, group: &str, version: &str, plural: &str) -> Option<Kind> {
        self.all().find(|known| {
            known.group == group && known.version == version && known.plural == plural
        })
    }

    /// The kind somebody means by a word, in any case.
    pub fn of_word(&self, word: &str) -> Option<Kind> {
        let word = word.to_ascii_lowercase();
        self.all().find(|known| known.is_called(&word))
    }

    /// The same kind in the version in which its objects are kept; nothing if it is not known any more.
    pub fn kept(&self, kind: Kind) -> Option<Kind> {
        if kind.defined.is_none() {
            return Some(kind);
        }
        let versions = self.defined.get(&kind.resource())?;
        // Other short names make no other kind.
        let same = |served: &Kind| {
            (served.version, served.kind, served.namespaced)
                == (kind.version, kind.kind, kind.namespaced)
        };
        versions.served.iter().any(same).then_some(versions.kept)
    }

    /// Takes a definition up, in the place of an earlier one of its name.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn define(&mut self, definition: &Definition, words: &mut Words) -> Result<(), Full> {
        let is_new = !self.defined.contains_key(&definition.name);
        if is_new && self.defined.len() >= MAX_DEFINITIONS {
            return Err(Full::Kinds);
        }
        let storage = definition.storage().ok_or(Full::NoStorage)?;
        let kept = words.kind(definition, storage).ok_or(Full::Words)?;
        let served = definition.served().into_iter();
        let served: Option<_> = served
            .map(|version| words.kind(definition, version))
            .collect();
        let served = served.ok_or(Full::Words)?;
        let versions = Versions { kept, served };
        self.defined.insert(definition.name.clone(), versions);
        Ok(())
    }

    /// Forgets what a definition of this name made known.
    pub fn forget(&mut self, name: &str) {
        self.defined.remove(name);
    }
}

/// The texts of kinds that were defined. A kind is copied everywhere, so its texts stay for as long as the
/// process does, each once, and only so many.
#[derive(Debug, Default)]
pub struct Words {
    texts: BTreeSet<&'static str>,
    lists: BTreeSet<&'static [&'static str]>,
    bytes: usize,
}

impl Words {
    fn kind(&mut self, definition: &Definition, version: &str) -> Option<Kind> {
        Some(Kind {
            group: self.text(&definition.group)?,
            version: self.text(version)?,
            kind: self.text(&definition.kind)?,
            plural: self.text(&definition.plural)?,
            short: self.list(&definition.short)?,
            categories: self.list(&definition.categories)?,
            namespaced: definition.scope == "Namespaced",
            defined: Some(Defined {
                singular: self.text(&definition.singular)?,
                list: self.text(&definition.list)?,
            }),
        })
    }

    fn text(&mut self, text: &str) -> Option<&'static str> {
        if let Some(known) = self.texts.get(text) {
            return Some(known);
        }
        self.take(text.len())?;
        let text: &'static str = Box::leak(text.into());
        self.texts.insert(text);
        Some(text)
    }

    fn list(&mut self, texts: &[String]) -> Option<&'static [&'static str]> {
        let texts = texts.iter().map(|text| self.text(text));
        let texts: Vec<_> = texts.collect::<Option<_>>()?;
        if let Some(known) = self.lists.get(texts.as_slice()) {
            return Some(known);
        }
        self.take(size_of_val(texts.as_slice()))?;
        let texts: &'static [_] = Box::leak(texts.into());
        self.lists.insert(texts);
        Some(texts)
    }

    /// Takes room for so many bytes, if there is any.
    fn take(&mut self, bytes: usize) -> Option<()> {
        let own = size_of::<&str>();
        let bytes = self.bytes.saturating_add(bytes).saturating_add(own);
        self.bytes = Some(bytes).filter(|bytes| *bytes <= MAX_WORDS)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::definition::DefinedVersion;
    use super::super::kind::POD;
    use super::*;

    fn definition(group: &str, versions: &[(&str, bool)]) -> Definition {
        Definition {
            name: format!("crontabs.{group}"),
            group: group.to_owned(),
            plural: "crontabs".to_owned(),
            singular: "crontab".to_owned(),
            kind: "CronTab".to_owned(),
            list: "CronTabList".to_owned(),
            short: vec!["ct".to_owned()],
            scope: "Namespaced".to_owned(),
            versions: versions
                .iter()
                .map(|(name, storage)| DefinedVersion {
                    name: (*name).to_owned(),
                    served: *name != "v0",
                    storage: *storage,
                })
                .collect(),
            ..Definition::default()
        }
    }

    #[test]
    fn a_kind_is_found_by_whatever_it_is_called() {
        let mut kinds = Kinds::default();
        let words = &mut Words::default();
        let tabs = definition("b.example.com", &[("v1beta1", true), ("v1", false)]);
        kinds.define(&tabs, words).unwrap();
        for (word, kind) in [
            ("quota", "ResourceQuota"),
            ("limits", "LimitRange"),
            ("limitranges", "LimitRange"),
            ("ConfigMap", "ConfigMap"),
            ("deployments.apps", "Deployment"),
            ("ct", "CronTab"),
            ("crontab", "CronTab"),
            ("crontabs.b.example.com", "CronTab"),
        ] {
            assert_eq!(kinds.of_word(word).unwrap().kind, kind);
        }
        assert_eq!(kinds.of_word("po"), Some(POD));
        assert_eq!(kinds.of_word("unicorns"), None);
        let job = kinds.of_path("batch", "v1", "jobs").unwrap();
        assert_eq!(kinds.of_object("batch/v1", "Job"), Some(job));
        assert_eq!(job.resource(), "jobs.batch");
        assert_eq!(kinds.kept(job), Some(job));
        assert_eq!(kinds.of_word("ct").unwrap().version, "v1", "the best first");
        kinds.forget(&tabs.name);
        assert_eq!(kinds.of_word("ct"), None);
    }

    #[test]
    fn versions_are_the_same_objects() {
        let (mut kinds, mut words) = (Kinds::default(), Words::default());
        let mut tabs = definition(
            "example.com",
            &[("v1", false), ("v1beta1", true), ("v0", false)],
        );
        kinds.define(&tabs, &mut words).unwrap();
        let of = |kinds: &Kinds, version| kinds.of_path("example.com", version, "crontabs");
        let (new, kept) = (of(&kinds, "v1").unwrap(), of(&kinds, "v1beta1").unwrap());
        assert_eq!(of(&kinds, "v0"), None, "not served");
        assert_eq!(
            (kinds.kept(new), kinds.kept(kept)),
            (Some(kept), Some(kept))
        );
        for version in ["v1", "v1beta1", "v0", "v9"] {
            let record = kinds.of_record(&format!("example.com/{version}"), "CronTab");
            assert_eq!(record, Some(kept));
        }
        tabs.conversion = "Webhook".to_owned();
        kinds.define(&tabs, &mut words).unwrap();
        assert_eq!(of(&kinds, "v1"), None, "nobody converts");
        assert_eq!(kinds.kept(new), None);
        tabs.short.clear();
        kinds.define(&tabs, &mut words).unwrap();
        assert!(kinds.kept(kept).is_some(), "another word alone");
        tabs.scope = "Cluster".to_owned();
        kinds.define(&tabs, &mut words).unwrap();
        assert_eq!(kinds.kept(kept), None, "it is another kind now");
    }

    #[test]
    fn there_is_a_bound_on_kinds_and_on_their_words() {
        let (mut kinds, mut words) = (Kinds::default(), Words::default());
        let mut define = |kinds: &mut Kinds, n: usize, length: usize| {
            let group = format!("{n}.{}", "a".repeat(length));
            kinds.define(&definition(&group, &[("v1", true)]), &mut words)
        };
        for n in 0..MAX_DEFINITIONS {
            define(&mut kinds, n, 1).unwrap();
        }
        assert_eq!(define(&mut kinds, 256, 1), Err(Full::Kinds));
        assert_eq!(define(&mut kinds, 0, 1), Ok(()), "it is there already");
        let mut others = Kinds::default();
        let full = (0..).find_map(|n| {
            others = Kinds::default();
            define(&mut others, n, MAX_WORDS / 10).err()
        });
        assert_eq!(full, Some(Full::Words));
        assert_eq!(
            define(&mut kinds, 1, 1),
            Ok(()),
            "its words are there already"
        );
    }
}
