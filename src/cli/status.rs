//! `allot status`: the daemon and the node on one screen.

use std::io::Write;

use k8s_openapi::List;
use k8s_openapi::api::core::v1::{Node, Pod};

use super::describe::node::{Running, allocated, base};
use super::error::{CliError, WARNING};
use super::render::{Page, clean};
use super::target::Target;
use super::{Context, OutputForm};
use crate::exit;
use crate::report::StatusReport;
use crate::report::age::duration;
use crate::report::descendants::CgroupCounts;

/// Show how the daemon and the node are
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    pub output: OutputForm,
}

/// Shows the state; exit code 1 where the daemon tells of a problem.
///
/// # Errors
/// No daemon, or output that cannot be written.
pub fn run(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let client = context.client()?;
    let report: StatusReport = client.get(&Target::new(&["apis", "allotd.dev", "v1", "status"]))?;
    if !args.output.write(&report, out)? {
        let node: Node = client.get(&Target::objects(None, "nodes").below(&report.node))?;
        let pods: List<Pod> = client.get(&Target::objects(None, "pods"))?;
        write!(out, "{}", page(&report, &node, &pods.items))?;
        for problem in &report.problems {
            writeln!(out, "{WARNING}problem{WARNING:#}: {}", clean(problem))?;
        }
        for note in &report.notes {
            writeln!(out, "note: {}", clean(note))?;
        }
    }
    Ok(if report.problems.is_empty() {
        exit::OK
    } else {
        exit::ERROR
    })
}

fn page(report: &StatusReport, node: &Node, pods: &[Pod]) -> Page {
    let mut page = Page::description();
    let up = duration(i64::try_from(report.uptime_seconds).unwrap_or(i64::MAX));
    page.row(0, &[&"allotd:", &format!("{}, up {up}", report.version)]);
    page.texts(0, &["Node:", &report.node]);
    page.texts(0, &["Cgroups:", &report.cgroup_root]);
    let mut controllers = report.controllers.join(" ");
    if !report.missing_controllers.is_empty() {
        controllers.push_str(" (missing: ");
        controllers.push_str(&report.missing_controllers.join(" "));
        controllers.push(')');
    }
    page.texts(0, &["Controllers:", &controllers]);
    let running = report.running_containers;
    let pod_count = format!("{}, {running} containers running", report.pods);
    page.texts(0, &["Pods:", &pod_count]);
    if let Some(many) = report.cgroups.and_then(CgroupCounts::many) {
        page.row(0, &[&"Dying:", &many]);
    }
    let tallies = &report.tallies;
    let counts = [
        (tallies.admitted, "admitted"),
        (tallies.refused, "refused"),
        (tallies.restarts, "restarts"),
        (tallies.oom_kills, "OOM kills"),
        (tallies.drifts, "foreign changes undone"),
        (tallies.failures, "operations refused by the kernel"),
    ];
    let counts: Vec<_> = counts
        .iter()
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let causes = tallies.causes.iter();
    let causes: Vec<_> = causes
        .map(|(cause, count)| format!("{count} {cause}"))
        .collect();
    page.texts(0, &["Since start:", &counts.join(", ")]);
    if !causes.is_empty() {
        page.texts(0, &["Refused for:", &causes.join(", ")]);
    }
    page.texts(0, &["Allocated:"]);
    allocated(&mut page, &Running::of(pods), &base(node));
    page
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_stands_on_one_screen() {
        let report: StatusReport = serde_json::from_value(json!({
            "version": "0.1.0", "node": "n1", "cgroupRoot": "/sys/fs/cgroup/allot",
            "controllers": ["cpu", "memory"], "missingControllers": ["hugetlb"],
            "pods": 1, "runningContainers": 2, "uptimeSeconds": 7500,
            "tallies": {"admitted": 3, "refused": 1, "causes": {"ExceededQuota": 1}, "drifts": 0, "failures": 0, "oomKills": 2,
                "restarts": 4},
            "problems": [],
            "cgroups": {"live": 240, "dying": 68680}
        }))
        .unwrap();
        let node = serde_json::from_value(json!({
            "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "2", "memory": "1Gi"}}
        }))
        .unwrap();
        let pod = serde_json::from_value(json!({
            "metadata": {"name": "a"}, "status": {"phase": "Running"},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]}
        }))
        .unwrap();
        let many = report.cgroups.and_then(CgroupCounts::many).unwrap();
        let dying = format!("Dying:        {many}\n");
        assert!(dying.contains("68680"));
        assert_eq!(
            page(&report, &node, &[pod]).to_string().replace(&dying, ""),
            "\
allotd:       0.1.0, up 125m
Node:         n1
Cgroups:      /sys/fs/cgroup/allot
Controllers:  cpu memory (missing: hugetlb)
Pods:         1, 2 containers running
Since start:  3 admitted, 1 refused, 4 restarts, 2 OOM kills, 0 foreign changes undone, 0 operations refused by the kernel
Refused for:  1 ExceededQuota
Allocated:
  Resource           Requests    Limits
  --------           --------    ------
  cpu                500m (25%)  0 (0%)
  memory             0 (0%)      0 (0%)
  ephemeral-storage  0 (0%)      0 (0%)
"
        );
    }
}
