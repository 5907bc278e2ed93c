//! Makes the answer of figures, bounds, objects and events.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Node, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;
use serde::Deserialize;
use serde_json::Value;

use super::{Amounts, ContainerTop, NodeTop, PodTop, TopReport, Use};
use crate::cgroup::parse::Pressure;
use crate::manifest::convert;
use crate::model::{EffectivePod, PodUid};
use crate::report::stats::summary::Disk;
use crate::report::stats::{Bounds, ContainerPlace, Figures, PodPlace, Readings};
use crate::report::table::{app_statuses, init_statuses, pod_status, why_not_running};
use crate::units::{Bytes, Limit, Quantity};

impl Use {
    fn of(figures: Option<Figures<'_>>, bounds: &Bounds) -> Self {
        let bytes = |bytes: Option<Bytes>| bytes.map(|Bytes(n)| n);
        let some = |pressure: Option<Pressure>| Some(pressure?.some?.avg10);
        let sample = figures.map(|figures| &figures.now.sample);
        let cpu_max = bounds.cpu.and_then(|max| match max.quota {
            Limit::At(quota) => quota.0.saturating_mul(1000).checked_div(max.period.0),
            Limit::Max => None,
        });
        Self {
            cpu_nano: figures.and_then(|figures| Some(figures.cpu_rate()?.nano_cores)),
            cpu_max_milli: cpu_max,
            throttled_usec: figures.and_then(|figures| figures.throttled_rate()),
            working_set_bytes: sample.and_then(|s| bytes(s.memory.working_set())),
            memory_bytes: sample.and_then(|s| bytes(s.memory.current)),
            memory_min_bytes: bytes(bounds.memory_min),
            memory_high_bytes: sample.and_then(|s| bytes(s.memory.high)),
            memory_max_bytes: bytes(bounds.memory),
            tasks: sample.and_then(|s| s.pids.current),
            tasks_max: bounds.tasks,
            forks_refused: sample.and_then(|s| s.pids.refused),
            cpu_pressure: sample.and_then(|s| some(s.cpu_pressure)),
            memory_pressure: sample.and_then(|s| some(s.memory_pressure)),
            io_pressure: sample.and_then(|s| some(s.io_pressure)),
            disk_bytes: None,
        }
    }
}

/// Objects as readers of the API see them.
#[derive(Clone, Debug, Default)]
pub struct Objects<'a> {
    /// The node.
    pub node: Option<&'a Value>,
    /// Pods by namespace and name.
    pub pods: BTreeMap<(&'a str, &'a str), &'a Value>,
    /// Events of all objects.
    pub events: Vec<&'a Value>,
}

/// Puts the answer together.
pub fn report(readings: &Readings, disk: &Disk, objects: &Objects<'_>) -> TopReport {
    let drifts = Drifts::of(&objects.events);
    let pods = readings.census.pods.iter();
    let mut pods: Vec<_> = pods
        .map(|pod| of_pod(readings, disk, pod, objects, &drifts))
        .collect();
    pods.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    TopReport {
        time: readings.later.node.time,
        node: of_node(readings, disk, objects.node),
        pods,
    }
}

fn of_node(readings: &Readings, disk: &Disk, object: Option<&Value>) -> NodeTop {
    let census = &readings.census;
    let bounds = Bounds {
        memory: Some(census.memory),
        tasks: census.max_pids,
        ..Bounds::default()
    };
    let mut used = Use::of(Some(readings.node()), &bounds);
    used.disk_bytes = disk.file_system.map(|all| all.used);
    NodeTop {
        name: census.node.clone(),
        used,
        capacity: (&census.capacity).into(),
        allocatable: (&census.allocatable).into(),
        requested: (&census.requested).into(),
        disk_capacity_bytes: disk.file_system.map(|all| all.capacity),
        conditions: object
            .and_then(|object| Node::deserialize(object).ok())
            .map_or_else(Vec::new, |node| troubles(&node)),
        oom_kills: census.tallies.oom_kills,
        drifts: census.tallies.drifts,
    }
}

/// The conditions that are not as they should be: `Ready` shall be true, all others false.
fn troubles(node: &Node) -> Vec<String> {
    let status = node.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let wrong = conditions.into_iter().flatten().filter_map(|condition| {
        match (condition.type_.as_str(), condition.status.as_str()) {
            ("Ready", "True") => None,
            ("Ready", _) => Some("NotReady".to_owned()),
            (name, "True") => Some(name.to_owned()),
            _ => None,
        }
    });
    wrong.collect()
}

