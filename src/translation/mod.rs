//! From admitted pods and a node to the wanted tree of cgroups: which file of which cgroup gets which
//! value, and why.
//!
//! Pure and total: every admitted pod has a translation, and the same one for the same pod, node and
//! policy. The only place that knows both pods and cgroups. It must never look at what is in the
//! kernel; `enforcement` does.

mod burst;
pub mod cpu;
pub mod cpuset;
pub mod hugetlb;
pub mod layout;
pub mod levels;
pub mod memory;
pub mod note;
pub mod oom_score;
pub mod pids;
pub mod tightest;

pub use cpuset::Placement;
pub use layout::{Level, Place, container_path, level_of, ours, pod_path, qos_path};
pub use levels::{LevelTree, Share, Totals, levels};
pub use note::Note;
pub use oom_score::oom_score_adj;
pub use tightest::{Tightest, tightest};

use crate::admission::{AdmittedPod, cpus};
use crate::cgroup::{self, CgroupPath, Controller, ControllerSet, Tree};
use crate::model::policy::CpuManagerPolicy;
use crate::model::{EffectivePod, Node, Policy, ResourceName};
use crate::units::{HugePageSize, Quantity};
use note::Draft;

/// What there is to say about one wanted cgroup; its values stand in the tree beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupPlan {
    /// Where it lies.
    pub path: CgroupPath,
    /// Its level.
    pub level: Level,
    /// The container it belongs to.
    pub container: Option<String>,
    /// Roundings, clamps, floors and defaults on the way from the spec to its files.
    pub notes: Vec<Note>,
}

/// One pod's part of the wanted tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodTree {
    /// The pod's cgroup and those of all its containers. Init containers are among them: whoever
    /// knows which have ended takes those out.
    pub tree: Tree,
    /// The pod, then its containers as they start.
    pub cgroups: Vec<CgroupPlan>,
    /// `oom_score_adj` of each container, for the processes it starts.
    pub oom_scores: Vec<(String, i32)>,
    /// What the pod adds to the levels above.
    pub share: Share,
}

impl PodTree {
    /// The cgroup of a container, or of the pod itself for `None`: what there is to say, and the values.
    pub fn cgroup(&self, container: Option<&str>) -> Option<(&CgroupPlan, &cgroup::Node)> {
        let plan = self
            .cgroups
            .iter()
            .find(|plan| plan.container.as_deref() == container)?;
        Some((plan, self.tree.get(&plan.path)?))
    }
}

/// The wanted cgroups of a pod whose containers are not placed on CPUs.
pub fn translate_pod(pod: &AdmittedPod, node: &Node, policy: &Policy) -> PodTree {
    translate_placed(pod, node, policy, None)
}

/// The wanted cgroups of a pod.
pub fn translate_placed(
    pod: &AdmittedPod,
    node: &Node,
    policy: &Policy,
    placement: Option<&Placement<'_>>,
) -> PodTree {
    let sizes = node.huge_page_sizes();
    let effective = pod.effective();
    let mut tree = Tree::default();
    let mut cgroups = Vec::with_capacity(effective.containers.len() + 1);
    let mut put = |path: CgroupPath, container: Option<&str>, draft: Draft| {
        let (values, notes) = draft.finish(node.page_size);
        tree.insert(path.clone(), values);
        cgroups.push(CgroupPlan {
            path,
            level: container.map_or(Level::Pod, |_| Level::Container),
            container: container.map(str::to_owned),
            notes,
        });
    };

    let path = pod_path(pod.qos(), &pod.pod().uid);
    let mut draft = Draft::above(enabled(policy, &sizes));
    cpu::pod(&mut draft, pod.qos(), effective, policy);
    if let Some(placement) = placement {
        cpuset::pod(&mut draft, placement, policy);
    }
    let bursts = burst::chosen(pod.pod());
    burst::pod(&mut draft, effective, &bursts, policy);
    let share = memory::pod(&mut draft, pod, node, policy);
    hugetlb::pod(&mut draft, effective, &sizes);
    pids::pod(&mut draft, pod.pod(), policy);
    for container in &effective.containers {
        if container_path(&path, &container.name).is_none() {
            let text = format!(
                "container {:?} has no cgroup: that is no name",
                container.name
            );
            draft.note(None, text);
        }
    }
    put(path.clone(), None, draft);

    let wishes = match policy.cpu_manager {
        CpuManagerPolicy::Static => cpus::wishes(pod),
        CpuManagerPolicy::None => Vec::new(),
    };
    for container in &effective.containers {
        let Some(path) = container_path(&path, &container.name) else {
            continue;
        };
        let mut draft = Draft::default();
        cpu::container(&mut draft, container, policy);
        if let Some(placement) = placement {
            cpuset::container(&mut draft, container, placement, policy);
        } else if let Some((_, count)) = wishes.iter().find(|(name, _)| *name == container.name) {
            cpuset::unplaced(&mut draft, *count);
        }
        burst::container(&mut draft, container, &bursts, policy);
        memory::container(&mut draft, pod, &share, container, node, policy);
        hugetlb::container(&mut draft, container, &sizes);
        pids::container(&mut draft);
        put(path, Some(&container.name), draft);
    }

    PodTree {
        tree,
        cgroups,
        oom_scores: oom_score_adj(pod, node.capacity.memory().unwrap_or_default()),
        share: Share {
            qos: pod.qos(),
            cpu: effective.requests.cpu().unwrap_or_default(),
            protection: share.protection,
        },
    }
}

/// The controllers that a node with this policy needs.
pub fn controllers(policy: &Policy) -> ControllerSet {
    let all = ControllerSet::all();
    match policy.cpu_manager {
        CpuManagerPolicy::Static => all,
        CpuManagerPolicy::None => all.except(Controller::Cpuset),
    }
}

/// What the children of a cgroup get: every controller whose files are set. Without huge pages there
/// is no such file, and perhaps no such controller.
fn enabled(policy: &Policy, sizes: &[HugePageSize]) -> ControllerSet {
    let all = controllers(policy);
    if sizes.is_empty() {
        all.except(Controller::Hugetlb)
    } else {
        all
    }
}

/// Which containers keep the pod from having a bound, where others have one.
fn unbounded(pod: &EffectivePod, name: &ResourceName) -> Option<String> {
    let is_bounded = |amount: Quantity| !amount.is_zero();
    if !pod.limits.get(name).is_some_and(is_bounded) {
        return None;
    }
    let without: Vec<&str> = pod
        .containers
        .iter()
        .filter(|container| !container.resources.limits.get(name).is_some_and(is_bounded))
        .map(|container| container.name.as_str())
        .collect();
    Some(match without.as_slice() {
        [one] => format!("container {one} has no {name} limit: the pod has none"),
        several => format!(
            "containers {} have no {name} limit: the pod has none",
            several.join(", ")
        ),
    })
}
