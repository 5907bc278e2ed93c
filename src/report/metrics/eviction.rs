//! What the node has left, and how many pods were evicted.

use std::fmt::Error;

use prometheus_client::encoding::DescriptorEncoder;

use super::encode::{Figure, Shape, family};
use crate::report::Tallies;
use crate::report::stats::SignalFigure;

/// Name, help and figure.
type Gauge = (&'static str, &'static str, fn(&SignalFigure) -> u64);

pub(super) fn encode(
    encoder: &mut DescriptorEncoder<'_>,
    signals: &[SignalFigure],
    tallies: &Tallies,
) -> Result<(), Error> {
    let evictions = tallies.evictions.iter();
    let evictions = evictions.map(|(signal, count)| {
        (
            vec![("eviction_signal", signal.as_str())],
            Figure::Whole(*count),
        )
    });
    let help = "pods evicted, by the signal whose threshold was met";
    family(
        encoder,
        "kubelet_evictions",
        help,
        Shape::Counter,
        evictions,
    )?;
    let figures: [Gauge; 2] = [
        (
            "allotd_eviction_signal_available",
            "what is left by an eviction signal (bytes, inodes or tasks)",
            |signal| signal.available,
        ),
        (
            "allotd_eviction_signal_capacity",
            "of how much (bytes, inodes or tasks)",
            |signal| signal.capacity,
        ),
    ];
    for (name, help, figure) in figures {
        let series = signals.iter().map(|signal| {
            let labels = vec![
                ("eviction_signal", signal.signal.as_str()),
                ("path", signal.path.as_str()),
            ];
            (labels, Figure::Whole(figure(signal)))
        });
        family(encoder, name, help, Shape::Gauge, series)?;
    }
    Ok(())
}
