//! A configuration that was read again: all of it takes effect, or none.
//!
//! Pods are translated anew and enforced by the same path as ever; none is refused for it that runs.

use std::time::Instant;

use super::events::Severity;
use super::request::{PodKey, Refusal};
use super::run::Agent;
use crate::cgroup::CgroupPath;
use crate::config::{Change, Config};

/// The subject of the problem that the file is refused.
const SUBJECT: &str = "configuration";

impl Agent {
    /// Takes a configuration, or tells why it cannot be read.
    pub(super) fn reload(&mut self, read: Result<Box<Config>, String>) -> Result<Change, Refusal> {
        let taken = read.and_then(|new| self.take_config(*new));
        match taken {
            Ok(change) => {
                self.problems.remove(SUBJECT);
                self.node_event(Severity::Normal, "ConfigurationRead", &change.told());
                Ok(change)
            }
            Err(why) => {
                self.problems
                    .insert(SUBJECT.to_owned(), format!("{why}; the former one stays"));
                self.node_event(Severity::Warning, "ConfigurationRefused", &why);
                Err(Refusal::new(422, "Invalid", why))
            }
        }
    }

    fn take_config(&mut self, new: Config) -> Result<Change, String> {
        let change = self.config.follow(new);
        let node = super::node::build(&change.config, &self.facts, &self.advertised)
            .map_err(|problems| format!("configuration: {}", problems.join("; ")))?;
        let config = change.config.clone();
        if config.eviction() != self.config.eviction() {
            self.evictor.set(config.eviction().unwrap_or_default());
        }
        self.policy = config.policy();
        self.limited = config.limited_resources();
        self.next_sync = Instant::now() + config.sync_frequency;
        self.node = node;
        self.config = config;
        for key in self.pods.keys().cloned().collect::<Vec<_>>() {
            self.translate_again(&key);
        }
        self.refresh_levels();
        self.enforce(&CgroupPath::top());
        self.stamp();
        // A node that gives more to pods may have room for what waits.
        self.room = true;
        self.node_told.0 = 0;
        self.publish_node();
        Ok(change)
    }

    fn translate_again(&mut self, key: &PodKey) {
        let Some(entry) = self.pods.get(key) else {
            return;
        };
        let (placed, translated) = (
            entry.placed,
            self.translate(&entry.admitted, &entry.record.cpus),
        );
        if translated == entry.translated {
            return;
        }
        if placed {
            self.displace(key);
        }
        if let Some(entry) = self.pods.get_mut(key) {
            entry.translated = translated;
            entry.overlay_adopted();
        }
        if placed {
            self.place(key);
        }
    }
}
