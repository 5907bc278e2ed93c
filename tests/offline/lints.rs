//! Every known surprise is told where it is one, and only there.

use std::collections::BTreeSet;

use allotd::admission::Lint;
use allotd::cli::check::judge;
use allotd::cli::offline::Asked;
use allotd::config::Config;
use allotd::manifest::{self, Strictness};

use super::NODE;
use super::lint_cases::{of_limit_ranges, of_pods, of_quotas};

/// What is told of an input beside the node, each with its lint, object and field.
fn told(input: &str) -> Vec<(String, String)> {
    let text = format!("{NODE}{input}");
    let manifest = manifest::read("in", text.as_bytes(), Strictness::Strict);
    let config = Config::default();
    let asked = Asked {
        config: &config,
        namespace: "shop",
    };
    let check = judge::check(&manifest, &asked, &[]);
    assert_eq!(check.problems, [], "{input}");
    let rows = check.objects.iter();
    rows.flat_map(|row| {
        row.warnings.iter().map(|it| {
            let text = format!("{} {}: {}", row.name, it.field, it.message);
            (it.lint.clone(), text)
        })
    })
    .collect()
}

#[test]
fn every_surprise_is_told_where_it_is_one_and_only_there() {
    let mut seen = BTreeSet::new();
    let cases = [of_pods(), of_limit_ranges(), of_quotas()].concat();
    for (lint, input, words, other) in cases {
        seen.insert(lint);
        let found = told(&input);
        let own: Vec<_> = found
            .iter()
            .filter(|(id, _)| id == lint.id())
            .map(|(_, text)| text.as_str())
            .collect();
        assert!(
            own.iter().any(|text| text.starts_with(words)),
            "{lint}: {words}\nof {input}\n{found:#?}"
        );
        let found = told(&other);
        let own = found.iter().any(|(id, _)| id == lint.id());
        assert!(!own, "{lint} of {other}\n{found:#?}");
    }
    assert_eq!(seen.len(), Lint::ALL.len(), "every lint has a case");
}

#[test]
fn names_of_lints_stay_and_are_words_with_dashes() {
    let ids: BTreeSet<_> = Lint::ALL.iter().map(|lint| lint.id()).collect();
    assert_eq!(ids.len(), Lint::ALL.len());
    for lint in Lint::ALL {
        let id = lint.id();
        assert!(
            id.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'),
            "{id}"
        );
        assert!(!lint.summary().is_empty(), "{id}");
    }
}

/// However hostile, an input is answered with findings in bounds.
#[test]
fn findings_are_bounded() {
    let container =
        |n: u32| format!("  - {{name: c{n}, resources: {{requests: {{memory: 4m, cpu: 1}}}}}}\n");
    let containers = (0..5000).map(container).collect::<Vec<_>>().concat();
    let many = format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: pod}}\nspec:\n  containers:\n{containers}"
    );
    let found = told(&many).len();
    assert!((1..=1000).contains(&found), "{found}");
}
