//! The form of refusals: which part of Kubernetes would have spoken, and in which words.

use super::request::{Cause, Refusal};
use crate::admission::{Code, Reason};
use crate::manifest::convert::Remark;

/// The object that is refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refused<'a> {
    /// `Pod`
    pub kind: &'a str,
    /// `pods`, with the group unless that is the core.
    pub resource: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// An object whose fields cannot be read is invalid, as in Kubernetes; what else is wrong with it is told
/// as well.
pub(super) fn unreadable(
    object: &Refused<'_>,
    problems: Vec<Remark>,
    reasons: &[Reason],
) -> Refusal {
    let unread = problems.into_iter().map(|problem| Cause {
        reason: "FieldValueInvalid".to_owned(),
        field: problem.field,
        message: problem.message,
    });
    let causes = unread.chain(reasons.iter().map(cause)).collect();
    invalid(object, causes)
}

/// An object that breaks a rule by itself.
pub(super) fn invalid(object: &Refused<'_>, causes: Vec<Cause>) -> Refusal {
    let texts = causes.iter().map(|cause| match cause.field.as_str() {
        "" => cause.message.clone(),
        field => format!("{field}: {}", cause.message),
    });
    let message = format!(
        "{} {:?} is invalid: {}",
        object.kind,
        object.name,
        together(texts)
    );
    Refusal {
        causes,
        ..Refusal::new(422, "Invalid", message).about(object.resource, object.name)
    }
}

/// The whole refusal, with every reason in it. A broken rule makes the object invalid; a sound one is
/// forbidden by a policy of its namespace or of the node; one that is sound and allowed is told by the first resource
/// that falls short. It is the order in which Kubernetes' parts would come to speak.
pub(super) fn refused(object: &Refused<'_>, reasons: &[Reason]) -> Refusal {
    let causes: Vec<_> = reasons.iter().map(cause).collect();
    let is_short = |reason: &Reason| matches!(reason.code, Code::OutOf(_));
    let is_policy = |reason: &Reason| reason.code.is_policy();
    if !reasons
        .iter()
        .all(|reason| is_short(reason) || is_policy(reason))
    {
        return invalid(object, causes);
    }
    let Refused { resource, name, .. } = object;
    let (reason, message) = if reasons.iter().any(is_policy) {
        let texts = reasons.iter().map(|reason| match reason {
            // Whoever sees nothing but this has to find the field.
            reason if reason.code == Code::PodSecurity => reason.to_string(),
            Reason {
                container: Some(container),
                message,
                ..
            } => format!("{message} (container {container})"),
            reason => reason.message.clone(),
        });
        let texts = together(texts);
        (
            "Forbidden",
            format!("{resource} {name:?} is forbidden: {texts}"),
        )
    } else {
        let texts: Vec<_> = causes.iter().map(|cause| cause.message.as_str()).collect();
        let texts = texts.join("; ");
        (
            causes.first().map_or("Forbidden", |cause| &cause.reason),
            format!("{resource} {name:?} is refused: Pod was rejected: {texts}"),
        )
    };
    let refusal = Refusal::new(403, reason, message).about(resource, name);
    Refusal { causes, ..refusal }
}

pub(super) fn cause(reason: &Reason) -> Cause {
    Cause {
        reason: reason.code.to_string(),
        field: reason.field.clone(),
        message: reason.message.clone(),
    }
}

/// Several texts as Kubernetes prints them.
fn together(texts: impl Iterator<Item = String>) -> String {
    let texts: Vec<_> = texts.collect();
    match texts.as_slice() {
        [one] => one.clone(),
        _ => format!("[{}]", texts.join(", ")),
    }
}
