//! All that is to be said of a folder of manifests.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use allotd::manifest::convert::{self, Remark};
use allotd::manifest::{Located, Manifest, Object, Strictness, read};
use allotd::model::{Pod, ResourceList};

/// Every file of `tests/data/manifests` against what is to be said of it, in the `.txt` of its name.
/// `UPDATE=1 cargo test --test manifest` writes those anew.
#[test]
fn golden() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/manifests");
    let mut names: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.strip_suffix(".txt").is_none())
        .collect();
    names.sort();
    assert!(names.len() > 15, "{names:?}");
    let mut differing = Vec::new();
    for name in names {
        let bytes = fs::read(folder.join(&name)).unwrap();
        let found = describe(&read(&name, &bytes, Strictness::Strict));
        let path = folder.join(format!("{name}.txt"));
        if std::env::var_os("UPDATE").is_some() {
            fs::write(path, found).unwrap();
        } else if fs::read_to_string(&path).unwrap_or_default() != found {
            differing.push(format!("{name}:\n{found}"));
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// All that a manifest says, converted objects included.
fn describe(manifest: &Manifest) -> String {
    let mut text = String::new();
    for located in &manifest.objects {
        let object = &located.object;
        let (api_version, kind) = (object.api_version(), object.kind());
        let namespace = object.namespace().unwrap_or("-");
        let _ = writeln!(text, "{api_version} {kind} {namespace} {}", object.name());
        match object {
            Object::Pod(pod) => {
                let name = pod.metadata.name.as_deref().unwrap_or_default();
                let uid = convert::placeholder_uid("default", name).unwrap();
                let converted = convert::pod(pod, &uid);
                text += &describe_pod(&converted.object);
                text += &remarks("problem", located, &converted.problems);
                text += &remarks("note", located, &converted.notes);
            }
            Object::Node(node) => {
                let converted = convert::node(node);
                let node = &converted.object;
                let (capacity, reserved) = (list(&node.capacity), list(&node.reserved));
                let (allocatable, swap) = (list(&node.allocatable), node.swap.0);
                let _ = writeln!(
                    text,
                    "  capacity {capacity}\n  reserved {reserved}\n  allocatable {allocatable}\n  swap {swap}"
                );
                text += &remarks("problem", located, &converted.problems);
            }
            Object::LimitRange(range) => {
                let limits = &range.spec.as_ref().unwrap().limits;
                let (max, problems) =
                    convert::resource_list(limits[0].max.as_ref().unwrap(), "spec.limits[0].max");
                let _ = writeln!(text, "  max {}", list(&max));
                text += &remarks("problem", located, &problems);
            }
            Object::ResourceQuota(quota) => {
                let hard = quota.spec.as_ref().unwrap().hard.as_ref().unwrap();
                let (hard, problems) = convert::resource_list(hard, "spec.hard");
                let _ = writeln!(text, "  hard {}", list(&hard));
                text += &remarks("problem", located, &problems);
            }
            Object::ClusterResourceQuota(quota) => {
                let read = convert::cluster_resource_quota(quota);
                let _ = writeln!(text, "  hard {}", list(&read.object.quota.hard));
                text += &remarks("problem", located, &read.problems);
            }
            Object::Namespace(_) => {}
            Object::Other(other) => {
                let _ = writeln!(text, "  {}", other.value);
            }
        }
    }
    for problem in &manifest.problems {
        let _ = writeln!(text, "{problem}");
    }
    text
}

fn remarks(what: &str, located: &Located<Object>, remarks: &[Remark]) -> String {
    remarks.iter().fold(String::new(), |text, remark| {
        let problem = located.problem(&remark.field, &remark.message);
        text + &format!("  {what}: {problem}\n")
    })
}

fn describe_pod(pod: &Pod) -> String {
    let mut text = format!(
        "  {} {} {:?} grace {} deadline {:?} priority {} {:?} static {} {:?} {:?}\n",
        pod.full_name(),
        pod.uid,
        pod.restart_policy,
        pod.termination_grace_seconds,
        pod.active_deadline_seconds,
        pod.priority,
        pod.priority_class,
        pod.is_static,
        pod.labels,
        pod.annotations,
    );
    for (field, index, container) in pod.all_containers() {
        let _ = writeln!(
            text,
            "  {field}[{index}] {:?} {} {:?} {:?} {:?} {:?} in {:?} requests {} limits {}",
            container.kind,
            container.name,
            container.image,
            container.command,
            container.args,
            container.env.iter().map(short).collect::<Vec<_>>(),
            container.working_dir,
            list(&container.resources.requests),
            list(&container.resources.limits),
        );
    }
    if let Some(own) = &pod.resources {
        let _ = writeln!(
            text,
            "  pod requests {} limits {}",
            list(&own.requests),
            list(&own.limits)
        );
    }
    if !pod.overhead.is_empty() {
        let _ = writeln!(text, "  overhead {}", list(&pod.overhead));
    }
    text
}

fn short((name, value): &(String, String)) -> String {
    match value.len() {
        0..100 => format!("{name}={value}"),
        length => format!("{name}={length} bytes"),
    }
}

fn list(list: &ResourceList) -> String {
    let amounts: Vec<_> = list
        .iter()
        .map(|(name, amount)| format!("{name}={amount}"))
        .collect();
    format!("[{}]", amounts.join(" "))
}
