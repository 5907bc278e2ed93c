//! `allot check` of whole inputs, as text: the quotas and limits of the OpenShift documentation with objects
//! that fit and that do not.

use assert_cmd::Command;

use super::check as compare;

/// The text for these words, with the exit code in the last line.
fn checked(words: &str) -> String {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let output = Command::cargo_bin("allot")
        .unwrap()
        .arg("check")
        .args(words.split_whitespace())
        .current_dir(data)
        .output()
        .unwrap();
    format!(
        "$ allot check {words}\n{}{}exit {}\n",
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
        output.status.code().unwrap()
    )
}

#[test]
fn inputs_are_checked() {
    for (name, policies, objects) in [
        ("compute", "examples/compute-resources.yaml", "compute"),
        ("besteffort", "examples/besteffort.yaml", "besteffort"),
        (
            "long-running",
            "examples/compute-resources-long-running.yaml",
            "long-running",
        ),
        (
            "time-bound",
            "examples/compute-resources-time-bound.yaml",
            "time-bound",
        ),
        ("counted", "examples/core-object-counts.yaml", "counted"),
        (
            "streams",
            "examples/openshift-object-counts.yaml examples/openshift-resource-limits.yaml",
            "streams",
        ),
        ("claims", "examples/storage-consumption.yaml", "claims"),
        (
            "core-limits",
            "examples/core-resource-limits.yaml",
            "core-limits",
        ),
        (
            "openshift-limits",
            "examples/openshift-resource-limits.yaml",
            "openshift-limits",
        ),
    ] {
        let words = format!("--node check/node.yaml -f {policies} check/objects/{objects}.yaml");
        compare(&format!("check-{name}.txt"), &checked(&words));
    }
}

/// All policies of a directory together, in a namespace of their own.
#[test]
fn directories_are_checked() {
    let words = "--node check/node.yaml -f check/shop/policies.yaml check/shop/web.yaml";
    compare("check-shop.txt", &checked(words));
    let words = "--node check/node.yaml -n shop -f examples check/objects/compute.yaml";
    compare("check-directories.txt", &checked(words));
    compare(
        "check-none.txt",
        &checked("--node check/node.yaml -R -f check/objects/none"),
    );
    compare(
        "check-json.txt",
        &checked(
            "-o json --node check/node.yaml -f examples/besteffort.yaml check/objects/besteffort.yaml",
        ),
    );
    compare(
        "check-yaml.txt",
        &checked(
            "-o yaml --node check/node.yaml -f examples/besteffort.yaml check/objects/besteffort.yaml",
        ),
    );
}
