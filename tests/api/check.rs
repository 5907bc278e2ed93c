//! `allot check` says what the daemon then does: the same objects admitted, the same reasons against the
//! others, the same accounts afterwards.

use serde_json::Value;
use std::collections::BTreeSet;

use super::server::Server;

/// Both streams and the exit code.
fn allot(server: &Server, words: &str) -> (String, String, Option<i32>) {
    let output = server.allot(words).output().unwrap();
    (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
        output.status.code(),
    )
}

#[test]
fn what_is_checked_is_what_happens() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for (policies, objects) in [
        ("examples/compute-resources", "objects/compute"),
        ("examples/besteffort", "objects/besteffort"),
        (
            "examples/compute-resources-long-running",
            "objects/long-running",
        ),
        (
            "examples/compute-resources-time-bound",
            "objects/time-bound",
        ),
        ("examples/core-object-counts", "objects/counted"),
        ("examples/openshift-object-counts", "objects/streams"),
        ("examples/storage-consumption", "objects/claims"),
        ("examples/core-resource-limits", "objects/core-limits"),
        (
            "examples/openshift-resource-limits",
            "objects/openshift-limits",
        ),
        ("check/shop/policies", "shop/web"),
    ] {
        let server = Server::start();
        let place = tempfile::tempdir().unwrap();
        let (node, _, _) = allot(&server, "get nodes -o yaml");
        let node_file = place.path().join("node.yaml");
        std::fs::write(&node_file, node).unwrap();
        // Nothing shall run here.
        let text = std::fs::read_to_string(data.join(format!("check/{objects}.yaml"))).unwrap();
        let text = text.replace("command: [sleep, inf]", "image: none");
        let file = place.path().join("objects.yaml");
        std::fs::write(&file, text).unwrap();
        let files = format!(
            "-f {} {}",
            data.join(format!("{policies}.yaml")).display(),
            file.display()
        );

        let words = format!("check -o json --node {} {files}", node_file.display());
        let (answer, err, code) = allot(&server, &words);
        assert_eq!((err.as_str(), code), ("", Some(3)), "{objects}: {answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let rows = answer["objects"].as_array().unwrap();
        let admitted: BTreeSet<_> = rows
            .iter()
            .filter(|row| row["admitted"] == true)
            .map(|row| {
                let kind = row["kind"].as_str().unwrap().to_ascii_lowercase();
                format!("{kind}/{} created", row["name"].as_str().unwrap())
            })
            .collect();

        let (out, err, code) = allot(&server, &format!("apply {files}"));
        assert_ne!(code, Some(0), "{objects}");
        let created: BTreeSet<_> = out.lines().map(str::to_owned).collect();
        assert_eq!(created, admitted, "{objects}: {err}");
        for reason in rows
            .iter()
            .flat_map(|row| row["reasons"].as_array().unwrap())
        {
            let message = reason["message"].as_str().unwrap();
            assert!(err.contains(message), "{objects}: {message}\n{err}");
        }
        let (quotas, _, _) = allot(&server, "get quota -o json");
        let quotas: Value = serde_json::from_str(&quotas).unwrap();
        let quotas = quotas["items"].as_array().unwrap().iter();
        let used: Vec<_> = quotas.map(|quota| &quota["status"]["used"]).collect();
        let told = answer["quotas"].as_array().unwrap().iter();
        let told: Vec<_> = told.map(|quota| &quota["used"]).collect();
        assert_eq!(used, told, "{objects}");
    }
}
