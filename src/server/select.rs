//! Which objects of a list are meant: label selectors and field selectors, as Kubernetes reads them.
//!
//! What cannot be read is refused: whoever deletes by a selector lists first, and must never get more
//! than was asked for.

use serde_json::Value;

use crate::agent::Refusal;
use crate::model::Kind;
use crate::model::kind::{EVENT, POD};

/// Fields that every kind can be selected by.
const FIELDS: [&str; 2] = ["metadata.name", "metadata.namespace"];

/// Fields that pods can be selected by, besides.
const OF_PODS: &[&str] = &["spec.nodeName", "spec.restartPolicy", "status.phase"];

/// Fields that events can be selected by, besides.
const OF_EVENTS: &[&str] = &[
    "involvedObject.apiVersion",
    "involvedObject.fieldPath",
    "involvedObject.kind",
    "involvedObject.name",
    "involvedObject.namespace",
    "involvedObject.resourceVersion",
    "involvedObject.uid",
    "reason",
    "type",
];

/// Which objects somebody wants.
#[derive(Debug, Default)]
pub(super) struct Selection {
    labels: Vec<Requirement>,
    fields: Vec<Requirement>,
}

impl Selection {
    /// Reads a label selector and a field selector for a kind.
    ///
    /// # Errors
    /// One that cannot be read, or a field that the kind cannot be selected by.
    pub fn read(kind: Kind, labels: &str, fields: &str) -> Result<Self, Refusal> {
        let own = match kind {
            POD => OF_PODS,
            EVENT => OF_EVENTS,
            _ => &[],
        };
        Ok(Self {
            labels: read(labels, label).map_err(|why| refusal("labelSelector", labels, &why))?,
            fields: read(fields, |text| field(text, own))
                .map_err(|why| refusal("fieldSelector", fields, &why))?,
        })
    }

    /// Whether an object is meant.
    pub fn takes(&self, object: &Value) -> bool {
        let has_label = |key: &str| object.get("metadata")?.get("labels")?.get(key)?.as_str();
        // A field that is not there is the same as an empty one.
        let has_field = |path: &str| Some(at(object, path).unwrap_or_default());
        self.labels.iter().all(|one| one.holds(has_label(&one.key)))
            && self.fields.iter().all(|one| one.holds(has_field(&one.key)))
    }
}

fn refusal(parameter: &str, text: &str, why: &str) -> Refusal {
    Refusal::bad_request(format!("{parameter} {text:?}: {why}"))
}

fn at<'v>(value: &'v Value, path: &str) -> Option<&'v str> {
    path.split('.')
        .try_fold(value, |value, step| value.get(step))?
        .as_str()
}

/// What one part of a selector asks for.
#[derive(Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, PartialEq, Eq)]
enum Test {
    OneOf(Vec<String>),
    /// Also what is not there.
    NoneOf(Vec<String>),
    There,
    NotThere,
}

impl Requirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let is_in = |values: &[String]| value.is_some_and(|v| values.iter().any(|one| one == v));
        match &self.test {
            Test::OneOf(values) => is_in(values),
            Test::NoneOf(values) => !is_in(values),
            Test::There => value.is_some(),
            Test::NotThere => value.is_none(),
        }
    }
}

/// All parts of a selector; an empty one has none.
fn read(
    text: &str,
    part: impl Fn(&str) -> Result<Requirement, String>,
) -> Result<Vec<Requirement>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut within = false;
    // The commas of a set part nothing.
    let parts = text.split(|c| {
        within = (within || c == '(') && c != ')';
        c == ',' && !within
    });
    parts.map(|text| part(text.trim())).collect()
}

/// `KEY=VALUE`, `KEY==VALUE` or `KEY!=VALUE`.
fn equality(text: &str) -> Option<(&str, Test)> {
    let (key, value) = text.split_once('=')?;
    let value = vec![value.strip_prefix('=').unwrap_or(value).trim().to_owned()];
    Some(match key.strip_suffix('!') {
        Some(key) => (key.trim(), Test::NoneOf(value)),
        None => (key.trim(), Test::OneOf(value)),
    })
}

