//! Figures as the text that scrapers read. Names are cAdvisor's and the kubelet's where they mean the
//! same.

mod containers;
mod descendants;
mod encode;
mod eviction;
mod quotas;
mod resource;

use prometheus_client::collector::Collector;
use prometheus_client::registry::Registry;
use serde_json::Value;

use super::stats::Readings;

/// The media type that scrapers negotiate for OpenMetrics.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// That of Prometheus' older text.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Which metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// What cAdvisor tells of containers, what quotas bound, and what the agent has counted.
    All,
    /// What a kubelet gives to metrics-server.
    Resource,
}

/// The metrics, and their media type: OpenMetrics for a scraper that accepts it, else the older text.
/// `quotas` are all of them, as readers of the API see them.
///
/// # Errors
/// The encoder failed; no figure leads to that.
pub fn metrics<'a>(
    readings: Readings,
    quotas: impl Iterator<Item = &'a Value>,
    scope: Scope,
    accept: &str,
) -> Result<(&'static str, String), std::fmt::Error> {
    let mut times = Vec::new();
    let collectors: Vec<Box<dyn Collector>> = match scope {
        Scope::All => vec![
            Box::new(containers::Containers(readings)),
            Box::new(quotas::Quotas::of(quotas)),
        ],
        Scope::Resource => {
            let resource = resource::Resource(readings);
            times = resource.times();
            vec![Box::new(resource)]
        }
    };
    let mut registry = Registry::default();
    for collector in collectors {
        registry.register_collector(collector);
    }
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(if encode::is_openmetrics(accept) {
        (OPENMETRICS, encode::dated(text, &times, encode::seconds))
    } else {
        let text = encode::plain(&text);
        (TEXT, encode::dated(text, &times, encode::milliseconds))
    })
}
