//! A running allotd and a plain client for it: what a test of the whole agent needs.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;
use serde_json::{Value, json};

/// Where the tests' top cgroup is.
pub const TOP: &str = "/sys/fs/cgroup/allot";
const SOCKET: &str = "/run/allotd.sock";
const STATE: &str = "/tmp/state";
const LOGS: &str = "/tmp/logs";
pub const CONFIG: &str = "/tmp/config.yaml";
/// Emulation is slow; what takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(30);
const GLANCE: Duration = Duration::from_millis(20);

pub type Anything<T> = Result<T, Box<dyn Error>>;

/// A running allotd. It is killed when dropped; its pods are the runner's to remove.
pub struct Daemon {
    process: Child,
}

impl Daemon {
    /// Starts allotd with the defaults, and waits until it answers.
    pub fn start() -> Anything<Self> {
        Self::start_with("")
    }

    /// Starts allotd with further settings.
    pub fn start_with(settings: &str) -> Anything<Self> {
        fs::write(
            CONFIG,
            format!(
                "nodeName: vm\nstateDir: {STATE}\npodLogsDir: {LOGS}\nsocket: {SOCKET}\n\
                 cgroupRoot: {TOP}\nsystemReserved: {{cpu: 100m, memory: 100Mi}}\n{settings}\n"
            ),
        )?;
        let daemon = Self::spawn(&[])?;
        Daemon::wait_until_it_answers()?;
        Ok(daemon)
    }

    /// Starts an allotd that kills itself at a point of `agent::crash`.
    pub fn start_to_crash_at(point: &str) -> Anything<Self> {
        Self::spawn(&[("ALLOTD_CRASH_AT", point)])
    }

    /// Starts allotd as configured before, with more in its environment; it may not answer yet.
    pub fn spawn(environment: &[(&str, &str)]) -> Anything<Self> {
        let mut command = Command::new("/bin/allotd");
        command.args(["--config", CONFIG]).stdin(Stdio::null());
        command.envs(environment.iter().copied());
        Ok(Self {
            process: command.spawn()?,
        })
    }

    pub fn wait_until_it_answers() -> Anything<()> {
        wait("allotd to answer", || {
            Ok(matches!(request("GET", "/healthz", None), Ok((200, _))))
        })
    }

    /// `kill -9`.
    pub fn kill(mut self) -> Anything<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// SIGTERM, and waits for a clean end.
    pub fn stop(mut self) -> Anything<()> {
        let pid = Pid::from_raw(self.process.id().try_into()?);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM)?;
        let status = self.process.wait()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("allotd ended with {status}").into())
        }
    }

    /// Waits for the end of an allotd that was started to crash.
    pub fn wait_for_crash(mut self) -> Anything<()> {
        let status = self.process.wait()?;
        if status.success() {
            return Err("allotd ended well; it was to crash".into());
        }
        Ok(())
    }

    /// The CPU time that it has taken.
    pub fn cpu_time(&self) -> Anything<Duration> {
        let pid = Pid::from_raw(self.process.id().cast_signed());
        Ok(clock_getcpuclockid(pid)?.now()?.into())
    }

    /// A file of its own below `/proc`.
    pub fn file(&self, name: &str) -> Anything<String> {
        Ok(fs::read_to_string(format!(
            "/proc/{}/{name}",
            self.process.id()
        ))?)
    }

    /// What the files are that it has open, and how many of each: numbers in names count as one.
    pub fn open_files(&self) -> Anything<BTreeMap<String, usize>> {
        let mut kinds = BTreeMap::new();
        for entry in fs::read_dir(format!("/proc/{}/fd", self.process.id()))? {
            // One that was closed meanwhile.
            let Ok(target) = fs::read_link(entry?.path()) else {
                continue;
            };
            let target = target.display().to_string();
            let kind = match target.rsplit_once('/') {
                Some((_, name)) if target.starts_with('/') => name,
                _ => target.split(':').next().unwrap_or_default(),
            };
            *kinds.entry(kind.to_owned()).or_default() += 1;
        }
        Ok(kinds)
    }

    /// How often each of its threads has slept and been woken up, by thread id and name. To be preempted is
    /// no sleep.
    pub fn switches(&self) -> Anything<BTreeMap<String, u64>> {
        let mut switches = BTreeMap::new();
        for task in fs::read_dir(format!("/proc/{}/task", self.process.id()))? {
            let task = task?;
            let status = fs::read_to_string(task.path().join("status"))?;
            let field = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name));
                line.unwrap_or_default().trim().to_owned()
            };
            let thread = format!("{} {}", task.file_name().display(), field("Name:"));
            switches.insert(thread, field("voluntary_ctxt_switches:").parse()?);
        }
        Ok(switches)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One request: the status code and the body.
