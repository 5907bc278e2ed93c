//! The processes that the OOM killer took, as the API and `allot oom` tell them.

use std::sync::{Arc, Mutex, MutexGuard};

use allotd::agent::Input;
use allotd::cgroup::{
    CgroupPath, ControllerSet, Counters, Hierarchy, KernelError, ModelKernel, Node, Op, Pid,
    Reader, Tree,
};
use allotd::observation::kmsg::{Cause, Constraint, Kill, Sizes, Told};
use allotd::server::Bounds;
use allotd::units::{Bytes, HugePageSize, PageSize};
use serde_json::{Value, json};

use crate::server::{Server, pod};

const OOM_KILLS: &str = "/apis/allotd.dev/v1/oomkills";

/// A kernel that the test can reach while the agent has it.
#[derive(Clone)]
struct Shared(Arc<Mutex<ModelKernel>>);

impl Shared {
    fn kernel(&self) -> MutexGuard<'_, ModelKernel> {
        self.0.lock().unwrap()
    }
}

impl Hierarchy for Shared {
    fn found(&mut self, above: &CgroupPath) -> Result<Tree, KernelError> {
        self.kernel().found(above)
    }
    fn look(&mut self, path: &CgroupPath) -> Result<Option<Node>, KernelError> {
        self.kernel().look(path)
    }
    fn counters(&mut self, path: &CgroupPath) -> Result<Counters, KernelError> {
        self.kernel().counters(path)
    }
    fn reader(&mut self) -> Arc<dyn Reader> {
        self.kernel().reader()
    }
    fn processes(&mut self, path: &CgroupPath) -> Result<Vec<Pid>, KernelError> {
        self.kernel().processes(path)
    }
    fn perform(&mut self, op: &Op) -> Result<(), KernelError> {
        self.kernel().perform(op)
    }
    fn controllers(&mut self) -> Result<ControllerSet, KernelError> {
        self.kernel().controllers()
    }
    fn page_size(&self) -> PageSize {
        self.kernel().page_size()
    }
    fn huge_page_sizes(&self) -> &[HugePageSize] {
        &[]
    }
}

/// Lets a process of the pod's container outgrow its limit of 64Mi, and the log tell of it.
fn kill(server: &Server, kernel: &Shared, pod: &Value, pid: i32, sequence: u64) {
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    let path = CgroupPath::top().child(&format!("pod{uid}")).unwrap();
    let path = path.child("c").unwrap();
    {
        let mut kernel = kernel.kernel();
        kernel.spawn_in(&path, Pid(pid)).unwrap();
        kernel.grow(Pid(pid), Bytes(100 << 20));
        assert!(!kernel.is_alive(Pid(pid)));
    }
    let cgroup = Some(format!("/allot/{path}"));
    let told = Told::Kill(Box::new(Kill {
        report: sequence,
        sequence,
        micros: 0,
        pid,
        process: None,
        name: "leaky".to_owned(),
        uid: Some(0),
        sizes: Sizes {
            anon_rss_bytes: Some(60 << 20),
            file_rss_bytes: Some(1 << 20),
            ..Sizes::default()
        },
        cause: Cause {
            constraint: Some(Constraint::Memcg),
            oom_memcg: cgroup.clone(),
            task_memcg: cgroup,
            usage_bytes: Some(64 << 20),
            limit_bytes: Some(64 << 20),
            ..Cause::default()
        },
    }));
    assert!(server.tell(Input::Log(Some(told))));
}

#[test]
fn kills_are_listed_by_namespace_and_pod() {
    let kernel = ModelKernel::default().reporting(allotd::translation::ours);
    let kernel = Shared(Arc::new(Mutex::new(kernel)));
    let server = Server::start_in(Bounds::default(), Box::new(kernel.clone()));
    assert_eq!(server.get(OOM_KILLS).json(), json!([]));
    let (nothing, code) = server.told("oom");
    assert_eq!((nothing.as_str(), code), ("No OOM kills found.\n", Some(0)));
    let made = |namespace: &str, name: &str| {
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        let answer = server.send("POST", &path, "", &pod(name, "100m").to_string());
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()
    };
    let (web, db, other) = (
        made("default", "web"),
        made("default", "db"),
        made("other", "web"),
    );
    for (number, pod) in [&web, &web, &db, &other].into_iter().enumerate() {
        let sequence = u64::try_from(number).unwrap();
        let pid = i32::MAX - i32::try_from(number).unwrap();
        kill(&server, &kernel, pod, pid, sequence);
    }
    let list = |query: &str| server.get(&format!("{OOM_KILLS}{query}")).json();
    for (query, expected) in [
        ("", 4),
        ("?namespace=default", 3),
        ("?namespace=default&pod=web", 2),
        ("?namespace=other&pod=web", 1),
        ("?pod=web", 3),
        ("?namespace=other&pod=db", 0),
        ("?namespace=nowhere", 0),
    ] {
        let found = list(query);
        assert_eq!(
            found.as_array().map(Vec::len),
            Some(expected),
            "{query} {found}"
        );
    }
    let ids: Vec<_> = list("")
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].clone())
        .collect();
    assert_eq!(ids, [0, 1, 2, 3], "the oldest first");
    all_is_told(&list("?namespace=default&pod=db")[0], &db);

    let (table, _) = server.told("oom db");
    let rows: Vec<_> = table.lines().collect();
    assert_eq!(rows.len(), 2, "{table}");
    for cell in [
        "db",
        "leaky (2147483645)",
        "61Mi",
        "in group",
        "container 64Mi",
    ] {
        assert!(rows[1].contains(cell), "{cell}: {table}");
    }
    assert_eq!(server.told("oom -A").0.lines().count(), 5);
    let metrics = server.get("/metrics").body;
    let series = "container_oom_events_total{namespace=\"default\",pod=\"web\",container=\"c\"} 2";
    assert!(metrics.lines().any(|line| line == series), "{metrics}");
    // They can be read, and nothing else.
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(
            server.send(method, OOM_KILLS, "", "").status,
            405,
            "{method}"
        );
    }
}

/// The record of the kill in `db` has what the counters and the log said, and no more.
fn all_is_told(kill: &Value, db: &Value) {
    let told = [
        "namespace",
        "pod",
        "uid",
        "container",
        "restartCount",
        "group",
    ];
    let told = told.map(|name| kill[name].clone());
    let expected = [
        json!("default"),
        json!("db"),
        db["metadata"]["uid"].clone(),
        json!("c"),
        json!(0),
        json!(true),
    ];
    assert_eq!(told, expected, "{kill}");
    assert!(
        kill["time"].is_string() && kill["bootId"].is_string(),
        "{kill}"
    );
    let limit = &kill["limit"];
    assert_eq!(limit["level"], "container", "{kill}");
    for field in ["limitBytes", "usageBytes"] {
        assert_eq!(limit[field], 64 << 20, "{kill}");
    }
    let log = &kill["log"];
    assert_eq!(
        (&log["name"], &log["pid"], &log["anonRssBytes"]),
        (&json!("leaky"), &json!(i32::MAX - 2), &json!(60 << 20)),
        "{kill}"
    );
    assert!(
        log.get("totalVmBytes").is_none(),
        "the log had none: {kill}"
    );
}
