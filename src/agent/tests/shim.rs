//! What stands in for a shim and what it is asked to run, and what one leaves behind.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::runtime::record::{Exit, ExitReason};

/// The end of a run.
pub fn record_exit(attempt: &Path, exit_code: i32, signal: Option<i32>) {
    let exit = Exit {
        exit_code,
        signal,
        reason: if exit_code == 0 {
            ExitReason::Completed
        } else {
            ExitReason::Error
        },
        message: String::new(),
        started_at: Some(jiff::Timestamp::now()),
        finished_at: jiff::Timestamp::now(),
        dropped_log_bytes: 0,
    };
    let text = serde_json::to_string(&exit).unwrap();
    let written = fs::create_dir_all(attempt)
        .and_then(|()| fs::write(attempt.join(".new"), text))
        .and_then(|()| fs::rename(attempt.join(".new"), attempt.join("exit.json")));
    // The agent saw the end by itself and may have removed the pod's files already.
    if let Err(error) = written {
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    }
}

/// A program that records this process as started; what runs beside a container it runs itself.
pub fn script(started: &Path) -> String {
    format!(
        r#"#!/bin/sh
if [ "$1" = exec ]; then
    shift 4
    output=$("$@" 2>&1) && code=0 || code=$?
    printf '{{"exited": {{"code": %d, "output": "%s"}}}}' $code "$output"
else
    cp {} "$2/started.json"
fi
"#,
        started.display()
    )
}

/// A pod of one container `c`.
pub fn one(policy: &str) -> Value {
    json!({
        "restartPolicy": policy,
        "containers": [{"name": "c", "image": "i", "command": ["sleep", "1000"],
            "resources": {"limits": {"cpu": "100m", "memory": "64Mi"}}}],
    })
}
