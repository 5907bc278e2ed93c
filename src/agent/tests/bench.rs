//! An agent on the model kernel, with a store, a runtime and a clock that are real.
//!
//! The shim is a script that records a `sleep` of this machine as the container's process, so that
//! starting, waiting and stopping are those of the real runtime; only cgroups are the model's.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::kernel::Shared;
pub use super::shim::one;
use super::shim::{record_exit, script};
use crate::agent::entry::PodEntry;
use crate::agent::request::{ObjectKey, PodKey, Put, Refusal};
use crate::agent::run::{Agent, Parts};
use crate::agent::{FORMATS, Handle, Input};
use crate::cgroup::{CgroupPath, Hierarchy, Pid};
use crate::config::Config;
use crate::model::Kind;
use crate::observation::node::{NodeFacts, offline_cpus};
use crate::observation::watch::Watch;
use crate::report::node::SystemInfo;
use crate::runtime::record::Started;
use crate::runtime::{Errands, ProcessId, Runtime};
use crate::store::open_or_rebuild;
use crate::units::{Bytes, PageSize};

const PATIENCE: Duration = Duration::from_secs(20);

/// An agent and all around it.
pub struct Bench {
    temp: tempfile::TempDir,
    pub kernel: Shared,
    agent: Option<Agent>,
    inputs: Receiver<Input>,
    tokio: tokio::runtime::Runtime,
    runs: Vec<Run>,
    /// What is set otherwise than by default.
    pub settings: fn(&mut Config),
    /// The name of the boot.
    boot: &'static str,
    /// The CPUs that are on.
    pub cpus: &'static str,
}

/// A process, and the directory of the run whose shim would watch it.
struct Run {
    child: Child,
    attempt: Option<PathBuf>,
}

impl Bench {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// An agent with other settings.
    pub fn with(settings: fn(&mut Config)) -> Self {
        let temp = tempfile::tempdir().unwrap();
        for dir in ["state", "logs", "cgroup"] {
            fs::create_dir(temp.path().join(dir)).unwrap();
        }
        let shim = temp.path().join("shim");
        let started = temp.path().join("started.json");
        fs::write(&shim, script(&started)).unwrap();
        fs::set_permissions(&shim, fs::Permissions::from_mode(0o755)).unwrap();
        let tokio = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let mut bench = Self {
            temp,
            kernel: Shared::new(),
            agent: None,
            inputs: channel().1,
            tokio,
            runs: Vec::new(),
            settings,
            boot: "first boot",
            cpus: "0-3",
        };
        bench.start_agent();
        bench
    }

    /// `kill -9` of the agent at this very instant, and another one.
    pub fn crash(&mut self) {
        self.crash_and(|_| ());
    }

    /// Before the next agent starts, something happens to the store's file.
    pub fn crash_and(&mut self, meanwhile: impl FnOnce(&Path)) {
        self.agent = None;
        meanwhile(&self.temp.path().join("store.redb"));
        self.start_agent();
    }

    /// The machine goes down and comes up with no cgroup and another name of the boot.
    pub fn reboot(&mut self) {
        self.agent = None;
        for mut run in self.runs.drain(..) {
            run.child.kill().unwrap();
            run.child.wait().unwrap();
        }
        self.boot = "another boot";
        for started in self.started() {
            let mut record: Started = serde_json::from_slice(&fs::read(&started).unwrap()).unwrap();
            self.boot.clone_into(&mut record.process.boot_id);
            fs::write(&started, serde_json::to_vec(&record).unwrap()).unwrap();
        }
        self.kernel = Shared::new();
        self.start_agent();
    }

    /// The next agent has other settings.
    pub fn settings(&mut self, settings: fn(&mut Config)) {
        self.settings = settings;
    }

    fn start_agent(&mut self) {
        self.start_as(|parts| Agent::restore(parts).unwrap());
    }

    /// The agent is killed, and the next one is made otherwise.
    pub fn crash_into(&mut self, make: impl FnOnce(Parts) -> Agent) {
        self.agent = None;
        self.start_as(make);
    }

