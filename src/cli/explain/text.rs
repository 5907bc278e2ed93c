//! An explanation for people.
//!
//! Decides layout and, for each file, which amount of the spec is named as its origin.

use super::security;
use crate::cli::render::Page;
use crate::report::explain::{
    Amounts, CgroupExplanation, NodeExplanation, PodExplanation, QuotaExplanation, ReasonRow,
};

/// One line on the node.
pub fn node(node: &NodeExplanation) -> Page {
    let mut page = Page::description();
    let what = match node.source.as_str() {
        "machine" => "this machine, no Node is given",
        _ => "as given",
    };
    page.row(0, &[&"Node:", &format!("{} ({what})", node.name)]);
    let amounts = node.allocatable.iter();
    let amounts: Vec<_> = amounts
        .map(|(name, amount)| format!("{name} {amount}"))
        .collect();
    page.texts(0, &["Allocatable:", &amounts.join(", ")]);
    page
}

/// Who the pod is and whether it may run.
pub fn head(pod: &PodExplanation) -> Page {
    let mut page = Page::description();
    page.row(0, &[&"Pod:", &format!("{}/{}", pod.namespace, pod.name)]);
    page.texts(0, &["UID:", &pod.uid]);
    page.texts(0, &["QoS Class:", &pod.qos_class]);
    page.texts(0, &["Admitted:", if pod.admitted { "yes" } else { "no" }]);
    page
}

/// What is used of each quota once the admitted pods are counted in.
pub fn quotas(quotas: &[QuotaExplanation]) -> Page {
    let mut page = Page::description();
    page.texts(0, &["Quotas:"]);
    page.heading(1, &["Quota", "Resource", "Used", "Hard"]);
    for quota in quotas {
        // One of several namespaces has none of its own.
        let name = match quota.namespace.as_str() {
            "" => quota.name.clone(),
            namespace => format!("{namespace}/{}", quota.name),
        };
        for (resource, hard) in &quota.hard {
            let used = quota.used.get(resource).map_or("0", String::as_str);
            page.texts(1, &[&name, resource, used, hard]);
        }
    }
    page
}

/// A reason against a pod in one line.
pub fn reason(reason: &ReasonRow) -> String {
    let mut line = format!("{}: ", reason.code);
    if !reason.field.is_empty() {
        line.push_str(&reason.field);
        line.push_str(": ");
    }
    line.push_str(&reason.message);
    if let Some(container) = &reason.container {
        line.push_str(" (container ");
        line.push_str(container);
        line.push(')');
    }
    line
}

/// Its amounts, the defaults among them, who its containers are, and its cgroups.
pub fn body(pod: &PodExplanation) -> Page {
    let mut page = Page::description();
    page.texts(0, &["Resources:"]);
    page.heading(1, &["Of", "Resource", "Requests", "Limits", "By default"]);
    for container in &pod.containers {
        amounts(&mut page, pod, Some(&container.name), &container.amounts);
    }
    amounts(&mut page, pod, None, &pod.effective);
    security::table(&mut page, pod);
    if !pod.cgroups.is_empty() {
        page.texts(0, &["Cgroups:"]);
    }
    for cgroup in &pod.cgroups {
        cgroup_table(&mut page, pod, cgroup);
    }
    page
}

fn amounts(page: &mut Page, pod: &PodExplanation, container: Option<&str>, amounts: &Amounts) {
    let mut names: Vec<_> = amounts
        .requests
        .keys()
        .chain(amounts.limits.keys())
        .collect();
    names.sort();
    names.dedup();
    let of = container.unwrap_or("(pod)");
    if names.is_empty() {
        page.texts(1, &[of, "-", "-", "-"]);
    }
    for name in names {
        let cell = |list| amounts.get(list, name).unwrap_or("-");
        let rules: Vec<_> = pod
            .defaults
            .iter()
            .filter(|row| row.container.as_deref() == container && row.resource == *name)
            .map(|row| row.rule.as_str())
            .collect();
        page.texts(
            1,
            &[
                of,
                name,
                cell("requests"),
                cell("limits"),
                &rules.join("; "),
            ],
        );
    }
}

fn cgroup_table(page: &mut Page, pod: &PodExplanation, cgroup: &CgroupExplanation) {
    let whose = match &cgroup.container {
        Some(name) => {
            let container = pod
                .containers
                .iter()
                .find(|container| container.name == *name);
            match container.and_then(|container| container.oom_score_adj) {
                Some(score) => format!("container {name}, oom_score_adj {score}"),
                None => format!("container {name}"),
            }
        }
        None => cgroup.level.clone(),
    };
    page.row(1, &[&format!("{} ({whose})", cgroup.path)]);
    let mut columns = vec!["File", "Value"];
    if cgroup.kernel.is_some() {
        columns.push("Kernel");
    }
    columns.push("Why");
    page.heading(2, &columns);
    for (file, value) in &cgroup.files {
        let mut cells = vec![file.as_str(), value.as_str()];
        if let Some(kernel) = &cgroup.kernel {
            cells.push(kernel.get(file).map_or("(not there)", String::as_str));
        }
        let why = why(pod, cgroup, file);
        cells.push(&why);
        page.texts(2, &cells);
    }
    for note in &cgroup.notes {
        if !cgroup
            .files
            .keys()
            .any(|file| of_file(note, file).is_some())
        {
            page.row(2, &[&format!("note: {note}")]);
        }
    }
}

/// The amount a value comes from, what happened to it on the way, and where less is allowed.
fn why(pod: &PodExplanation, cgroup: &CgroupExplanation, file: &str) -> String {
    let amounts = match (cgroup.level.as_str(), &cgroup.container) {
        (_, Some(name)) => {
            let container = pod
                .containers
                .iter()
                .find(|container| container.name == *name);
            container.map(|container| &container.amounts)
        }
        ("pod", None) => Some(&pod.effective),
        _ => None,
    };
    let mut parts = Vec::new();
    // Which of the two a request goes to is policy; nothing comes from it where there is nothing.
    let is_unused = matches!(file, "memory.min" | "memory.low")
        && cgroup.files.get(file).is_some_and(|value| value == "0");
    if let (Some(amounts), Some((list, resource)), false) = (amounts, origin(file), is_unused) {
        parts.push(match amounts.get(list, &resource) {
            Some(amount) => format!("{list}.{resource} {amount}"),
            None => format!("no {list}.{resource}"),
        });
    }
    let notes = cgroup.notes.iter().filter_map(|note| of_file(note, file));
    parts.extend(notes.map(str::to_owned));
    let tighter = cgroup.tightest.iter().filter(|bound| bound.file == file);
    parts.extend(tighter.map(|bound| format!("less above: {} at {}", bound.value, bound.path)));
    parts.join("; ")
}

/// The text of a note that is about this file.
fn of_file<'a>(note: &'a str, file: &str) -> Option<&'a str> {
    note.strip_prefix(file)?.strip_prefix(": ")
}

/// Which amount a file is made from.
fn origin(file: &str) -> Option<(&'static str, String)> {
    let (list, resource) = match file {
        "cpu.weight" => ("requests", "cpu"),
        "cpu.max" => ("limits", "cpu"),
        "memory.min" | "memory.low" => ("requests", "memory"),
        "memory.max" => ("limits", "memory"),
        _ => {
            let size = file.strip_prefix("hugetlb.")?.split('.').next()?;
            let size = crate::units::HugePageSize::from_kernel_name(size)?;
            return Some(("limits", format!("hugepages-{}", size.kubernetes_name())));
        }
    };
    Some((list, resource.to_owned()))
}
