//! How many cgroups the kernel holds for pods, those it could not give up yet included.

use std::fmt::Error;

use prometheus_client::encoding::DescriptorEncoder;

use super::encode::{Figure, Shape, family};
use crate::cgroup::Descendants;
use crate::report::stats::Readings;

/// Name, help and figure.
type Gauge = (&'static str, &'static str, fn(&Descendants) -> Option<u64>);

const FIGURES: [Gauge; 2] = [
    (
        "allotd_cgroup_descendants",
        "cgroups below a level of pods",
        |counted| counted.live,
    ),
    (
        "allotd_cgroup_dying_descendants",
        "cgroups below a level of pods that were removed, but are still held by what they left in memory",
        |counted| counted.dying,
    ),
];

pub(super) fn encode(
    encoder: &mut DescriptorEncoder<'_>,
    readings: &Readings,
) -> Result<(), Error> {
    for (name, help, figure) in FIGURES {
        let series = readings.census.levels.iter().filter_map(|level| {
            let counted = readings.later.descendants.get(&level.path)?;
            let labels = vec![("level", level.name)];
            Some((labels, Figure::Whole(figure(counted)?)))
        });
        family(encoder, name, help, Shape::Gauge, series)?;
    }
    Ok(())
}
