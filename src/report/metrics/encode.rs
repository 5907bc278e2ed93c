//! Families of metrics as text: OpenMetrics, and the older text made from it. Decides no figure.

use std::fmt::Error;

use jiff::Timestamp;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// A figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Figure {
    /// A whole number.
    Whole(u64),
    /// One with a fraction.
    Fraction(f64),
}

impl Figure {
    /// A number of µs in seconds.
    pub fn micros(micros: u64) -> Self {
        Self::Fraction(std::time::Duration::from_micros(micros).as_secs_f64())
    }
}

/// Whether a family only rises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Its name gets `_total`.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// The labels of one series.
pub(super) type Labels<'a> = Vec<(&'a str, &'a str)>;

/// Writes a family, unless it has no series: a name without figures would only be noise.
pub(super) fn family<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    shape: Shape,
    series: impl IntoIterator<Item = (Labels<'a>, Figure)>,
) -> Result<(), Error> {
    let mut series = series.into_iter().peekable();
    if series.peek().is_none() {
        return Ok(());
    }
    let kind = match shape {
        Shape::Counter => ConstCounter::new(0u64).metric_type(),
        Shape::Gauge => ConstGauge::new(0u64).metric_type(),
    };
    let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
    for (labels, figure) in series {
        let encoder = metric.encode_family(&labels)?;
        match (shape, figure) {
            (Shape::Counter, Figure::Whole(n)) => ConstCounter::new(n).encode(encoder)?,
            (Shape::Counter, Figure::Fraction(x)) => ConstCounter::new(x).encode(encoder)?,
            (Shape::Gauge, Figure::Whole(n)) => ConstGauge::new(n).encode(encoder)?,
            (Shape::Gauge, Figure::Fraction(x)) => ConstGauge::new(x).encode(encoder)?,
        }
    }
    Ok(())
}

/// Whether OpenMetrics is the first that a scraper can use of what we have. Who has no wish gets the
/// older text, which everything reads.
pub(super) fn is_openmetrics(accept: &str) -> bool {
    // Scrapers write their wishes in order; weights only repeat it.
    let mut types = accept
        .split(',')
        .filter_map(|wish| wish.split(';').next())
        .map(str::trim);
    let first =
        types.find(|kind| matches!(*kind, "application/openmetrics-text" | "text/plain" | "*/*"));
    first == Some("application/openmetrics-text")
}

/// Counters that are known without `_total`: the kubelet's scrapers ask for the older text.
const WITHOUT_TOTAL: [&str; 1] = ["kubelet_evictions"];

/// The older text: there a counter's family is called as its samples are, with `_total`, and neither
/// units nor an end are known.
pub(super) fn plain(openmetrics: &str) -> String {
    let lines: Vec<_> = openmetrics.lines().collect();
    let is_counter = |name: &str| {
        let line = format!("# TYPE {name} counter");
        lines.iter().any(|other| *other == line)
    };
    let mut text = String::with_capacity(openmetrics.len());
    for line in &lines {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("UNIT" | "EOF"), _, _) => continue,
            (Some("#"), Some(_), Some(name), _) if WITHOUT_TOTAL.contains(&name) => {
                text.push_str(line);
            }
            (Some(series), ..) if WITHOUT_TOTAL.iter().any(|name| is_total_of(name, series)) => {
                text.push_str(&line.replacen("_total", "", 1));
            }
            (Some("#"), Some(what), Some(name), Some(rest)) if is_counter(name) => {
                text.extend(["# ", what, " ", name, "_total ", rest]);
            }
            _ => text.push_str(line),
        }
        text.push('\n');
    }
    text
}

/// Puts behind each sample of a text the time of which it is, in the order in which they stand there; the
/// library writes none.
pub(super) fn dated(
    text: String,
    times: &[Option<Timestamp>],
    spelt: fn(Timestamp) -> String,
) -> String {
    if times.is_empty() {
        return text;
    }
    let mut times = times.iter();
    let mut dated = String::with_capacity(text.len());
    for line in text.lines() {
        dated.push_str(line);
        if !line.starts_with('#')
            && let Some(Some(time)) = times.next()
        {
            dated.push(' ');
            dated.push_str(&spelt(*time));
        }
        dated.push('\n');
    }
    dated
}

/// A time as OpenMetrics has it.
pub(super) fn seconds(time: Timestamp) -> String {
    let millis = time.as_millisecond();
    format!("{}.{:03}", millis.div_euclid(1000), millis.rem_euclid(1000))
}

/// A time as the older text has it.
pub(super) fn milliseconds(time: Timestamp) -> String {
    time.as_millisecond().to_string()
}

/// Whether a line begins a sample of the counter of this name.
fn is_total_of(name: &str, series: &str) -> bool {
    series
        .strip_prefix(name)
        .and_then(|rest| rest.strip_prefix("_total"))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('{'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scrapers_get_what_they_ask_for() {
        for (accept, expected) in [
            ("", false),
            ("*/*", false),
            ("text/plain;version=0.0.4", false),
            (
                "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4",
                true,
            ),
            ("text/plain, application/openmetrics-text", false),
            ("application/json, application/openmetrics-text", true),
        ] {
            assert_eq!(is_openmetrics(accept), expected, "{accept}");
        }
    }

    #[test]
    fn samples_are_dated_in_their_order() {
        let text = "# TYPE a gauge\na 1\na{x=\"y z\"} 2\n# TYPE b gauge\nb 3\n# EOF\n";
        let time = Timestamp::from_millisecond(1_700_000_000_045).unwrap();
        let times = [Some(time), None, Some(time)];
        assert_eq!(
            dated(text.to_owned(), &times, seconds),
            "# TYPE a gauge\na 1 1700000000.045\na{x=\"y z\"} 2\n# TYPE b gauge\nb 3 1700000000.045\n# EOF\n"
        );
        let told = dated("a 1\n".to_owned(), &times, milliseconds);
        assert_eq!(told, "a 1 1700000000045\n");
        assert_eq!(dated(text.to_owned(), &[], seconds), text);
    }

    #[test]
    fn the_older_text_names_families_as_their_samples() {
        let text = "# HELP a_seconds used.\n# TYPE a_seconds counter\n# UNIT a_seconds seconds\n\
                    a_seconds_total{x=\"# TYPE\"} 1.5\n# HELP b held.\n# TYPE b gauge\nb 2\n# EOF\n";
        assert_eq!(
            plain(text),
            "# HELP a_seconds_total used.\n# TYPE a_seconds_total counter\n\
             a_seconds_total{x=\"# TYPE\"} 1.5\n# HELP b held.\n# TYPE b gauge\nb 2\n"
        );
        let text = "# HELP kubelet_evictions gone.\n# TYPE kubelet_evictions counter\n\
                    kubelet_evictions_total{eviction_signal=\"a_total\"} 1\nkubelet_evictions_total 2\n";
        assert_eq!(
            plain(text),
            "# HELP kubelet_evictions gone.\n# TYPE kubelet_evictions counter\n\
             kubelet_evictions{eviction_signal=\"a_total\"} 1\nkubelet_evictions 2\n"
        );
    }
}
