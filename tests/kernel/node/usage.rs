//! What pods use, as the API tells it and as the kernel's own files show it.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::daemon::{
    Anything, Daemon, cgroup_of, counter, create, file, get, pod, request, running_pid, wait,
};
use crate::Outcome;

tests![
    a_bounded_loop_uses_its_bound_and_is_throttled,
    the_working_set_is_what_is_held,
    what_is_written_is_told_by_device,
    cgroups_are_counted_as_the_kernel_counts_them,
];

/// The container `c` of the pod in the summary.
fn in_summary(name: &str) -> Anything<Value> {
    let summary = get("/stats/summary")?;
    let mut pods = summary["pods"].as_array().into_iter().flatten();
    let pod = pods
        .find(|pod| pod["podRef"]["name"] == name)
        .ok_or_else(|| format!("no {name} in {summary}"))?;
    Ok(pod["containers"][0].clone())
}

/// The value of a series of `/metrics` that the container `c` of the pod has.
fn metric(name: &str, pod: &str) -> Anything<f64> {
    metric_of(name, pod, "")
}

/// The same with more labels.
fn metric_of(name: &str, pod: &str, more: &str) -> Anything<f64> {
    let (_, text) = request("GET", "/metrics", None)?;
    let series = format!("{name}{{namespace=\"default\",pod=\"{pod}\",container=\"c\"{more}}} ");
    let value = text.lines().find_map(|line| line.strip_prefix(&series));
    Ok(value
        .ok_or_else(|| format!("no {series}in {text}"))?
        .parse()?)
}

fn one(command: &[&str], cpu: &str) -> Value {
    json!({"containers": [{
        "name": "c", "image": "i", "command": command,
        "resources": {"limits": {"cpu": cpu, "memory": "64Mi"}},
    }]})
}

fn a_bounded_loop_uses_its_bound_and_is_throttled() -> Outcome {
    let _daemon = Daemon::start()?;
    let busy = pod("busy", &one(&["sh", "-c", "while :; do :; done"], "200m"));
    let cgroup = cgroup_of(&create(&busy)?).join("c");
    running_pid("busy", "c")?;
    // The first round, and a window long enough that a period more or less is a small part of it.
    get("/stats/summary")?;
    std::thread::sleep(Duration::from_secs(4));
    let before = used(&cgroup)?;
    let container = in_summary("busy")?;
    let after = used(&cgroup)?;
    let nano = container["cpu"]["usageNanoCores"].as_u64().unwrap_or(0);
    assert!(nano.abs_diff(200_000_000) < 40_000_000, "{container}");
    let total = container["cpu"]["usageCoreNanoSeconds"].as_u64();
    let total = total.unwrap_or(0) / 1000;
    assert!(
        (before..=after).contains(&total),
        "{before} {total} {after}"
    );

    let throttled = counter(&cgroup, "cpu.stat", "nr_throttled")?;
    let withheld = counter(&cgroup, "cpu.stat", "throttled_usec")?;
    std::thread::sleep(Duration::from_millis(1100));
    let told = metric("container_cpu_cfs_throttled_periods_total", "busy")?;
    let later = counter(&cgroup, "cpu.stat", "nr_throttled")?;
    assert!(throttled > 5, "{throttled} periods");
    let told_between = (f64_of(throttled)..=f64_of(later)).contains(&told);
    assert!(told_between, "{throttled} {told} {later}");
    let told = metric("container_cpu_cfs_throttled_seconds_total", "busy")? * 1e6;
    let later = counter(&cgroup, "cpu.stat", "throttled_usec")?;
    assert!(withheld > 0, "nothing is withheld");
    // Seconds are no whole numbers: a microsecond may be lost either way.
    let told_between = (f64_of(withheld) - 1.0..=f64_of(later) + 1.0).contains(&told);
    assert!(told_between, "{withheld} {told} {later}");
    for (name, value) in [
        ("container_spec_cpu_quota", 20_000.0),
        ("container_spec_cpu_period", 100_000.0),
        ("container_spec_memory_limit_bytes", f64_of(64 << 20)),
        ("container_processes", 1.0),
    ] {
        let told = metric(name, "busy")?;
        assert!((told - value).abs() < 0.5, "{name}: {told}");
    }
    // The kernel keeps pressure (CONFIG_PSI) or it does not; what is told must say the same.
    let has_pressure = file(&cgroup, "cpu.pressure").is_ok();
    assert_eq!(container["cpu"].get("psi").is_some(), has_pressure);
    let waiting = metric("container_pressure_cpu_waiting_seconds_total", "busy");
    assert_eq!(waiting.is_ok(), has_pressure);

    // Report kubernetes-mixin#108: what the limit does to it, in words.
    let top = get("/apis/allotd.dev/v1/top")?;
    let throttling = &top["pods"][0]["containers"][0]["throttling"];
    let verdict = throttling["verdict"].as_str().unwrap_or("none");
    println!("measured: {verdict}");
    assert!(
        verdict.starts_with("the CPU limit of 200m is used up"),
        "{top}"
    );

    let metrics = get("/apis/metrics.k8s.io/v1beta1/namespaces/default/pods/busy")?;
    let cpu = metrics["containers"][0]["usage"]["cpu"].as_str();
    let cpu: u64 = cpu
        .and_then(|cpu| cpu.strip_suffix('n'))
        .ok_or("no cpu")?
        .parse()?;
    assert!(cpu.abs_diff(200_000_000) < 60_000_000, "{metrics}");
    Ok(())
}

