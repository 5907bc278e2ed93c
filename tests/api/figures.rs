//! Figures of node, pods and containers, in every form in which they are told.

use std::time::Instant;

use allotd::cgroup::ModelKernel;
use allotd::cgroup::Sample;
use allotd::server::Bounds;
use allotd::units::{Bytes, HugePageSize};
use serde_json::json;

use crate::busy;
use crate::server::{PODS, Server, pod};

const METRICS: &str = "/apis/metrics.k8s.io/v1beta1";

#[test]
fn the_summary_has_what_the_kernel_shows() {
    let (server, _process) = busy::server();
    let summary = server.get("/stats/summary").json();
    let node = &summary["node"];
    assert_eq!(node["nodeName"], "node");
    assert!(node["cpu"]["usageNanoCores"].is_u64(), "{node}");
    assert!(node["memory"]["workingSetBytes"].as_u64() > Some(1 << 20));
    assert!(node["fs"]["capacityBytes"].as_u64() > Some(1 << 20));
    assert!(node["rlimit"]["curproc"].as_u64() > Some(1));
    let levels = node["systemContainers"].as_array().unwrap();
    let names: Vec<_> = levels.iter().map(|level| &level["name"]).collect();
    assert_eq!(names, ["pods", "burstable", "besteffort"], "{node}");
    assert!(
        levels
            .iter()
            .all(|level| level["memory"]["usageBytes"].is_u64()),
        "{node}"
    );
    let pod = &summary["pods"][0];
    assert_eq!(pod["podRef"]["name"], "web");
    assert_eq!(pod["process_stats"]["process_count"], 1);
    assert!(pod["ephemeral-storage"]["usedBytes"].is_u64(), "{pod}");
    let container = &pod["containers"][0];
    assert_eq!(container["name"], "c");
    let nano = container["cpu"]["usageNanoCores"].as_u64().unwrap();
    assert!(nano.abs_diff(250_000_000) < 25_000_000, "{nano}");
    let memory = &container["memory"];
    assert_eq!(memory["usageBytes"], 16 << 20);
    assert_eq!(memory["workingSetBytes"], 12 << 20);
    assert_eq!(memory["rssBytes"], 12 << 20);
    assert_eq!(memory["availableBytes"], (64 - 12) << 20);
    assert_eq!(container["swap"]["swapUsageBytes"], 0);
    assert!(
        memory.get("psi").is_none() && memory.get("pageFaults").is_none(),
        "the model has none: {memory}"
    );
    let less = server.get("/stats/summary?only_cpu_and_memory=true").json();
    assert!(less["node"].get("fs").is_none(), "{less}");
    assert!(less["pods"][0]["containers"][0]["cpu"].is_object());
}

#[test]
fn askers_share_one_read() {
    let (server, _process) = busy::server();
    let first = server.get("/stats/summary").json();
    let start = Instant::now();
    let again = server.get("/stats/summary").json();
    let time = |summary: &serde_json::Value| summary["pods"][0]["cpu"]["time"].clone();
    // A busy host may take so long that the first is too old by then.
    if start.elapsed().as_millis() < 500 {
        assert_eq!(time(&first), time(&again));
    }
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_ne!(time(&first), time(&server.get("/stats/summary").json()));
}