fn of_pod(
    readings: &Readings,
    disk: &Disk,
    place: &PodPlace,
    objects: &Objects<'_>,
    drifts: &Drifts<'_>,
) -> PodTop {
    let object = objects
        .pods
        .get(&(place.namespace.as_str(), place.name.as_str()));
    let pod = object.and_then(|object| Pod::deserialize(*object).ok());
    let pod = pod.unwrap_or_default();
    let containers: Vec<_> = place
        .containers
        .iter()
        .map(|container| of_container(readings, disk, place, container, &pod, drifts))
        .collect();
    let figures = readings.of(&place.path);
    let mut used = Use::of(figures, &place.bounds);
    let withheld = containers.iter().filter_map(|one| one.used.throttled_usec);
    used.throttled_usec = used
        .throttled_usec
        .into_iter()
        .chain(withheld)
        .reduce(u64::saturating_add);
    // Volumes and the pod's own files as well.
    used.disk_bytes = disk.of_pod(place).map(|files| files.bytes);
    let sums =
        PodUid::new(&place.uid).map(|uid| EffectivePod::of(&convert::pod(&pod, &uid).object));
    let sums = sums.unwrap_or_default();
    let status = pod.status.as_ref();
    let enforced = status
        .and_then(|status| status.conditions.as_ref())
        .into_iter()
        .flatten()
        .find(|condition| condition.type_ == "allotd.dev/Enforced");
    let whole = drifts.of_pod(&place.uid);
    PodTop {
        namespace: place.namespace.clone(),
        name: place.name.clone(),
        uid: place.uid.clone(),
        status: pod_status(&pod),
        qos_class: status
            .and_then(|status| status.qos_class.clone())
            .unwrap_or_default(),
        used,
        throttling: figures.and_then(|figures| figures.throttling(&place.bounds)),
        requests: (&sums.requests).into(),
        limits: (&sums.limits).into(),
        unenforced: enforced
            .filter(|condition| condition.status != "True")
            .map(|condition| condition.message.clone().unwrap_or_default()),
        drifts: whole.0,
        last_drift: whole.1,
        containers,
    }
}

fn of_container(
    readings: &Readings,
    disk: &Disk,
    pod: &PodPlace,
    place: &ContainerPlace,
    object: &Pod,
    drifts: &Drifts<'_>,
) -> ContainerTop {
    let figures = place.started.and_then(|_| readings.of(&place.path));
    let mut used = Use::of(figures, &place.bounds);
    let files = disk.of_container(&pod.uid, &place.name).into_iter();
    used.disk_bytes = files
        .flatten()
        .map(|files| files.bytes)
        .reduce(u64::saturating_add);
    let statuses = app_statuses(object).iter().chain(init_statuses(object));
    let mut own = statuses.filter(|status| status.name == place.name);
    let status = own.next();
    let state = status.and_then(|status| status.state.as_ref());
    let state = match state {
        Some(state) if state.running.is_none() => why_not_running(state),
        _ => None,
    };
    let [requests, limits] = asked_for(object, &place.name);
    ContainerTop {
        name: place.name.clone(),
        state: state.unwrap_or_else(|| "Running".to_owned()),
        used,
        throttling: figures.and_then(|figures| figures.throttling(&place.bounds)),
        requests,
        limits,
        restarts: status
            .and_then(|status| u64::try_from(status.restart_count).ok())
            .unwrap_or(0),
        oom_kills: place.oom_kills,
        drifts: drifts.of_container(&pod.uid, &place.name),
    }
}

/// Requests and limits of a container.
fn asked_for(pod: &Pod, name: &str) -> [Amounts; 2] {
    let spec = pod.spec.as_ref();
    let all = spec.into_iter().flat_map(|spec| {
        let init = spec.init_containers.iter().flatten();
        spec.containers.iter().chain(init)
    });
    let mut own = all.filter(|container: &&Container| container.name == name);
    let resources = own
        .next()
        .and_then(|container| container.resources.as_ref());
    let Some(resources) = resources else {
        return [Amounts::default(); 2];
    };
    [&resources.requests, &resources.limits].map(|amounts| {
        let amount = |name: &str| {
            let Text(text) = amounts.as_ref()?.get(name)?;
            text.parse::<Quantity>().ok()
        };
        Amounts {
            cpu_milli: amount("cpu").map(Quantity::milli),
            memory_bytes: amount("memory").map(Quantity::bytes),
        }
    })
}

/// How often somebody else wrote into files that are ours, from the events that tell of it: by uid of
/// the pod and the part of it.
#[derive(Debug, Default)]
struct Drifts<'a>(BTreeMap<(&'a str, &'a str), (u64, Option<Timestamp>)>);

