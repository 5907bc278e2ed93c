//! Records of the kernel's log, one a line: whatever they hold, a kill is told only of the kernel's own
//! and is bounded, and those of programs tell nothing.

use allotd::observation::kmsg::{Reports, Told};

pub fn run(data: &[u8]) {
    let mut reports = Reports::default();
    let mut forged = Reports::default();
    for line in data.split(|byte| *byte == b'\n') {
        if let Some(Told::Kill(kill)) = reports.take(line).1 {
            let paths = [&kill.cause.oom_memcg, &kill.cause.task_memcg];
            for path in paths.into_iter().flatten() {
                assert!(path.starts_with('/'), "{path:?}");
            }
            // A byte that is no UTF-8 becomes three.
            assert!(kill.name.len() <= 3 * line.len());
        }
        // The same, written by a program: facility 1.
        let text = line.splitn(2, |byte| *byte == b',').nth(1);
        let record = [b"14,", text.unwrap_or_default()].concat();
        let told = forged.take(&record).1;
        assert_eq!(told, None);
    }
}
