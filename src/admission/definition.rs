//! May this definition make its kind known?
//!
//! Decides from the definition, what it was before and the kinds that are known (Kubernetes 1.36
//! `ValidateCustomResourceDefinition` and its naming controller). What Kubernetes lets be and then never
//! serves is refused here: names that are taken. Schemas are not judged.

use std::collections::BTreeSet;

use super::Reason;
use crate::model::kind::Kind;
use crate::model::{Definition, Kinds, name};

/// Versions, short names or categories of one kind. A bound of ours.
const MAX_ENTRIES: usize = 16;

/// The groups without kinds: of what Kubernetes has no words for, and of figures.
const OWN: [&str; 2] = ["allotd.dev", "metrics.k8s.io"];

/// Every rule that a definition breaks by itself.
pub fn validate(definition: &Definition) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let Definition { group, plural, .. } = definition;
    if definition.name != format!("{plural}.{group}") {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        reasons.push(Reason::invalid("metadata.name", &definition.name, detail));
    }
    reasons.extend(of_group(definition));
    reasons.extend(of_names(definition));
    match definition.scope.as_str() {
        "Cluster" | "Namespaced" => {}
        "" => reasons.push(Reason::required("spec.scope", "")),
        other => {
            let known = ["Cluster", "Namespaced"];
            reasons.push(Reason::not_supported("spec.scope", other, &known));
        }
    }
    if !["None", "Webhook"].contains(&definition.conversion.as_str()) {
        let (field, known) = ("spec.conversion.strategy", ["None", "Webhook"]);
        reasons.push(Reason::not_supported(field, &definition.conversion, &known));
    }
    reasons.extend(of_versions(definition));
    reasons
}

