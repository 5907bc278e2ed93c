//! Where pods and containers lie in the tree of cgroups, and back from a path to what it holds.
//!
//! ```text
//! top
//! ├── pod<uid>                 Guaranteed
//! │   └── <container>
//! ├── burstable
//! │   └── pod<uid>
//! │       └── <container>
//! └── besteffort
//!     └── pod<uid>
//!         └── <container>
//! ```
//!
//! The kubelet's layout (Kubernetes 1.36, cgroupfs driver), with the container's name where a runtime
//! puts its own id. Decides names only. A path that this module would not make is none of ours: it must
//! never be planned away.

use crate::cgroup::CgroupPath;
use crate::model::{PodUid, QosClass, name};

const BURSTABLE: &str = "burstable";
const BEST_EFFORT: &str = "besteffort";
/// The name of a pod's cgroup is this and its uid.
pub const POD_PREFIX: &str = "pod";

/// How far down the tree a cgroup stands, and so whose limits it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// All pods: what the node gives.
    Top,
    /// All pods of one class.
    Qos,
    /// One pod.
    Pod,
    /// One container.
    Container,
}

impl Level {
    /// The level in words: `node`, `qos`, `pod`, `container`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Top => "node",
            Self::Qos => "qos",
            Self::Pod => "pod",
            Self::Container => "container",
        }
    }
}

/// What a cgroup of ours holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// All pods.
    Top,
    /// All pods of a class; Guaranteed pods have no such cgroup, they stand at the top.
    Qos(QosClass),
    /// A pod.
    Pod(QosClass, PodUid),
    /// A container of a pod.
    Container(QosClass, PodUid, String),
}

impl Place {
    /// What the cgroup at a path holds; `None` where this layout has no such path.
    pub fn of(path: &CgroupPath) -> Option<Self> {
        if path.is_top() {
            return Some(Self::Top);
        }
        let mut names = path.as_str().split('/').peekable();
        let qos = match names.peek().copied() {
            Some(BURSTABLE) => QosClass::Burstable,
            Some(BEST_EFFORT) => QosClass::BestEffort,
            _ => QosClass::Guaranteed,
        };
        if qos != QosClass::Guaranteed {
            names.next();
        }
        let Some(pod) = names.next() else {
            return Some(Self::Qos(qos));
        };
        let uid = PodUid::new(pod.strip_prefix(POD_PREFIX)?)?;
        match (names.next(), names.next()) {
            (None, _) => Some(Self::Pod(qos, uid)),
            (Some(name), None) if is_dns_label(name) => {
                Some(Self::Container(qos, uid, name.to_owned()))
            }
            _ => None,
        }
    }

    /// Its level.
    pub fn level(&self) -> Level {
        match self {
            Self::Top => Level::Top,
            Self::Qos(_) => Level::Qos,
            Self::Pod(..) => Level::Pod,
            Self::Container(..) => Level::Container,
        }
    }

    /// The pod it belongs to.
    pub fn uid(&self) -> Option<&PodUid> {
        match self {
            Self::Pod(_, uid) | Self::Container(_, uid, _) => Some(uid),
            _ => None,
        }
    }

    /// The container it belongs to.
    pub fn container(&self) -> Option<&str> {
        match self {
            Self::Container(_, _, name) => Some(name),
            _ => None,
        }
    }
}

/// The level of a path; `None` where it is none of ours.
pub fn level_of(path: &CgroupPath) -> Option<Level> {
    Place::of(path).map(|place| place.level())
}

/// Whether the project makes, sets and removes the cgroup at this path. What a container makes below
/// its own cgroup, and what anybody else makes beside ours, is not.
pub fn ours(path: &CgroupPath) -> bool {
    Place::of(path).is_some()
}

/// The cgroup above all pods of a class.
pub fn qos_path(qos: QosClass) -> CgroupPath {
    match qos {
        QosClass::Guaranteed => CgroupPath::top(),
        QosClass::Burstable => below(&CgroupPath::top(), BURSTABLE),
        QosClass::BestEffort => below(&CgroupPath::top(), BEST_EFFORT),
    }
}

/// The cgroup of a pod.
pub fn pod_path(qos: QosClass, uid: &PodUid) -> CgroupPath {
    below(&qos_path(qos), &format!("{POD_PREFIX}{uid}"))
}

/// The cgroup of a container below that of its pod; `None` for a name that is no DNS label, which no
/// admitted container has.
pub fn container_path(pod: &CgroupPath, container: &str) -> Option<CgroupPath> {
    is_dns_label(container)
        .then(|| pod.child(container).ok())
        .flatten()
}

/// The names of this module hold letters, digits and dashes only and have at most 67 bytes, so no rule
/// of `CgroupPath` is against them.
fn below(above: &CgroupPath, name: &str) -> CgroupPath {
    above.child(name).unwrap_or_else(|_| above.clone())
}

fn is_dns_label(name: &str) -> bool {
    name::dns_label(name).is_empty()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(text: &str) -> CgroupPath {
        text.split('/')
            .filter(|name| !name.is_empty())
            .fold(CgroupPath::top(), |above, name| above.child(name).unwrap())
    }

    proptest! {
        #[test]
        fn every_place_is_found_again_from_its_path(
            uid in "[a-zA-Z0-9-]{1,64}",
            name in "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
        ) {
            let uid = PodUid::new(&uid).unwrap();
            for qos in [QosClass::Guaranteed, QosClass::Burstable, QosClass::BestEffort] {
                let pod = pod_path(qos, &uid);
                prop_assert_eq!(pod.parent(), Some(qos_path(qos)));
                prop_assert_eq!(Place::of(&pod), Some(Place::Pod(qos, uid.clone())));
                let container = container_path(&pod, &name).unwrap();
                prop_assert_eq!(container.parent(), Some(pod));
                let place = Place::Container(qos, uid.clone(), name.clone());
                prop_assert_eq!(Place::of(&container), Some(place));
            }
        }
    }

    #[test]
    fn levels_follow_the_depth() {
        for (text, level) in [
            ("", Level::Top),
            ("burstable", Level::Qos),
            ("besteffort", Level::Qos),
            ("pod1", Level::Pod),
            ("pod1/app", Level::Container),
            ("burstable/pod1", Level::Pod),
            ("besteffort/pod1/app", Level::Container),
        ] {
            assert_eq!(level_of(&path(text)), Some(level), "{text}");
        }
    }

    #[test]
    fn what_the_layout_does_not_make_is_not_ours() {
        for text in [
            "guaranteed",
            "pod",
            "pod_1",
            "system.slice",
            "app",
            "burstable/app",
            "burstable/besteffort",
            "burstable/burstable/pod1",
            "pod1/App",
            "pod1/-app",
            "pod1/app/nested",
            "burstable/pod1/app/nested",
        ] {
            assert!(!ours(&path(text)), "{text}");
        }
        assert_eq!(container_path(&path("pod1"), "a.b"), None);
        assert_eq!(container_path(&path("pod1"), ".."), None);
    }
}
