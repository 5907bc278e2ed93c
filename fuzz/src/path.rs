//! Names that become cgroups and files: no name leads out of its place. One path a line.

use allotd::cgroup::{CgroupPath, Node, Tree};
use allotd::manifest::convert::placeholder_uid;
use allotd::model::{PodUid, QosClass};
use allotd::runtime::ContainerId;
use allotd::translation::{container_path, level_of, ours, pod_path};

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let mut tree = Tree::default();
    for line in text.lines().take(32) {
        let names: Vec<&str> = line.split('/').collect();
        if let Some(path) = cgroup(&names) {
            tree.insert(path, Node::default());
        }
        let part = |index: usize| names.get(index).copied().unwrap_or_default();
        owner(part(0), part(1), part(2), part(3));
    }
    for (scope, _) in tree.iter() {
        let within = tree.iter().filter(|(path, _)| path.is_within(scope));
        assert!(tree.within(scope).eq(within));
        let around = |path: &CgroupPath| path.is_within(scope) || scope.is_within(path);
        assert!(
            tree.around(scope)
                .eq(tree.iter().filter(|(path, _)| around(path)))
        );
    }
}

fn cgroup(names: &[&str]) -> Option<CgroupPath> {
    let mut path = CgroupPath::top();
    for name in names {
        let child = path.child(name).ok()?;
        assert_eq!(child.parent().as_ref(), Some(&path));
        assert_eq!(child.name(), *name);
        assert!(path < child && child.is_within(&path) && !path.is_within(&child));
        path = child;
    }
    assert_eq!(path.depth(), names.len());
    assert_eq!(path.self_and_above().count(), names.len() + 1);
    let text = path.as_str();
    assert!(!text.contains(char::is_control) && !text.starts_with('/'));
    assert!(text.split('/').all(|name| !matches!(name, "" | "." | "..")));
    assert_eq!(ours(&path), level_of(&path).is_some());
    Some(path)
}

fn owner(namespace: &str, pod: &str, uid: &str, container: &str) {
    assert!(placeholder_uid(namespace, pod).is_some());
    let Some(uid) = PodUid::new(uid) else {
        return;
    };
    for qos in [
        QosClass::Guaranteed,
        QosClass::Burstable,
        QosClass::BestEffort,
    ] {
        let pod = pod_path(qos, &uid);
        assert!(pod.name().starts_with("pod") && ours(&pod));
        if let Some(path) = container_path(&pod, container) {
            assert_eq!(path.parent(), Some(pod));
        }
    }
    if let Ok(id) = ContainerId::new(namespace, pod, uid, container) {
        let shown = id.attempt(7).to_string();
        assert_eq!(shown, format!("{namespace}/{pod}/{container}#7"));
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-./#".contains(c);
        assert!(shown.chars().all(is_plain), "{shown:?}");
    }
}
