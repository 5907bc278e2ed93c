//! The annotations by which a pod chooses what Kubernetes has no field for.
//!
//! Decides how their values are read; never what follows from them.

use std::collections::BTreeMap;

use super::Pod;
use super::policy::{OomPolicy, StoragePolicy};
use crate::units::Limit;

/// The domain of all of them.
pub const DOMAIN: &str = "allotd.dev/";
/// Tasks (processes and threads) of the pod: 1 to 4194304, or `max`.
pub const PIDS_LIMIT: &str = "allotd.dev/pids-limit";
/// What an OOM kill takes: `group` or `process`, or `NAME=group` for one container, with commas
/// between: `group, worker=process`.
pub const OOM_POLICY: &str = "allotd.dev/oom-policy";
/// What happens where the pod's files take more disk than their limit: `evict` or `enforce`.
pub const STORAGE_POLICY: &str = "allotd.dev/storage-policy";
/// Every annotation that is read.
pub const KNOWN: [&str; 3] = [PIDS_LIMIT, OOM_POLICY, STORAGE_POLICY];

/// The greatest `pids.max` that the kernel takes (`PID_MAX_LIMIT` on 64-bit kernels).
const MAX_PIDS: u64 = 4 << 20;

/// The pod's own bound of tasks; `max` if it says so or says nothing. The node's bound holds beside
/// it, so a pod can only lower it.
///
/// # Errors
/// What is wrong with the value.
pub fn pids_limit(pod: &Pod) -> Result<Limit<u64>, String> {
    let Some(text) = pod.annotations.get(PIDS_LIMIT) else {
        return Ok(Limit::Max);
    };
    if text == "max" {
        return Ok(Limit::Max);
    }
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    match text.parse() {
        Ok(limit @ 1..=MAX_PIDS) if digits => Ok(Limit::At(limit)),
        _ => Err(format!(
            "must be a whole number from 1 to {MAX_PIDS}, or max"
        )),
    }
}

/// What the pod chose to happen at its disk limits, if anything.
///
/// # Errors
/// What is wrong with the value.
pub fn storage_policy(pod: &Pod) -> Result<Option<StoragePolicy>, String> {
    match pod.annotations.get(STORAGE_POLICY).map(String::as_str) {
        None => Ok(None),
        Some("evict") => Ok(Some(StoragePolicy::Evict)),
        Some("enforce") => Ok(Some(StoragePolicy::Enforce)),
        Some(_) => Err("must be evict or enforce".to_owned()),
    }
}

/// What the pod chose that an OOM kill takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OomChoices<'a>(BTreeMap<Option<&'a str>, OomPolicy>);

impl OomChoices<'_> {
    /// The choice for a container: by its name, else for the whole pod, if any was made.
    pub fn of(&self, container: &str) -> Option<OomPolicy> {
        let by_name = self.0.get(&Some(container));
        by_name.or_else(|| self.0.get(&None)).copied()
    }
}

/// The pod's choices of what an OOM kill takes.
///
/// # Errors
/// What is wrong with the value.
pub fn oom_policies(pod: &Pod) -> Result<OomChoices<'_>, String> {
    let mut choices = BTreeMap::new();
    let text = pod.annotations.get(OOM_POLICY);
    for item in text.into_iter().flat_map(|text| text.split(',')) {
        let (name, policy) = match item.split_once('=') {
            Some((name, policy)) => (Some(name.trim()), policy.trim()),
            None => (None, item.trim()),
        };
        let policy = match policy {
            "group" => OomPolicy::Group,
            "process" => OomPolicy::Process,
            _ => return Err("must be group or process, or NAME=process for one container".into()),
        };
        let exists = |name| pod.all_containers().any(|(_, _, c)| c.name == name);
        if let Some(name) = name.filter(|name| !exists(*name)) {
            return Err(format!("names {name:?}, which is no container of the pod"));
        }
        if choices.insert(name, policy).is_some() {
            return Err(format!("chooses twice for {}", name.unwrap_or("the pod")));
        }
    }
    Ok(OomChoices(choices))
}
