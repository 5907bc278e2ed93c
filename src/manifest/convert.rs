//! Kubernetes objects to the model: what a pod and a node say, with every amount read exactly.
//!
//! Decides what can be read, never what is allowed: that is `admission`. Nothing that changes what
//! runs is dropped in silence: `notes` names it.

mod definition;
mod node;
mod policy;
mod probe;
mod resize;
mod security;
mod volume;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::expand::expand;
use super::unsupported;
use crate::model::pod::RestartPolicy;
use crate::model::{Container, ContainerKind, Pod, PodUid, ResourceList, ResourceName, Resources};
use crate::units::Quantity;

pub use definition::definition;
pub use node::node;
pub use policy::{cluster_resource_quota, label_selector, limit_range, namespace, resource_quota};
pub use probe::fill_in as fill_in_probes;

/// Bytes of one argument or variable: what `execve` takes (`MAX_ARG_STRLEN` less the final zero).
const MAX_WORD: usize = 32 * 4096 - 1;
/// Bytes of all commands, arguments and variables of a pod.
const MAX_WORDS: usize = 8 << 20;

/// Something to say about one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// The path of the field, from the object on.
    pub field: String,
    /// What is said.
    pub message: String,
}

impl Remark {
    pub(super) fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// An object of the model and what was met on the way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted<T> {
    /// The object. Where there are problems, it lacks what could not be read and serves only to
    /// find further ones.
    pub object: T,
    /// What could not be read.
    pub problems: Vec<Remark>,
    /// What was read and has no effect.
    pub notes: Vec<Remark>,
}