    fn start_as(&mut self, make: impl FnOnce(Parts) -> Agent) {
        let (send, inputs) = channel();
        self.inputs = inputs;
        let path = |name: &str| self.temp.path().join(name);
        let mut config = Config {
            node_name: "node".to_owned(),
            cgroup_root: path("cgroup"),
            state_dir: path("state"),
            pod_logs_dir: path("logs"),
            static_pod_path: "".into(),
            ..Config::default()
        };
        (self.settings)(&mut config);
        let parts = Parts {
            config,
            facts: NodeFacts {
                capacity: super::kernel::capacity(),
                page_size: PageSize::FOUR_KIB,
                max_pids: Some(32_768),
                swap: Bytes(0),
                topology: super::cpus::machine(self.cpus),
                offline: offline_cpus(&path("devices")).unwrap_or_default(),
                devices: path("devices"),
            },
            system: SystemInfo {
                boot_id: self.boot.to_owned(),
                ..SystemInfo::default()
            },
            kernel: Box::new(self.kernel.clone()),
            store: open_or_rebuild(&path("store.redb"), FORMATS).unwrap(),
            runtime: Runtime {
                state: path("state"),
                logs: path("logs"),
                errands: Errands::Own(path("shim")),
                shim_cgroup: None,
            },
            watch: Watch::start(&path("cgroup"), |_| true).unwrap(),
            log: Err("not on a model".to_owned()),
            tokio: self.tokio.handle().clone(),
            handle: Handle::new(send),
        };
        self.agent = Some(make(parts));
    }

    /// The agent; readers see what it has done so far.
    pub fn agent(&mut self) -> &mut Agent {
        let agent = self.agent.as_mut().unwrap();
        agent.handle.cache().flush();
        agent
    }

    /// The records of all runs that were started.
    fn started(&self) -> Vec<PathBuf> {
        walkdir::WalkDir::new(self.temp.path().join("state"))
            .into_iter()
            .map(|entry| entry.unwrap().into_path())
            .filter(|path| path.ends_with("started.json"))
            .collect()
    }

    /// A process that the next container to be started will have as its own.
    pub fn next_process(&mut self) -> i32 {
        self.next_process_of("exec sleep 1000")
    }

    pub fn next_process_of(&mut self, script: &str) -> i32 {
        let child = Command::new("sh").args(["-c", script]).spawn().unwrap();
        let pid = child.id().cast_signed();
        let attempt = None;
        self.runs.push(Run { child, attempt });
        let started = Started {
            process: ProcessId::of(pid).unwrap().unwrap(),
            started_at: jiff::Timestamp::now(),
        };
        let text = serde_json::to_string(&started).unwrap();
        fs::write(self.temp.path().join("started.json"), text).unwrap();
        pid
    }

    /// From now on nothing can be started.
    pub fn no_process(&mut self) {
        let _ = fs::remove_file(self.temp.path().join("started.json"));
    }

    /// Sends a pod in short form that must be admitted.
    pub fn create(&mut self, name: &str, spec: &Value) -> PodKey {
        self.send(name, spec).unwrap()
    }

    pub fn send(&mut self, name: &str, spec: &Value) -> Result<PodKey, Refusal> {
        self.send_to("default", name, spec)
    }

    pub fn send_to(
        &mut self,
        namespace: &str,
        name: &str,
        spec: &Value,
    ) -> Result<PodKey, Refusal> {
        let pod = json!({"metadata": {"name": name, "namespace": namespace}, "spec": spec});
        let pod = Box::new(serde_json::from_value(pod).unwrap());
        self.agent().create_pod(pod, false)?;
        Ok(PodKey::new(namespace, name))
    }

    /// Keeps an object of another kind, new or changed.
    pub fn put(&mut self, kind: Kind, object: &Value, new: bool) -> Result<Value, Refusal> {
        let dry_run = false;
        let put = Put { new, dry_run };
        let kept = self.agent().put_object(kind, object.clone(), put)?;
        Ok(kept.object)
    }

    /// An object as its readers see it.
    pub fn seen(&mut self, kind: Kind, namespace: &str, name: &str) -> Option<Value> {
        let key = ObjectKey::of(kind, namespace, name);
        let seen = self.agent().handle.cache().get(&key);
        seen.map(|seen| seen.object.clone())
    }

    /// Creates a pod of one container `c` and waits until its process, whose id this returns, runs
    /// in its cgroup.
    pub fn run(&mut self, name: &str, spec: &Value) -> (PodKey, i32) {
        let pid = self.next_process();
        let key = self.create(name, spec);
        self.until("it to run", |agent| {
            runs(agent, &PodKey::new("default", name), "c")
        });
        self.put_in(&key, "c", pid);
        (key, pid)
    }

