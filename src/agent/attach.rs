//! Running processes put into a container that has no command.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::entry::Live;
use super::events::Severity;
use super::record::Attached;
use super::request::{PodKey, Refusal};
use super::run::Agent;
use crate::cgroup::{ErrorKind, Op, Pid};
use crate::runtime::attach::look;

impl Agent {
    /// Moves a process, and its descendants if asked, into a container's cgroup; answers with those
    /// that were moved.
    pub(super) fn attach(
        &mut self,
        key: &PodKey,
        container: &str,
        pid: i32,
        children: bool,
    ) -> Result<Vec<i32>, Refusal> {
        let Some(entry) = self.pods.get(key) else {
            return Err(Refusal::not_found("pods", &key.name));
        };
        let Some(spec) = entry.container(container) else {
            return Err(Refusal::new(
                404,
                "NotFound",
                format!("pod {key} has no container {container:?}"),
            ));
        };
        if spec.has_command() {
            return Err(Refusal::conflict(format!(
                "container {container} has a command of its own: only one without can be attached to"
            )));
        }
        if entry.record.deletion.is_some() || entry.phase().is_terminal() {
            return Err(Refusal::conflict(format!("pod {key} is ending")));
        }
        let Some(path) = entry.container_path(container) else {
            return Err(Refusal::internal("the container has no cgroup"));
        };
        let found = look(pid).map_err(|error| Refusal::bad_request(error.to_string()))?;
        if found.more_descendants && children {
            return Err(Refusal::bad_request(format!(
                "process {pid} has more than {} descendants: stop some or attach without children",
                found.descendants.len()
            )));
        }
        let is_first = matches!(entry.live(container), Live::Idle);
        let attached = Attached {
            pid,
            start_ticks: found.process.start_ticks,
            boot_id: found.process.boot_id.clone(),
            since: Timestamp::now(),
        };
        if is_first {
            // Durable before it is done: after a crash the agent finds its promise and keeps it.
            if let Some(entry) = self.pods.get_mut(key) {
                let record = entry.change(container);
                record.attached = Some(attached.clone());
                record.end = None;
            }
            self.settle_all();
        }
        let mut moved = Vec::new();
        let mut waiting: BTreeSet<i32> = BTreeSet::from([pid]);
        if children {
            waiting.extend(&found.descendants);
        }
        // A child that is born meanwhile in a process not yet moved is found by looking again.
        for _ in 0..10 {
            for &process in &waiting {
                match self.kernel.perform(&Op::Attach(path.clone(), Pid(process))) {
                    Ok(()) => moved.push(process),
                    Err(error) if error.kind == ErrorKind::Gone && process != pid => {}
                    Err(error) => {
                        if is_first && let Some(entry) = self.pods.get_mut(key) {
                            entry.change(container).attached = None;
                        }
                        return Err(Refusal::internal(format!("process {process}: {error}")));
                    }
                }
            }
            if !children {
                break;
            }
            waiting = match look(pid) {
                Ok(found) => found.descendants,
                Err(_) => break,
            };
            waiting.retain(|process| !moved.contains(process));
            if waiting.is_empty() {
                break;
            }
        }
        if is_first {
            self.note_attached(key, container, &attached);
        }
        self.event(
            key,
            container,
            Severity::Normal,
            "Attached",
            &format!(
                "Attached process {pid} ({}) to container {container}: {} moved",
                found.name,
                moved.len()
            ),
        );
        self.drive(key);
        Ok(moved)
    }
}