/// A uid for a pod that no server has given one: the same for the same name.
pub fn placeholder_uid(namespace: &str, name: &str) -> Option<PodUid> {
    // FNV-1a, 64 bits: short, fixed for all time, and no secret is guarded by it.
    let hash = [namespace, "/", name]
        .iter()
        .flat_map(|part| part.bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    let digits = format!("{hash:016x}");
    let (head, tail) = digits.split_at_checked(4)?;
    PodUid::new(&format!("00000000-0000-0000-{head}-{tail}"))
}

/// A pod. `fallback` is its uid where it has none of its own.
pub fn pod(pod: &v1::Pod, fallback: &PodUid) -> Converted<Pod> {
    let mut problems = Vec::new();
    let mut notes = Vec::new();
    let metadata = &pod.metadata;
    let none = v1::PodSpec::default();
    let spec = pod.spec.as_ref().unwrap_or(&none);
    let uid = match metadata.uid.as_deref() {
        None | Some("") => fallback.clone(),
        Some(uid) => PodUid::new(uid).unwrap_or_else(|| {
            let message = "must be 1 to 64 letters, digits and dashes";
            problems.push(Remark::new("metadata.uid", message));
            fallback.clone()
        }),
    };
    unsupported::in_pod(spec, &mut notes);
    let mut words = Words::default();
    let secure = security::of_pod(spec, &mut problems);
    let grace = seconds(
        spec.termination_grace_period_seconds,
        "spec.terminationGracePeriodSeconds",
        &mut problems,
    )
    .unwrap_or(30);
    let mut containers = |field: &str, containers: &[v1::Container]| -> Vec<Container> {
        let convert = |(index, from): (usize, &v1::Container)| {
            let place = format!("spec.{field}[{index}]");
            unsupported::in_container(from, &place, field == "initContainers", &mut notes);
            container(
                from,
                field,
                &place,
                &secure,
                grace,
                &mut words,
                &mut problems,
            )
        };
        containers.iter().enumerate().map(convert).collect()
    };
    let init_containers = containers(
        "initContainers",
        spec.init_containers.as_deref().unwrap_or_default(),
    );
    let containers = containers("containers", &spec.containers);
    let annotations = metadata.annotations.clone().unwrap_or_default();
    resize::check_restarts(spec, &mut problems);
    let (volumes, foreign_volumes) =
        volume::volumes(spec.volumes.as_deref().unwrap_or_default(), &mut problems);
    let object = Pod {
        namespace: given(metadata.namespace.as_deref())
            .unwrap_or("default")
            .to_owned(),
        name: name(metadata),
        uid,
        labels: metadata.labels.clone().unwrap_or_default(),
        is_static: annotations
            .get("kubernetes.io/config.source")
            .is_some_and(|source| source != "api"),
        annotations,
        init_containers,
        containers,
        volumes,
        foreign_volumes,
        fs_group: secure.fs_group,
        resources: spec
            .resources
            .as_ref()
            .map(|from| resources(from, "spec.resources", &mut problems)),
        overhead: list(spec.overhead.as_ref(), "spec.overhead", &mut problems),
        restart_policy: restart_policy(spec.restart_policy.as_deref(), &mut problems),
        termination_grace_seconds: grace,
        active_deadline_seconds: seconds(
            spec.active_deadline_seconds,
            "spec.activeDeadlineSeconds",
            &mut problems,
        ),
        priority: spec.priority.unwrap_or_default(),
        priority_class: spec.priority_class_name.clone().unwrap_or_default(),
        has_cross_namespace_affinity: spec.affinity.as_ref().is_some_and(is_cross_namespace),
    };
    if let Some(os) = &spec.os
        && os.name != "linux"
    {
        let message = format!("{:?} does not run on this node: it is linux", os.name);
        problems.push(Remark::new("spec.os.name", message));
    }
    Converted {
        object,
        problems,
        notes,
    }
}

/// Whether a term speaks of pods of other namespaces, be it by an empty selector: that means all.
fn is_cross_namespace(affinity: &v1::Affinity) -> bool {
    let toward = affinity.pod_affinity.as_ref().map(|affinity| {
        (
            &affinity.required_during_scheduling_ignored_during_execution,
            &affinity.preferred_during_scheduling_ignored_during_execution,
        )
    });
    let away = affinity.pod_anti_affinity.as_ref().map(|affinity| {
        (
            &affinity.required_during_scheduling_ignored_during_execution,
            &affinity.preferred_during_scheduling_ignored_during_execution,
        )
    });
    let mut terms = toward
        .into_iter()
        .chain(away)
        .flat_map(|(required, preferred)| {
            let preferred = preferred.iter().flatten();
            let preferred = preferred.map(|weighted| &weighted.pod_affinity_term);
            required.iter().flatten().chain(preferred)
        });
    terms.any(|term| {
        let names = term.namespaces.as_ref();
        names.is_some_and(|names| !names.is_empty()) || term.namespace_selector.is_some()
    })
}

fn container(
    from: &v1::Container,
    field: &str,
    place: &str,
    secure: &security::OfPod<'_>,
    grace: u64,
    words: &mut Words,
    problems: &mut Vec<Remark>,
) -> Container {
    let kind = match (field, from.restart_policy.as_deref()) {
        ("initContainers", Some("Always")) => ContainerKind::Sidecar,
        ("initContainers", _) => ContainerKind::Init,
        _ => ContainerKind::App,
    };
    // A variable may refer to those before it; commands and arguments to the last of each name.
    let mut env: Vec<(String, String)> = Vec::new();
    let mut known: BTreeMap<&str, String> = BTreeMap::new();
    for (index, variable) in from.env.iter().flatten().enumerate() {
        if variable.value_from.is_none() {
            let value = variable.value.as_deref().unwrap_or_default();
            let field = || format!("{place}.env[{index}].value");
            let value = words.expand(value, &known, field, problems);
            env.push((variable.name.clone(), value.clone()));
            let _ = known.insert(&variable.name, value);
        }
    }
    let mut expanded = |name: &str, list: Option<&Vec<String>>| -> Vec<String> {
        let list = list.into_iter().flatten().enumerate();
        list.map(|(index, word)| {
            let field = || format!("{place}.{name}[{index}]");
            words.expand(word, &known, field, problems)
        })
        .collect()
    };
    let command = expanded("command", from.command.as_ref());
    let args = expanded("args", from.args.as_ref());
    Container {
        name: from.name.clone(),
        kind,
        image: from.image.clone().unwrap_or_default(),
        command,
        args,
        env,
        working_dir: given(from.working_dir.as_deref()).map(str::to_owned),
        mounts: volume::mounts(from.volume_mounts.as_ref()),
        resources: from
            .resources
            .as_ref()
            .map(|from| resources(from, &format!("{place}.resources"), problems))
            .unwrap_or_default(),
        resize_policy: resize::policy(from, place, problems),
        security: security::of_container(secure, from, place, problems),
        probes: probe::probes(from, kind, grace, place, problems),
    }
}

/// What is left of the bound on a pod's commands, arguments and environment: variables that repeat
/// each other double at each step.
struct Words {
    left: usize,
}

impl Default for Words {
    fn default() -> Self {
        Self { left: MAX_WORDS }
    }
}

impl Words {
    fn expand(
        &mut self,
        word: &str,
        known: &BTreeMap<&str, String>,
        field: impl FnOnce() -> String,
        problems: &mut Vec<Remark>,
    ) -> String {
        let known = |name: &str| known.get(name).map(String::as_str);
        let expanded = expand(word, known, self.left.min(MAX_WORD));
        if let Some(expanded) = expanded {
            self.left = self.left.saturating_sub(expanded.len());
            return expanded;
        }
        let message = if self.left < MAX_WORD {
            format!("with it the pod's commands and environment have more than {MAX_WORDS} bytes")
        } else {
            format!("has more than {MAX_WORD} bytes; the kernel takes no longer argument")
        };
        problems.push(Remark::new(field(), message));
        String::new()
    }
}

/// Amounts by resource. `field` is the place of the list, such as `spec.hard`; what cannot be read
/// is left out and told.
pub fn resource_list(from: &BTreeMap<String, Text>, field: &str) -> (ResourceList, Vec<Remark>) {
    let mut problems = Vec::new();
    let list = list(Some(from), field, &mut problems);
    (list, problems)
}

fn list(
    from: Option<&BTreeMap<String, Text>>,
    field: &str,
    problems: &mut Vec<Remark>,
) -> ResourceList {
    let mut list = ResourceList::default();
    for (key, Text(text)) in from.into_iter().flatten() {
        let name = ResourceName::from(key.as_str());
        match Quantity::from_str(text.trim()) {
            Err(error) => problems.push(Remark::new(format!("{field}[{key}]"), error.to_string())),
            Ok(_) if list.contains(&name) => {
                let same =
                    |other: &&String| *other != key && ResourceName::from(other.as_str()) == name;
                let other = from.into_iter().flat_map(BTreeMap::keys).find(same);
                let message = format!("is given twice: {} is the same", other.unwrap_or(key));
                problems.push(Remark::new(format!("{field}[{key}]"), message));
            }
            Ok(amount) => list.set(name, amount),
        }
    }
    list
}

fn resources(
    from: &v1::ResourceRequirements,
    field: &str,
    problems: &mut Vec<Remark>,
) -> Resources {
    Resources {
        requests: list(
            from.requests.as_ref(),
            &format!("{field}.requests"),
            problems,
        ),
        limits: list(from.limits.as_ref(), &format!("{field}.limits"), problems),
    }
}

fn restart_policy(policy: Option<&str>, problems: &mut Vec<Remark>) -> RestartPolicy {
    match policy {
        None | Some("" | "Always") => RestartPolicy::Always,
        Some("OnFailure") => RestartPolicy::OnFailure,
        Some("Never") => RestartPolicy::Never,
        Some(other) => {
            let message = format!(
                "Unsupported value: {:?}: supported values: \"Always\", \"Never\", \"OnFailure\"",
                super::misfit::shown(other)
            );
            problems.push(Remark::new("spec.restartPolicy", message));
            RestartPolicy::Always
        }
    }
}

fn seconds(given: Option<i64>, field: &str, problems: &mut Vec<Remark>) -> Option<u64> {
    let given = given?;
    let seconds = u64::try_from(given).ok();
    if seconds.is_none() {
        let message = format!("Invalid value: {given}: must be greater than or equal to 0");
        problems.push(Remark::new(field, message));
    }
    seconds
}

/// The name of an object; where it is still to be made, what is known of it.
fn name(meta: &ObjectMeta) -> String {
    let prefix = meta.generate_name.as_deref().unwrap_or_default();
    let known = || prefix.trim_end_matches(['-', '.']);
    given(meta.name.as_deref()).unwrap_or_else(known).to_owned()
}

/// A text that is there and not empty.
fn given(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}