    /// What the shim would have done: the process is in the container's cgroup, and its end will be
    /// recorded.
    pub fn put_in(&mut self, key: &PodKey, container: &str, pid: i32) {
        let attempt = self.entry(key).record.containers.get(container);
        let attempt = attempt.map_or(0, |record| record.attempt);
        let attempt = self.attempt(key, container, attempt);
        let run = self
            .runs
            .iter_mut()
            .find(|run| run.child.id().cast_signed() == pid);
        run.unwrap().attempt = Some(attempt);
        let path = self.path(key, container);
        self.kernel
            .with(|kernel| kernel.spawn_in(&path, Pid(pid)))
            .unwrap();
    }

    /// `kill -9` of a process by somebody.
    pub fn kill(&mut self, pid: i32) {
        let run = self
            .runs
            .iter_mut()
            .find(|run| run.child.id().cast_signed() == pid);
        let child = &mut run.unwrap().child;
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// What kernel and shims do meanwhile: what one kernel killed is dead in the other, and each end
    /// is recorded.
    fn reap(&mut self) {
        for run in &mut self.runs {
            let Some(attempt) = &run.attempt else {
                continue;
            };
            let pid = Pid(run.child.id().cast_signed());
            if !self.kernel.with(|kernel| kernel.is_alive(pid)) {
                let _ = run.child.kill();
                // Dead at once: its end is recorded before the agent can see that it is gone.
                let _ = run.child.wait();
            }
            if let Some(status) = run.child.try_wait().unwrap() {
                self.kernel.with(|kernel| kernel.exit(pid));
                let code = status.code();
                let code = code.unwrap_or_else(|| 128 + status.signal().unwrap());
                record_exit(attempt, code, status.signal());
                run.attempt = None;
            }
        }
    }

    /// The directory of a run.
    pub fn attempt(&mut self, key: &PodKey, container: &str, attempt: u32) -> PathBuf {
        let uid = self.entry(key).uid().to_string();
        let state = self.temp.path().join("state/pods");
        state.join(uid).join(container).join(attempt.to_string())
    }

    pub fn entry(&mut self, key: &PodKey) -> &mut PodEntry {
        self.agent().pods.get_mut(key).unwrap()
    }

    pub fn path(&mut self, key: &PodKey, container: &str) -> CgroupPath {
        self.entry(key).container_path(container).unwrap()
    }

    /// Turns of the owner's loop until something is so.
    pub fn until(&mut self, what: &str, so: impl Fn(&mut Agent) -> bool) {
        let start = Instant::now();
        loop {
            if so(self.agent.as_mut().unwrap()) {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
            self.reap();
            let agent = self.agent.as_mut().unwrap();
            assert!(agent.turn(&self.inputs, Duration::from_millis(20)));
        }
    }

    /// Waits for a file, with the owner standing still.
    pub fn wait_for(file: &Path) {
        let start = Instant::now();
        while !file.exists() {
            assert!(start.elapsed() < PATIENCE, "no {}", file.display());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The processes in a container's cgroup.
    pub fn processes(&mut self, key: &PodKey, container: &str) -> Vec<i32> {
        let path = self.path(key, container);
        let found = self.kernel.processes(&path).unwrap();
        found.into_iter().map(|Pid(pid)| pid).collect()
    }

    /// Turns of the owner's loop for some time.
    pub fn pass(&mut self, time: Duration) {
        let start = Instant::now();
        self.until("time to pass", |_| start.elapsed() >= time);
    }

    /// The messages of all events of a reason.
    pub fn events(&mut self, reason: &str) -> Vec<String> {
        self.agent()
            .events
            .list(None)
            .into_iter()
            .filter(|event| event.reason.as_deref() == Some(reason))
            .map(|event| event.message.unwrap_or_default())
            .collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for run in &mut self.runs {
            let _ = run.child.kill();
            let _ = run.child.wait();
        }
    }
}

pub fn runs(agent: &Agent, key: &PodKey, container: &str) -> bool {
    agent.pods.get(key).is_some_and(|entry| {
        matches!(
            entry.live(container),
            crate::agent::entry::Live::Running { .. }
        )
    })
}
