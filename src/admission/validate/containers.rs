//! The containers of a pod: their names, their programs, their resources.

use std::collections::BTreeSet;

use super::{resources, security};
use crate::admission::Reason;
use crate::model::{Container, Pod, name};

/// The longest argument or `NAME=VALUE` that the kernel takes (`MAX_ARG_STRLEN`, less the final NUL).
const MAX_ARGUMENT: usize = 131_071;

/// Every rule that a container breaks.
pub(super) fn all(pod: &Pod) -> Vec<Reason> {
    let mut seen = BTreeSet::new();
    let mut reasons = Vec::new();
    for (list, index, container) in pod.all_containers() {
        let path = format!("spec.{list}[{index}]");
        let name = container.name.as_str();
        let mut found = names(&format!("{path}.name"), name);
        if !name.is_empty() && !seen.insert(name) {
            found.push(Reason::duplicate(format!("{path}.name"), name));
        }
        found.extend(program(&path, container));
        found.extend(security::check(&path, container));
        found.extend(resources::check(
            &format!("{path}.resources"),
            &container.resources,
        ));
        reasons.extend(found.into_iter().map(|reason| reason.about(name)));
    }
    reasons
}

fn names(field: &str, name: &str) -> Vec<Reason> {
    if name.is_empty() {
        return vec![Reason::required(field, "")];
    }
    let problems = name::dns_label(name);
    problems
        .iter()
        .map(|problem| Reason::invalid(field, name, problem))
        .collect()
}

/// What cannot be handed to the kernel as a program with its arguments, environment and directory.
fn program(path: &str, container: &Container) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if container.command.first().is_some_and(String::is_empty) {
        reasons.push(Reason::required(
            format!("{path}.command[0]"),
            "must name a program",
        ));
    }
    for (list, texts) in [("command", &container.command), ("args", &container.args)] {
        for (index, text) in texts.iter().enumerate() {
            reasons.extend(argument(
                &format!("{path}.{list}[{index}]"),
                text,
                text.len(),
            ));
        }
    }
    for (index, (name, value)) in container.env.iter().enumerate() {
        let field = format!("{path}.env[{index}]");
        if name.is_empty() {
            reasons.push(Reason::required(format!("{field}.name"), ""));
        } else if !name.bytes().all(|b| matches!(b, b' '..=b'~') && b != b'=') {
            reasons.push(Reason::invalid(
                format!("{field}.name"),
                name,
                "a valid environment variable name must consist only of printable ASCII characters \
                 other than '='",
            ));
        }
        let length = name.len().saturating_add(1).saturating_add(value.len());
        reasons.extend(argument(&format!("{field}.value"), value, length));
    }
    if let Some(directory) = &container.working_dir {
        let field = format!("{path}.workingDir");
        if !directory.starts_with('/') {
            reasons.push(Reason::invalid(
                &field,
                directory,
                "must be an absolute path",
            ));
        }
        reasons.extend(argument(&field, directory, directory.len()));
    }
    reasons
}

fn argument(field: &str, text: &str, length: usize) -> Option<Reason> {
    if length > MAX_ARGUMENT {
        Some(Reason::too_long(field, length, MAX_ARGUMENT))
    } else if text.contains('\0') {
        Some(Reason::invalid(
            field,
            text,
            "must not contain a NUL character",
        ))
    } else {
        None
    }
}
