//! Paths of the daemon's API.
//!
//! Decides spelling alone: a name that somebody typed can never become another path or a parameter.

use std::fmt::Write;

use crate::model::Kind;

/// What is asked: a path of the API with its query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    text: String,
    has_query: bool,
}

impl Target {
    /// A path of these segments; each may hold any text.
    pub fn new(segments: &[&str]) -> Self {
        let mut text = String::new();
        for segment in segments {
            text.push('/');
            text.push_str(&escaped(segment));
        }
        Self {
            text,
            has_query: false,
        }
    }

    /// A pod in our own group of the API.
    pub fn own_pod(namespace: &str, name: &str) -> Self {
        Self::new(&[
            "apis",
            "allotd.dev",
            "v1",
            "namespaces",
            namespace,
            "pods",
            name,
        ])
    }

    /// The core group's objects of a kind in one namespace, or in all.
    pub fn objects(namespace: Option<&str>, plural: &str) -> Self {
        match namespace {
            Some(namespace) => Self::new(&["api", "v1", "namespaces", namespace, plural]),
            None => Self::new(&["api", "v1", plural]),
        }
    }

    /// The objects of any kind in one namespace, or in all.
    pub fn kind(kind: Kind, namespace: Option<&str>) -> Self {
        let mut segments = match kind.group {
            "" => vec!["api", kind.version],
            group => vec!["apis", group, kind.version],
        };
        if let Some(namespace) = namespace.filter(|_| kind.namespaced) {
            segments.extend(["namespaces", namespace]);
        }
        segments.push(kind.plural);
        Self::new(&segments)
    }

    /// As it stands in a request.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The same, with one more segment.
    #[must_use]
    pub fn below(mut self, segment: &str) -> Self {
        self.text.push('/');
        self.text.push_str(&escaped(segment));
        self
    }

    /// The same, with a parameter.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.text.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        let _ = write!(self.text, "{key}={}", escaped(value));
        self
    }
}

/// Everything but the unreserved characters of RFC 3986 as `%XX`.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kinds;

    #[test]
    fn paths_hold_any_text() {
        let target = Target::objects(Some("a b"), "pods")
            .below("../x?y#z")
            .with("follow", "true")
            .with("container", "a&b=c");
        assert_eq!(
            target.text,
            "/api/v1/namespaces/a%20b/pods/..%2Fx%3Fy%23z?follow=true&container=a%26b%3Dc"
        );
        assert_eq!(Target::objects(None, "pods").text, "/api/v1/pods");
        for (kind, path) in [
            ("quota", "/api/v1/namespaces/a/resourcequotas"),
            ("job", "/apis/batch/v1/namespaces/a/jobs"),
            ("ns", "/api/v1/namespaces"),
        ] {
            let kind = Kinds::default().of_word(kind).unwrap();
            assert_eq!(Target::kind(kind, Some("a")).text, path);
        }
    }
}
