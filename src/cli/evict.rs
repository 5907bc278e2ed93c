//! `allot evict`: what the node has left, which pods would go for lack of it, and one that goes by hand.

use std::fmt::Write as _;
use std::io::Write;

use serde_json::{Value, json};

use super::error::CliError;
use super::oom::size;
use super::render::Page;
use super::target::Target;
use super::{Context, OutputForm, pod_name};
use crate::exit;
use crate::report::eviction::{EvictionReport, Order, SignalRow, ThresholdRow};

/// Show what the node has left and which pods would be evicted, in which order and why
///
/// With the name of a pod and without --dry-run, that pod is evicted: it ends, and stays as failed.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Evict this pod, whatever the node has left
    #[arg(value_name = "[NAMESPACE/]POD", required_unless_present = "dry_run")]
    pub pod: Option<String>,
    /// Only show what would become of all pods
    #[arg(long, conflicts_with = "pod")]
    pub dry_run: bool,
    /// Seconds between SIGTERM and SIGKILL at the most [default: the pod's own]
    #[arg(long, value_name = "SECONDS", conflicts_with = "dry_run")]
    pub grace_period: Option<u64>,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    pub output: OutputForm,
}

/// Shows or evicts.
///
/// # Errors
/// No daemon, a refusal, or output that cannot be written.
pub fn run(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let client = context.client()?;
    let Some(pod) = &args.pod else {
        let target = Target::new(&["apis", "allotd.dev", "v1", "eviction"]);
        let report: EvictionReport = client.get(&target)?;
        if !args.output.write(&report, out)? {
            write!(out, "{}", text(&report))?;
        }
        return Ok(exit::OK);
    };
    let (namespace, name) = pod_name(pod, context)?;
    let target = Target::own_pod(namespace, name).below("evict");
    let body = json!({"graceSeconds": args.grace_period});
    let answer = client.post::<Value>(&target, &body)?;
    if !args.output.write(&answer.object, out)? {
        writeln!(out, "pod/{name} evicted")?;
    }
    Ok(exit::OK)
}

/// The whole report for people.
pub fn text(report: &EvictionReport) -> String {
    let mut text = String::new();
    let mut page = Page::description();
    let heads = [
        "SIGNAL",
        "PATH",
        "AVAILABLE",
        "THRESHOLD",
        "MET",
        "DECIDED BY",
    ];
    page.texts(0, &heads);
    let watched = report
        .signals
        .iter()
        .filter(|row| !row.thresholds.is_empty());
    for row in watched.clone() {
        for threshold in &row.thresholds {
            page.texts(0, &signal(row, threshold));
        }
    }
    let _ = write!(text, "{page}");
    for row in watched {
        for (name, amount) in &row.others {
            let amount = shown(is_bytes(&row.signal), *amount);
            let _ = writeln!(
                text,
                "{} by {name} would be {amount}; it decides nothing",
                row.signal
            );
        }
    }
    if !report.conditions.is_empty() {
        let _ = writeln!(text, "\nThe node has {}.", report.conditions.join(", "));
    }
    if let Some(pod) = &report.ending {
        let _ = writeln!(
            text,
            "Pod {pod} is being evicted; nobody else goes before it is gone, or for 30 s."
        );
    }
    for note in &report.notes {
        let _ = writeln!(text, "note: {note}");
    }
    for order in &report.orders {
        let _ = write!(text, "\n{}", self::order(order));
    }
    text
}

fn signal(row: &SignalRow, threshold: &ThresholdRow) -> [String; 6] {
    let bytes = is_bytes(&row.signal);
    let available = match (row.available, row.capacity) {
        (Some(available), Some(capacity)) => {
            format!("{} of {}", shown(bytes, available), shown(bytes, capacity))
        }
        _ => row.state.clone(),
    };
    let setting = match threshold.grace_seconds {
        Some(grace) => format!("{} for {grace}s", threshold.setting),
        None => threshold.setting.clone(),
    };
    let met = match (row.available, threshold.met) {
        (None, _) => "-",
        (_, true) => "yes",
        (_, false) => "no",
    };
    [
        row.signal.clone(),
        row.path.clone(),
        available,
        setting,
        met.to_owned(),
        row.decided_by
            .clone()
            .or_else(|| row.why.clone())
            .unwrap_or_default(),
    ]
}

