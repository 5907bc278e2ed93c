//! Real Prometheus, as Debian 12 has it, scrapes a real agent on the model kernel through `allot proxy`:
//! what it stores is what the agent tells elsewhere, and it has nothing to complain of.
//!
//! Not for a plain `cargo test`: `scripts/prometheus` fetches it first, and `scripts/test` runs both.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

#[path = "../support/busy.rs"]
mod busy;
#[path = "../support/proxy.rs"]
mod proxy;
#[path = "../api/server.rs"]
#[allow(dead_code)]
mod server;

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::proxy::Proxy;
use self::server::{PODS, Server};

/// Longer than anything here takes on a busy machine; what takes longer does not come.
const PATIENCE: Duration = Duration::from_secs(50);

/// A program that ends with its owner.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A Prometheus that scrapes a server.
struct Prometheus {
    address: String,
    home: tempfile::TempDir,
    _programs: (Proxy, Running),
}

impl Prometheus {
    fn of(server: &Server) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = root.join("target/prometheus/prometheus");
        assert!(
            program.exists(),
            "{} is missing: scripts/prometheus fetches it",
            program.display()
        );
        let proxy = Proxy::before(server);
        let target = &proxy.address;
        let home = tempfile::tempdir().unwrap();
        let job = |name: &str, path: &str| json!({"job_name": name, "metrics_path": path, "static_configs": [{"targets": [target]}]});
        let config = json!({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": [job("all", "/metrics"), job("resource", "/metrics/resource")],
        });
        std::fs::write(home.path().join("config"), config.to_string()).unwrap();
        // Prometheus does not say which port it got, so one that was free a moment ago must do.
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        let log = File::create(home.path().join("log")).unwrap();
        let prometheus = Command::new(program)
            .current_dir(home.path())
            .args(["--config.file=config", "--storage.tsdb.path=data"])
            .arg(format!("--web.listen-address={address}"))
            .args(["--log.level=debug", "--log.format=json"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Self {
            address,
            home,
            _programs: (proxy, Running(prometheus)),
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.home.path().join("log")).unwrap()
    }

    /// The series that a query gives now: their labels, and the value. `None` while nobody answers.
    fn query(&self, query: &str) -> Option<Vec<(Value, f64)>> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let body = format!("query={}", escaped(query));
        write!(
            stream,
            "POST /api/v1/query HTTP/1.0\r\nHost: localhost\r\nContent-Length: {}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\n\r\n{body}",
            body.len()
        )
        .ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        let answer: Value = serde_json::from_str(body).ok()?;
        // While it starts, it answers that it is not ready.
        let series = answer["data"]["result"].as_array()?;
        let value = |series: &Value| series["value"][1].as_str().unwrap().parse().unwrap();
        Some(
            series
                .iter()
                .map(|series| (series["metric"].clone(), value(series)))
                .collect(),
        )
    }

    /// The one value of a query.
    fn value(&self, query: &str) -> f64 {
        let series = self.query(query).unwrap();
        assert_eq!(series.len(), 1, "{query}: {series:?}");
        series[0].1
    }