#[test]
fn kubectl_top_is_answered() {
    let (server, _process) = busy::server();
    let nodes = server.get(&format!("{METRICS}/nodes")).json();
    assert_eq!(nodes["kind"], "NodeMetricsList");
    assert_eq!(nodes["items"][0]["metadata"]["name"], "node");
    let pods = format!("{METRICS}/namespaces/default/pods");
    let listed = server
        .get(&format!("{pods}?labelSelector=app%3Dweb"))
        .json();
    let web = &listed["items"][0];
    assert_eq!(web["kind"], "PodMetrics", "{listed}");
    assert_eq!(web["metadata"]["labels"]["app"], "web");
    assert_eq!(web["containers"][0]["usage"]["memory"], "12288Ki");
    let cpu = web["containers"][0]["usage"]["cpu"].as_str().unwrap();
    assert!(cpu.ends_with('n'), "{cpu}");
    for (path, status, items) in [
        (format!("{pods}?labelSelector=app%3Dother"), 200, Some(0)),
        (format!("{METRICS}/namespaces/other/pods"), 200, Some(0)),
        (format!("{METRICS}/pods"), 200, Some(1)),
        (format!("{pods}/web"), 200, None),
        (format!("{pods}/other"), 404, None),
        (format!("{METRICS}/nodes/node"), 200, None),
        (format!("{METRICS}/nodes/other"), 404, None),
    ] {
        let answer = server.get(&path);
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        let list = answer.json()["items"].as_array().map(Vec::len);
        assert_eq!(list, items, "{path}");
    }
    let resources = server.get(METRICS).json();
    assert_eq!(resources["resources"][1]["kind"], "PodMetrics");
}