fn of_group(definition: &Definition) -> Vec<Reason> {
    let (field, group) = ("spec.group", &definition.group);
    if group.is_empty() {
        return vec![Reason::required(field, "the core group takes no kinds")];
    }
    let mut reasons = each(field, group, &name::dns_subdomain(group));
    if !group.contains('.') {
        let detail = "should be a domain with at least one dot";
        reasons.push(Reason::invalid(field, group, detail));
    }
    let is_taken =
        OWN.contains(&group.as_str()) || Kind::built_in().any(|kind| kind.group == group);
    if is_taken {
        let detail =
            format!("{group} is a group that allotd serves itself; it takes no other kinds");
        reasons.push(Reason::forbidden(field, &detail));
    }
    let is_protected = ["k8s.io", "kubernetes.io"].iter().any(|domain| {
        let below = group.strip_suffix(domain);
        below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    if is_protected && !is_taken && !definition.approval.as_deref().is_some_and(is_approval) {
        let field = "metadata.annotations[api-approved.kubernetes.io]";
        let detail = "groups of Kubernetes need this annotation: the URL of the approval, or a text that begins with unapproved";
        reasons.push(Reason::required(field, detail));
    }
    reasons
}

fn is_approval(text: &str) -> bool {
    text.starts_with("unapproved") || text.starts_with("https://")
}

fn of_names(definition: &Definition) -> Vec<Reason> {
    let mut reasons = Vec::new();
    let label = |field: &str, text: &str| {
        if text.is_empty() {
            return vec![Reason::required(field, "")];
        }
        each(field, text, &name::dns_1035_label(text))
    };
    reasons.extend(label("spec.names.plural", &definition.plural));
    reasons.extend(label("spec.names.singular", &definition.singular));
    for (field, kind) in [
        ("spec.names.kind", &definition.kind),
        ("spec.names.listKind", &definition.list),
    ] {
        let lower = kind.to_ascii_lowercase();
        reasons.extend(label(field, &lower).into_iter().map(|reason| {
            if kind.is_empty() || *kind == lower {
                return reason;
            }
            let problem = name::dns_1035_label(&lower).join("; ");
            let detail = format!("may have mixed case, but should otherwise match: {problem}");
            Reason::invalid(field, kind, detail)
        }));
    }
    if definition.kind == definition.list {
        let detail = "kind and listKind may not be the same";
        reasons.push(Reason::invalid(
            "spec.names.listKind",
            &definition.list,
            detail,
        ));
    }
    for (field, words) in [
        ("spec.names.shortNames", &definition.short),
        ("spec.names.categories", &definition.categories),
    ] {
        if words.len() > MAX_ENTRIES {
            reasons.push(Reason::too_many(field, words.len(), MAX_ENTRIES));
            continue;
        }
        for (index, word) in words.iter().enumerate() {
            reasons.extend(label(&format!("{field}[{index}]"), word));
        }
    }
    reasons
}

fn of_versions(definition: &Definition) -> Vec<Reason> {
    let (field, versions) = ("spec.versions", &definition.versions);
    if versions.len() > MAX_ENTRIES {
        return vec![Reason::too_many(field, versions.len(), MAX_ENTRIES)];
    }
    let mut reasons = Vec::new();
    let mut names = BTreeSet::new();
    for (index, version) in versions.iter().enumerate() {
        let (field, name) = (format!("{field}[{index}].name"), &version.name);
        if name.is_empty() {
            reasons.push(Reason::required(field, ""));
        } else if !names.insert(name) {
            reasons.push(Reason::duplicate(field, name));
        } else {
            reasons.extend(each(&field, name, &name::dns_1035_label(name)));
        }
    }
    if versions.iter().filter(|version| version.storage).count() != 1 {
        let detail = "must have exactly one version marked as storage version";
        let names: Vec<_> = versions
            .iter()
            .map(|version| version.name.as_str())
            .collect();
        reasons.push(Reason::invalid(field, names.join(", "), detail));
    }
    reasons
}

fn each(field: &str, value: &str, problems: &[String]) -> Vec<Reason> {
    let problems = problems.iter();
    problems
        .map(|problem| Reason::invalid(field, value, problem))
        .collect()
}

/// The names that another kind of the group has already.
pub fn taken(definition: &Definition, kinds: &Kinds) -> Vec<Reason> {
    let others: Vec<_> = kinds
        .each()
        .filter(|kind| kind.group == definition.group && kind.plural != definition.plural)
        .collect();
    let mut reasons = Vec::new();
    let mut check = |field: String, word: &str, is_taken: &dyn Fn(&Kind) -> bool| {
        if let Some(other) = others.iter().find(|kind| is_taken(kind)) {
            let detail = format!("is already in use by {}", other.resource());
            reasons.push(Reason::invalid(field, word, detail));
        }
    };
    let Definition {
        plural,
        singular,
        short,
        ..
    } = definition;
    let names = [("plural", plural), ("singular", singular)];
    let names = names
        .map(|(field, word)| (field.to_owned(), word))
        .into_iter();
    let short = short.iter().enumerate();
    let short = short.map(|(index, word)| (format!("shortNames[{index}]"), word));
    for (field, word) in names.chain(short) {
        check(format!("spec.names.{field}"), word, &|kind| {
            kind.is_called(word)
        });
    }
    for (field, word) in [("kind", &definition.kind), ("listKind", &definition.list)] {
        check(format!("spec.names.{field}"), word, &|kind| {
            kind.kind == word || kind.list() == *word
        });
    }
    reasons
}

/// What may not become another while there are objects of the kind. Group and plural are its name.
pub fn changed(before: &Definition, after: &Definition) -> Vec<Reason> {
    [
        ("spec.names.kind", &before.kind, &after.kind),
        ("spec.scope", &before.scope, &after.scope),
    ]
    .into_iter()
    .filter(|(_, before, after)| before != after)
    .map(|(field, _, after)| Reason::invalid(field, after, "field is immutable"))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DefinedVersion, Words};

    fn tabs() -> Definition {
        Definition {
            name: "crontabs.stable.example.com".to_owned(),
            group: "stable.example.com".to_owned(),
            plural: "crontabs".to_owned(),
            singular: "crontab".to_owned(),
            kind: "CronTab".to_owned(),
            list: "CronTabList".to_owned(),
            short: vec!["ct".to_owned()],
            categories: vec!["all".to_owned()],
            scope: "Namespaced".to_owned(),
            versions: vec![DefinedVersion {
                name: "v1".to_owned(),
                served: true,
                storage: true,
            }],
            conversion: "None".to_owned(),
            approval: None,
        }
    }

    fn told(reasons: &[Reason]) -> String {
        let texts: Vec<_> = reasons.iter().map(ToString::to_string).collect();
        texts.join("\n")
    }

    #[test]
    fn what_is_wrong_is_told_with_its_field() {
        type Change = fn(&mut Definition);
        assert_eq!(validate(&tabs()), []);
        let version = || tabs().versions.remove(0);
        let changes: [(Change, &str); 14] = [
            (
                |it| it.name = "tabs.stable.example.com".to_owned(),
                "metadata.name: Invalid value: \"tabs.stable.example.com\": must be spec.names.plural+\".\"+spec.group",
            ),
            (
                |it| it.kind = "Cron Tab".to_owned(),
                "spec.names.kind: Invalid value: \"Cron Tab\": may have mixed case, but should otherwise match: a DNS-1035",
            ),
            (|it| it.kind.clear(), "spec.names.kind: Required value"),
            (
                |it| it.list.clone_from(&it.kind),
                "spec.names.listKind: Invalid value: \"CronTab\": kind and listKind may not be the same",
            ),
            (
                |it| it.singular = "1".to_owned(),
                "spec.names.singular: Invalid value: \"1\": a DNS-1035 label",
            ),
            (
                |it| it.short.push("C".to_owned()),
                "spec.names.shortNames[1]: Invalid value: \"C\": a DNS-1035 label",
            ),
            (
                |it| it.categories = vec!["a".to_owned(); 17],
                "spec.names.categories: Too many: 17: must have at most 16 items",
            ),
            (|it| it.scope.clear(), "spec.scope: Required value"),
            (
                |it| it.scope = "cluster".to_owned(),
                "spec.scope: Unsupported value: \"cluster\": supported values: \"Cluster\", \"Namespaced\"",
            ),
            (
                |it| it.conversion = "Magic".to_owned(),
                "spec.conversion.strategy: Unsupported value: \"Magic\"",
            ),
            (
                |it| it.versions.clear(),
                "spec.versions: Invalid value: \"\": must have exactly one version marked as storage version",
            ),
            (
                |it| it.versions[0].storage = false,
                "spec.versions: Invalid value: \"v1\": must have exactly one version marked as storage version",
            ),
            (
                |it| it.versions[0].name = "V1".to_owned(),
                "spec.versions[0].name: Invalid value: \"V1\": a DNS-1035 label",
            ),
            (
                |it| it.versions[0].name.clear(),
                "spec.versions[0].name: Required value",
            ),
        ];
        for (change, expected) in changes {
            let mut definition = tabs();
            change(&mut definition);
            let text = told(&validate(&definition));
            assert!(text.starts_with(expected) && !text.contains('\n'), "{text}");
        }
        let mut twice = tabs();
        twice.versions.push(DefinedVersion {
            storage: false,
            ..version()
        });
        assert_eq!(
            told(&validate(&twice)),
            "spec.versions[1].name: Duplicate value: \"v1\""
        );
    }

    #[test]
    fn groups_that_are_somebody_elses_are_refused() {
        let of_group = |group: &str, approval: Option<&str>| {
            let mut definition = tabs();
            definition.name = format!("crontabs.{group}");
            group.clone_into(&mut definition.group);
            definition.approval = approval.map(str::to_owned);
            told(&validate(&definition))
        };
        for (group, expected) in [
            (
                "",
                "spec.group: Required value: the core group takes no kinds",
            ),
            (
                "batch",
                "spec.group: Invalid value: \"batch\": should be a domain with at least one dot\nspec.group: Forbidden: batch is a group that allotd serves itself",
            ),
            (
                "allotd.dev",
                "spec.group: Forbidden: allotd.dev is a group that allotd serves itself; it takes no other kinds",
            ),
            ("quota.openshift.io", "spec.group: Forbidden: "),
            ("apiextensions.k8s.io", "spec.group: Forbidden: "),
            (
                "snapshot.storage.k8s.io",
                "metadata.annotations[api-approved.kubernetes.io]: Required value: ",
            ),
            (
                "k8s.io",
                "metadata.annotations[api-approved.kubernetes.io]: Required value: ",
            ),
            (
                "Example.com",
                "spec.group: Invalid value: \"Example.com\": a lowercase RFC 1123 subdomain",
            ),
        ] {
            let text = of_group(group, None);
            assert!(text.starts_with(expected), "{group}: {text}");
        }
        let url = "https://github.com/kubernetes-csi/external-snapshotter/pull/665";
        assert_eq!(of_group("snapshot.storage.k8s.io", Some(url)), "");
        assert_eq!(
            of_group("x.kubernetes.io", Some("unapproved, for a test")),
            ""
        );
        assert_ne!(of_group("x.kubernetes.io", Some("yes")), "");
        assert_ne!(of_group("storage.k8s.io", Some(url)), "");
        assert_eq!(of_group("notk8s.io", None), "");
    }

    #[test]
    fn a_name_belongs_to_one_kind_of_a_group() {
        let mut kinds = Kinds::default();
        kinds.define(&tabs(), &mut Words::default()).unwrap();
        assert_eq!(taken(&tabs(), &kinds), [], "its own names");
        let mut other = tabs();
        other.plural = "crontables".to_owned();
        other.singular = "ct".to_owned();
        other.list = "CronTables".to_owned();
        assert_eq!(
            told(&taken(&other, &kinds)),
            "spec.names.singular: Invalid value: \"ct\": is already in use by crontabs.stable.example.com\n\
             spec.names.shortNames[0]: Invalid value: \"ct\": is already in use by crontabs.stable.example.com\n\
             spec.names.kind: Invalid value: \"CronTab\": is already in use by crontabs.stable.example.com"
        );
        other.group = "example.com".to_owned();
        assert_eq!(taken(&other, &kinds), [], "another group");
    }

    #[test]
    fn what_objects_depend_on_stays() {
        let mut after = tabs();
        after.short.clear();
        after.versions[0].name = "v2".to_owned();
        assert_eq!(changed(&tabs(), &after), []);
        after.scope = "Cluster".to_owned();
        after.kind = "Tab".to_owned();
        assert_eq!(
            told(&changed(&tabs(), &after)),
            "spec.names.kind: Invalid value: \"Tab\": field is immutable\n\
             spec.scope: Invalid value: \"Cluster\": field is immutable"
        );
    }
}