/// Names and labels are cAdvisor's.
fn what_is_written_is_told_by_device() -> Outcome {
    super::storage::counting(super::storage::Disk::Ext4)?;
    let _daemon = Daemon::start()?;
    let script = "dd if=/dev/zero of=f bs=1M count=8 conv=fsync && echo done; sleep inf";
    create(&pod("writer", &one(&["sh", "-c", script], "500m")))?;
    wait("the writer", || {
        Ok(super::storage::log("writer")?.contains("done"))
    })?;
    let disk = std::fs::read_link("/dev/ext4")?;
    let device = format!(",device=\"/dev/{}\"", disk.display());
    let told = |name: &str| metric_of(name, "writer", &device);
    let bytes = told("container_fs_writes_bytes_total")?;
    assert!(
        (8.0 * 1_048_576.0..9.0 * 1_048_576.0).contains(&bytes),
        "{bytes}"
    );
    let writes = told("container_fs_writes_total")?;
    assert!((1.0..=2048.0).contains(&writes), "{writes}");
    // The program may have been read before.
    assert!(told("container_fs_reads_bytes_total")? >= 0.0);
    assert!(told("container_fs_reads_total")? >= 0.0);
    println!("measured: 8 MiB in {writes} writes, {bytes} bytes");
    let peak = metric("container_threads_peak", "writer")?;
    assert!((1.0..=8.0).contains(&peak), "{peak}");
    Ok(())
}

fn used(cgroup: &Path) -> Anything<u64> {
    counter(cgroup, "cpu.stat", "usage_usec")
}

/// Exact for what is counted here.
fn f64_of(n: u64) -> f64 {
    u32::try_from(n).map_or(f64::INFINITY, f64::from)
}

fn the_working_set_is_what_is_held() -> Outcome {
    const HELD: u64 = 24 << 20;
    let _daemon = Daemon::start()?;
    // What holds begins when its input ends, and a container has none.
    let holder = pod(
        "holder",
        &one(&["/init", "play", "hold-memory", "24"], "500m"),
    );
    let cgroup = cgroup_of(&create(&holder)?).join("c");
    running_pid("holder", "c")?;
    wait("the memory to be held", || {
        Ok(counter(&cgroup, "memory.stat", "anon")? > HELD)
    })?;
    std::thread::sleep(Duration::from_millis(1100));
    let container = in_summary("holder")?;
    let memory = &container["memory"];
    let figure = |name: &str| memory[name].as_u64().unwrap_or(0);
    let working_set = figure("workingSetBytes");
    assert!((HELD..HELD + (4 << 20)).contains(&working_set), "{memory}");
    // The files, read in another moment, when nothing changes any more.
    let current: u64 = file(&cgroup, "memory.current")?.parse()?;
    let stat = |key: &str| counter(&cgroup, "memory.stat", key);
    let near = |told: u64, found: u64| {
        assert!(told.abs_diff(found) < 256 << 10, "{told} {found}: {memory}");
    };
    near(figure("usageBytes"), current);
    near(working_set, current - stat("inactive_file")?);
    near(figure("rssBytes"), stat("anon")?);
    near(figure("availableBytes"), (64 << 20) - working_set);
    // One fault may bring in many pages, so only the kernel knows how many there were.
    let faults = stat("pgfault")?;
    assert!(
        (1..=faults).contains(&figure("pageFaults")),
        "{faults}: {memory}"
    );
    Ok(())
}

fn cgroups_are_counted_as_the_kernel_counts_them() -> Outcome {
    let _daemon = Daemon::start()?;
    let cgroup = cgroup_of(&create(&pod("idle", &one(&["sleep", "inf"], "500m")))?);
    running_pid("idle", "c")?;
    let top = cgroup.ancestors().find(|at| at.join("shims").is_dir());
    let top = top.ok_or("no top cgroup")?;
    let before = counter(top, "cgroup.stat", "nr_dying_descendants")?;
    let told = get("/apis/allotd.dev/v1/status")?;
    let live = counter(top, "cgroup.stat", "nr_descendants")?;
    assert!(live >= 5, "{live}");
    assert_eq!(told["cgroups"]["live"], live, "{told}");
    // Those of tests before may still go, and no others come.
    let after = counter(top, "cgroup.stat", "nr_dying_descendants")?;
    let dying = told["cgroups"]["dying"].as_u64().ok_or("no dying")?;
    assert!(
        (after..=before).contains(&dying),
        "{before} {dying} {after}"
    );
    Ok(())
}
