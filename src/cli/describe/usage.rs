//! What a pod uses now, as a table in its description: beyond kubectl, which has to ask elsewhere.

use crate::cli::render::Page;
use crate::report::{CgroupUsage, PodUsage};

/// The table; a figure that cannot be had is `-`, never 0.
pub fn write(page: &mut Page, usage: &PodUsage) {
    page.texts(0, &["Usage:"]);
    page.heading(
        1,
        &[
            "",
            "Memory",
            "Peak",
            "PIDs",
            "PIDs Peak",
            "Forks Refused",
            "CPU",
            "Throttled",
            "Logs",
            "Scratch",
            "OOM Kills",
        ],
    );
    let kills = usage.containers.iter().map(|container| container.oom_kills);
    let sum = |figures: Vec<Option<u64>>| figures.into_iter().sum::<Option<u64>>();
    let logs = sum(usage.containers.iter().map(|c| c.log_bytes).collect());
    let scratch = sum(usage.containers.iter().map(|c| c.scratch_bytes).collect());
    row(page, "pod", &usage.pod, [logs, scratch], kills.sum());
    for container in &usage.containers {
        let disk = [container.log_bytes, container.scratch_bytes];
        row(
            page,
            &container.name,
            &container.cgroup,
            disk,
            container.oom_kills,
        );
    }
    let disk = &usage.disk;
    let how = match (disk.exact, disk.hidden, disk.partial) {
        (true, ..) => "counted by the file system",
        (false, false, false) => "walked",
        (false, false, true) => "walked, and not all of it yet or readable: a lower bound",
        (false, true, _) => "walked as far as is ever walked: a lower bound",
    };
    if let (Some(used), Some(inodes)) = (disk.bytes, disk.inodes) {
        let files = if inodes == 1 { "file" } else { "files" };
        let deleted = match disk.deleted_bytes {
            0 => String::new(),
            held => format!("; {} in deleted files that are open", bytes(Some(held))),
        };
        let used = bytes(Some(used));
        page.texts(
            1,
            &[
                "Disk:",
                &format!("{used} in {inodes} {files}, {how}{deleted}"),
            ],
        );
    }
    for (volume, used) in &disk.volumes {
        page.texts(1, &[&format!("Volume {volume}:"), &bytes(Some(*used))]);
    }
}

fn row(page: &mut Page, name: &str, usage: &CgroupUsage, disk: [Option<u64>; 2], kills: u64) {
    let count = |figure: Option<u64>| figure.map_or_else(|| "-".to_owned(), |n| n.to_string());
    let tasks = match (usage.pids_current, usage.pids_max) {
        (Some(now), Some(most)) => format!("{now}/{most}"),
        (now, _) => count(now),
    };
    let [logs, scratch] = disk;
    page.texts(
        1,
        &[
            name,
            &bytes(usage.memory_current),
            &bytes(usage.memory_peak),
            &tasks,
            &count(usage.pids_peak),
            &count(usage.pids_refused),
            &seconds(usage.cpu_usage_usec),
            &seconds(usage.cpu_throttled_usec),
            &bytes(logs),
            &bytes(scratch),
            &kills.to_string(),
        ],
    );
}

/// Whole KiB, rounded up, so that what is there never reads as nothing.
fn bytes(figure: Option<u64>) -> String {
    figure.map_or_else(
        || "-".to_owned(),
        |bytes| match bytes.div_ceil(1024) {
            0 => "0".to_owned(),
            kib => format!("{kib}Ki"),
        },
    )
}

/// Seconds with milliseconds, cut off.
fn seconds(micros: Option<u64>) -> String {
    micros.map_or_else(
        || "-".to_owned(),
        |micros| format!("{}.{:03}s", micros / 1_000_000, micros / 1000 % 1000),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{ContainerUsage, DiskUsage};

    #[test]
    fn what_is_not_known_is_not_zero() {
        let container = ContainerUsage {
            name: "c".to_owned(),
            cgroup: CgroupUsage {
                memory_current: Some(1),
                pids_current: Some(3),
                pids_max: Some(32),
                cpu_usage_usec: Some(1_234_567),
                ..CgroupUsage::default()
            },
            log_bytes: Some(4096),
            scratch_bytes: None,
            oom_kills: 2,
        };
        let usage = PodUsage {
            pod: CgroupUsage::default(),
            containers: vec![container],
            disk: DiskUsage {
                bytes: Some(8192),
                inodes: Some(3),
                deleted_bytes: 1,
                volumes: [("cache".to_owned(), 4096)].into(),
                ..DiskUsage::default()
            },
        };
        let mut page = Page::description();
        write(&mut page, &usage);
        let text = page.to_string();
        let mut lines = text.lines().rev();
        let line: Vec<_> = lines.next().unwrap().split_whitespace().collect();
        assert_eq!(line, ["Volume", "cache:", "4Ki"], "{text}");
        let disk = lines.next().unwrap().trim();
        assert!(disk.ends_with("8Ki in 3 files, walked; 1Ki in deleted files that are open"));
        let last: Vec<_> = lines.next().unwrap().split_whitespace().collect();
        assert_eq!(
            last,
            [
                "c", "1Ki", "-", "3/32", "-", "-", "1.234s", "-", "4Ki", "-", "2"
            ],
            "{text}"
        );
    }
}
