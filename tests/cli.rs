//! The program as its users run it: words in, text and an exit code out. No daemon runs here.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::fs::File;
use std::io::Write;
use std::path::Path;

use assert_cmd::Command;
use serde_json::{Value, json};
use tempfile::TempDir;

const NODE: &str = "apiVersion: v1\nkind: Node\nmetadata: {name: node}\nstatus:\n  \
                    capacity: {cpu: 2, memory: 8Gi, pods: 110}\n";

/// A directory with files, and a program to run in it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn with(self, name: &str, text: &str) -> Self {
        std::fs::write(self.path(name), text).unwrap();
        self
    }

    fn allot(&self, words: &str) -> Command {
        let mut command = Command::cargo_bin("allot").unwrap();
        command
            .args(words.split_whitespace())
            .current_dir(self.0.path())
            .env("ALLOT_SOCKET", self.path("no.sock"))
            .timeout(std::time::Duration::from_secs(20));
        command
    }

    /// The JSON answer and the exit code.
    fn json(&self, words: &str) -> (Value, i32) {
        let output = self.allot(words).output().unwrap();
        let answer = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {output:?}"));
        (answer, output.status.code().unwrap())
    }

    /// What went to standard error, and the exit code.
    fn error(&self, words: &str) -> (String, i32) {
        let output = self.allot(words).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        (text, output.status.code().unwrap())
    }
}

fn pod(name: &str, resources: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  containers:\n  \
         - {{name: app, resources: {resources}}}\n"
    )
}

fn golden(name: &str) -> String {
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/input");
    input.join(name).to_str().unwrap().to_owned()
}

