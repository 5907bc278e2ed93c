//! Texts made to hurt.

use std::time::{Duration, Instant};

use allotd::manifest::{MAX_BYTES, Object, Strictness, convert, read};
use proptest::prelude::*;

use super::{POD, strict, told};

#[test]
fn a_text_above_the_bound_is_not_looked_at() {
    // Zero pages that nothing touches: only the length is read.
    let gibibyte = vec![0_u8; 1 << 30];
    let start = Instant::now();
    let manifest = read("huge", &gibibyte, Strictness::Strict);
    assert!(start.elapsed() < Duration::from_secs(1));
    assert_eq!(
        told(&manifest),
        ["huge: document 1: has 1073741824 bytes; at most 4194304 (4 MiB) are read"]
    );
    let comment = "#".repeat(MAX_BYTES);
    assert!(told(&strict(&comment))[0].contains("holds no object"));
    assert!(told(&strict(&format!("{comment}#")))[0].contains("has 4194305 bytes"));
}

#[test]
fn ten_thousand_containers_are_read() {
    let container = "  - {name: a, command: [sleep, '1'], resources: {requests: {cpu: 1m, memory: 1Mi}, limits: {cpu: 1m, memory: 1Mi}}}\n";
    let text = format!("{POD}  containers:\n{}", container.repeat(10_000));
    let manifest = strict(&text);
    assert!(manifest.problems.is_empty(), "{:?}", manifest.problems);
    let Object::Pod(pod) = &manifest.objects[0].object else {
        panic!();
    };
    assert_eq!(pod.spec.as_ref().unwrap().containers.len(), 10_000);
}

