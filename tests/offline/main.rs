//! Inputs judged without a daemon, as users give them: files, directories, pipes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::path::{Path, PathBuf};

use assert_cmd::Command;
use tempfile::TempDir;

mod checks;
mod directories;
mod lint_cases;
mod lints;

const NODE: &str = "apiVersion: v1\nkind: Node\nmetadata: {name: node}\nstatus:\n  \
                    capacity: {cpu: 2, memory: 8Gi, pods: 110}\n";

/// A directory with files, and a program to run in it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file and makes the directories it is in.
    fn with(self, name: &str, text: &str) -> Self {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// What was told on both streams, and the exit code.
    fn run(&self, words: &str) -> (String, String, i32) {
        let output = Command::cargo_bin("allot")
            .unwrap()
            .args(words.split_whitespace())
            .current_dir(self.0.path())
            .env("ALLOT_SOCKET", self.path("no.sock"))
            .timeout(std::time::Duration::from_secs(20))
            .output()
            .unwrap();
        (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
            output.status.code().unwrap(),
        )
    }
}

fn pod(name: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  containers:\n  \
         - {{name: app, command: [sleep, inf]}}\n"
    )
}
