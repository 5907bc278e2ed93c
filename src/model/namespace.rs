//! Namespaces, and how they are chosen by their labels.
//!
//! Plain data and the meaning of a label selector (Kubernetes' `metav1.LabelSelector`).

use std::collections::BTreeMap;
use std::fmt;

use super::resource_quota::Operator;

/// The label that every namespace has, with its name (Kubernetes 1.36, KEP-2161).
pub const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// A namespace: what selectors see of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// `metadata.name`
    pub name: String,
    /// `metadata.labels`, with [`NAME_LABEL`].
    pub labels: BTreeMap<String, String>,
    /// `metadata.annotations`
    pub annotations: BTreeMap<String, String>,
}

impl Namespace {
    /// A namespace that nobody has said anything of.
    pub fn named(name: &str) -> Self {
        Self::new(name, BTreeMap::new(), BTreeMap::new())
    }

    /// A namespace with these labels, and the one that each has.
    pub fn new(
        name: &str,
        mut labels: BTreeMap<String, String>,
        annotations: BTreeMap<String, String>,
    ) -> Self {
        labels.insert(NAME_LABEL.to_owned(), name.to_owned());
        Self {
            name: name.to_owned(),
            labels,
            annotations,
        }
    }
}

/// A choice by labels: all of it must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// `matchLabels`: labels with exactly these values.
    pub labels: BTreeMap<String, String>,
    /// `matchExpressions`
    pub terms: Vec<LabelTerm>,
}

impl LabelSelector {
    /// Whether it asks for nothing, so that everything matches.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.terms.is_empty()
    }

    /// Whether these labels match.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        has_all(labels, &self.labels) && self.terms.iter().all(|term| term.matches(labels))
    }
}

impl fmt::Display for LabelSelector {
    /// As `kubectl` shows it: `app=web,tier in (a,b),!old`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels = self.labels.iter();
        let labels = labels.map(|(key, value)| (key, format!("{key}={value}")));
        let terms = self.terms.iter();
        let terms = terms.map(|term| (&term.key, term.to_string()));
        let mut texts: Vec<_> = labels.chain(terms).collect();
        texts.sort();
        let texts: Vec<_> = texts.into_iter().map(|(_, text)| text).collect();
        f.write_str(&texts.join(","))
    }
}

/// One expression about a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelTerm {
    /// `key`
    pub key: String,
    /// `operator`
    pub operator: Operator,
    /// `values`
    pub values: Vec<String>,
}

impl LabelTerm {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let is_listed = value.is_some_and(|value| self.values.contains(value));
        match self.operator {
            Operator::In => is_listed,
            Operator::NotIn => !is_listed,
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

impl fmt::Display for LabelTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut values = self.values.clone();
        values.sort();
        let (key, values) = (&self.key, values.join(","));
        match self.operator {
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

/// Whether each of these pairs is there.
pub(super) fn has_all(all: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>) -> bool {
    wanted
        .iter()
        .all(|(key, value)| all.get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    fn term(key: &str, operator: Operator, values: &[&str]) -> LabelTerm {
        LabelTerm {
            key: key.to_owned(),
            operator,
            values: values.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn each_operator_means_what_it_means_in_kubernetes() {
        for (labels, expected) in [
            (&[][..], [false, true, false, true]),
            (&[("tier", "a")], [true, false, true, false]),
            (&[("tier", "c")], [false, true, true, false]),
            (&[("tier", "")], [false, true, true, false]),
        ] {
            for (operator, expected) in Operator::ALL.into_iter().zip(expected) {
                let values: &[_] = if operator.takes_values() {
                    &["a", "b"]
                } else {
                    &[]
                };
                let terms = vec![term("tier", operator, values)];
                let selector = LabelSelector {
                    terms,
                    ..LabelSelector::default()
                };
                assert_eq!(
                    selector.matches(&map(labels)),
                    expected,
                    "{selector} {labels:?}"
                );
            }
        }
    }

    #[test]
    fn everything_must_match_and_nothing_asked_for_matches_all() {
        let selector = LabelSelector {
            labels: map(&[("app", "web")]),
            terms: vec![
                term("old", Operator::DoesNotExist, &[]),
                term("a", Operator::NotIn, &["y", "x"]),
            ],
        };
        assert!(selector.matches(&map(&[("app", "web"), ("more", "")])));
        assert!(!selector.matches(&map(&[("app", "web"), ("old", "1")])));
        assert!(!selector.matches(&map(&[("app", "db")])));
        assert_eq!(selector.to_string(), "a notin (x,y),app=web,!old");
        assert!(LabelSelector::default().matches(&map(&[])));
    }

    #[test]
    fn every_namespace_has_its_name_as_a_label() {
        let lie = map(&[(NAME_LABEL, "other")]);
        assert_eq!(
            Namespace::new("demo", lie, BTreeMap::new()),
            Namespace::named("demo")
        );
        assert_eq!(Namespace::named("demo").labels[NAME_LABEL], "demo");
    }
}
