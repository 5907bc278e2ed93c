//! `/metrics`: what cAdvisor tells of containers, under its names, and what the agent has counted.
//!
//! A pod's own cgroup has an empty container label, as with cAdvisor. Counts of OOM kills are of pod
//! and container by name and survive restarts; all else is of the cgroup that is there now.

use std::collections::BTreeMap;
use std::fmt::Error;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::encode::{Figure, Labels, Shape, family};
use super::{descendants, eviction};
use crate::cgroup::Sample;
use crate::cgroup::parse::{Pressure, Stall};
use crate::cgroup::sample::{Device, Io};
use crate::report::Tallies;
use crate::report::stats::{Bounds, Readings};
use crate::units::{Bytes, HugePageSize};

#[derive(Debug)]
pub(super) struct Containers(pub(super) Readings);

type OfSample = fn(&Sample) -> Option<Figure>;
type OfBounds = fn(&Bounds) -> Option<Figure>;
type OfPressure = fn(Pressure) -> Option<Stall>;
type PressureOf = fn(&Sample) -> Option<Pressure>;
type OfDevice = fn(&Io) -> u64;

fn bytes(bytes: Option<Bytes>) -> Option<Figure> {
    bytes.map(|Bytes(n)| Figure::Whole(n))
}

const COUNTERS: &[(&str, &str, OfSample)] = &[
    ("container_cpu_usage_seconds", "CPU time used", |s| {
        s.cpu.usage_usec.map(Figure::micros)
    }),
    ("container_cpu_user_seconds", "CPU time in user mode", |s| {
        s.cpu.user_usec.map(Figure::micros)
    }),
    (
        "container_cpu_system_seconds",
        "CPU time in the kernel",
        |s| s.cpu.system_usec.map(Figure::micros),
    ),
    (
        "container_cpu_cfs_periods",
        "periods of the quota in which something ran",
        |s| s.cpu.periods.map(Figure::Whole),
    ),
    (
        "container_cpu_cfs_throttled_periods",
        "periods in which the quota ran out",
        |s| s.cpu.throttled_periods.map(Figure::Whole),
    ),
    (
        "container_cpu_cfs_throttled_seconds",
        "time in which the quota kept something from running",
        |s| s.cpu.throttled_usec.map(Figure::micros),
    ),
    (
        "container_cpu_cfs_burst_periods",
        "periods that used saved quota",
        |s| s.cpu.burst_periods.map(Figure::Whole),
    ),
    (
        "container_cpu_cfs_burst_seconds",
        "CPU time of saved quota",
        |s| s.cpu.burst_usec.map(Figure::micros),
    ),
    (
        "container_memory_failcnt",
        "how often usage was held at a limit",
        |s| s.memory.max_events.map(Figure::Whole),
    ),
    (
        "container_memory_events_high",
        "how often usage was above memory.high",
        |s| s.memory.high_events.map(Figure::Whole),
    ),
    (
        "container_forks_refused",
        "forks refused at the bound of tasks",
        |s| s.pids.refused.map(Figure::Whole),
    ),
];

type OfHugePages = fn(&Sample, HugePageSize) -> Option<u64>;

/// What is told of each size of huge page.
const OF_HUGE_PAGES: [(&str, &str, Shape, OfHugePages); 2] = [
    (
        "container_hugetlb_usage_bytes",
        "huge pages in use",
        Shape::Gauge,
        |sample, size| of_size(&sample.huge_pages, size).map(|bytes| bytes.0),
    ),
    (
        "container_hugetlb_failcnt",
        "how often the bound of huge pages was met",
        Shape::Counter,
        |sample, size| of_size(&sample.huge_pages_refused, size),
    ),
];

fn of_size<T: Copy>(all: &[(HugePageSize, T)], size: HugePageSize) -> Option<T> {
    let found = all.iter().find(|(at, _)| *at == size);
    found.map(|(_, figure)| *figure)
}

/// What tasks wait for, and the pressure of it.
const RESOURCES: [(&str, &str, PressureOf); 3] = [
    ("cpu", "a CPU", |s| s.cpu_pressure),
    ("memory", "memory", |s| s.memory_pressure),
    ("io", "I/O", |s| s.io_pressure),
];

/// Which tasks wait.
const WAITING: [(&str, &str, OfPressure); 2] = [
    ("waiting", "some task", |p| p.some),
    ("stalled", "all tasks", |p| p.full),
];

/// What is counted for each device.
const DEVICES: [(&str, &str, OfDevice); 4] = [
    ("container_fs_reads_bytes", "bytes read", |io| io.read_bytes),
    ("container_fs_writes_bytes", "bytes written", |io| {
        io.written_bytes
    }),
    ("container_fs_reads", "reads", |io| io.reads),
    ("container_fs_writes", "writes", |io| io.writes),
];

