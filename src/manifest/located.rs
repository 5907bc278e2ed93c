//! An object and where its fields stand in the text, for problems that are found later.

use super::problem::Problem;
use super::tree::Node;

/// An object with its place in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct Located<T> {
    /// The object.
    pub object: T,
    /// The name of the text.
    pub source: String,
    /// Which document of the text, from 1.
    pub document: usize,
    /// Its place in a list of objects, such as `items[3]`; empty where it is the document.
    pub(super) top: String,
    pub(super) tree: Node,
}

impl<T> Located<T> {
    /// The line of a field, or of its nearest parent that is in the text. The field is named as in
    /// problems, from the object on: `spec.containers[0].resources.limits[cpu]`.
    pub fn line_of(&self, field: &str) -> usize {
        self.tree.line_of(field)
    }

    /// A problem with a field of this object.
    pub fn problem(&self, field: &str, message: impl Into<String>) -> Problem {
        let dot = if self.top.is_empty() || field.is_empty() {
            ""
        } else {
            "."
        };
        Problem {
            source: self.source.clone(),
            document: self.document,
            line: Some(self.line_of(field)),
            field: format!("{}{dot}{field}", self.top),
            message: message.into(),
        }
    }
}
