//! Real kubectl, as Debian 12 and 13 have it, against a real agent on the model kernel, through
//! `allot proxy`. What it prints is what users of the examples in the documentation see.
//!
//! Not for a plain `cargo test`: `scripts/kubectl` fetches both first, and `scripts/test` runs both.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

#[path = "../support/busy.rs"]
mod busy;
#[path = "../support/proxy.rs"]
mod proxy;
mod definitions;
mod examples;
mod namespaces;
mod resize;
mod top;
#[path = "../api/server.rs"]
#[allow(dead_code)]
mod server;

mod create;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use self::proxy::Proxy;
use self::server::Server;

/// What Debian 12 and Debian 13 have.
const VERSIONS: [&str; 2] = ["1.20", "1.32"];

/// One kubectl with a server of its own.
struct Kubectl {
    program: PathBuf,
    proxy: Proxy,
    home: tempfile::TempDir,
    server: Server,
}

impl Kubectl {
    fn new(version: &str) -> Self {
        Self::with(version, Server::start())
    }

    fn with(version: &str, server: Server) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = root.join("target/kubectl").join(version).join("kubectl");
        assert!(
            program.exists(),
            "{} is missing: scripts/kubectl fetches it",
            program.display()
        );
        Self {
            program,
            proxy: Proxy::before(&server),
            home: tempfile::tempdir().unwrap(),
            server,
        }
    }

    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env_clear()
            .env("HOME", self.home.path())
            .arg("--server")
            .arg(format!("http://{}", self.proxy.address))
            .args(words.split(' '))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// What it prints when it gets this on its standard input, and whether it is content.
    fn run(&self, words: &str, input: &str) -> (String, bool) {
        let mut child = self.command(words).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        let Output {
            status,
            mut stdout,
            stderr,
        } = child.wait_with_output().unwrap();
        stdout.extend(stderr);
        (String::from_utf8(stdout).unwrap(), status.success())
    }

    fn good(&self, words: &str, input: &str) -> String {
        let (text, good) = self.run(words, input);
        assert!(good, "kubectl {words}: {text}");
        text
    }

    fn bad(&self, words: &str, input: &str) -> String {
        let (text, good) = self.run(words, input);
        assert!(!good, "kubectl {words}: {text}");
        text
    }
}

/// The lines of a table without the padding of its columns.
fn rows(text: &str) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.lines().map(words).collect()
}

fn each(test: impl Fn(&Kubectl)) {
    for version in VERSIONS {
        println!("kubectl {version}");
        test(&Kubectl::new(version));
    }
}

const GPU_QUOTA: &str = "
apiVersion: v1
kind: ResourceQuota
metadata:
  name: gpu-quota
spec:
  hard:
    requests.nvidia.com/gpu: 1
";

fn gpu_pod(name: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Pod
metadata:
  name: {name}
spec:
  restartPolicy: OnFailure
  containers:
  - image: rhel7
    name: gpu
    resources:
      limits:
        nvidia.com/gpu: 1
"
    )
}

#[test]
fn objects_are_applied_changed_and_listed() {
    each(|kubectl| {
        let pod = gpu_pod("web")
            .replace("nvidia.com/gpu", "memory")
            .replace("memory: 1", "memory: 64Mi");
        assert_eq!(kubectl.good("apply -f -", &pod), "pod/web created\n");
        assert_eq!(kubectl.good("apply -f -", &pod), "pod/web unchanged\n");
        let labelled = pod.replace("  name: web", "  name: web\n  labels: {app: web}");
        assert_eq!(
            kubectl.good("apply -f -", &labelled),
            "pod/web configured\n"
        );
        kubectl.good("label pod web tier=front", "");
        let listed = kubectl.good("get pods -l app=web --show-labels", "");
        assert_eq!(
            rows(&listed)[0],
            "NAME READY STATUS RESTARTS AGE LABELS",
            "{listed}"
        );
        assert!(listed.contains("app=web,tier=front"), "{listed}");
        let changed = kubectl.bad("apply -f -", &labelled.replace("64Mi", "32Mi"));
        assert!(
            changed.contains("pod updates may not change the spec"),
            "{changed}"
        );
        let quota = GPU_QUOTA.replace("requests.nvidia.com/gpu: 1", "pods: 3");
        kubectl.good("apply -f -", &quota);
        let patch = r#"--patch={"spec":{"hard":{"pods":"2"}}}"#;
        kubectl.good(&format!("patch quota gpu-quota {patch}"), "");
        let listed = kubectl.good("get quota", "");
        assert!(
            rows(&listed)[1].starts_with("gpu-quota pods: 1/2"),
            "{listed}"
        );
        let all = kubectl.good("get all", "");
        assert!(all.contains("pod/web"), "{all}");
        let wrong = kubectl.bad("create -f -", &pod.replace("limits:", "limit:"));
        assert!(wrong.contains("limit"), "{wrong}");
        let negative = GPU_QUOTA.replace("gpu: 1", "gpu: -1");
        let negative = kubectl.bad("apply -f -", &negative);
        assert!(
            negative.contains("must be greater than or equal to 0"),
            "{negative}"
        );
    });
}

#[test]
fn changes_are_watched() {
    each(|kubectl| {
        let mut watch = kubectl.command("get quota -w").spawn().unwrap();
        let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
        kubectl.good(
            "create -f -",
            &GPU_QUOTA.replace("requests.nvidia.com/gpu: 1", "pods: 3"),
        );
        let mut next = || rows(&lines.next().unwrap().unwrap()).join("");
        assert_eq!(next(), "NAME REQUEST LIMIT AGE".to_owned());
        assert!(next().starts_with("gpu-quota pods: 0/3"));
        kubectl.good(
            "create -f -",
            &gpu_pod("web").replace("nvidia.com/gpu: 1", "cpu: 100m"),
        );
        assert!(next().starts_with("gpu-quota pods: 1/3"));
        watch.kill().unwrap();
        watch.wait().unwrap();
    });
}