/// The deepest text that is read is not too deep for the stack.
#[test]
fn a_hundred_levels_are_read() {
    let thing = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: ";
    let nested = |levels: usize| format!("{thing}{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(strict(&nested(99)).problems.is_empty());
    assert_eq!(
        told(&strict(&nested(100))),
        ["x.yaml: document 1, line 4: is nested more than 100 levels deep"]
    );
}

/// Texts that grow, nest or repeat: each is answered soon, and with few problems.
#[test]
#[allow(clippy::too_many_lines, reason = "it is a table")]
fn hostile_texts_are_answered_soon() {
    let fill = |text: &str| text.repeat((1 << 20) / text.len());
    let numbered =
        |count: usize, line: &dyn Fn(usize) -> String| (0..count).map(line).collect::<String>();
    let level = |i: usize| {
        let below = i.wrapping_sub(1);
        let item = if i == 0 {
            "x".to_owned()
        } else {
            format!("*a{below}")
        };
        format!("a{i}: &a{i} [{}]\n", vec![item; 10].join(","))
    };
    for (name, text, expected) in [
        (
            "alias bomb",
            numbered(30, &level),
            "holds more than 500000 values",
        ),
        (
            "alias bytes",
            format!("a: &a {}\nb: [{}]", "x".repeat(1 << 20), "*a,".repeat(99)),
            "aliases copy more than 8 MiB",
        ),
        (
            "alias bombs",
            fill(&format!(
                "---\na: &a [{}]\nb: [*a,*a,*a]\n",
                "x,".repeat(999)
            )),
            "holds more than 500000 values",
        ),
        (
            "merges",
            format!(
                "a: &a {{{}}}\nb:\n  <<: [{}]",
                numbered(999, &|i| format!("k{i}: 1,")),
                "*a,".repeat(9999)
            ),
            "holds more than 500000 values",
        ),
        (
            "anchors",
            numbered(50_000, &|i| format!("a{i}: &a{i} x\n")),
            "kind: is missing",
        ),
        (
            "flow lists",
            fill("["),
            "is nested more than 100 levels deep",
        ),
        (
            "flow maps",
            fill("{\"a\":"),
            "is nested more than 100 levels deep",
        ),
        (
            "block lists",
            fill("- "),
            "is nested more than 100 levels deep",
        ),
        (
            "block maps",
            numbered(2000, &|i| format!("{}a:\n", " ".repeat(i))),
            "is nested more than 100 levels deep",
        ),
        (
            "values",
            format!("[{}]", fill("a,")),
            "holds more than 500000 values",
        ),
        ("documents", fill("---\na\n"), "and "),
        ("flaws", fill("---\n]\n"), "and "),
        ("empty documents", fill("---\n"), "follows 10000 documents"),
        ("json texts", fill("{}\n"), "and "),
        ("one line", fill("a "), "expected an object"),
        ("quote", fill("\"a\n"), "is not YAML"),
        ("colons", fill(": "), "is nested"),
        ("questions", fill("? "), "keys are text"),
        ("tags", fill("!a "), "is not YAML"),
        ("directives", fill("%a\n"), "is not YAML"),
        ("spaces", fill(" "), "holds no object"),
        (
            "doubled fields",
            format!("{POD}{}", "  priority: 1\n".repeat(50_000)),
            "more fields are unknown",
        ),
        (
            "doubled keys",
            format!(
                "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  labels:\n{}",
                "    a: b\n".repeat(50_000)
            ),
            "more fields are unknown",
        ),
        (
            "unknown fields",
            format!(
                "{POD}{}",
                numbered(50_000, &|i| format!("  prioritx{i}: 1\n"))
            ),
            "more fields are unknown",
        ),
        (
            "wrong values",
            format!("{POD}  containers:\n{}", "  - name: 1\n".repeat(30_000)),
            "more values are wrong",
        ),
    ] {
        let start = Instant::now();
        let problems = told(&strict(&text));
        let taken = start.elapsed();
        println!(
            "{name:16} {:6} ms, {} problems",
            taken.as_millis(),
            problems.len()
        );
        // A debug build takes under 1 s on one idle core; a square of the length takes hours.
        assert!(taken < Duration::from_secs(60), "{name}: {taken:?}");
        assert!(problems.len() <= 1001, "{name}: {}", problems.len());
        let last = problems.last().unwrap();
        assert!(last.contains(expected), "{name}: {last}");
    }
}

/// One pod is read and converted well under 2 ms.
#[test]
fn one_pod_is_read_fast() {
    let text = include_str!("../data/manifests/pod.yaml");
    let uid = convert::placeholder_uid("default", "web").unwrap();
    let mut best = Duration::MAX;
    for _ in 0..50 {
        let start = Instant::now();
        let manifest = strict(text);
        let Object::Pod(pod) = &manifest.objects[0].object else {
            panic!();
        };
        assert!(convert::pod(pod, &uid).problems.is_empty());
        best = best.min(start.elapsed());
    }
    println!("one pod: {} µs", best.as_micros());
    let most = if cfg!(debug_assertions) { 50 } else { 2 };
    assert!(best < Duration::from_millis(most), "{best:?}");
}

/// Pieces that make texts near to YAML.
fn near_yaml() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "apiVersion: v1\n",
        "kind: Pod\n",
        "kind: List\n",
        "metadata:\n",
        "  name: a\n",
        "spec:\n",
        "items:\n",
        "  containers:\n",
        "  - ",
        "- ",
        "name: ",
        "resources: ",
        "limits: ",
        "{",
        "}",
        "[",
        "]",
        ",",
        ": ",
        "\n",
        "  ",
        "\t",
        "&a ",
        "*a",
        "<<: ",
        "!!str ",
        "!x ",
        "\"",
        "'",
        "|\n",
        ">\n",
        "---\n",
        "...\n",
        "# ",
        "? ",
        "%YAML 1.2\n",
        "cpu: 1\n",
        "1e3",
        "010",
        "~",
        "yes",
        "\u{feff}",
        "ü",
        "\r\n",
        "{}\n",
        "\\u0000",
        "@",
        "`",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn answers(bytes: &[u8]) -> Result<(), TestCaseError> {
    let start = Instant::now();
    for strictness in [Strictness::Strict, Strictness::Warn] {
        let manifest = read("x", bytes, strictness);
        // Whatever it is, something is said of it.
        prop_assert!(
            !manifest.objects.is_empty() || !manifest.problems.is_empty() || bytes.len() > 10
        );
        for located in &manifest.objects {
            if let Object::Pod(pod) = &located.object {
                let uid = convert::placeholder_uid("", "").unwrap();
                let _ = convert::pod(pod, &uid);
            }
        }
    }
    prop_assert!(start.elapsed() < Duration::from_secs(10));
    Ok(())
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        answers(&bytes)?;
    }

    #[test]
    fn any_text_near_to_yaml_is_answered(text in near_yaml()) {
        answers(text.as_bytes())?;
    }
}