impl<'a> Drifts<'a> {
    fn of(events: &[&'a Value]) -> Self {
        let mut all = BTreeMap::<_, (u64, Option<Timestamp>)>::new();
        for event in events {
            let text = |pointer: &str| event.pointer(pointer).and_then(Value::as_str);
            let (Some("Drift"), Some(uid)) = (text("/reason"), text("/involvedObject/uid")) else {
                continue;
            };
            let part = text("/involvedObject/fieldPath").unwrap_or_default();
            let count = event.get("count").and_then(Value::as_u64).unwrap_or(1);
            let last = text("/lastTimestamp").and_then(|text| text.parse().ok());
            let sum = all.entry((uid, part)).or_default();
            sum.0 = sum.0.saturating_add(count);
            sum.1 = sum.1.max(last);
        }
        Self(all)
    }

    fn of_pod(&self, uid: &str) -> (u64, Option<Timestamp>) {
        let own = self.0.range((uid, "")..);
        let own = own.take_while(|((of, _), _)| *of == uid);
        own.fold((0, None), |(sum, latest), (_, (count, last))| {
            (sum.saturating_add(*count), latest.max(*last))
        })
    }

    fn of_container(&self, uid: &str, name: &str) -> u64 {
        let own = self.0.range((uid, "")..);
        own.take_while(|((of, _), _)| *of == uid)
            .filter(|((_, part), _)| {
                let inner = part.split_once('{').map(|(_, rest)| rest);
                inner.and_then(|rest| rest.strip_suffix('}')) == Some(name)
            })
            .fold(0, |sum, (_, (count, _))| sum.saturating_add(*count))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::report::stats::Timed;
    use crate::units::{CpuMax, Micros};

    #[test]
    fn drifts_are_counted_for_pod_and_container() {
        let event = |reason: &str, uid: &str, part: Option<&str>, count: u64, second: i64| {
            let time = Timestamp::from_second(second).unwrap();
            json!({"reason": reason, "count": count, "lastTimestamp": time,
                "involvedObject": {"uid": uid, "fieldPath": part}})
        };
        let events = [
            event("Drift", "u1", None, 1, 5),
            event("Drift", "u1", Some("spec.containers{app}"), 2, 9),
            event("Drift", "u1", Some("spec.containers{app-b}"), 4, 3),
            event("Drift", "u10", None, 8, 99),
            event("Started", "u1", None, 16, 99),
            json!({"reason": "Drift"}),
        ];
        let drifts = Drifts::of(&events.iter().collect::<Vec<_>>());
        let at = Timestamp::from_second(9).unwrap();
        assert_eq!(drifts.of_pod("u1"), (7, Some(at)));
        assert_eq!(drifts.of_container("u1", "app"), 2);
        assert_eq!(drifts.of_container("u1", "log"), 0);
        assert_eq!(drifts.of_pod("u"), (0, None));
    }

    #[test]
    fn conditions_of_the_node_are_told_when_they_are_wrong() {
        let node = |ready: &str, pressed: &str| -> Node {
            serde_json::from_value(json!({"metadata": {}, "status": {"conditions": [
                {"type": "Ready", "status": ready}, {"type": "MemoryPressure", "status": pressed},
            ]}}))
            .unwrap()
        };
        assert_eq!(troubles(&node("True", "False")), Vec::<String>::new());
        assert_eq!(
            troubles(&node("Unknown", "True")),
            ["NotReady", "MemoryPressure"]
        );
        assert_eq!(troubles(&Node::default()), Vec::<String>::new());
    }

    #[test]
    fn bounds_and_rates_are_those_of_the_cgroup_and_nothing_is_made_up() {
        let mut before = Timed::default();
        before.sample.cpu.usage_usec = Some(0);
        before.sample.cpu.throttled_usec = Some(0);
        let mut now = Timed {
            at: Duration::from_secs(2),
            ..Timed::default()
        };
        now.sample.cpu.usage_usec = Some(500_000);
        now.sample.cpu.throttled_usec = Some(3_000_000);
        now.sample.memory.high = Some(Bytes(7));
        let bounds = Bounds {
            cpu: Some(CpuMax {
                quota: Limit::At(Micros(25_000)),
                period: Micros(50_000),
            }),
            memory: Some(Bytes(9)),
            memory_min: Some(Bytes(3)),
            ..Bounds::default()
        };
        let figures = Figures {
            now: &now,
            before: Some(&before),
        };
        let told = Use::of(Some(figures), &bounds);
        let expected = Use {
            cpu_nano: Some(250_000_000),
            cpu_max_milli: Some(500),
            throttled_usec: Some(1_500_000),
            memory_min_bytes: Some(3),
            memory_high_bytes: Some(7),
            memory_max_bytes: Some(9),
            ..Use::default()
        };
        assert_eq!(told, expected);
        assert_eq!(Use::of(None, &Bounds::default()), Use::default());
        let unlimited = Bounds {
            cpu: Some(CpuMax::unlimited(Micros(50_000))),
            ..Bounds::default()
        };
        assert_eq!(Use::of(None, &unlimited).cpu_max_milli, None);
    }
}
