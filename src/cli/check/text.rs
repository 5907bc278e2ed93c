//! What would become of an input, for people.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::cli::error::{ERROR, WARNING};
use crate::cli::explain::text::{node, quotas, reason};
use crate::cli::render::clean;
use crate::report::check::{Check, ObjectCheck, Summary, WarningRow};
use crate::report::explain::QuotaExplanation;

/// Writes all of it.
///
/// # Errors
/// Output that cannot be written.
pub fn write(check: &Check, out: &mut dyn Write) -> io::Result<()> {
    if let Some(given) = &check.node {
        writeln!(out, "{}", node(given))?;
    }
    for row in &check.objects {
        object(row, out)?;
    }
    if !check.quotas.is_empty() {
        write!(out, "\n{}", quotas(&check.quotas))?;
    }
    writeln!(out, "\n{}", summary(&check.summary))
}

fn object(row: &ObjectCheck, out: &mut dyn Write) -> io::Result<()> {
    let kind = row.kind.to_ascii_lowercase();
    let namespace = match row.namespace.as_str() {
        "" => String::new(),
        namespace => format!(" in {namespace}"),
    };
    let head = format!(
        "{kind}/{}{namespace} ({}:{}): ",
        row.name, row.source, row.line
    );
    write!(out, "{}", clean(&head))?;
    match (row.admitted, &row.qos_class) {
        (false, _) => writeln!(out, "{ERROR}refused{ERROR:#}")?,
        (true, Some(class)) => writeln!(out, "admitted, {class}")?,
        (true, None) => writeln!(out, "admitted")?,
    }
    for line in row.reasons.iter().map(reason) {
        writeln!(out, "  {}", clean(&line))?;
    }
    for line in defaults(row) {
        writeln!(out, "  {}", clean(&line))?;
    }
    for line in row.quotas.iter().map(afterwards) {
        writeln!(out, "  {}", clean(&line))?;
    }
    for row in &row.warnings {
        let text = warning(row);
        writeln!(out, "  {WARNING}warning{WARNING:#} {}", clean(&text))?;
    }
    Ok(())
}

/// What was filled in, a line for each container and rule.
fn defaults(row: &ObjectCheck) -> Vec<String> {
    let mut order = Vec::new();
    let mut amounts: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for one in &row.defaults {
        let key = (one.container.as_deref(), one.rule.as_str());
        if !amounts.contains_key(&key) {
            order.push(key);
        }
        // Fields of a securityContext are known by their names.
        let list = if one.is_of_security() {
            String::new()
        } else {
            format!("{}.", one.list)
        };
        let text = format!("{list}{} {}", one.resource, one.amount);
        amounts.entry(key).or_default().push(text);
    }
    let line = |key: &(Option<&str>, &str)| {
        let amounts = amounts.get(key).map(|all| all.join(", "));
        let amounts = amounts.unwrap_or_default();
        let (container, rule) = key;
        match container {
            Some(name) => format!("by default: {amounts}: {rule} (container {name})"),
            None => format!("by default: {amounts}: {rule}"),
        }
    };
    order.iter().map(line).collect()
}

fn afterwards(quota: &QuotaExplanation) -> String {
    let keys = quota.hard.iter();
    let keys: Vec<_> = keys
        .map(|(key, hard)| {
            let used = quota.used.get(key).map_or("0", String::as_str);
            format!("{key} {used} of {hard}")
        })
        .collect();
    format!("then used of {}: {}", quota.name, keys.join(", "))
}

fn warning(row: &WarningRow) -> String {
    let mut line = format!("[{}]: ", row.lint);
    if !row.field.is_empty() {
        line.push_str(&row.field);
        line.push_str(": ");
    }
    line.push_str(&row.message);
    if let Some(container) = &row.container {
        line.push_str(" (container ");
        line.push_str(container);
        line.push(')');
    }
    line
}

/// `4 objects (limitrange 1, pod 3): 3 admitted, 1 refused, 2 warnings`
fn summary(summary: &Summary) -> String {
    let plural = |number: usize| if number == 1 { "" } else { "s" };
    let kinds = summary.kinds.iter();
    let kinds: Vec<_> = kinds
        .map(|(kind, number)| format!("{kind} {number}"))
        .collect();
    format!(
        "{} object{} ({}): {} admitted, {} refused, {} warning{}",
        summary.objects,
        plural(summary.objects),
        kinds.join(", "),
        summary.admitted,
        summary.refused,
        summary.warnings,
        plural(summary.warnings)
    )
}
