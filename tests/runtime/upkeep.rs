//! What is kept of a container and what is removed.

use allotd::observation::storage::usage;
use allotd::runtime::AttemptState;
use rustix::process::Signal;

use crate::support::{Node, container};

#[test]
fn old_attempts_go_and_live_ones_stay() {
    let node = Node::new();
    for attempt in 0..4 {
        let mut spec = Node::spec(&["exit 0"]);
        spec.id.attempt = attempt;
        node.start(&spec);
        node.exit(&spec.id);
    }
    let id = container();
    let mut live = Node::spec(&["exec sleep 1000"]);
    live.id.attempt = 4;
    node.start(&live);
    assert_eq!(node.runtime.latest(&id).unwrap(), Some(id.attempt(4)));
    node.runtime.prune(&id, 3).unwrap();
    let logs = |attempt| node.runtime.log_path(&id.attempt(attempt)).exists();
    assert_eq!([0, 1, 2, 3, 4].map(logs), [false, false, false, true, true]);
    assert_eq!(
        node.runtime.inspect(&id.attempt(0)).unwrap(),
        AttemptState::NotStarted
    );
    node.runtime.prune(&id, u32::MAX).unwrap();
    let AttemptState::Running(running) = node.runtime.inspect(&live.id).unwrap() else {
        panic!("the live attempt is gone");
    };
    assert!(logs(4));
    running.process.signal(Signal::KILL).unwrap();
    node.exit(&live.id);
    node.runtime.remove_pod(&id).unwrap();
    node.runtime.remove_logs(&id).unwrap();
    for _ in 0..2 {
        node.runtime.remove_pod(&id).unwrap();
    }
    assert_eq!(node.runtime.latest(&id).unwrap(), None);
    assert!(!node.runtime.pod_dir(&id).exists() && !node.runtime.log_dir(&id).exists());
}

/// Disk use covers the whole pod: scratch space, records and logs, whatever is added later.
#[test]
fn the_disk_a_pod_uses_is_seen() {
    let node = Node::new();
    let id = container();
    let all = || {
        let (pod, logs) = (node.runtime.pod_dir(&id), node.runtime.log_dir(&id));
        usage(&[&pod, &logs]).unwrap().bytes
    };
    assert_eq!(all(), 0);
    node.run(&["head -c 1000000 /dev/zero >file; head -c 500000 /dev/zero | tr '\\0' x"]);
    let used = all();
    assert!((1_500_000..1_700_000).contains(&used), "{used}");
    std::fs::write(node.runtime.pod_dir(&id).join("new"), vec![1; 1 << 20]).unwrap();
    assert!(all() >= used + (1 << 20));
}