fn order(order: &Order) -> String {
    let at = if order.path.is_empty() {
        String::new()
    } else {
        format!(" on {}", order.path)
    };
    let mut text = format!("For {}{at} ({})", order.resource, order.signals.join(", "));
    text.push_str(if order.pods.is_empty() {
        " nobody would go.\n"
    } else {
        " would go, the first first:\n"
    });
    if !order.pods.is_empty() {
        let bytes = matches!(order.resource.as_str(), "memory" | "ephemeral-storage");
        let mut page = Page::description();
        page.texts(1, &["POD", "QOS", "PRIORITY", "FREES", "REQUEST", "WHY"]);
        for pod in &order.pods {
            let request = pod
                .request
                .map_or_else(|| "-".to_owned(), |amount| shown(bytes, amount));
            page.texts(
                1,
                &[
                    &format!("{}/{}", pod.namespace, pod.name),
                    &pod.qos,
                    &pod.priority.to_string(),
                    &shown(bytes, pod.frees),
                    &request,
                    &pod.why,
                ],
            );
        }
        let _ = write!(text, "{page}");
    }
    for pod in &order.spared {
        let _ = writeln!(text, "  not {}/{}: {}", pod.namespace, pod.name, pod.why);
    }
    text
}

fn is_bytes(signal: &str) -> bool {
    signal.ends_with(".available") && signal != "pid.available"
}

fn shown(bytes: bool, amount: u64) -> String {
    if bytes {
        size(amount)
    } else {
        amount.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::eviction::{SparedRow, VictimRow};

    fn row(signal: &str, path: &str, figures: Option<(u64, u64)>, decided_by: &str) -> SignalRow {
        SignalRow {
            signal: signal.to_owned(),
            path: path.to_owned(),
            state: if figures.is_some() {
                "known"
            } else {
                "unknown"
            }
            .to_owned(),
            why: None,
            available: figures.map(|it| it.0),
            capacity: figures.map(|it| it.1),
            decided_by: Some(decided_by.to_owned()),
            others: std::collections::BTreeMap::new(),
            thresholds: vec![ThresholdRow {
                kind: "hard".to_owned(),
                setting: "100Mi".to_owned(),
                amount: Some(100 << 20),
                minimum_reclaim: None,
                grace_seconds: None,
                met: signal == "memory.available",
                met_seconds: None,
            }],
        }
    }

    fn report() -> EvictionReport {
        let mut memory = row(
            "memory.available",
            "",
            Some((80 << 20, 8 << 30)),
            "MemAvailable",
        );
        let mut soft = memory.thresholds[0].clone();
        soft.setting = "1Gi".to_owned();
        soft.grace_seconds = Some(90);
        memory.thresholds.push(soft);
        memory
            .others
            .insert("MemTotal less working set".to_owned(), 1 << 30);
        EvictionReport {
            time: jiff::Timestamp::UNIX_EPOCH,
            conditions: vec!["MemoryPressure".to_owned()],
            ending: Some("default/gone".to_owned()),
            notes: vec!["stalls are seen late".to_owned()],
            signals: vec![
                memory,
                row(
                    "allocatableMemory.available",
                    "",
                    Some((4 << 30, 8 << 30)),
                    "memory.max",
                ),
                row(
                    "nodefs.inodesFree",
                    "/var/lib/allotd",
                    Some((1_234_567, 6_553_600)),
                    "statvfs",
                ),
                row("pid.available", "", None, ""),
                SignalRow {
                    thresholds: Vec::new(),
                    ..row("imagefs.available", "", None, "")
                },
            ],
            orders: vec![Order {
                signals: vec![
                    "memory.available".to_owned(),
                    "allocatableMemory.available".to_owned(),
                ],
                resource: "memory".to_owned(),
                path: String::new(),
                pods: vec![VictimRow {
                    namespace: "default".to_owned(),
                    name: "leak".to_owned(),
                    uid: "u".to_owned(),
                    qos: "BestEffort".to_owned(),
                    priority: 0,
                    frees: 300 << 20,
                    request: Some(0),
                    why: "asked for nothing".to_owned(),
                }],
                spared: vec![SparedRow {
                    namespace: "kube-system".to_owned(),
                    name: "dns".to_owned(),
                    why: "critical: priority 2000000000".to_owned(),
                }],
            }],
        }
    }

    #[test]
    fn the_report_reads_well_in_a_hundred_columns() {
        let text = text(&report());
        assert_eq!(
            text,
            "\
SIGNAL                       PATH             AVAILABLE           THRESHOLD    MET  DECIDED BY
memory.available                              80Mi of 8Gi         100Mi        yes  MemAvailable
memory.available                              80Mi of 8Gi         1Gi for 90s  yes  MemAvailable
allocatableMemory.available                   4Gi of 8Gi          100Mi        no   memory.max
nodefs.inodesFree            /var/lib/allotd  1234567 of 6553600  100Mi        no   statvfs
pid.available                                 unknown             100Mi        -
memory.available by MemTotal less working set would be 1Gi; it decides nothing

The node has MemoryPressure.
Pod default/gone is being evicted; nobody else goes before it is gone, or for 30 s.
note: stalls are seen late

For memory (memory.available, allocatableMemory.available) would go, the first first:
  POD           QOS         PRIORITY  FREES  REQUEST  WHY
  default/leak  BestEffort  0         300Mi  0        asked for nothing
  not kube-system/dns: critical: priority 2000000000
"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 100));
    }
}
