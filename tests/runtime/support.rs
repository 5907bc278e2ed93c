//! A runtime in a scratch directory, and what every test needs of it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use allotd::model::PodUid;
use allotd::runtime::cri::Stream;
use allotd::runtime::logs::Log;
use allotd::runtime::record::LogBounds;
use allotd::runtime::{
    AttemptId, AttemptState, ContainerId, ContainerSpec, Errands, Exit, ProcessId, Running, Runtime,
};
use tempfile::TempDir;

/// Longer than anything here takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A node of its own. Dropped, it kills what it started.
pub struct Node {
    pub temp: TempDir,
    pub runtime: Runtime,
}

impl Node {
    pub fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let runtime = Runtime {
            state: temp.path().join("state"),
            logs: temp.path().join("logs"),
            errands: Errands::Own(env!("CARGO_BIN_EXE_allotd").into()),
            shim_cgroup: None,
        };
        Self { temp, runtime }
    }

    /// What a container is asked to run: `argv` in place of a shell script where it has more parts.
    pub fn spec(argv: &[&str]) -> ContainerSpec {
        let argv = match argv {
            [script] => vec!["sh", "-c", script],
            argv => argv.to_vec(),
        };
        ContainerSpec {
            id: container().attempt(0),
            argv: argv.into_iter().map(str::to_owned).collect(),
            env: Vec::new(),
            working_dir: None,
            cgroup: None,
            oom_score_adj: 500,
            volumes: Vec::new(),
            mounts: Vec::new(),
            projects: Vec::new(),
            security: allotd::model::security::Security::default(),
            log: LogBounds::default(),
        }
    }

    pub fn start(&self, spec: &ContainerSpec) -> AttemptState {
        self.runtime.start(spec).unwrap()
    }

    /// Starts it and waits for its end.
    pub fn run(&self, argv: &[&str]) -> Exit {
        self.start(&Self::spec(argv));
        self.exit(&attempt())
    }

    pub fn wait(&self, id: &AttemptId) -> AttemptState {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(async { tokio::time::timeout(PATIENCE, self.runtime.wait(id)).await })
            .expect("it does not end")
            .unwrap()
    }

    pub fn exit(&self, id: &AttemptId) -> Exit {
        match self.wait(id) {
            AttemptState::Exited(exit) => exit,
            other => panic!("{other:?}"),
        }
    }

    pub fn state(&self) -> AttemptState {
        self.runtime.inspect(&attempt()).unwrap()
    }

    pub fn running(&self) -> Running {
        match self.state() {
            AttemptState::Running(running) => running,
            other => panic!("{other:?}"),
        }
    }

    /// The directory of the attempt, made if need be.
    pub fn attempt_dir(&self) -> PathBuf {
        let dir = self.runtime.pod_dir(&container()).join("app/0");
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    pub fn scratch(&self) -> PathBuf {
        self.runtime.scratch_dir(&container())
    }

    /// The log as lines, `out: text` or `err: text`; `…` where no newline followed.
    pub fn log(&self) -> Vec<String> {
        let log = Log::open(&self.runtime.log_path(&attempt()))
            .unwrap()
            .unwrap();
        let (mut lines, mut offset) = (Vec::new(), 0);
        loop {
            let page = log.page(offset, u64::MAX).unwrap();
            assert_eq!(page.skipped, 0);
            if page.next == offset {
                return lines;
            }
            offset = page.next;
            lines.extend(page.records.into_iter().map(|record| {
                let stream = match record.stream {
                    Stream::Stdout => "out",
                    Stream::Stderr => "err",
                };
                let more = if record.full { "" } else { "…" };
                format!("{stream}: {}{more}", String::from_utf8_lossy(&record.text))
            }));
        }
    }

    /// The shims of this node.
    pub fn shims(&self) -> Vec<ProcessId> {
        let state = self.runtime.state.to_str().unwrap();
        let of_ours = |pid: &i32| {
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).into_owned();
            command.starts_with("allotd\0shim\0") && command.contains(state)
        };
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(of_ours)
            .filter_map(|pid| ProcessId::of(pid).unwrap())
            .collect()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Ok(AttemptState::Running(running)) = self.runtime.inspect(&attempt()) {
            let _ = running.process.signal(rustix::process::Signal::KILL);
        }
    }
}

pub fn container() -> ContainerId {
    ContainerId::new("default", "web", PodUid::new("u-1").unwrap(), "app").unwrap()
}

pub fn attempt() -> AttemptId {
    container().attempt(0)
}

/// Waits until `ready` gives something.
pub fn until<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
