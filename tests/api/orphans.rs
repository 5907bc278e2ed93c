//! What runs without a record after a loss, and its end, as the API and `allot` tell them.

use allotd::cgroup::{CgroupPath, Hierarchy, ModelKernel, Op, Pid};
use allotd::server::Bounds;
use serde_json::json;

use crate::server::{Server, pod};

const ORPHANS: &str = "/apis/allotd.dev/v1/orphans";

/// A server whose store and journal are lost while a pod ran.
fn after_a_loss() -> Server {
    let mut kernel = ModelKernel::default().reporting(allotd::translation::ours);
    let lost = CgroupPath::top().child("podlost").unwrap();
    kernel.perform(&Op::Create(lost.clone())).unwrap();
    // No process of this machine has so great a number.
    kernel.spawn_in(&lost, Pid(i32::MAX)).unwrap();
    let temp = tempfile::tempdir().unwrap();
    std::fs::write(temp.path().join("store.redb"), "no store").unwrap();
    Server::start_at(temp, Bounds::default(), Box::new(kernel))
}

#[test]
fn what_is_left_alone_is_listed_and_ends_when_somebody_says_so() {
    let server = after_a_loss();
    assert_eq!(server.create(&pod("web", "100m")).status, 201);
    let (status, code) = server.told("status");
    assert_eq!(code, Some(1));
    assert!(
        status.contains(
            "(1 cgroups of pods); allot orphans names them, allot orphans --end ends them now"
        ),
        "{status}"
    );
    let all = json!([{"cgroup": "podlost", "processes": 1}]);
    assert_eq!(server.get(ORPHANS).json(), all);
    let (text, code) = server.told("orphans");
    let table = "CGROUP    PROCESSES\npodlost   1\n";
    assert_eq!((text.as_str(), code), (table, Some(0)));
    // Whoever only wants to try ends nothing.
    let tried = server.send("DELETE", &format!("{ORPHANS}?dryRun=All"), "", "");
    assert_eq!(tried.status, 400);
    assert_eq!(server.get(ORPHANS).json(), all);

    let (text, code) = server.told("orphans --end");
    let expected = format!("{table}Cgroups that end: 1\n");
    assert_eq!((text, code), (expected, Some(0)));
    assert_eq!(server.get(ORPHANS).json(), json!([]));
    let (text, code) = server.told("orphans");
    assert_eq!(
        (text.as_str(), code),
        ("No cgroup of a pod is without a record.\n", Some(0))
    );
    let (status, _) = server.told("status");
    assert!(!status.contains("allot orphans"), "{status}");
    let (events, _) = server.told("events -A");
    assert!(events.contains("OrphanedCgroup"), "{events}");
    let (pods, _) = server.told("get pods");
    assert!(pods.contains("web"), "{pods}");
}
