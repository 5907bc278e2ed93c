//! Why a pod is refused: one rule that it breaks, in words people search for.
//!
//! Decides the form of a refusal, never whether there is one. The texts are those of the Kubernetes
//! API (`field.Error`), followed by what helps to mend it.

use std::fmt;

use crate::model::ResourceName;

/// The kind of rule that is broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// A field is missing.
    Required,
    /// A value is wrong.
    Invalid,
    /// A name is taken twice.
    Duplicate,
    /// A name means nothing that is there.
    NotFound,
    /// A value is none of those known.
    NotSupported,
    /// A field may not be set here.
    Forbidden,
    /// A text is too long.
    TooLong,
    /// A list is too long.
    TooMany,
    /// The node has too little left of a resource, or none at all (the kubelet's `OutOfcpu`, …).
    OutOf(ResourceName),
    /// A LimitRange of the namespace is broken.
    LimitRange,
    /// A quota of the namespace would be exceeded.
    ExceededQuota,
    /// A quota of the namespace cannot be charged: the object leaves out what it counts.
    FailedQuota,
    /// What is used may be used only where a quota counts it, and none does.
    InsufficientQuota,
    /// It would be or become more than the node lets containers be.
    PodSecurity,
}

impl Code {
    /// Whether the object is sound, but a policy of its namespace or of the node forbids it.
    pub fn is_policy(&self) -> bool {
        matches!(
            self,
            Self::LimitRange
                | Self::ExceededQuota
                | Self::FailedQuota
                | Self::InsufficientQuota
                | Self::PodSecurity
        )
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Required => f.write_str("Required"),
            Self::Invalid => f.write_str("Invalid"),
            Self::Duplicate => f.write_str("Duplicate"),
            Self::NotFound => f.write_str("NotFound"),
            Self::NotSupported => f.write_str("NotSupported"),
            Self::Forbidden => f.write_str("Forbidden"),
            Self::TooLong => f.write_str("TooLong"),
            Self::TooMany => f.write_str("TooMany"),
            Self::OutOf(resource) => write!(f, "OutOf{resource}"),
            Self::LimitRange => f.write_str("LimitRange"),
            Self::ExceededQuota => f.write_str("ExceededQuota"),
            Self::FailedQuota => f.write_str("FailedQuota"),
            Self::InsufficientQuota => f.write_str("InsufficientQuota"),
            Self::PodSecurity => f.write_str("PodSecurity"),
        }
    }
}

/// One reason against a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The kind of rule.
    pub code: Code,
    /// The path of the field, `spec.containers[0].resources.limits[cpu]`; empty if it is no field's
    /// fault.
    pub field: String,
    /// The container that it is about, if there is one and it has a name.
    pub container: Option<String>,
    /// What is wrong, with the figures.
    pub message: String,
}

impl Reason {
    fn new(code: Code, field: impl Into<String>, message: &str) -> Self {
        Self {
            code,
            field: tame(&field.into(), 1024),
            container: None,
            message: tame(message, 2048),
        }
    }

