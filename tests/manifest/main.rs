//! Texts in, objects and problems out.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod golden;
mod hostile;
mod protobuf;
mod strategic;

use allotd::manifest::{Manifest, Object, Strictness, read};

const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n";

fn strict(text: &str) -> Manifest {
    read("x.yaml", text.as_bytes(), Strictness::Strict)
}

fn told(manifest: &Manifest) -> Vec<String> {
    manifest.problems.iter().map(ToString::to_string).collect()
}

/// Bytes that would not survive in a file of the folder.
#[test]
fn odd_bytes() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n";
    for (text, expected) in [
        (pod.replace('\n', "\r\n"), None),
        (pod.replace('\n', "\r"), None),
        (format!("\u{feff}{pod}"), None),
        (
            format!("{pod}spec:\n\thostNetwork: true\n"),
            Some("document 1, line 5: is not YAML: "),
        ),
        (
            format!("{pod}\0"),
            Some("document 1, line 4: is not text: a zero byte at byte 45"),
        ),
    ] {
        let problems = told(&strict(&text));
        match expected {
            None => assert!(problems.is_empty(), "{text:?}: {problems:?}"),
            Some(expected) => assert!(problems[0].contains(expected), "{text:?}: {problems:?}"),
        }
    }
    let binary = read("a.out", b"\x7fELF\x02\n\xff\xfe", Strictness::Strict);
    assert_eq!(
        told(&binary),
        [
            "a.out: document 1, line 2: is not text: no UTF-8 at byte 6; YAML and JSON are read as UTF-8"
        ]
    );
}

#[test]
fn unknown_and_doubled_fields_are_warnings_where_asked() {
    let text = format!("{POD}  priority: 1\n  priority: 2\n  tomorrow: {{x: [1]}}\n");
    let manifest = read("", text.as_bytes(), Strictness::Warn);
    assert!(manifest.problems.is_empty());
    let warnings: Vec<_> = manifest.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "document 1, line 6: spec.priority: is given twice, first in line 5",
            "document 1, line 7: spec.tomorrow: \"tomorrow\" is not a field of PodSpec",
        ]
    );
    let Object::Pod(pod) = &manifest.objects[0].object else {
        panic!("{:?}", manifest.objects);
    };
    assert_eq!(pod.spec.as_ref().unwrap().priority, Some(2));
}

#[test]
fn a_problem_is_an_object_with_four_fields() {
    let mut problem = strict("a: [").problems.remove(0);
    let with_source = serde_json::to_value(&problem).unwrap();
    assert_eq!(with_source["source"], "x.yaml");
    problem.source.clear();
    assert_eq!(
        serde_json::to_string(&problem).unwrap(),
        r#"{"document":1,"line":1,"field":"","message":"is not YAML: unclosed bracket '[', column 4"}"#
    );
}

#[test]
fn fields_have_lines() {
    let text = "\
apiVersion: v1
kind: Pod
metadata:
  name: a
  annotations:
    example.com/a.b: x
    example.com/a: z
spec:
  containers:
  - name: a
  - name: b
    resources: {limits: {cpu: 1,
      memory: 1}}
";
    let manifest = strict(text);
    assert!(manifest.problems.is_empty(), "{:?}", manifest.problems);
    let located = &manifest.objects[0];
    for (field, line) in [
        ("", 1),
        ("kind", 2),
        ("metadata.annotations[example.com/a.b]", 6),
        ("metadata.annotations[example.com/a]", 7),
        ("metadata.annotations.example.com/a", 7),
        ("spec.containers", 9),
        ("spec.containers[0]", 10),
        ("spec.containers[0].image", 10),
        ("spec.containers[1].resources.limits[cpu]", 12),
        ("spec.containers[1].resources.limits[memory]", 13),
        ("spec.containers[1].resources.limits[pods]", 12),
        ("spec.containers[2].name", 9),
        ("spec.containers[x", 9),
        ("spec.nodeName", 8),
        ("status", 1),
    ] {
        assert_eq!(located.line_of(field), line, "{field}");
    }
}

#[test]
fn a_name_may_be_left_to_be_made() {
    for kind in ["Pod", "ConfigMap", "LimitRange", "Namespace"] {
        let text = |metadata: &str| format!("apiVersion: v1\nkind: {kind}\nmetadata: {metadata}\n");
        let manifest = strict(&text("{generateName: web-}"));
        assert!(manifest.problems.is_empty(), "{:?}", manifest.problems);
        let object = &manifest.objects[0].object;
        assert_eq!((object.name(), object.generate_name()), ("", "web-"));
        let problems = told(&strict(&text("{generateName: ''}")));
        assert_eq!(
            problems,
            ["x.yaml: document 1, line 3: metadata.name: is missing; every object has a name"]
        );
    }
}
