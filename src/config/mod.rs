//! What an operator may set, with its defaults and bounds.
//!
//! Decides which settings exist and what is wrong with a file; it starts nothing. The defaults stand
//! once, in `default.yaml`, which `allotd --print-config` prints.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::LimitedResource;
use crate::model::policy::{
    CpuManagerPolicy, CpuWeightFormula, DriftPolicy, MemoryReservationPolicy, OomPolicy, Policy,
    StoragePolicy, SwapBehavior,
};
use crate::units::quantity::Format;
use crate::units::{Micros, Quantity};

mod change;
mod cpus;
mod duration;
mod eviction;
mod limited;
mod users;

pub use change::Change;
pub use limited::{Limited, MatchScope};

/// The commented defaults.
pub const DEFAULT_TEXT: &str = include_str!("default.yaml");

/// Where the configuration is read from unless told otherwise.
pub const DEFAULT_PATH: &str = "/etc/allotd/config.yaml";

/// A configuration file may be this long (bytes).
const MAX_LENGTH: u64 = 1 << 20;

/// A log file may have this many bytes at the least: as many are written at once.
const LEAST_LOG: u64 = 64 << 10;

/// All settings; each is explained in `default.yaml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct Config {
    pub node_name: String,
    pub max_pods: u32,
    pub system_reserved: BTreeMap<String, Quantity>,
    pub kube_reserved: BTreeMap<String, Quantity>,
    pub eviction_hard: BTreeMap<String, String>,
    pub eviction_soft: BTreeMap<String, String>,
    pub eviction_soft_grace_period: BTreeMap<String, String>,
    pub eviction_minimum_reclaim: BTreeMap<String, String>,
    pub eviction_max_pod_grace_period: u64,
    #[serde(with = "duration")]
    pub eviction_pressure_transition_period: Duration,
    pub extended_resources: BTreeMap<String, Quantity>,
    pub limited_resources: Vec<Limited>,
    #[serde(rename = "cpuCFSQuota")]
    pub cpu_cfs_quota: bool,
    #[serde(rename = "cpuCFSQuotaPeriod", with = "duration")]
    pub cpu_cfs_quota_period: Duration,
    pub cpu_weight_formula: CpuWeightFormula,
    pub cpu_manager_policy: CpuManagerPolicy,
    #[serde(rename = "reservedSystemCPUs")]
    pub reserved_system_cpus: String,
    pub memory_reservation_policy: MemoryReservationPolicy,
    pub swap_behavior: SwapBehavior,
    pub pod_pids_limit: i64,
    pub oom_policy: OomPolicy,
    pub allow_root_containers: bool,
    pub default_run_as_user: u32,
    pub default_run_as_group: u32,
    pub allowed_capabilities: Vec<String>,
    pub cgroup_root: PathBuf,
    pub static_pod_path: PathBuf,
    pub state_dir: PathBuf,
    pub pod_logs_dir: PathBuf,
    pub socket: PathBuf,
    pub socket_group: String,
    pub admin_group: String,
    pub ephemeral_storage_policy: StoragePolicy,
    pub container_log_max_size: Quantity,
    pub container_log_max_files: u32,
    pub drift_policy: BTreeMap<String, DriftPolicy>,
    #[serde(with = "duration")]
    pub sync_frequency: Duration,
    pub log_level: String,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("configuration {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The text is no configuration.
    #[error("configuration: {0}")]
    Parse(String),
    /// Settings are out of bounds; all are named.
    #[error("configuration: {}", .0.join("; "))]
    Invalid(Vec<String>),
}

