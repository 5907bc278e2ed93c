//! Text to trees: one per document, each with its flaw if it has one.
//!
//! A flaw in one document does not hide another: reading goes on at the next `---`.

use serde::de::IgnoredAny;
use serde_saphyr::granit_parser::{ErrorKind, Event, Parser, ScanError, options};

use super::build::{Budget, Builder, too_deep};
use super::tree::Node;

/// Why a document could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flaw {
    /// Where, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl Flaw {
    pub fn new(line: usize, message: impl Into<String>) -> Self {
        Self {
            line,
            message: message.into(),
        }
    }
}

impl From<ScanError> for Flaw {
    fn from(error: ScanError) -> Self {
        let line = error.marker().line();
        if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
            return too_deep(line);
        }
        let info = error.info();
        let hint = if info.contains("tabs") {
            "; indent with spaces"
        } else {
            ""
        };
        Self::new(
            line,
            format!(
                "is not YAML: {info}, column {}{hint}",
                error.marker().col() + 1
            ),
        )
    }
}

/// All documents of a text, in order. Empty ones count and are `null`.
pub(super) fn documents(text: &str) -> Vec<Result<Node, Flaw>> {
    let mut budget = Budget::default();
    let mut documents = Vec::new();
    let mut lines_before = 0_usize;
    for part in json_texts(text) {
        if budget.is_spent() {
            break;
        }
        read_part(part, lines_before, &mut budget, &mut documents);
        lines_before = lines_before.saturating_add(part.matches('\n').count());
    }
    documents
}

/// Cuts a row of JSON texts, as `jq` prints, into its members; YAML has no way to write one. Any
/// other text is one part.
fn json_texts(text: &str) -> Vec<&str> {
    if !text.trim_start().starts_with('{') {
        return vec![text];
    }
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let mut parts = Vec::new();
    let mut start = 0;
    while let Some(Ok(_)) = stream.next() {
        let end = stream.byte_offset();
        parts.extend(text.get(start..end));
        start = end;
    }
    let rest = text.get(start..).unwrap_or_default();
    if !rest.trim().is_empty() {
        if !rest.trim_start().starts_with('{') {
            return vec![text];
        }
        parts.push(rest);
    }
    parts
}

fn read_part(
    text: &str,
    lines_before: usize,
    budget: &mut Budget,
    documents: &mut Vec<Result<Node, Flaw>>,
) {
    let mut options = options! {
        // JSON sets no bound to keys, and managed fields have long ones.
        simple_key_max_lookahead: 16_384,
    };
    options.set_emit_comments(false);
    let mut parser = Parser::new_from_str_with_options(text, options);
    let mut builder = Builder::new(lines_before);
    while let Some(event) = parser.next_event() {
        let step = match event {
            Err(error) => Err(Flaw::from(error)),
            Ok((Event::DocumentStart(..), span)) => {
                builder = Builder::new(lines_before);
                budget.document(span.start.line())
            }
            Ok((Event::DocumentEnd, _)) => {
                documents.extend(builder.root.take().map(Ok));
                Ok(())
            }
            Ok((event, span)) => builder.take(event, span.start.line(), budget),
        };
        if let Err(mut flaw) = step {
            flaw.line = flaw.line.saturating_add(lines_before);
            documents.push(Err(flaw));
            if budget.is_spent() || !matches!(parser.proceed_next_document(), Ok(true)) {
                return;
            }
        }
    }
}
