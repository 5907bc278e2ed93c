//! CustomResourceDefinitions to the model: the names and versions of a kind. Schemas are passed over, because
//! nothing is held to them.

use serde_json::Value;

use super::{Converted, Remark};
use crate::model::{DefinedVersion, Definition};

/// A CustomResourceDefinition (`apiextensions.k8s.io/v1`).
pub fn definition(object: &Value) -> Converted<Definition> {
    let mut problems = Vec::new();
    let mut reader = Reader {
        problems: &mut problems,
    };
    let mut text = |path: &str| reader.text(object, path, path);
    let kind = text("spec.names.kind");
    let filled = |given: String, default: String| if given.is_empty() { default } else { given };
    let mut definition = Definition {
        name: text("metadata.name"),
        group: text("spec.group"),
        plural: text("spec.names.plural"),
        singular: filled(text("spec.names.singular"), kind.to_ascii_lowercase()),
        list: filled(text("spec.names.listKind"), format!("{kind}List")),
        kind,
        scope: text("spec.scope"),
        conversion: filled(text("spec.conversion.strategy"), "None".to_owned()),
        ..Definition::default()
    };
    definition.short = reader.texts(object, "spec.names.shortNames");
    definition.categories = reader.texts(object, "spec.names.categories");
    let versions = reader.list(object, "spec.versions").iter().enumerate();
    definition.versions = versions
        .map(|(index, version)| {
            let place = |field: &str| format!("spec.versions[{index}].{field}");
            DefinedVersion {
                name: reader.text(version, "name", &place("name")),
                served: reader.flag(version, "served", &place("served")),
                storage: reader.flag(version, "storage", &place("storage")),
            }
        })
        .collect();
    let annotations = at(object, "metadata.annotations");
    let approval = annotations.and_then(|all| all.get("api-approved.kubernetes.io"));
    definition.approval = approval.and_then(Value::as_str).map(str::to_owned);
    Converted {
        object: definition,
        problems,
        notes: Vec::new(),
    }
}

/// The value at fields with points between them; null is nothing.
fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let mut steps = path.split('.');
    let value = steps.try_fold(value, |value, step| value.get(step))?;
    Some(value).filter(|value| !value.is_null())
}

struct Reader<'a> {
    problems: &'a mut Vec<Remark>,
}

impl Reader<'_> {
    fn wrong(&mut self, place: &str, right: &str) {
        let message = format!("Invalid value: it is no {right}");
        self.problems.push(Remark::new(place, message));
    }

    fn text(&mut self, from: &Value, path: &str, place: &str) -> String {
        match at(from, path) {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(_) => {
                self.wrong(place, "text");
                String::new()
            }
        }
    }

    fn flag(&mut self, from: &Value, path: &str, place: &str) -> bool {
        match at(from, path) {
            None => false,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => {
                self.wrong(place, "true or false");
                false
            }
        }
    }

    fn list<'v>(&mut self, from: &'v Value, path: &str) -> &'v [Value] {
        match at(from, path) {
            None => &[],
            Some(Value::Array(items)) => items,
            Some(_) => {
                self.wrong(path, "list");
                &[]
            }
        }
    }

    fn texts(&mut self, from: &Value, path: &str) -> Vec<String> {
        let items = self.list(from, path).iter().enumerate();
        let mut texts = Vec::new();
        for (index, item) in items {
            match item.as_str() {
                Some(text) => texts.push(text.to_owned()),
                None => self.wrong(&format!("{path}[{index}]"), "text"),
            }
        }
        texts
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_filled_in_and_odd_values_are_told() {
        let read = definition(&json!({
            "metadata": {"name": "crontabs.example.com"},
            "spec": {"group": "example.com", "scope": "Cluster",
                "names": {"plural": "crontabs", "kind": "CronTab", "singular": null},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": 3}]},
        }));
        assert_eq!(read.problems, []);
        let Definition {
            singular,
            list,
            conversion,
            ..
        } = &read.object;
        assert_eq!(
            [singular, list, conversion],
            ["crontab", "CronTabList", "None"]
        );
        assert_eq!(read.object.served(), ["v1"]);
        let odd = definition(&json!({
            "metadata": {"name": 1, "annotations": []},
            "spec": {"group": [], "names": {"shortNames": [1, "a"], "categories": "all"},
                "versions": [{"name": {}, "served": "true"}, 5]},
        }));
        let fields: Vec<_> = odd.problems.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "metadata.name",
                "spec.group",
                "spec.names.shortNames[0]",
                "spec.names.categories",
                "spec.versions[0].name",
                "spec.versions[0].served",
            ]
        );
        for none in [json!(null), json!([]), json!({"spec": 1})] {
            assert_eq!(definition(&none).problems, []);
        }
    }
}