impl Default for Config {
    /// The values of `default.yaml`, which a test holds equal to these.
    fn default() -> Self {
        let texts = |list: &[(&str, &str)]| {
            list.iter()
                .map(|&(name, text)| (name.to_owned(), text.to_owned()))
                .collect()
        };
        Self {
            node_name: String::new(),
            max_pods: 110,
            system_reserved: BTreeMap::from([
                ("cpu".to_owned(), Quantity::from_milli(100)),
                (
                    "memory".to_owned(),
                    Quantity::from_units(100 << 20, Format::BinarySi),
                ),
            ]),
            kube_reserved: BTreeMap::new(),
            eviction_hard: texts(&[
                ("memory.available", "100Mi"),
                ("nodefs.available", "10%"),
                ("nodefs.inodesFree", "5%"),
            ]),
            eviction_soft: BTreeMap::new(),
            eviction_soft_grace_period: BTreeMap::new(),
            eviction_minimum_reclaim: BTreeMap::new(),
            eviction_max_pod_grace_period: 0,
            eviction_pressure_transition_period: Duration::from_secs(300),
            extended_resources: BTreeMap::new(),
            limited_resources: Vec::new(),
            cpu_cfs_quota: true,
            cpu_cfs_quota_period: Duration::from_millis(100),
            cpu_weight_formula: CpuWeightFormula::default(),
            cpu_manager_policy: CpuManagerPolicy::default(),
            reserved_system_cpus: String::new(),
            memory_reservation_policy: MemoryReservationPolicy::default(),
            swap_behavior: SwapBehavior::default(),
            pod_pids_limit: -1,
            oom_policy: OomPolicy::default(),
            allow_root_containers: false,
            default_run_as_user: 65_534,
            default_run_as_group: 65_534,
            allowed_capabilities: Vec::new(),
            cgroup_root: "/sys/fs/cgroup/allot".into(),
            static_pod_path: "/etc/allotd/manifests".into(),
            state_dir: "/var/lib/allotd".into(),
            pod_logs_dir: "/var/log/pods".into(),
            socket: "/run/allotd/allotd.sock".into(),
            socket_group: String::new(),
            admin_group: String::new(),
            ephemeral_storage_policy: StoragePolicy::default(),
            container_log_max_size: Quantity::from_units(10 << 20, Format::BinarySi),
            container_log_max_files: 5,
            drift_policy: BTreeMap::new(),
            sync_frequency: Duration::from_secs(60),
            log_level: "info".to_owned(),
        }
    }
}

impl Config {
    /// Reads a configuration file; with no path the default one, which need not exist.
    ///
    /// # Errors
    /// A file that cannot be read, is longer than 1 MiB, or holds what is no valid setting.
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        let (path, must_exist) = match path {
            Some(path) => (path, true),
            None => (Path::new(DEFAULT_PATH), false),
        };
        let read = |source| ConfigError::Read {
            path: path.to_owned(),
            source,
        };
        let mut text = String::new();
        match std::fs::File::open(path) {
            Ok(file) => {
                use std::io::Read;
                file.take(MAX_LENGTH + 1)
                    .read_to_string(&mut text)
                    .map_err(read)?;
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !must_exist => {}
            Err(error) => return Err(read(error)),
        }
        if u64::try_from(text.len()).unwrap_or(u64::MAX) > MAX_LENGTH {
            return Err(ConfigError::Parse(format!(
                "{} is longer than {MAX_LENGTH} bytes",
                path.display()
            )));
        }
        Self::parse(&text)
    }

