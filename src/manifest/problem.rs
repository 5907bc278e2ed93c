//! What is wrong with a manifest, and where.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something wrong in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The name of the text, as the caller gave it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// Which document of the text, from 1.
    pub document: usize,
    /// Which line of the text, from 1; `None` where no line is meant.
    pub line: Option<usize>,
    /// The path of the field in its document, such as `spec.containers[0].name`; empty where the
    /// whole document is meant.
    pub field: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.source.is_empty() {
            write!(f, "{}: ", self.source)?;
        }
        write!(f, "document {}", self.document)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        if !self.field.is_empty() {
            write!(f, ": {}", self.field)?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Problems and warnings with a bound on their number.
pub(super) struct Problems {
    found: Vec<Problem>,
    left_out: usize,
    last: Option<(usize, Option<usize>)>,
}

impl Problems {
    /// Problems that are told of one text.
    const MAX: usize = 1000;

    /// None so far.
    pub fn new() -> Self {
        Self {
            found: Vec::new(),
            left_out: 0,
            last: None,
        }
    }

    /// One more.
    pub fn push(&mut self, problem: Problem) {
        if self.found.len() < Self::MAX {
            self.found.push(problem);
        } else {
            self.left_out = self.left_out.saturating_add(1);
            self.last = Some((problem.document, problem.line));
        }
    }

    /// All of them; where some were left out, the last one says so.
    pub fn into_vec(mut self, source: &str) -> Vec<Problem> {
        if let Some((document, line)) = self.last {
            self.found.push(Problem {
                source: source.to_owned(),
                document,
                line,
                field: String::new(),
                message: format!("and {} more up to here", self.left_out),
            });
        }
        self.found
    }
}
