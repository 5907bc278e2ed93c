//! The annotations by which a pod chooses what Kubernetes has no field for.
//!
//! Decides how their values are read; never what follows from them.

use std::collections::BTreeMap;

use super::Pod;
use super::policy::{OomPolicy, StoragePolicy};
use crate::units::{Limit, MilliCpu, Quantity};

/// The domain of all of them.
pub const DOMAIN: &str = "allotd.dev/";
/// Tasks (processes and threads) of the pod: 1 to 4194304, or `max`.
pub const PIDS_LIMIT: &str = "allotd.dev/pids-limit";
/// What an OOM kill takes: `group` or `process`, or `NAME=group` for one container, with commas
/// between: `group, worker=process`.
pub const OOM_POLICY: &str = "allotd.dev/oom-policy";
/// What happens where the pod's files take more disk than their limit: `evict` or `enforce`.
pub const STORAGE_POLICY: &str = "allotd.dev/storage-policy";
/// CPU above its limit that a container may take from run time it did not use before, as an amount of CPU: `250m`
/// for each container with a limit, `NAME=250m` for one, with commas between.
pub const CPU_BURST: &str = "allotd.dev/cpu-burst";
/// Every annotation that is read.
pub const KNOWN: [&str; 4] = [PIDS_LIMIT, OOM_POLICY, STORAGE_POLICY, CPU_BURST];

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

/// What a pod chose for its containers: for one by its name, or for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choices<'a, T>(BTreeMap<Option<&'a str>, T>);

/// What the pod chose that an OOM kill takes.
pub type OomChoices<'a> = Choices<'a, OomPolicy>;

/// How far the pod lets its containers go beyond their CPU limits.
pub type CpuBursts<'a> = Choices<'a, MilliCpu>;

impl<T> Default for Choices<'_, T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Copy> Choices<'_, T> {
    /// The choice for a container: by its name, else for the whole pod, if any was made.
    pub fn of(&self, container: &str) -> Option<T> {
        let by_name = self.0.get(&Some(container));
        by_name.or_else(|| self.0.get(&None)).copied()
    }

    /// Whether none was made.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The pod's choices of what an OOM kill takes.
///
/// # Errors
/// What is wrong with the value.
pub fn oom_policies(pod: &Pod) -> Result<OomChoices<'_>, String> {
    choices(pod, OOM_POLICY, |text| match text {
        "group" => Ok(OomPolicy::Group),
        "process" => Ok(OomPolicy::Process),
        _ => Err("must be group or process, or NAME=process for one container".to_owned()),
    })
}

/// How far the pod lets its containers go beyond their CPU limits, with what they did not use before. The kernel
/// saves at most as much as the limit itself.
///
/// # Errors
/// What is wrong with the value.
pub fn cpu_bursts(pod: &Pod) -> Result<CpuBursts<'_>, String> {
    let bursts = choices(pod, CPU_BURST, |text| {
        let amount: Option<Quantity> = text.parse().ok();
        let amount = amount.filter(|amount| !amount.is_negative());
        let amount = amount.filter(|amount| amount.round_up(Quantity::MILLI) == *amount);
        amount
            .map(|amount| MilliCpu(amount.milli()))
            .ok_or_else(|| {
                "must be an amount of CPU such as 250m, or NAME=250m for one container".to_owned()
            })
    })?;
    let of_pod = pod.resources.as_ref().and_then(|all| all.limits.cpu());
    for (_, _, container) in pod.all_containers() {
        let name = container.name.as_str();
        let limit = container.resources.limits.cpu().or(of_pod);
        let limit = limit.filter(|limit| *limit > MilliCpu::ZERO);
        match (bursts.of(name), limit) {
            (Some(burst), Some(limit)) if burst > limit => {
                return Err(format!(
                    "gives {burst} to container {name}, whose cpu limit is {limit}: at most the limit can be saved up"
                ));
            }
            (Some(_), None) if bursts.0.contains_key(&Some(name)) => {
                return Err(format!(
                    "names container {name}, which has no cpu limit: there is nothing to go beyond"
                ));
            }
            _ => {}
        }
    }
    Ok(bursts)
}

/// Reads choices such as `one, NAME=other`.
fn choices<'a, T>(
    pod: &'a Pod,
    annotation: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Choices<'a, T>, String> {
    let mut choices = BTreeMap::new();
    let text = pod.annotations.get(annotation);
    for item in text.into_iter().flat_map(|text| text.split(',')) {
        let (name, choice) = match item.split_once('=') {
            Some((name, choice)) => (Some(name.trim()), choice.trim()),
            None => (None, item.trim()),
        };
        let choice = read(choice)?;
        let exists = |name| pod.all_containers().any(|(_, _, c)| c.name == name);
        if let Some(name) = name.filter(|name| !exists(*name)) {
            return Err(format!("names {name:?}, which is no container of the pod"));
        }
        if choices.insert(name, choice).is_some() {
            return Err(format!("chooses twice for {}", name.unwrap_or("the pod")));
        }
    }
    Ok(Choices(choices))
}