const GAUGES: &[(&str, &str, OfSample)] = &[
    (
        "container_memory_usage_bytes",
        "memory in use, page cache included",
        |s| bytes(s.memory.current),
    ),
    (
        "container_memory_working_set_bytes",
        "memory in use without inactive page cache",
        |s| bytes(s.memory.working_set()),
    ),
    (
        "container_memory_max_usage_bytes",
        "the most memory in use so far",
        |s| bytes(s.memory.peak),
    ),
    ("container_memory_rss", "anonymous memory", |s| {
        bytes(s.memory.anon)
    }),
    ("container_memory_cache", "page cache", |s| {
        bytes(s.memory.file)
    }),
    ("container_memory_mapped_file", "mapped files", |s| {
        bytes(s.memory.mapped)
    }),
    ("container_memory_kernel_usage", "kernel memory", |s| {
        bytes(s.memory.kernel)
    }),
    ("container_memory_swap", "swap space in use", |s| {
        bytes(s.memory.swap)
    }),
    (
        "container_memory_total_active_file_bytes",
        "page cache in active use",
        |s| bytes(s.memory.active_file),
    ),
    (
        "container_memory_total_inactive_file_bytes",
        "page cache that goes first",
        |s| bytes(s.memory.inactive_file),
    ),
    ("container_threads", "tasks: processes and threads", |s| {
        s.pids.current.map(Figure::Whole)
    }),
    ("container_threads_peak", "the most tasks so far", |s| {
        s.pids.peak.map(Figure::Whole)
    }),
    (
        "container_processes",
        "processes in the cgroup itself",
        |s| s.pids.processes.map(Figure::Whole),
    ),
];

/// cAdvisor writes 0 for no limit of memory, and nothing for no quota or no bound of tasks.
const BOUNDS: &[(&str, &str, OfBounds)] = &[
    (
        "container_spec_cpu_period",
        "length of a period of the quota (µs)",
        |b| b.cpu.map(|max| Figure::Whole(max.period.0)),
    ),
    (
        "container_spec_cpu_quota",
        "CPU time in each period (µs)",
        |b| b.cpu?.quota.value().map(|quota| Figure::Whole(quota.0)),
    ),
    (
        "container_spec_cpu_shares",
        "the CPU request in shares: 1024 for each CPU, at least 2",
        |b| {
            let shares = b.cpu_request?.saturating_mul(1024) / 1000;
            Some(Figure::Whole(shares.clamp(2, 262_144)))
        },
    ),
    (
        "container_spec_memory_limit_bytes",
        "the bound of memory, 0 for none",
        |b| Some(Figure::Whole(b.memory.map_or(0, |bytes| bytes.0))),
    ),
    ("container_threads_max", "the bound of tasks", |b| {
        b.tasks.map(Figure::Whole)
    }),
];

impl Collector for Containers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let shapes = [(Shape::Counter, COUNTERS), (Shape::Gauge, GAUGES)];
        for (shape, families) in shapes {
            for (name, help, figure) in families {
                self.encode_each(&mut encoder, name, help, shape, |sample, _| figure(sample))?;
            }
        }
        for (resource, of_what, pressure) in RESOURCES {
            for (waiting, who, stall) in WAITING {
                let name = format!("container_pressure_{resource}_{waiting}_seconds");
                let help = format!("time in which {who} waited for {of_what}");
                let total = |sample: &Sample| Some(stall(pressure(sample)?)?.total_usec);
                self.encode_each(&mut encoder, &name, &help, Shape::Counter, |sample, _| {
                    total(sample).map(Figure::micros)
                })?;
            }
        }
        for (name, help, figure) in BOUNDS {
            self.encode_each(&mut encoder, name, help, Shape::Gauge, |_, bounds| {
                figure(bounds)
            })?;
        }
        self.encode_huge_pages(&mut encoder)?;
        self.encode_devices(&mut encoder)?;
        self.encode_of_containers(&mut encoder)?;
        descendants::encode(&mut encoder, &self.0)?;
        let tallies = &self.0.census.tallies;
        eviction::encode(&mut encoder, &self.0.later.signals, tallies)?;
        encode_tallies(&mut encoder, tallies)
    }
}

impl Containers {
    /// Each cgroup of pods and containers with its labels.
    fn cgroups(&self) -> impl Iterator<Item = (Labels<'_>, &Sample, &Bounds)> {
        self.0.pods().flat_map(|(pod, figures)| {
            let own = (
                labels(&pod.namespace, &pod.name, ""),
                &figures.now.sample,
                &pod.bounds,
            );
            let containers = pod.containers.iter().filter_map(|container| {
                let figures = self.0.of(&container.path)?;
                let labels = labels(&pod.namespace, &pod.name, &container.name);
                Some((labels, &figures.now.sample, &container.bounds))
            });
            std::iter::once(own).chain(containers)
        })
    }

