//! The kubelet's `/stats/summary`: the same names, as far as the figures exist.
//!
//! Pressure totals are µs, as the kernel counts them. There is no network, because processes share the
//! node's.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{Bounds, ContainerPlace, Figures, PodPlace, Readings};
use crate::cgroup::parse::{Pressure, Stall};
use crate::model::space::{Measured, Space};
use crate::units::Bytes;

/// Disk used by files (bytes and their number).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskUse {
    /// Bytes.
    pub bytes: u64,
    /// Files and directories.
    pub inodes: u64,
}

/// The file system of the pods' files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileSystem {
    /// Its size (bytes).
    pub capacity: u64,
    /// What may still be written (bytes).
    pub available: u64,
    /// What is used, by whomever (bytes).
    pub used: u64,
    /// Files it can hold.
    pub inodes: u64,
    /// Those still free.
    pub inodes_free: u64,
}

/// What the pods' files take of the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// When it was looked at.
    pub time: Timestamp,
    /// The file system; absent where it cannot be asked.
    pub file_system: Option<FileSystem>,
    /// The parts of pods' files by the pod's uid; what could not be measured is absent. Of what has not been
    /// walked to its end nothing is told.
    pub spaces: BTreeMap<(String, Space), Measured>,
    /// What of a container's part its logs take, by the pod's uid and its name.
    pub logs: BTreeMap<(String, String), DiskUse>,
}

impl Disk {
    /// Logs and scratch files of a container.
    pub fn of_container(&self, uid: &str, container: &str) -> [Option<DiskUse>; 2] {
        let space = Space::Container(container.to_owned());
        let all = self.spaces.get(&(uid.to_owned(), space));
        let all = all.filter(|measured| !measured.partial);
        let logs = self.logs.get(&(uid.to_owned(), container.to_owned()));
        let scratch = all.zip(logs).map(|(all, logs)| DiskUse {
            bytes: all.bytes.saturating_sub(logs.bytes),
            inodes: all.inodes.saturating_sub(logs.inodes),
        });
        [logs.copied(), scratch]
    }

    /// All of a pod's files on disk; absent as soon as a part could not be measured.
    pub fn of_pod(&self, pod: &PodPlace) -> Option<DiskUse> {
        let on_disk = pod.files.iter().filter(|place| !place.in_memory);
        let used = on_disk.map(|place| self.of_space(pod, &place.space));
        used.reduce(|sum, part| {
            let (sum, part) = sum.zip(part)?;
            Some(DiskUse {
                bytes: sum.bytes.saturating_add(part.bytes),
                inodes: sum.inodes.saturating_add(part.inodes),
            })
        })?
    }

    fn of_space(&self, pod: &PodPlace, space: &Space) -> Option<DiskUse> {
        let measured = self.spaces.get(&(pod.uid.clone(), space.clone()))?;
        (!measured.partial).then_some(DiskUse {
            bytes: measured.bytes,
            inodes: measured.inodes,
        })
    }
}

/// The summary; `disk` is left out where only CPU and memory are asked for.
pub fn summary(readings: &Readings, booted: Option<Timestamp>, disk: Option<&Disk>) -> Value {
    let census = &readings.census;
    let figures = readings.node();
    let bounds = Bounds {
        memory: Some(census.memory),
        swap: Some(census.swap),
        ..Bounds::default()
    };
    let mut node = object([
        ("nodeName", Some(json!(census.node))),
        ("startTime", booted.map(|time| json!(time))),
    ]);
    of_cgroup(&mut node, figures, &bounds);
    let levels = census.levels.iter().filter_map(|level| {
        let figures = readings.of(&level.path)?;
        let mut answer = object([("name", Some(json!(level.name)))]);
        of_cgroup(&mut answer, figures, &level.bounds);
        Some(Value::Object(answer))
    });
    put(&mut node, "systemContainers", Some(levels.collect()));
    if let Some(disk) = disk {
        let pids = figures.now.sample.pids.current;
        let limits = object([
            ("time", Some(json!(figures.now.time))),
            ("maxpid", census.max_pids.map(|n| json!(n))),
            ("curproc", pids.map(|n| json!(n))),
        ]);
        put(&mut node, "rlimit", Some(Value::Object(limits)));
        put(&mut node, "fs", whole(disk));
    }
    let pods = readings
        .pods()
        .map(|(pod, figures)| of_pod(readings, pod, figures, disk));
    json!({"node": node, "pods": pods.collect::<Vec<_>>()})
}

