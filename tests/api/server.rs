//! A real agent behind a real socket, on the model kernel; and clients that speak as they like.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use allotd::agent::{self, Handle, Input, Parts};
use allotd::cgroup::{Hierarchy, ModelKernel};
use allotd::config::Config;
use allotd::model::ResourceList;
use allotd::observation::node::NodeFacts;
use allotd::observation::watch::Watch;
use allotd::report::node::SystemInfo;
use allotd::runtime::{Errands, Runtime};
use allotd::server::{self, Access, Bounds};
use allotd::store::open_or_rebuild;
use allotd::units::{Bytes, PageSize, Quantity};
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// More than any answer takes, even on a busy day; what takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Namespace of all pods here.
pub const PODS: &str = "/api/v1/namespaces/default/pods";

/// A running server.
pub struct Server {
    socket: PathBuf,
    stop: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<()>>,
    owner: Option<JoinHandle<()>>,
    handle: Handle,
    temp: tempfile::TempDir,
}

/// What was answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        let chunked = head.to_lowercase().contains("transfer-encoding: chunked");
        let body = if chunked {
            unchunked(body)
        } else {
            body.to_owned()
        };
        Self {
            status: status.unwrap_or(0),
            head: head.to_owned(),
            body,
        }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

fn unchunked(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length.trim(), 16).unwrap_or(0);
        if length == 0 {
            break;
        }
        body.push_str(&after[..length]);
        rest = &after[length + 2..];
    }
    body
}

impl Server {
    pub fn start() -> Self {
        Self::start_with(Bounds::default())
    }

    /// A node of 4 CPUs. Whoever runs the tests may change things.
    pub fn start_with(bounds: Bounds) -> Self {
        Self::start_on(bounds, ModelKernel::default())
    }

    /// The same on this kernel, which may have processes.
    pub fn start_on(bounds: Bounds, kernel: ModelKernel) -> Self {
        let kernel = kernel.reporting(allotd::translation::ours);
        Self::start_in(bounds, Box::new(kernel))
    }

    /// The same in any kernel.
    pub fn start_in(bounds: Bounds, kernel: Box<dyn Hierarchy>) -> Self {
        Self::start_at(tempfile::tempdir().unwrap(), bounds, kernel)
    }

    /// The same where a file of a store, which may be damaged, may be in the directory.
    pub fn start_at(temp: tempfile::TempDir, bounds: Bounds, kernel: Box<dyn Hierarchy>) -> Self {
        let path = |name: &str| temp.path().join(name);
        for dir in ["state", "logs", "cgroup"] {
            std::fs::create_dir(path(dir)).unwrap();
        }
        let tokio = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let capacity: ResourceList = [
            ("cpu", "4"),
            ("memory", "4Gi"),
            ("ephemeral-storage", "9Gi"),
        ]
        .into_iter()
        .map(|(name, amount)| (name.into(), amount.parse::<Quantity>().unwrap()))
        .collect();
        let config = Config {
            node_name: "node".to_owned(),
            cgroup_root: path("cgroup"),
            state_dir: path("state"),
            pod_logs_dir: path("logs"),
            ..Config::default()
        };
        let (send, inputs) = channel();
        let handle = Handle::new(send);
        let parts = Parts {
            config: config.clone(),
            facts: NodeFacts {
                capacity,
                page_size: PageSize::FOUR_KIB,
                max_pids: Some(32_768),
                swap: Bytes(0),
                topology: Err("no test needs it".to_owned()),
                offline: "2,6-7".parse().unwrap(),
                devices: path("devices"),
            },
            system: SystemInfo::default(),
            kernel,
            store: open_or_rebuild(&path("store.redb"), agent::FORMATS).unwrap(),
            runtime: Runtime {
                state: path("state"),
                logs: path("logs"),
                errands: Errands::Own("/bin/false".into()),
                shim_cgroup: None,
            },
            watch: Watch::start(&path("cgroup"), |_| true).unwrap(),
            log: Err("not on a model".to_owned()),
            tokio: tokio.handle().clone(),
            handle: handle.clone(),
        };
        let owner = agent::start(parts, inputs).unwrap();
        let socket = path("socket");
        let (stop, stopped) = oneshot::channel::<()>();
        let (listening, asked) = (socket.clone(), handle.clone());
        let access = Access {
            admin_gid: Some(nix::unistd::getegid().as_raw()),
        };
        let served = std::thread::spawn(move || {
            tokio
                .block_on(async {
                    let listener = tokio::net::UnixListener::bind(&listening).unwrap();
                    let stopped = async { drop(stopped.await) };
                    server::serve(listener, asked, access, bounds, stopped).await
                })
                .unwrap();
            tokio.shutdown_timeout(PATIENCE);
        });
        // Bound is not yet listening.
        while UnixStream::connect(&socket).is_err() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Self {
            socket,
            stop: Some(stop),
            served: Some(served),
            owner: Some(owner),
            handle,
            temp,
        }
    }

    /// Tells the owner what the kernel would; whether it still listens.
    pub fn tell(&self, input: Input) -> bool {
        self.handle.tell(input)
    }

    /// Where it listens.
    pub fn socket(&self) -> &std::path::Path {
        &self.socket
    }

    /// `allot`, asking this server, with these words.
    pub fn allot(&self, words: &str) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("allot"));
        command.arg("--socket").arg(self.socket());
        command.args(words.split(' '));
        command
    }

    /// What `allot` tells on both streams, and its exit code.
    pub fn told(&self, words: &str) -> (String, Option<i32>) {
        let output = self.allot(words).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (String::from_utf8(text).unwrap(), output.status.code())
    }

    /// The directory of the pods' logs.
    pub fn logs(&self) -> PathBuf {
        self.temp.path().join("logs")
    }

    /// A connection.
    pub fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends these very bytes and reads all that comes back.
    pub fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that refuses early may not read to the end.
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        Answer::parse(&String::from_utf8_lossy(&answer))
    }

    pub fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        self.raw(
            format!(
                "{method} {path} HTTP/1.1\r\nHost: allotd\r\nConnection: close\r\n{headers}\
                 Content-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .as_bytes(),
        )
    }

    pub fn get(&self, path: &str) -> Answer {
        self.send("GET", path, "", "")
    }

    pub fn create(&self, pod: &Value) -> Answer {
        self.send("POST", PODS, "", &pod.to_string())
    }

    /// It must answer whatever happened before.
    pub fn is_well(&self) {
        let answer = self.get("/healthz");
        assert_eq!((answer.status, answer.body.as_str()), (200, "ok"));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        let served = self.served.take().map(JoinHandle::join);
        self.handle.tell(Input::Stop);
        let owner = self.owner.take().map(JoinHandle::join);
        if !std::thread::panicking() {
            assert!(served.is_some_and(|end| end.is_ok()), "the server panicked");
            assert!(owner.is_some_and(|end| end.is_ok()), "the owner panicked");
        }
    }
}

/// A pod of one container that waits for a process.
pub fn pod(name: &str, cpu: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{
            "name": "c", "image": "i",
            "resources": {"limits": {"cpu": cpu, "memory": "64Mi"}},
        }]},
    })
}
