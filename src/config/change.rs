//! What differs between two configurations, and what of it can take effect while the daemon runs.

use super::Config;

/// Settings that only a restart changes: who the node is, where things are, who is let in, and
/// which CPUs containers have to themselves.
const FIXED: [&str; 10] = [
    "nodeName",
    "cgroupRoot",
    "stateDir",
    "podLogsDir",
    "socket",
    "socketGroup",
    "adminGroup",
    "cpuManagerPolicy",
    "reservedSystemCPUs",
    "staticPodPath",
];

/// A configuration that follows another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// What is in effect from now on.
    pub config: Config,
    /// The settings that took effect, by name.
    pub applied: Vec<String>,
    /// The settings that differ and wait for a restart, by name.
    pub waiting: Vec<String>,
}

impl Config {
    /// What becomes of this configuration once `new` has been read.
    pub fn follow(&self, new: Self) -> Change {
        let (applied, waiting) = self
            .differences(&new)
            .into_iter()
            .partition(|name| !FIXED.contains(&name.as_str()));
        let config = Self {
            node_name: self.node_name.clone(),
            cgroup_root: self.cgroup_root.clone(),
            state_dir: self.state_dir.clone(),
            pod_logs_dir: self.pod_logs_dir.clone(),
            socket: self.socket.clone(),
            socket_group: self.socket_group.clone(),
            admin_group: self.admin_group.clone(),
            static_pod_path: self.static_pod_path.clone(),
            cpu_manager_policy: self.cpu_manager_policy,
            reserved_system_cpus: self.reserved_system_cpus.clone(),
            ..new
        };
        Change {
            config,
            applied,
            waiting,
        }
    }

    /// The settings that differ, by name.
    fn differences(&self, new: &Self) -> Vec<String> {
        let object = |config: &Self| match serde_json::to_value(config) {
            Ok(serde_json::Value::Object(map)) => map,
            _ => serde_json::Map::new(),
        };
        let (before, after) = (object(self), object(new));
        after
            .into_iter()
            .filter(|(name, value)| before.get(name) != Some(value))
            .map(|(name, _)| name)
            .collect()
    }
}

impl Change {
    /// The change in one line.
    pub fn told(&self) -> String {
        let list = |names: &[String]| match names {
            [] => "nothing".to_owned(),
            names => names.join(", "),
        };
        let mut text = format!("configuration read again; changed: {}", list(&self.applied));
        if !self.waiting.is_empty() {
            text += "; only a restart changes: ";
            text += &self.waiting.join(", ");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fixed_waits_and_the_rest_takes_effect() {
        let before = Config::parse("nodeName: a\nmaxPods: 7\nlogLevel: debug\n").unwrap();
        let new = "nodeName: b\nmaxPods: 8\nstateDir: /srv\nlogLevel: debug\n";
        let change = before.follow(Config::parse(new).unwrap());
        assert_eq!(change.applied, ["maxPods"]);
        assert_eq!(change.waiting, ["nodeName", "stateDir"]);
        assert_eq!(change.config.max_pods, 8);
        assert_eq!(change.config.node_name, "a");
        assert_eq!(change.config.state_dir, before.state_dir);
        assert_eq!(
            change.told(),
            "configuration read again; changed: maxPods; only a restart changes: nodeName, stateDir"
        );
    }

    #[test]
    fn the_same_again_changes_nothing() {
        let config = Config::default();
        let change = config.follow(config.clone());
        assert_eq!(change.config, config);
        assert_eq!(change.told(), "configuration read again; changed: nothing");
    }

    /// Whatever is fixed has its old value, so a new fixed setting cannot be forgotten in `follow`.
    #[test]
    fn each_fixed_setting_exists_and_is_kept() {
        let mut texts = serde_json::to_value(Config::default()).unwrap();
        for name in FIXED {
            let setting = texts.get_mut(name).unwrap();
            *setting = match name {
                "cpuManagerPolicy" => serde_json::json!("static"),
                _ => serde_json::json!(format!("/x{}", setting.as_str().unwrap())),
            };
        }
        let new: Config = serde_json::from_value(texts).unwrap();
        let change = Config::default().follow(new);
        assert_eq!(change.config, Config::default());
        assert_eq!(change.waiting.len(), FIXED.len());
    }
}