    /// Reads the text of a configuration; what it does not name keeps its default.
    ///
    /// # Errors
    /// Text that is no YAML, a setting that does not exist, a value out of bounds.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let only_comments = text
            .lines()
            .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
        let config: Self = if only_comments {
            Self::default()
        } else {
            serde_saphyr::from_str(text).map_err(|error| ConfigError::Parse(error.to_string()))?
        };
        let problems = config.problems();
        if problems.is_empty() {
            Ok(config)
        } else {
            Err(ConfigError::Invalid(problems))
        }
    }

    /// The part that translation needs.
    pub fn policy(&self) -> Policy {
        Policy {
            cpu_weight_formula: self.cpu_weight_formula,
            cpu_cfs_quota: self.cpu_cfs_quota,
            cpu_cfs_quota_period: Micros(
                u64::try_from(self.cpu_cfs_quota_period.as_micros()).unwrap_or(u64::MAX),
            ),
            cpu_manager: self.cpu_manager_policy,
            memory_reservation: self.memory_reservation_policy,
            swap_behavior: self.swap_behavior,
            pod_pids_limit: u64::try_from(self.pod_pids_limit).ok().into(),
            oom_policy: self.oom_policy,
        }
    }

    /// What may be used only where a quota counts it.
    pub fn limited_resources(&self) -> Vec<LimitedResource> {
        self.limited_resources.iter().map(Limited::read).collect()
    }

    /// What becomes of a value of this controller that somebody else wrote.
    pub fn drift_policy_of(&self, controller: &str) -> DriftPolicy {
        let policy = self.drift_policy.get(controller);
        policy.copied().unwrap_or_default()
    }

    /// What is out of bounds, each with what would be right.
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let period = self.cpu_cfs_quota_period;
        if !(Duration::from_millis(1)..=Duration::from_secs(1)).contains(&period) {
            problems.push(format!(
                "cpuCFSQuotaPeriod is {period:?}: 1ms to 1s is right"
            ));
        }
        for name in self.drift_policy.keys() {
            if !DriftPolicy::CONTROLLERS.contains(&name.as_str()) {
                let known = DriftPolicy::CONTROLLERS.join(", ");
                problems.push(format!("driftPolicy names {name:?}: {known} are right"));
            }
        }
        let sync = self.sync_frequency;
        if !(Duration::from_secs(10)..=Duration::from_secs(3600)).contains(&sync) {
            problems.push(format!("syncFrequency is {sync:?}: 10s to 1h is right"));
        }
        if !(1..=10_000).contains(&self.max_pods) {
            problems.push(format!("maxPods is {}: 1 to 10000 is right", self.max_pods));
        }
        let pids = self.pod_pids_limit;
        if pids != -1 && !(1..=4_194_304).contains(&pids) {
            problems.push(format!(
                "podPidsLimit is {pids}: -1 (no limit) or 1 to 4194304 is right"
            ));
        }
        let (log, files) = (self.container_log_max_size, self.container_log_max_files);
        if !(LEAST_LOG..=1 << 40).contains(&log.bytes()) {
            problems.push(format!(
                "containerLogMaxSize is {log}: 64Ki to 1Ti is right"
            ));
        }
        if !(2..=1000).contains(&files) {
            problems.push(format!(
                "containerLogMaxFiles is {files}: 2 to 1000 is right"
            ));
        }
        for (name, reserved) in [
            ("systemReserved", &self.system_reserved),
            ("kubeReserved", &self.kube_reserved),
        ] {
            for (resource, amount) in reserved {
                if !["cpu", "memory", "ephemeral-storage", "pid"].contains(&resource.as_str()) {
                    problems.push(format!(
                        "{name}.{resource} cannot be reserved: cpu, memory, ephemeral-storage and pid can"
                    ));
                }
                if amount.is_negative() {
                    problems.push(format!("{name}.{resource} is {amount}: 0 or more is right"));
                }
            }
        }
        problems.extend(self.cpu_problems());
        problems.extend(self.user_problems());
        problems.extend(self.eviction().err().unwrap_or_default());
        for (resource, amount) in &self.extended_resources {
            if !crate::model::ResourceName::from(resource.as_str()).is_extended() {
                problems.push(format!(
                    "extendedResources.{resource} is no extended resource: DOMAIN/NAME is right"
                ));
            }
            if amount.is_negative() || !amount.is_integer() {
                problems.push(format!(
                    "extendedResources.{resource} is {amount}: a whole number is right"
                ));
            }
        }
        for (index, limited) in self.limited_resources.iter().enumerate() {
            problems.extend(limited.problems(&format!("limitedResources[{index}]")));
        }
        for (name, path) in [
            ("cgroupRoot", &self.cgroup_root),
            ("stateDir", &self.state_dir),
            ("podLogsDir", &self.pod_logs_dir),
            ("socket", &self.socket),
            ("staticPodPath", &self.static_pod_path),
        ] {
            if name == "staticPodPath" && path.as_os_str().is_empty() {
                continue;
            }
            let climbs = path.components().any(|part| part.as_os_str() == "..");
            if !path.is_absolute() || climbs {
                problems.push(format!(
                    "{name} is {}: an absolute path without .. is right",
                    path.display()
                ));
            }
        }
        problems
    }

    /// Tasks kept for the system: the sum of both reservations of `pid`.
    pub fn reserved_pids(&self) -> u64 {
        [&self.system_reserved, &self.kube_reserved]
            .into_iter()
            .filter_map(|list| list.get("pid"))
            .fold(0, |sum, amount| sum.saturating_add(amount.bytes()))
    }
}

#[cfg(test)]
mod tests;