fn label(asked: &str) -> Result<Requirement, String> {
    let (key, test) = if let Some(set) = asked.strip_suffix(')') {
        let (head, values) = set.split_once('(').unwrap_or((set, ""));
        let values = values.split(',').map(|value| value.trim().to_owned());
        let mut words = head.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some(key), Some("in"), None) => (key, Test::OneOf(values.collect())),
            (Some(key), Some("notin"), None) => (key, Test::NoneOf(values.collect())),
            _ => return Err(format!("{asked:?} is no KEY in (…) and no KEY notin (…)")),
        }
    } else if let Some(equality) = equality(asked) {
        equality
    } else if let Some(key) = asked.strip_prefix('!') {
        (key.trim(), Test::NotThere)
    } else {
        (asked, Test::There)
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if key.is_empty() || !key.chars().all(|c| is_plain(c) || c == '/') {
        return Err(format!("{key:?} is no key of a label"));
    }
    if let Test::OneOf(values) | Test::NoneOf(values) = &test
        && let Some(wrong) = values.iter().find(|value| !value.chars().all(is_plain))
    {
        return Err(format!("{wrong:?} is no value of a label"));
    }
    let key = key.to_owned();
    Ok(Requirement { key, test })
}

fn field(asked: &str, fields: &[&str]) -> Result<Requirement, String> {
    let (key, test) = equality(asked)
        .ok_or_else(|| format!("{asked:?} is no FIELD=VALUE and no FIELD!=VALUE"))?;
    if !FIELDS.iter().chain(fields).any(|known| *known == key) {
        let known = [&FIELDS, fields].concat().join(", ");
        return Err(format!("{key:?} is no field to select by: {known}"));
    }
    // A backslash escapes a comma or an equals sign, which no value of these fields has.
    if asked.contains('\\') {
        return Err("a value with a backslash is not understood".to_owned());
    }
    let key = key.to_owned();
    Ok(Requirement { key, test })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(labels: &str, fields: &str) -> Result<String, String> {
        let object = |name: &str, labels: Value, phase: &str| json!({"metadata": {"name": name, "labels": labels}, "status": {"phase": phase}});
        let items = [
            object("a", json!({"app": "web", "tier": "front"}), "Running"),
            object("b", json!({"app": "db", "x.y/z": ""}), "Pending"),
            object("c", Value::Null, ""),
        ];
        let selection = Selection::read(POD, labels, fields).map_err(|refusal| refusal.message)?;
        let names = items
            .iter()
            .filter(|item| selection.takes(item))
            .filter_map(|item| at(item, "metadata.name"));
        Ok(names.collect())
    }

    #[test]
    fn selectors_mean_what_they_mean_to_kubernetes() {
        for (labels, fields, expected) in [
            ("", "", "abc"),
            (" ", "", "abc"),
            ("app", "", "ab"),
            ("!app", "", "c"),
            ("app=web", "", "a"),
            ("app==web", "", "a"),
            ("app = web", "", "a"),
            ("app!=web", "", "bc"),
            ("app=none", "", ""),
            ("app in (web, db)", "", "ab"),
            ("app in (web,db),tier!=front", "", "b"),
            ("app notin (web)", "", "bc"),
            ("x.y/z=", "", "b"),
            ("x.y/z in ()", "", "b"),
            ("tier,app=web", "", "a"),
            ("", "metadata.name=b", "b"),
            ("", "metadata.name!=b,status.phase!=Running", "c"),
            ("", "status.phase=", "c"),
            ("app", "metadata.name==a", "a"),
        ] {
            assert_eq!(
                names(labels, fields).as_deref(),
                Ok(expected),
                "{labels:?} {fields:?}"
            );
        }
    }

    #[test]
    fn what_cannot_be_read_selects_nothing() {
        for (labels, fields) in [
            (",", ""),
            ("app,", ""),
            ("=web", ""),
            ("app>1", ""),
            ("app in web", ""),
            ("app in (web", ""),
            ("app in (web))", ""),
            ("app is (web)", ""),
            ("in (web)", ""),
            ("app=we b", ""),
            ("app=web=x", ""),
            ("!", ""),
            ("app) in (a", ""),
            ("", "metadata.name"),
            ("", "metadata.uid=x"),
            ("", "metadata.name=a\\,b"),
            ("", ","),
        ] {
            let answer = names(labels, fields);
            assert!(answer.is_err(), "{labels:?} {fields:?}: {answer:?}");
        }
    }
}