#[test]
fn metrics_have_the_names_that_dashboards_know_and_end_with_the_pod() {
    let (server, _process) = busy::server();
    let c = "{namespace=\"default\",pod=\"web\",container=\"c\"}";
    let d = "{namespace=\"default\",pod=\"web\",container=\"c\",device=\"4095:3\"}";
    let text = server.get("/metrics").body;
    for line in [
        "# TYPE container_cpu_usage_seconds_total counter".to_owned(),
        format!("container_memory_usage_bytes{c} 16777216"),
        format!("container_memory_working_set_bytes{c} 12582912"),
        format!("container_memory_rss{c} 12582912"),
        format!("container_spec_cpu_quota{c} 50000"),
        format!("container_spec_cpu_period{c} 100000"),
        format!("container_spec_cpu_shares{c} 512"),
        format!("container_spec_memory_limit_bytes{c} 67108864"),
        format!("container_cpu_cfs_periods_total{c} 0"),
        format!("container_processes{c} 1"),
        format!("container_threads{c} 1"),
        format!("container_oom_events_total{c} 0"),
        format!("container_threads_peak{c} 7"),
        format!("container_fs_reads_bytes_total{d} 4096"),
        format!("container_fs_writes_bytes_total{d} 8192"),
        format!("container_fs_reads_total{d} 1"),
        format!("container_fs_writes_total{d} 2"),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let resource = server.get("/metrics/resource").body;
    for start in [
        "node_cpu_usage_seconds_total ",
        "node_memory_working_set_bytes ",
        "pod_memory_working_set_bytes{namespace=\"default\",pod=\"web\"} 12582912",
        "container_memory_working_set_bytes{container=\"c\",namespace=\"default\",pod=\"web\"} 12582912",
        "container_cpu_usage_seconds_total{container=\"c\",",
        "container_start_time_seconds{container=\"c\",",
        "container_swap_usage_bytes{container=\"c\",",
        "resource_scrape_error 0",
    ] {
        let found = resource.lines().any(|line| line.starts_with(start));
        assert!(found, "{start}\n{resource}");
    }
    // As with the kubelet: of which moment a figure of a cgroup is (ms since 1970), and only of those.
    for line in resource.lines().filter(|line| !line.starts_with('#')) {
        let is_read = !line.starts_with("container_start") && !line.starts_with("resource_");
        let words: Vec<_> = line.split(' ').collect();
        assert_eq!(words.len(), if is_read { 3 } else { 2 }, "{line}");
        if is_read {
            let time: i64 = words[2].parse().unwrap();
            let age = jiff::Timestamp::now().as_millisecond() - time;
            assert!((0..60_000).contains(&age), "{line}");
        }
    }
    for text in [&text, &resource] {
        assert!(!text.contains("_total_total"), "{text}");
        assert!(!text.contains("pressure"), "the model has none: {text}");
    }
    server.send(
        "DELETE",
        &format!("{PODS}/web?gracePeriodSeconds=0"),
        "",
        "",
    );
    let start = Instant::now();
    while server.get("/metrics").body.contains("pod=\"web\"") {
        assert!(start.elapsed().as_secs() < 30, "the series are still there");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

#[test]
fn scrapers_get_the_form_they_accept() {
    let server = Server::start();
    for (accept, kind, end) in [
        ("", "text/plain; version=0.0.4; charset=utf-8", ""),
        (
            "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            "# EOF\n",
        ),
    ] {
        for path in ["/metrics", "/metrics/resource"] {
            let answer = server.send("GET", path, accept, "");
            let head = format!("content-type: {kind}\r\n");
            assert!(answer.head.contains(&head), "{}", answer.head);
            assert!(answer.body.ends_with(end), "{}", answer.body);
            assert_eq!(answer.body.contains("# EOF"), !end.is_empty());
        }
    }
}

/// What the kernel holds of removed cgroups is told to scrapers and in the status; what it does not tell is
/// absent.
#[test]
fn dying_cgroups_are_told_as_far_as_the_kernel_counts_them() {
    for dying in [Some(68_680), None] {
        let kernel = ModelKernel::default().with_dying(dying);
        let server = Server::start_on(Bounds::default(), kernel);
        assert_eq!(server.create(&pod("web", "500m")).status, 201);
        let status = server.get("/apis/allotd.dev/v1/status").json();
        // Both levels, the shims, the pod and its container.
        let expected = dying.map_or(json!({"live": 5}), |n| json!({"live": 5, "dying": n}));
        assert_eq!(status["cgroups"], expected);
        let text = server.get("/metrics").body;
        let has = |line: &str| text.lines().any(|told| told == line);
        assert!(has("allotd_cgroup_descendants{level=\"pods\"} 5"), "{text}");
        let told = "allotd_cgroup_dying_descendants{level=\"pods\"} 68680";
        assert_eq!(has(told), dying.is_some(), "{text}");
        let any = text.contains("allotd_cgroup_dying_descendants{");
        assert_eq!(any, dying.is_some(), "{text}");
    }
}

/// Report containerd#12596: `hugetlb.SIZE.events` holds a key and a value, and is no number; a file that makes no
/// sense costs its own figure alone, and nobody's log.
#[test]
fn events_of_huge_pages_are_told_and_what_is_damaged_hides_nothing_else() {
    let sizes = [HugePageSize::TWO_MIB, HugePageSize::ONE_GIB];
    let read = |events: &str| {
        let files = [
            ("hugetlb.2MB.events", events),
            ("hugetlb.1GB.events", "max 0\n"),
            ("hugetlb.2MB.current", "2097152\n"),
            ("memory.current", "4096\n"),
            ("pids.events", "max 4\n"),
        ];
        let sample = Sample::read(&sizes, |name| {
            let found = files.iter().find(|(file, _)| *file == name);
            Ok::<_, std::io::Error>(found.map(|(_, text)| (*text).to_owned()))
        });
        sample.unwrap()
    };
    let right = read("future 9\nmax 3\n");
    let told = [(HugePageSize::TWO_MIB, 3), (HugePageSize::ONE_GIB, 0)];
    assert_eq!(right.huge_pages_refused, told);
    for damaged in ["", "3", "max", "max three\n", "\u{0}\u{fffd}\n"] {
        let sample = read(damaged);
        assert_eq!(sample.huge_pages_refused, told[1..], "{damaged:?}");
        assert_eq!(sample.huge_pages, [(HugePageSize::TWO_MIB, Bytes::mib(2))]);
        assert_eq!(sample.memory.current, Some(Bytes(4096)));
        assert_eq!(sample.pids.refused, Some(4));
    }
    let (server, _process) = busy::server();
    let text = server.get("/metrics").body;
    for (size, count) in [("2MB", 3), ("1GB", 0)] {
        let line = format!(
            "container_hugetlb_failcnt_total{{namespace=\"default\",pod=\"web\",container=\"c\",pagesize=\"{size}\"}} {count}"
        );
        assert!(text.lines().any(|told| told == line), "{line}\n{text}");
    }
}