    /// Waits until a query gives so many series.
    fn wait(&self, query: &str, count: usize) {
        let start = Instant::now();
        loop {
            let series = self.query(query);
            if series.as_ref().is_some_and(|series| series.len() == count) {
                return;
            }
            let late = start.elapsed() > PATIENCE;
            assert!(!late, "{query}: {series:?}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

/// Everything but letters and digits as `%XX`.
fn escaped(text: &str) -> String {
    let bytes = text.bytes();
    bytes
        .map(|byte| match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

fn near(found: f64, expected: f64, by: f64) {
    assert!((found - expected).abs() <= by, "{found} is not {expected}");
}

/// Exact for what is counted here.
fn f64_of(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value}"))
}

/// The container of the pod, in labels.
const CONTAINER: &str = "namespace=\"default\",pod=\"web\",container=\"c\"";

#[test]
fn what_prometheus_stores_is_what_the_agent_tells() {
    let (server, _process) = busy::server();
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"},
        "spec": {"hard": {"pods": "3", "requests.cpu": "1500m", "limits.memory": "1Gi"}}});
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    let created = server.send("POST", quotas, "", &quota.to_string());
    assert_eq!(created.status, 201, "{created:?}");
    let prometheus = Prometheus::of(&server);
    prometheus.wait("up == 1", 2);
    // Enough for a rate.
    prometheus.wait("count_over_time(up{job=\"all\"}[1m]) >= 11", 1);

    figures_are_those_of_the_summary(&prometheus, &server);
    counters_go_on(&prometheus, &server);
    series_go_with_their_pod(&prometheus, &server);
    prometheus_is_content(&prometheus);
}

fn figures_are_those_of_the_summary(prometheus: &Prometheus, server: &Server) {
    let summary = server.get("/stats/summary").json();
    let pod = &summary["pods"][0];
    let container = &pod["containers"][0];
    let memory = f64_of(&container["memory"]["workingSetBytes"]);
    for (series, expected) in [
        (
            format!("container_memory_working_set_bytes{{job=\"all\",{CONTAINER}}}"),
            memory,
        ),
        (
            format!("container_memory_working_set_bytes{{job=\"resource\",{CONTAINER}}}"),
            memory,
        ),
        (
            "pod_memory_working_set_bytes{namespace=\"default\",pod=\"web\"}".to_owned(),
            f64_of(&pod["memory"]["workingSetBytes"]),
        ),
        (
            format!("container_memory_usage_bytes{{{CONTAINER}}}"),
            f64_of(&container["memory"]["usageBytes"]),
        ),
        (
            format!("container_memory_rss{{{CONTAINER}}}"),
            f64_of(&container["memory"]["rssBytes"]),
        ),
        (format!("container_oom_events_total{{{CONTAINER}}}"), 0.0),
        (
            format!("container_spec_memory_limit_bytes{{{CONTAINER}}}"),
            67_108_864.0,
        ),
        (format!("container_spec_cpu_quota{{{CONTAINER}}}"), 50_000.0),
        (
            format!("container_spec_cpu_period{{{CONTAINER}}}"),
            100_000.0,
        ),
        (
            format!(
                "container_spec_memory_limit_bytes{{{CONTAINER}}} - container_memory_working_set_bytes{{job=\"all\",{CONTAINER}}}"
            ),
            f64_of(&container["memory"]["availableBytes"]),
        ),
        (
            "kube_resourcequota{resource=\"requests.cpu\",type=\"hard\"}".to_owned(),
            1.5,
        ),
        (
            "kube_resourcequota{resource=\"requests.cpu\",type=\"used\"}".to_owned(),
            0.5,
        ),
        (
            "kube_resourcequota{resourcequota=\"few\",resource=\"limits.memory\",type=\"used\"}"
                .to_owned(),
            67_108_864.0,
        ),
        ("resource_scrape_error".to_owned(), 0.0),
        ("allotd_pods_admitted_total".to_owned(), 1.0),
    ] {
        near(prometheus.value(&series), expected, 0.0);
    }
    // The figures of /metrics/resource are of the time at which they were read.
    let age = prometheus.value("time() - timestamp(pod_memory_working_set_bytes)");
    assert!((0.0..10.0).contains(&age), "{age} s old");
}

fn counters_go_on(prometheus: &Prometheus, server: &Server) {
    // A counter goes on while it is read: what the summary says lies between two looks of Prometheus.
    let seconds = format!("container_cpu_usage_seconds_total{{job=\"all\",{CONTAINER}}}");
    let before = prometheus.value(&seconds);
    let told = server.get("/stats/summary").json();
    let told = f64_of(&told["pods"][0]["containers"][0]["cpu"]["usageCoreNanoSeconds"]) / 1e9;
    let newer = format!("{seconds} > {told}");
    prometheus.wait(&newer, 1);
    let after = prometheus.value(&seconds);
    assert!(before <= told && told < after, "{before} {told} {after}");
    // A quarter of a CPU; what is told may be a second old at both ends.
    let rate = prometheus.value(&format!("rate({seconds}[10s])"));
    near(rate, 0.25, 0.06);
}

fn series_go_with_their_pod(prometheus: &Prometheus, server: &Server) {
    let pods = "{pod=\"web\"}";
    assert!(prometheus.query(pods).unwrap().len() > 30);
    let path = format!("{PODS}/web?gracePeriodSeconds=0");
    server.send("DELETE", &path, "", "");
    prometheus.wait("{pod=\"web\",job=\"all\"}", 0);
    // What has a time of its own gets no mark at its end: Prometheus shows the last figure for five minutes.
    // There must be no newer one.
    prometheus.wait("time() - timestamp(pod_memory_working_set_bytes) > 4", 1);
    prometheus.wait("up == 1", 2);
    let used = "kube_resourcequota{resource=\"pods\",type=\"used\"}";
    prometheus.wait(&format!("{used} == 0"), 1);
}

fn prometheus_is_content(prometheus: &Prometheus) {
    for (_, samples) in prometheus
        .query("scrape_samples_post_metric_relabeling")
        .unwrap()
    {
        assert!(samples > 0.0);
    }
    prometheus.wait("min_over_time(up[5m]) == 1", 2);
    let log = prometheus.log();
    for complaint in [
        "duplicate",
        "out-of-order",
        "out of order",
        "Append failed",
        "Scrape failed",
    ] {
        let mut lines = log.lines();
        let found = lines.find(|line| line.to_lowercase().contains(&complaint.to_lowercase()));
        assert_eq!(found, None, "Prometheus complains");
    }
}
