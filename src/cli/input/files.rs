//! Which files are meant by `-f`: those named, and the manifests in the directories named.
//!
//! As with `kubectl`, of a directory only files that end in `.yaml`, `.yml` or `.json` are taken. A
//! symbolic link to a file is that file; one to a directory is not followed, so no tree is walked twice and
//! none is left. Whatever is named `-f` itself is taken as it is, a pipe too. It must never open a file.

use std::fs;
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use crate::manifest::Problem;

/// What the names of manifests end in.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];
/// Manifests of one directory, those below it included.
const MAX_FILES: usize = 10_000;
/// Whatever lies in one directory, what lies below it included.
const MAX_ENTRIES: usize = 100_000;
/// Levels below a directory that are looked into.
const MAX_DEPTH: usize = 32;

/// Files to read.
#[derive(Clone, Debug, clap::Args)]
pub struct Files {
    /// Files of objects in YAML or JSON, or directories of such files; - is the standard input
    #[arg(short, long, value_name = "FILE", num_args = 1..)]
    pub filename: Vec<PathBuf>,
    /// Look into the directories below those of -f as well
    #[arg(short = 'R', long, requires = "filename")]
    pub recursive: bool,
}

impl Files {
    /// The files in the order of the command line, those of a directory by name; beside them, what cannot
    /// be read.
    pub fn expand(&self) -> (Vec<PathBuf>, Vec<Problem>) {
        let mut files = Vec::new();
        let mut problems = Vec::new();
        for path in &self.filename {
            if path.is_dir() {
                let found = in_directory(path, self.recursive, &mut problems);
                files.extend(found);
            } else {
                files.push(path.clone());
            }
        }
        (files, problems)
    }
}

/// The manifests of a directory.
fn in_directory(dir: &Path, recursive: bool, problems: &mut Vec<Problem>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut below = 0_usize;
    let before = problems.len();
    let entries = WalkDir::new(dir)
        .min_depth(1)
        .max_depth(if recursive { MAX_DEPTH } else { 1 })
        .sort_by_file_name();
    for (number, entry) in entries.into_iter().enumerate() {
        if number >= MAX_ENTRIES {
            let message = format!("has more than {MAX_ENTRIES} entries; name the files in it");
            problems.push(problem(dir, message));
            break;
        }
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                let path = error.path().unwrap_or(dir).to_owned();
                let message = match error.io_error() {
                    Some(error) => format!("cannot be read: {error}"),
                    None => format!("cannot be read: {error}"),
                };
                problems.push(problem(&path, message));
                continue;
            }
        };
        if entry.file_type().is_dir() {
            below = below.saturating_add(1);
            if recursive && entry.depth() == MAX_DEPTH {
                let message = format!("is not looked into: -R goes {MAX_DEPTH} levels deep");
                problems.push(problem(entry.path(), message));
            }
            continue;
        }
        match manifest(&entry) {
            Some(Ok(())) if files.len() >= MAX_FILES => {
                let message = format!("has more than {MAX_FILES} files; name some of them");
                problems.push(problem(dir, message));
                break;
            }
            Some(Ok(())) => files.push(entry.into_path()),
            Some(Err(message)) => problems.push(problem(entry.path(), message)),
            None => {}
        }
    }
    if files.is_empty() && problems.len() == before {
        let deeper = match below {
            0 => String::new(),
            _ if recursive => String::new(),
            1 => "; -R looks into the directory in it as well".to_owned(),
            _ => format!("; -R looks into the {below} directories in it as well"),
        };
        let message = format!("holds no file that ends in .yaml, .yml or .json{deeper}");
        problems.push(problem(dir, message));
    }
    files
}

/// Whether this is a manifest, or looks like one and cannot be read; `None`: it is something else.
fn manifest(entry: &DirEntry) -> Option<Result<(), String>> {
    let ending = entry.path().extension()?.to_str()?;
    if !ENDINGS.contains(&ending) {
        return None;
    }
    // What a link leads to.
    match fs::metadata(entry.path()) {
        Ok(there) if there.is_dir() => None,
        Ok(there) if there.is_file() => Some(Ok(())),
        Ok(_) => Some(Err(
            "is no regular file; name it with -f if it is meant".to_owned()
        )),
        Err(error) => Some(Err(format!("cannot be read: {error}"))),
    }
}

/// A problem of a file or directory as a whole.
pub(super) fn problem(path: &Path, message: String) -> Problem {
    Problem {
        source: path.to_string_lossy().into_owned(),
        document: 1,
        line: None,
        field: String::new(),
        message,
    }
}
