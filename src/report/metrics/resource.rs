//! `/metrics/resource`: the few figures of node, pods and containers that a kubelet gives to
//! metrics-server.

use std::fmt::Error;

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::encode::{Figure, Labels, Shape, family};
use crate::cgroup::Sample;
use crate::report::stats::{ContainerPlace, Figures, PodPlace, Readings};

#[derive(Debug)]
pub(super) struct Resource(pub(super) Readings);

/// Name, help, shape and figure.
type Kind = (
    &'static str,
    &'static str,
    Shape,
    fn(&Sample) -> Option<Figure>,
);

/// The figures that there are of each.
const KINDS: [Kind; 3] = [
    (
        "cpu_usage_seconds",
        "CPU time used",
        Shape::Counter,
        |sample| sample.cpu.usage_usec.map(Figure::micros),
    ),
    (
        "memory_working_set_bytes",
        "memory in use without inactive page cache",
        Shape::Gauge,
        |sample| sample.memory.working_set().map(|b| Figure::Whole(b.0)),
    ),
    (
        "swap_usage_bytes",
        "swap space in use",
        Shape::Gauge,
        |sample| sample.memory.swap.map(|b| Figure::Whole(b.0)),
    ),
];

/// A family with its series, and of which moment each figure is; none where that is the scrape's.
struct Family<'a> {
    name: String,
    help: String,
    shape: Shape,
    series: Vec<(Labels<'a>, Figure, Option<Timestamp>)>,
}

impl Collector for Resource {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        for Family {
            name,
            help,
            shape,
            series,
        } in self.families()
        {
            let series = series
                .into_iter()
                .map(|(labels, figure, _)| (labels, figure));
            family(&mut encoder, &name, &help, shape, series)?;
        }
        Ok(())
    }
}

impl Resource {
    /// Of which moment the samples are, in the order in which they are encoded.
    pub(super) fn times(&self) -> Vec<Option<Timestamp>> {
        let series = self.families().into_iter().flat_map(|family| family.series);
        series.map(|(_, _, time)| time).collect()
    }

    /// As with the kubelet, figures of cgroups have the time at which they were read.
    fn families(&self) -> Vec<Family<'_>> {
        let mut families = Vec::new();
        for (name, help, shape, figure) in KINDS {
            let one = |labels, figures: Figures<'_>| {
                let figure = figure(&figures.now.sample)?;
                Some((labels, figure, Some(figures.now.time)))
            };
            let node = one(Vec::new(), self.0.node());
            let pods = self.0.pods().filter_map(|(pod, now)| one(of_pod(pod), now));
            let containers = self.containers();
            let containers =
                containers.filter_map(|(pod, container, now)| one(of(pod, container), now));
            for (of_what, place, series) in [
                ("node", "on the node", node.into_iter().collect()),
                ("pod", "in the pod", pods.collect()),
                (
                    "container",
                    "in the container",
                    containers.collect::<Vec<_>>(),
                ),
            ] {
                families.push(Family {
                    name: format!("{of_what}_{name}"),
                    help: format!("{help} {place}"),
                    shape,
                    series,
                });
            }
        }
        let starts = self.containers().filter_map(|(pod, container, _)| {
            let micros = u64::try_from(container.started?.as_microsecond()).ok()?;
            Some((of(pod, container), Figure::micros(micros), None))
        });
        families.push(Family {
            name: "container_start_time_seconds".to_owned(),
            help: "when the container was started, since 1970".to_owned(),
            shape: Shape::Gauge,
            series: starts.collect(),
        });
        let failed = self.0.node().now.sample.cpu.usage_usec.is_none();
        families.push(Family {
            name: "resource_scrape_error".to_owned(),
            help: "1 if the node's figures could not be had".to_owned(),
            shape: Shape::Gauge,
            series: vec![(Vec::new(), Figure::Whole(u64::from(failed)), None)],
        });
        families
    }

    fn containers(&self) -> impl Iterator<Item = (&PodPlace, &ContainerPlace, Figures<'_>)> {
        self.0.pods().flat_map(|(pod, _)| {
            let containers = self.0.containers(pod);
            containers.map(move |(container, figures)| (pod, container, figures))
        })
    }
}

fn of_pod(pod: &PodPlace) -> Labels<'_> {
    vec![("namespace", &pod.namespace), ("pod", &pod.name)]
}

fn of<'a>(pod: &'a PodPlace, container: &'a ContainerPlace) -> Labels<'a> {
    vec![
        ("container", &container.name),
        ("namespace", &pod.namespace),
        ("pod", &pod.name),
    ]
}
