//! `/metrics/resource`: the few figures of node, pods and containers that a kubelet gives to
//! metrics-server.

use std::fmt::Error;

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

impl Collector for Resource {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        for (name, help, shape, figure) in KINDS {
            let node = figure(&self.0.node().now.sample).map(|figure| (Vec::new(), figure));
            family(
                &mut encoder,
                &format!("node_{name}"),
                &format!("{help} on the node"),
                shape,
                node,
            )?;
            let pods = self
                .0
                .pods()
                .filter_map(|(pod, figures)| Some((of_pod(pod), figure(&figures.now.sample)?)));
            family(
                &mut encoder,
                &format!("pod_{name}"),
                &format!("{help} in the pod"),
                shape,
                pods,
            )?;
            let containers = self.containers().filter_map(|(pod, container, figures)| {
                Some((of(pod, container), figure(&figures.now.sample)?))
            });
            family(
                &mut encoder,
                &format!("container_{name}"),
                &format!("{help} in the container"),
                shape,
                containers,
            )?;
        }
        let starts = self.containers().filter_map(|(pod, container, _)| {
            let micros = u64::try_from(container.started?.as_microsecond()).ok()?;
            Some((of(pod, container), Figure::micros(micros)))
        });
        family(
            &mut encoder,
            "container_start_time_seconds",
            "when the container was started, since 1970",
            Shape::Gauge,
            starts,
        )?;
        family(
            &mut encoder,
            "resource_scrape_error",
            "1 if the node's figures could not be had",
            Shape::Gauge,
            [(
                Vec::new(),
                Figure::Whole(u64::from(self.0.node().now.sample.cpu.usage_usec.is_none())),
            )],
        )
    }
}

impl Resource {
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
