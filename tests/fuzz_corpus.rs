//! The fuzz targets on the inputs that are kept: the seeds, what fuzzing once found, and texts of
//! `tests/data`. `scripts/fuzz` looks for more.

#![allow(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a target fails by panicking"
)]

#[path = "../fuzz/src/lib.rs"]
mod targets;

use std::fs;
use std::path::{Path, PathBuf};

use targets::{TARGETS, Target};

fn files(dir: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join(dir);
    let entries = fs::read_dir(&dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", dir.display());
    files
}

fn go_through(target: Target, files: &[PathBuf]) {
    for file in files {
        // Told where the target panics.
        eprintln!("{}", file.display());
        target(&fs::read(file).unwrap());
    }
}

#[test]
fn every_target_stands_its_seeds() {
    for (name, target) in TARGETS {
        go_through(*target, &files(&format!("fuzz/seeds/{name}")));
    }
    let seeds = files("fuzz/seeds");
    assert_eq!(seeds.len(), TARGETS.len(), "{seeds:?}");
}

#[test]
fn manifests_of_the_tests_are_read_and_written_again() {
    go_through(targets::manifest::run, &files("tests/data/manifests"));
}

#[test]
fn every_target_stands_the_seeds_of_all_others() {
    let seeds: Vec<_> = TARGETS
        .iter()
        .flat_map(|(name, _)| files(&format!("fuzz/seeds/{name}")))
        .collect();
    for (_, target) in TARGETS {
        go_through(*target, &seeds);
    }
}
