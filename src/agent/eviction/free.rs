//! What pods that are over still hold, given back where the node is short of it: no pod has to go for that.
//!
//! Decides which pods and which of their things; it must never touch those of a pod that goes on.

use super::News;
use crate::agent::entry::PodEntry;
use crate::agent::events::Severity;
use crate::agent::input::Input;
use crate::agent::run::Agent;
use crate::model::eviction::Starved;

impl Agent {
    /// Gives back what pods that are over still hold: their files and logs, or volumes in memory. Whether
    /// there are such.
    pub(super) fn free(&mut self, starved: Starved) -> bool {
        let by_uid = &self.by_uid;
        let freed = &mut self.evictor.freed;
        freed.retain(|(_, uid)| by_uid.contains_key(uid));
        let of_memory = starved == Starved::Memory;
        let message = match starved {
            Starved::Memory => {
                "Gave back volumes in memory: the node is short of it, and the pod is over"
            }
            Starved::Disk | Starved::Inodes => {
                "Removed files and logs: the node is short of disk, and the pod is over"
            }
            Starved::Pids => return false,
        };
        let over = self.pods.values().filter(|entry| {
            entry.is_over() && !entry.is_active() && !entry.placed && !entry.clearing
        });
        let holds = |entry: &&PodEntry| {
            !of_memory || self.places(entry).iter().any(|place| place.in_memory)
        };
        let over: Vec<_> = over
            .filter(|entry| {
                !self
                    .evictor
                    .freed
                    .contains(&(of_memory, entry.uid().clone()))
            })
            .filter(holds)
            .map(|entry| (entry.key(), entry.uid().clone()))
            .collect();
        let mut ids = Vec::new();
        for (key, uid) in over {
            let entry = self.pods.get(&key);
            let first = entry.and_then(|entry| entry.container_names().next());
            let id = first.and_then(|name| self.container_id(&key, name));
            self.evictor.freed.insert((of_memory, uid.clone()));
            if let Some(id) = id {
                self.handle.walks().forget(uid.as_str());
                self.event(&key, "", Severity::Normal, "ResourcesReclaimed", message);
                ids.push((uid, id));
            }
        }
        if ids.is_empty() {
            return false;
        }
        let (runtime, handle) = (self.runtime.clone(), self.handle.clone());
        self.tokio.spawn_blocking(move || {
            let failed = ids.into_iter().filter_map(|(uid, id)| {
                let done = if of_memory {
                    runtime.give_back_memory(&id)
                } else {
                    runtime
                        .remove_pod(&id)
                        .and_then(|()| runtime.remove_logs(&id))
                };
                done.err().map(|error| (uid, error.to_string()))
            });
            handle.tell(Input::Eviction(Box::new(News::Freed(failed.collect()))))
        });
        true
    }
}
