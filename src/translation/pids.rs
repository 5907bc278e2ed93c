//! `pids.max`: how many tasks, threads included, a pod and all pods may have.
//!
//! The bound is the pod's; containers share it. A pod can lower the node's bound for itself and must
//! never raise it.

use super::note::Draft;
use crate::cgroup::{InterfaceFile, Setting};
use crate::model::annotation::{self, PIDS_LIMIT};
use crate::model::{Node, Pod, Policy};
use crate::units::Limit;

/// The greatest bound the kernel takes (`PID_MAX_LIMIT` on 64 bits); anything above is refused, so it
/// becomes `max` here.
const MOST: u64 = 4_194_304;

pub(super) fn container(draft: &mut Draft) {
    draft.set(Setting::PidsMax(Limit::Max));
}

pub(super) fn pod(draft: &mut Draft, pod: &Pod, policy: &Policy) {
    let node = policy.pod_pids_limit;
    let own = annotation::pids_limit(pod).unwrap_or_else(|wrong| {
        let text = format!("{PIDS_LIMIT} {wrong}: podPidsLimit {node} holds");
        draft.note(InterfaceFile::PidsMax, text);
        Limit::Max
    });
    if let (Limit::At(asked), Limit::At(allowed)) = (own, node)
        && asked > allowed
    {
        let text = format!("{PIDS_LIMIT} {asked} is capped at podPidsLimit {allowed}");
        draft.note(InterfaceFile::PidsMax, text);
    }
    set(draft, own.min(node));
}

pub(super) fn qos(draft: &mut Draft) {
    draft.set(Setting::PidsMax(Limit::Max));
}

pub(super) fn top(draft: &mut Draft, node: &Node) {
    let bound = node.max_pids.map(|all| {
        let reserved = node.reserved_pids;
        let text = format!("{all} tasks less {reserved} reserved");
        draft.note(InterfaceFile::PidsMax, text);
        all.saturating_sub(reserved)
    });
    set(draft, bound.into());
}

fn set(draft: &mut Draft, bound: Limit<u64>) {
    let kept = match bound {
        Limit::At(tasks) if tasks > MOST => {
            let text = format!("{tasks} tasks become max: the kernel takes no bound above {MOST}");
            draft.note(InterfaceFile::PidsMax, text);
            Limit::Max
        }
        other => other,
    };
    draft.set(Setting::PidsMax(kept));
}