    /// A field is missing; `detail` may be empty.
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        let colon = if detail.is_empty() { "" } else { ": " };
        Self::new(
            Code::Required,
            field,
            &format!("Required value{colon}{detail}"),
        )
    }

    /// A value is wrong.
    pub fn invalid(
        field: impl Into<String>,
        value: impl fmt::Display,
        detail: impl fmt::Display,
    ) -> Self {
        let message = format!("Invalid value: {}: {detail}", shown(value));
        Self::new(Code::Invalid, field, &message)
    }

    /// A name is taken twice.
    pub fn duplicate(field: impl Into<String>, value: impl fmt::Display) -> Self {
        let message = format!("Duplicate value: {}", shown(value));
        Self::new(Code::Duplicate, field, &message)
    }

    /// A value is none of those known.
    pub fn not_supported(
        field: impl Into<String>,
        value: impl fmt::Display,
        supported: &[&str],
    ) -> Self {
        let supported: Vec<_> = supported.iter().map(shown).collect();
        let message = format!(
            "Unsupported value: {}: supported values: {}",
            shown(value),
            supported.join(", ")
        );
        Self::new(Code::NotSupported, field, &message)
    }

    /// A name means nothing that is there.
    pub fn not_found(field: impl Into<String>, value: impl fmt::Display) -> Self {
        Self::new(
            Code::NotFound,
            field,
            &format!("Not found: {}", shown(value)),
        )
    }

    /// A field may not be set here.
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new(Code::Forbidden, field, &format!("Forbidden: {detail}"))
    }

    /// A text is too long.
    pub fn too_long(field: impl Into<String>, length: usize, most: usize) -> Self {
        let message = format!("Too long: {length} bytes: may not be more than {most} bytes");
        Self::new(Code::TooLong, field, &message)
    }

    /// A list is too long.
    pub fn too_many(field: impl Into<String>, number: usize, most: usize) -> Self {
        let message = format!("Too many: {number}: must have at most {most} items");
        Self::new(Code::TooMany, field, &message)
    }

    /// The node lacks a resource.
    pub fn out_of(resource: ResourceName, message: &str) -> Self {
        Self::new(Code::OutOf(resource), "", message)
    }

    /// A policy of the namespace forbids it.
    pub fn policy(code: Code, field: impl Into<String>, message: &str) -> Self {
        Self::new(code, field, message)
    }

    /// The same, with more to say.
    #[must_use]
    pub fn adding(self, more: &str) -> Self {
        let message = if more.is_empty() {
            self.message
        } else {
            tame(&format!("{}; {more}", self.message), 2048)
        };
        Self { message, ..self }
    }

    /// The same, about this container.
    #[must_use]
    pub fn about(mut self, container: &str) -> Self {
        if !container.is_empty() {
            self.container = Some(tame(container, 64));
        }
        self
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)?;
        match &self.container {
            Some(container) => write!(f, " (container {container})"),
            None => Ok(()),
        }
    }
}

/// A value between quotes.
fn shown(value: impl fmt::Display) -> String {
    format!("{:?}", start(&value.to_string(), 256))
}

/// Text that holds foreign text, fit to be printed: no line breaks, no control characters, no end
/// beyond `most` characters.
pub(super) fn tame(text: &str, most: usize) -> String {
    start(text, most).replace(char::is_control, "\u{fffd}")
}

fn start(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_read_like_those_of_kubernetes() {
        let reason = Reason::invalid(
            "spec.containers[0].resources.requests",
            "2",
            "must be less than or equal to cpu limit of 1",
        );
        assert_eq!(
            reason.about("web").to_string(),
            "spec.containers[0].resources.requests: Invalid value: \"2\": \
             must be less than or equal to cpu limit of 1 (container web)"
        );
        assert_eq!(
            Reason::required("spec.containers", "").to_string(),
            "spec.containers: Required value"
        );
        assert_eq!(
            Reason::not_supported("f", "x", &["a", "b"]).to_string(),
            "f: Unsupported value: \"x\": supported values: \"a\", \"b\""
        );
        assert_eq!(Code::OutOf(ResourceName::Cpu).to_string(), "OutOfcpu");
    }

    #[test]
    fn foreign_text_cannot_break_a_line_or_fill_a_page() {
        let reason = Reason::duplicate("f", "a\n\u{1b}[31m".repeat(1000));
        assert!(
            reason
                .message
                .starts_with("Duplicate value: \"a\\n\\u{1b}[31m")
        );
        assert!(reason.message.len() < 1500);
        let reason =
            Reason::forbidden(format!("limits[{}]", "a\n".repeat(1000)), "no").about("b\n");
        assert!(!reason.to_string().contains('\n'));
        assert!(reason.to_string().len() < 2500);
    }
}
