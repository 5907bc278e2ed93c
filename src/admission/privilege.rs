//! Where no container may be root: who runs that names no user, and what may not be asked for.
//!
//! Decides on new pods alone. It must never be asked of a pod that is kept: what was admitted under other
//! settings runs on as its object says.

use super::reason::{Code, Reason};
use crate::model::security::{NonRoot, addable, names};
use crate::model::{Container, Pod};

/// Why all of it is filled in.
pub const RULE: &str = "default of the node, as allowRootContainers is false";

/// What was filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// `runAsUser`
    User(u32),
    /// `runAsGroup`
    Group(u32),
    /// `allowPrivilegeEscalation: false`
    NoEscalation,
}

impl Given {
    /// The field of a container's `securityContext` that it stands in.
    pub fn field(self) -> &'static str {
        match self {
            Self::User(_) => "runAsUser",
            Self::Group(_) => "runAsGroup",
            Self::NoEscalation => "allowPrivilegeEscalation",
        }
    }

    /// What stands there.
    pub fn value(self) -> String {
        match self {
            Self::User(id) | Self::Group(id) => id.to_string(),
            Self::NoEscalation => "false".to_owned(),
        }
    }
}

/// Something that a container did not say itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secured {
    /// The container's name.
    pub container: String,
    /// What was filled in.
    pub given: Given,
}

/// Fills in who runs where neither container nor pod says so, and that nobody becomes more than that. A container
/// without a command is left alone: the node starts nothing in it, and what is put there stays who it is.
pub(super) fn fill(pod: &mut Pod, rule: &NonRoot) -> Vec<Secured> {
    let mut done = Vec::new();
    let all = pod.init_containers.iter_mut().chain(&mut pod.containers);
    for container in all.filter(|container| container.has_command()) {
        let security = &mut container.security;
        let mut given = Vec::new();
        if security.user.is_none() {
            security.user = Some(rule.user);
            given.push(Given::User(rule.user));
            // Of a user that is named the group is that of the host's list.
            if security.group.is_none() {
                security.group = Some(rule.group);
                given.push(Given::Group(rule.group));
            }
        }
        if !security.no_new_privileges && !security.said.wants_to_gain {
            security.no_new_privileges = true;
            given.push(Given::NoEscalation);
        }
        done.extend(given.into_iter().map(|given| Secured {
            container: container.name.clone(),
            given,
        }));
    }
    done
}

/// Everything for which a pod would be more than a container may be. What the pod says for all of its containers is
/// told once.
pub(super) fn check(pod: &Pod, rule: &NonRoot) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = Vec::new();
    for (list, index, container) in pod.all_containers() {
        let place = format!("spec.{list}[{index}].securityContext");
        for reason in of_container(&place, container, rule) {
            let is_told = |told: &Reason| reason.container.is_none() && *told == reason;
            if !reasons.iter().any(is_told) {
                reasons.push(reason);
            }
        }
    }
    reasons
}

fn of_container(place: &str, container: &Container, rule: &NonRoot) -> Vec<Reason> {
    let security = &container.security;
    let forbid = |field: &str, message: &str| Reason::policy(Code::PodSecurity, field, message);
    let mut reasons = Vec::new();
    if security.user == Some(0) {
        let message = format!(
            "must not run as root: allowRootContainers is false on this node; set runAsUser to another \
             user, or leave it out to run as {}",
            rule.user
        );
        reasons.push(if security.said.user_by_pod {
            forbid("spec.securityContext.runAsUser", &message)
        } else {
            forbid(&format!("{place}.runAsUser"), &message).about(&container.name)
        });
    }
    if security.said.wants_to_gain {
        let message = "must not be true: programs of the host such as su and sudo would make it root, and \
                       allowRootContainers is false on this node; set it to false, or leave it out";
        let field = format!("{place}.allowPrivilegeEscalation");
        reasons.push(forbid(&field, message).about(&container.name));
    }
    // What nobody may ask for on any node is told already.
    let excess = security.added & addable() & !rule.allowed;
    if excess != 0 && security.added & !addable() == 0 {
        let allowed = match names(rule.allowed).join(", ") {
            none if none.is_empty() => "none".to_owned(),
            some => some,
        };
        let message = format!(
            "must not ask for {}: allowRootContainers is false on this node, and its allowedCapabilities \
             are: {allowed}",
            names(excess).join(", ")
        );
        let field = format!("{place}.capabilities.add");
        reasons.push(forbid(&field, &message).about(&container.name));
    }
    reasons
}