    /// A family with one series for each cgroup that has the figure.
    fn encode_each(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        shape: Shape,
        figure: impl Fn(&Sample, &Bounds) -> Option<Figure>,
    ) -> Result<(), Error> {
        let cgroups = self.cgroups();
        let series =
            cgroups.filter_map(|(labels, sample, bounds)| Some((labels, figure(sample, bounds)?)));
        family(encoder, name, help, shape, series)
    }

    /// As cAdvisor has it, with the device's name; with its number where that is all that is known.
    fn encode_devices(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let used = self.cgroups().flat_map(|(_, sample, _)| &sample.io);
        let name = |device: &Device| match self.0.later.devices.get(device) {
            Some(name) => format!("/dev/{name}"),
            None => format!("{}:{}", device.0, device.1),
        };
        let names: BTreeMap<_, _> = used.map(|(at, _)| (*at, name(at))).collect();
        for (name, help, figure) in DEVICES {
            let series = self.cgroups().flat_map(|(labels, sample, _)| {
                sample.io.iter().filter_map({
                    let names = &names;
                    move |(device, io)| {
                        let mut labels = labels.clone();
                        labels.push(("device", names.get(device)?));
                        Some((labels, Figure::Whole(figure(io))))
                    }
                })
            });
            family(encoder, name, help, Shape::Counter, series)?;
        }
        Ok(())
    }

    fn encode_huge_pages(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let sizes = self.cgroups().flat_map(|(_, sample, _)| {
            let used = sample.huge_pages.iter().map(|(size, _)| *size);
            used.chain(sample.huge_pages_refused.iter().map(|(size, _)| *size))
        });
        let mut sizes: Vec<_> = sizes.collect();
        sizes.sort_unstable();
        sizes.dedup();
        let names: Vec<_> = sizes
            .into_iter()
            .map(|size| (size, size.kernel_name()))
            .collect();
        for (name, help, shape, figure) in OF_HUGE_PAGES {
            let series = names.iter().flat_map(|(size, shown)| {
                self.cgroups().filter_map(move |(mut labels, sample, _)| {
                    let figure = Figure::Whole(figure(sample, *size)?);
                    labels.push(("pagesize", shown));
                    Some((labels, figure))
                })
            });
            family(encoder, name, help, shape, series)?;
        }
        Ok(())
    }

    /// What is counted for containers, whether they run or not.
    fn encode_of_containers(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let kills = self.0.census.pods.iter().flat_map(|pod| {
            let each = pod.containers.iter();
            let sum = each.clone().map(|container| container.oom_kills).sum();
            let own = (labels(&pod.namespace, &pod.name, ""), Figure::Whole(sum));
            std::iter::once(own).chain(each.map(|container| {
                let labels = labels(&pod.namespace, &pod.name, &container.name);
                (labels, Figure::Whole(container.oom_kills))
            }))
        });
        let help = "processes killed for lack of memory";
        family(encoder, "container_oom_events", help, Shape::Counter, kills)?;
        let starts = self.0.census.pods.iter().flat_map(|pod| {
            pod.containers.iter().filter_map(|container| {
                let micros = u64::try_from(container.started?.as_microsecond()).ok()?;
                let labels = labels(&pod.namespace, &pod.name, &container.name);
                Some((labels, Figure::micros(micros)))
            })
        });
        let (name, help) = (
            "container_start_time_seconds",
            "when the container was started, since 1970",
        );
        family(encoder, name, help, Shape::Gauge, starts)
    }
}

fn labels<'a>(namespace: &'a str, pod: &'a str, container: &'a str) -> Labels<'a> {
    vec![
        ("namespace", namespace),
        ("pod", pod),
        ("container", container),
    ]
}

fn encode_tallies(encoder: &mut DescriptorEncoder<'_>, tallies: &Tallies) -> Result<(), Error> {
    for (name, help, count) in [
        ("allotd_pods_admitted", "pods admitted", tallies.admitted),
        ("allotd_pods_refused", "pods refused", tallies.refused),
        (
            "allotd_drifts",
            "foreign changes found in files that are allotd's",
            tallies.drifts,
        ),
        (
            "allotd_kernel_failures",
            "operations that the kernel refused or that are held",
            tallies.failures,
        ),
        (
            "allotd_container_restarts",
            "containers started anew",
            tallies.restarts,
        ),
    ] {
        let one = [(Vec::new(), Figure::Whole(count))];
        family(encoder, name, help, Shape::Counter, one)?;
    }
    let causes = tallies
        .causes
        .iter()
        .map(|(cause, count)| (vec![("cause", cause.as_str())], Figure::Whole(*count)));
    let (name, help) = ("allotd_pod_refusal_causes", "refusals of pods by cause");
    family(encoder, name, help, Shape::Counter, causes)
}