fn of_pod(readings: &Readings, pod: &PodPlace, figures: Figures<'_>, disk: Option<&Disk>) -> Value {
    let reference = json!({"name": pod.name, "namespace": pod.namespace, "uid": pod.uid});
    let mut answer = object([
        ("podRef", Some(reference)),
        ("startTime", Some(json!(pod.started))),
    ]);
    let containers = readings
        .containers(pod)
        .map(|(container, figures)| of_container(pod, container, figures, disk));
    put(&mut answer, "containers", Some(containers.collect()));
    of_cgroup(&mut answer, figures, &pod.bounds);
    if let Some(disk) = disk {
        put(
            &mut answer,
            "ephemeral-storage",
            part(disk, disk.of_pod(pod)),
        );
        let volumes = pod.files.iter().filter_map(|place| {
            let Space::Volume(name) = &place.space else {
                return None;
            };
            let mut volume = part(disk, disk.of_space(pod, &place.space))?;
            let fields = volume.as_object_mut()?;
            fields.insert("name".to_owned(), json!(name));
            if place.in_memory {
                // The file system told of is that of the disk.
                for field in ["availableBytes", "capacityBytes", "inodes", "inodesFree"] {
                    fields.remove(field);
                }
            }
            Some(volume)
        });
        put(&mut answer, "volume", Some(volumes.collect()));
        let count = readings
            .containers(pod)
            .map(|(_, figures)| figures.now.sample.pids.processes)
            .sum::<Option<u64>>();
        let count = count.map(|count| json!({"process_count": count}));
        put(&mut answer, "process_stats", count);
    }
    Value::Object(answer)
}

fn of_container(
    pod: &PodPlace,
    container: &ContainerPlace,
    figures: Figures<'_>,
    disk: Option<&Disk>,
) -> Value {
    let mut answer = object([
        ("name", Some(json!(container.name))),
        ("startTime", container.started.map(|time| json!(time))),
    ]);
    of_cgroup(&mut answer, figures, &container.bounds);
    if let Some(disk) = disk {
        let [logs, scratch] = disk.of_container(&pod.uid, &container.name);
        put(&mut answer, "rootfs", part(disk, scratch));
        put(&mut answer, "logs", part(disk, logs));
    }
    Value::Object(answer)
}

/// CPU, memory, swap and I/O of a cgroup.
fn of_cgroup(into: &mut Map<String, Value>, figures: Figures<'_>, bounds: &Bounds) {
    let sample = &figures.now.sample;
    let time = Some(json!(figures.now.time));
    let rate = figures.cpu_rate().map(|rate| json!(rate.nano_cores));
    let usage = sample.cpu.usage_usec;
    let usage = usage.map(|micros| json!(micros.saturating_mul(1000)));
    let cpu = object([
        ("time", time.clone()),
        ("usageNanoCores", rate),
        ("usageCoreNanoSeconds", usage),
        ("psi", sample.cpu_pressure.map(pressure)),
    ]);
    put(into, "cpu", Some(Value::Object(cpu)));
    let memory = &sample.memory;
    let bytes = |bytes: Option<Bytes>| bytes.map(|Bytes(n)| json!(n));
    let working_set = memory.working_set();
    let available = bounds.memory.zip(working_set);
    let available = available.map(|(most, used)| most.saturating_sub(used));
    let answer = object([
        ("time", time.clone()),
        ("availableBytes", bytes(available)),
        ("usageBytes", bytes(memory.current)),
        ("workingSetBytes", bytes(working_set)),
        ("rssBytes", bytes(memory.anon)),
        ("pageFaults", memory.faults.map(|n| json!(n))),
        ("majorPageFaults", memory.major_faults.map(|n| json!(n))),
        ("psi", sample.memory_pressure.map(pressure)),
    ]);
    put(into, "memory", Some(Value::Object(answer)));
    if let Some(io) = sample.io_pressure {
        let answer = json!({"time": figures.now.time, "psi": pressure(io)});
        put(into, "io", Some(answer));
    }
    if memory.swap.is_some() {
        let left = bounds.swap.zip(memory.swap);
        let left = left.map(|(most, used)| most.saturating_sub(used));
        let answer = object([
            ("time", time),
            ("swapAvailableBytes", bytes(left)),
            ("swapUsageBytes", bytes(memory.swap)),
        ]);
        put(into, "swap", Some(Value::Object(answer)));
    }
}

fn pressure(pressure: Pressure) -> Value {
    let stall = |stall: Stall| {
        let share = |hundredths: u32| f64::from(hundredths) / 100.0;
        json!({
            "total": stall.total_usec,
            "avg10": share(stall.avg10),
            "avg60": share(stall.avg60),
            "avg300": share(stall.avg300),
        })
    };
    Value::Object(object([
        ("full", pressure.full.map(stall)),
        ("some", pressure.some.map(stall)),
    ]))
}

/// The file system as a whole.
fn whole(disk: &Disk) -> Option<Value> {
    let all = disk.file_system?;
    Some(json!({
        "time": disk.time,
        "availableBytes": all.available,
        "capacityBytes": all.capacity,
        "usedBytes": all.used,
        "inodesFree": all.inodes_free,
        "inodes": all.inodes,
        "inodesUsed": all.inodes.saturating_sub(all.inodes_free),
    }))
}

/// What some files take of it.
fn part(disk: &Disk, used: Option<DiskUse>) -> Option<Value> {
    let mut answer = whole(disk).unwrap_or_else(|| json!({"time": disk.time}));
    let fields = answer.as_object_mut()?;
    let used = used?;
    fields.insert("usedBytes".to_owned(), json!(used.bytes));
    fields.insert("inodesUsed".to_owned(), json!(used.inodes));
    Some(answer)
}

fn object<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    let mut object = Map::new();
    for (name, value) in fields {
        put(&mut object, name, value);
    }
    object
}

fn put(into: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        into.insert(name.to_owned(), value);
    }
}
