//! `metrics.k8s.io/v1beta1`: what `kubectl top` and autoscalers ask for.
//!
//! What has no rate yet, such as a container that has just begun, is left out, as metrics-server does:
//! no figure is better than a wrong one.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::rate::Rate;
use super::{Figures, PodPlace, Readings};

/// The group and version.
pub const API_VERSION: &str = "metrics.k8s.io/v1beta1";

/// The node; `None` without figures.
pub fn node(readings: &Readings) -> Option<Value> {
    let (usage, rate, time) = usage(readings.node())?;
    Some(json!({
        "kind": "NodeMetrics",
        "apiVersion": API_VERSION,
        "metadata": {"name": readings.census.node, "creationTimestamp": stamp(time)},
        "timestamp": stamp(time),
        "window": window(rate.window),
        "usage": usage,
    }))
}

/// A pod with these labels; `None` while none of its containers has figures.
pub fn pod(readings: &Readings, pod: &PodPlace, labels: Option<&Value>) -> Option<Value> {
    let mut containers = Vec::new();
    let mut latest: Option<(Timestamp, Duration)> = None;
    for (container, figures) in readings.containers(pod) {
        let Some((usage, rate, time)) = usage(figures) else {
            continue;
        };
        latest = latest.max(Some((time, rate.window)));
        containers.push(json!({"name": container.name, "usage": usage}));
    }
    let (time, over) = latest?;
    let mut metadata = json!({
        "name": pod.name,
        "namespace": pod.namespace,
        "creationTimestamp": stamp(time),
    });
    if let (Some(fields), Some(labels)) = (metadata.as_object_mut(), labels) {
        fields.insert("labels".to_owned(), labels.clone());
    }
    Some(json!({
        "kind": "PodMetrics",
        "apiVersion": API_VERSION,
        "metadata": metadata,
        "timestamp": stamp(time),
        "window": window(over),
        "containers": containers,
    }))
}

/// CPU in billionths, rounded up as quantities are, and the working set in KiB.
fn usage(figures: Figures<'_>) -> Option<(Value, Rate, Timestamp)> {
    let rate = figures.cpu_rate()?;
    let memory = figures.now.sample.memory.working_set()?;
    let usage = json!({
        "cpu": format!("{}n", rate.nano_cores),
        "memory": format!("{}Ki", memory.0.div_ceil(1024)),
    });
    Some((usage, rate, figures.now.time))
}

/// Times of this group have whole seconds.
fn stamp(time: Timestamp) -> String {
    time.round(jiff::Unit::Second).unwrap_or(time).to_string()
}

/// A duration as Go writes it, in milliseconds at the finest.
fn window(window: Duration) -> String {
    let seconds = SignedDuration::try_from(window).unwrap_or(SignedDuration::MAX);
    format!("{}.{:03}s", seconds.as_secs(), seconds.subsec_millis())
}
