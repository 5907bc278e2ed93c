//! Counters: the first line is a key, the rest a file such as `memory.events`, `cpu.stat`, `pids.current`,
//! `cgroup.procs` or `memory.pressure`.

use allotd::cgroup::parse::{number, pressure, processes, value};

pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (key, content) = text.split_once('\n').unwrap_or(("oom", &text));
    if let Some(found) = value(content, key) {
        let line = content
            .lines()
            .find(|line| line.split_once(' ').is_some_and(|(name, _)| name == key));
        let shown = line.unwrap().split_once(' ').unwrap().1;
        assert_eq!(shown.trim_end().parse(), Ok(found));
    }
    if let Some(number) = number(content) {
        assert_eq!(content.trim_end().parse(), Ok(number));
        assert!(!content.starts_with('+'));
    }
    for pid in processes(content) {
        assert!(pid.0 > 0);
    }
    let read = pressure(content);
    for stall in [read.some, read.full].into_iter().flatten() {
        for share in [stall.avg10, stall.avg60, stall.avg300] {
            assert!(share <= 10_000, "{share} hundredths of a per cent");
        }
    }
}