pub fn request(method: &str, path: &str, body: Option<&str>) -> Anything<(u16, String)> {
    let mut stream = UnixStream::connect(SOCKET)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let body = body.unwrap_or("");
    let kind = if method == "PATCH" {
        "application/json-patch+json"
    } else {
        "application/json"
    };
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: allotd\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8(answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
    let code = head.split(' ').nth(1).ok_or("no status")?.parse()?;
    Ok((code, body.to_owned()))
}

/// Asks for JSON.
pub fn get(path: &str) -> Anything<Value> {
    match request("GET", path, None)? {
        (200, body) => Ok(serde_json::from_str(&body)?),
        (code, body) => Err(format!("GET {path}: {code} {body}").into()),
    }
}

/// A pod of the default namespace in short: its name and its spec.
pub fn pod(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
}

/// Sends a pod; the status code and the answer.
pub fn send(pod: &Value) -> Anything<(u16, Value)> {
    let body = pod.to_string();
    let (code, answer) = request("POST", "/api/v1/namespaces/default/pods", Some(&body))?;
    Ok((code, serde_json::from_str(&answer)?))
}

/// Sends a pod that must be admitted.
pub fn create(pod: &Value) -> Anything<Value> {
    match send(pod)? {
        (201, pod) => Ok(pod),
        (code, answer) => Err(format!("not admitted: {code} {answer}").into()),
    }
}

/// The pod now.
pub fn read_pod(name: &str) -> Anything<Value> {
    get(&format!("/api/v1/namespaces/default/pods/{name}"))
}

/// A container's status now.
pub fn container(pod: &str, container: &str) -> Anything<Value> {
    let pod = read_pod(pod)?;
    let status = &pod["status"];
    ["containerStatuses", "initContainerStatuses"]
        .iter()
        .filter_map(|list| status[list].as_array())
        .flatten()
        .find(|status| status["name"] == container)
        .cloned()
        .ok_or_else(|| format!("no status of {container} in {pod}").into())
}

/// The id of a container's main process once it runs.
pub fn running_pid(pod: &str, name: &str) -> Anything<i32> {
    let mut pid = 0;
    wait(&format!("{pod}/{name} to run"), || {
        let id = container(pod, name)?["containerID"].clone();
        let text = id.as_str().and_then(|id| id.strip_prefix("process://"));
        pid = text.and_then(|pid| pid.parse().ok()).unwrap_or(0);
        Ok(pid > 0)
    })?;
    Ok(pid)
}

/// The directory of a pod's cgroup.
pub fn cgroup_of(pod: &Value) -> PathBuf {
    let uid = pod["metadata"]["uid"].as_str().unwrap_or("");
    let level = match pod["status"]["qosClass"].as_str() {
        Some("Burstable") => "burstable/",
        Some("BestEffort") => "besteffort/",
        _ => "",
    };
    Path::new(TOP).join(format!("{level}pod{uid}"))
}

/// An interface file without its line end.
pub fn file(cgroup: &Path, name: &str) -> Anything<String> {
    let path = cgroup.join(name);
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(text.trim_end().to_owned())
}

/// A counter in a file of keys and numbers.
pub fn counter(cgroup: &Path, name: &str, key: &str) -> Anything<u64> {
    let text = file(cgroup, name)?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    Ok(line.ok_or_else(|| format!("no {key} in {name}"))?.parse()?)
}

/// Deletes a pod and waits until nothing is left of it.
pub fn delete(name: &str, grace: u32) -> Anything<()> {
    let path = format!("/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds={grace}");
    let (code, body) = request("DELETE", &path, None)?;
    if code != 200 {
        return Err(format!("delete: {code} {body}").into());
    }
    wait("the pod to go", || {
        let (code, _) = request(
            "GET",
            &format!("/api/v1/namespaces/default/pods/{name}"),
            None,
        )?;
        Ok(code == 404)
    })
}

/// The events of a reason, as (message, count).
pub fn events(reason: &str) -> Anything<Vec<(String, u64)>> {
    let list = get("/api/v1/namespaces/default/events")?;
    Ok(list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|event| event["reason"] == reason)
        .map(|event| {
            (
                event["message"].as_str().unwrap_or("").to_owned(),
                event["count"].as_u64().unwrap_or(0),
            )
        })
        .collect())
}

/// Waits until something is so.
pub fn wait(what: &str, mut so: impl FnMut() -> Anything<bool>) -> Anything<()> {
    let start = Instant::now();
    loop {
        if so()? {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            return Err(format!("waited {} s for {what}", PATIENCE.as_secs()).into());
        }
        std::thread::sleep(GLANCE);
    }
}