#[test]
fn the_frontend_gets_what_the_documentation_says() {
    let (answer, code) =
        Place::new().json(&format!("explain -o json -f {}", golden("frontend.yaml")));
    assert_eq!(code, 0);
    let pod = &answer["pods"][0];
    assert_eq!(pod["qosClass"], "Burstable");
    assert_eq!(pod["admitted"], true);
    let total = json!({"requests": {"cpu": "500m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}});
    assert_eq!(pod["effective"], total);
    let levels: Vec<_> = pod["cgroups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cgroup| cgroup["level"].as_str().unwrap())
        .collect();
    assert_eq!(levels, ["node", "qos", "pod", "container", "container"]);
    let files = |index: usize, file: &str| pod["cgroups"][index]["files"][file].clone();
    for container in [3, 4] {
        assert_eq!(files(container, "cpu.weight"), "35");
        assert_eq!(files(container, "cpu.max"), "50000 100000");
        assert_eq!(files(container, "memory.max"), "134217728");
        assert_eq!(files(container, "memory.min"), "67108864");
    }
    assert_eq!(files(2, "cpu.max"), "100000 100000");
    assert_eq!(files(2, "memory.max"), "268435456");
    assert_eq!(files(2, "memory.min"), "134217728");
    assert_eq!(pod["cgroups"][3]["container"], "app");
    assert_eq!(pod["cgroups"][2]["container"], Value::Null);
    assert_eq!(answer["quotas"], json!([]));
    assert_eq!(answer["problems"], json!([]));
}

#[test]
fn levels_above_hold_the_sums_of_all_pods_in_the_input() {
    let input = [
        NODE,
        &pod("a", "{requests: {cpu: 500m, memory: 64Mi}}"),
        &pod("b", "{requests: {cpu: 500m, memory: 64Mi}}"),
        &pod("c", "{limits: {cpu: 100m, memory: 32Mi}}"),
    ]
    .concat();
    let place = Place::new().with("in.yaml", &input);
    let (answer, code) = place.json("explain -o json -f in.yaml");
    assert_eq!(code, 0, "{answer}");
    let first = &answer["pods"][0]["cgroups"];
    assert_eq!(first[1]["path"], "burstable");
    assert_eq!(first[1]["files"]["memory.min"], "134217728");
    assert_eq!(first[1]["files"]["cpu.weight"], "100");
    // A Guaranteed pod stands right below the top.
    let third = &answer["pods"][2]["cgroups"];
    assert_eq!(third[0]["path"], "/");
    assert_eq!(third[1]["level"], "pod");
}

#[test]
fn each_admitted_pod_takes_its_part_of_the_node() {
    let input = [
        NODE,
        &pod("a", "{requests: {cpu: 1500m}}"),
        &pod("b", "{requests: {cpu: 501m}}"),
        &pod("c", "{requests: {cpu: 500m}}"),
    ]
    .concat();
    let place = Place::new().with("in.yaml", &input);
    let (answer, code) = place.json("explain -o json -f in.yaml");
    assert_eq!(code, 3);
    let admitted: Vec<_> = answer["pods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pod| pod["admitted"].as_bool().unwrap())
        .collect();
    assert_eq!(admitted, [true, false, true]);
    let reason = &answer["pods"][1]["reasons"][0];
    assert_eq!(reason["code"], "OutOfcpu");
    assert!(
        reason["message"]
            .as_str()
            .unwrap()
            .contains("Insufficient cpu")
    );
    assert_eq!(answer["pods"][1]["cgroups"], json!([]));
    assert_eq!(
        answer["pods"][1]["containers"][0]["oomScoreAdj"],
        Value::Null
    );
}

#[test]
fn a_pod_that_is_over_holds_nothing() {
    let over = pod("a", "{requests: {cpu: 2}}") + "status: {phase: Succeeded}\n";
    let input = [NODE, &over, &pod("b", "{requests: {cpu: 2}}")].concat();
    let place = Place::new().with("in.yaml", &input);
    assert_eq!(place.json("explain -o json -f in.yaml").1, 0);
}

#[test]
fn without_a_node_this_machine_is_taken_and_that_is_said() {
    let place = Place::new().with("in.yaml", &pod("a", "{}"));
    let (answer, code) = place.json("explain -o json -f in.yaml");
    assert_eq!(code, 0, "{answer}");
    assert_eq!(answer["node"]["source"], "machine");
    let output = place.allot("explain -f in.yaml").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("this machine, no Node is given"), "{text}");
}

#[test]
fn problems_are_told_with_their_place_and_exit_code_2() {
    let place = Place::new()
        .with("typo.yaml", &pod("a", "{limit: {cpu: 1}}"))
        .with(
            "twice.yaml",
            &[NODE, &pod("a", "{}"), &pod("a", "{}")].concat(),
        )
        .with(
            "nodes.yaml",
            &[NODE, "---\n", NODE, &pod("a", "{}")].concat(),
        )
        .with("none.yaml", NODE)
        .with(
            "bare.yaml",
            &[
                "apiVersion: v1\nkind: Node\nmetadata: {name: node}\n",
                &pod("a", "{}"),
            ]
            .concat(),
        )
        .with(
            "range.yaml",
            &[
                NODE,
                &pod("a", "{}"),
                "---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: l}\nspec: {limits: [{type: Pod, min: {cpu: 2}, max: {cpu: 1}}]}\n",
            ]
            .concat(),
        )
        .with("binary", "\u{0}\u{1}\u{2}");
    for (file, line, says) in [
        ("typo.yaml", json!(7), "did you mean limits?"),
        ("twice.yaml", json!(16), "given twice"),
        ("nodes.yaml", json!(8), "one too many"),
        ("none.yaml", Value::Null, "no pod"),
        ("bare.yaml", json!(1), "status.capacity"),
        (
            "range.yaml",
            json!(17),
            "min value 2 is greater than max value 1",
        ),
        ("missing.yaml", Value::Null, "No such file"),
        ("binary", json!(1), ""),
    ] {
        let (answer, code) = place.json(&format!("explain -o json -f {file}"));
        assert_eq!(code, 2, "{file}: {answer}");
        let problem = &answer["problems"][0];
        let message = problem["message"].as_str().unwrap();
        assert!(message.contains(says), "{file}: {answer}");
        assert_eq!(problem["line"], line, "{file}: {answer}");
        assert_eq!(answer["pods"], json!([]), "{file}");
        let (text, code) = place.error(&format!("explain -f {file}"));
        assert_eq!(code, 2, "{file}");
        assert!(text.starts_with("error: "), "{file}: {text}");
    }
}

#[test]
fn a_file_of_a_gibibyte_is_refused_at_once() {
    let place = Place::new();
    let file = File::create(place.path("big")).unwrap();
    file.set_len(1 << 30).unwrap();
    let begin = std::time::Instant::now();
    let (text, code) = place.error("explain -f big");
    assert_eq!(code, 2, "{text}");
    assert!(begin.elapsed().as_secs() < 10);
    let mut file = File::create(place.path("text")).unwrap();
    for _ in 0..600 {
        file.write_all("# a comment, again and again\n".repeat(300).as_bytes())
            .unwrap();
    }
    let (text, code) = place.error("explain -f text");
    assert_eq!(code, 2);
    assert!(text.contains("4194304") || text.contains("4 MiB"), "{text}");
}

#[test]
fn the_standard_input_is_a_file_too() {
    let place = Place::new().with("node.yaml", NODE);
    let output = place
        .allot("explain -o json -f node.yaml -")
        .write_stdin(pod("a", "{}"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn objects_that_are_not_looked_at_are_named() {
    let input = [
        NODE,
        &pod("a", "{}"),
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n",
    ]
    .concat();
    let place = Place::new().with("in.yaml", &input);
    let (text, code) = place.error("explain -f in.yaml");
    assert_eq!(
        (text.as_str(), code),
        ("warning: Deployment d is not looked at\n", 0)
    );
}

#[test]
fn a_configuration_changes_the_policy() {
    let input = [NODE, &pod("a", "{requests: {cpu: 1}}")].concat();
    let place = Place::new()
        .with("in.yaml", &input)
        .with("linear.yaml", "cpuWeightFormula: linear\n")
        .with("wrong.yaml", "cpuWeightFormla: linear\n");
    let weight = |words: &str| {
        let (answer, _) = place.json(&format!("explain -o json -f in.yaml {words}"));
        answer["pods"][0]["cgroups"][3]["files"]["cpu.weight"].clone()
    };
    assert_eq!(weight(""), "100");
    assert_eq!(weight("--config linear.yaml"), "39");
    let (text, code) = place.error("explain -f in.yaml --config wrong.yaml");
    assert_eq!(code, 2);
    assert!(text.contains("cpuWeightFormla"), "{text}");
}

#[test]
fn without_a_daemon_every_command_says_what_to_do() {
    let place = Place::new().with("in.yaml", &pod("a", "{}"));
    for words in [
        "apply -f in.yaml",
        "create -f in.yaml",
        "delete pod a",
        "delete -f in.yaml",
        "get pods",
        "get pods -o json",
        "get gadgets",
        "get all",
        "describe node",
        "explain pod a",
        "diff",
        "status",
        "logs a",
        "events",
        "attach a app --pid 4711",
    ] {
        let (text, code) = place.error(words);
        assert_eq!(code, 1, "{words}: {text}");
        assert!(
            text.starts_with("error: cannot reach allotd at "),
            "{words}: {text}"
        );
        assert!(text.contains("is it running?"), "{words}: {text}");
        assert_eq!(text.lines().count(), 1, "{words}: {text}");
    }
}

#[test]
fn what_is_not_understood_ends_with_exit_code_2() {
    let place = Place::new().with("typo.yaml", &pod("a", "{limit: {cpu: 1}}"));
    for words in [
        "",
        "frobnicate",
        "get",
        "explain",
        "explain pod",
        "explain pod a/b/c",
        "explain node n",
        "explain pod a -f typo.yaml",
        "apply",
        "create -f typo.yaml",
        "create -f missing.yaml",
        "delete",
        "delete pod",
        "delete node n",
        "logs ns/",
        "logs b/web -n a",
        "attach a app",
        "attach a app --pid 1",
        "attach a app --pid x",
    ] {
        let (text, code) = place.error(words);
        assert_eq!(code, 2, "{words}: {text}");
        assert!(!text.is_empty(), "{words}");
    }
}

#[test]
fn help_and_version_are_no_errors() {
    let place = Place::new();
    for words in ["--help", "--version", "explain --help", "help get"] {
        let output = place.allot(words).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{words}");
        assert!(!output.stdout.is_empty(), "{words}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let place = Place::new().with("in.yaml", &[NODE, &pod("a", "{}")].concat());
    let program = assert_cmd::cargo::cargo_bin("allot");
    let script = format!(
        "set -o pipefail; {} explain -f in.yaml | true",
        program.display()
    );
    let status = std::process::Command::new("bash")
        .args(["-c", &script])
        .current_dir(place.0.path())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn no_colour_goes_into_files() {
    let place = Place::new();
    let (text, _) = place.error("explain -f missing.yaml");
    assert!(!text.contains('\u{1b}'), "{text:?}");
}
