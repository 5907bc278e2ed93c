//! The order of victims: Kubernetes' rules, and the cases in which others went wrong.

use proptest::prelude::*;

use super::*;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

fn pod(name: &str, priority: i32, used: u64, request: u64) -> PodUse {
    let whole = Use {
        memory: Some(used),
        memory_request: request,
        tasks: Some(1),
        ..Use::default()
    };
    PodUse {
        namespace: "default".to_owned(),
        name: name.to_owned(),
        uid: name.to_owned(),
        qos: QosClass::Burstable,
        priority,
        spared: None,
        containers: vec![("c".to_owned(), whole.clone())],
        whole,
    }
}

fn critical(pod: PodUse) -> PodUse {
    PodUse {
        spared: Some("critical".to_owned()),
        ..pod
    }
}

fn order(signal: Signal, place: &str, pods: &[PodUse], missing: u64) -> Vec<String> {
    let ranking = rank(signal, place, pods, missing);
    let names = ranking.order.iter().map(|ranked| ranked.pod.name.clone());
    names.collect()
}

#[test]
fn memory_goes_by_request_then_priority_then_excess() {
    let pods = [
        pod("within-large", 0, 900 * MIB, GIB),
        pod("above-important", 100, 3 * GIB, 0),
        pod("above-little", 0, 110 * MIB, 100 * MIB),
        pod("above-much", 0, 400 * MIB, 100 * MIB),
        pod("within-small", 0, 500 * MIB, GIB),
        pod("low-within", -5, 10 * MIB, GIB),
    ];
    assert_eq!(
        order(Signal::Memory, "", &pods, 0),
        [
            "above-much",
            "above-little",
            "above-important",
            "low-within",
            "within-large",
            "within-small"
        ]
    );
}

/// kubernetes#73572: the critical pod without a request stays, and so does the one within its request
/// while another is above.
#[test]
fn a_critical_pod_is_never_a_victim() {
    let pods = [
        critical(pod("critical", 2_000_001_000, 12 * MIB, 0)),
        pod("low", 0, 2 * GIB, GIB),
        pod("high", 1000, 3 * GIB, 4 * GIB),
    ];
    let ranking = rank(Signal::Memory, "", &pods, 200 * MIB);
    assert_eq!(ranking.order[0].pod.name, "low");
    assert_eq!(ranking.order.len(), 2);
    assert_eq!(ranking.spared[0].0.name, "critical");
    assert!(rank(Signal::Memory, "", &pods[..1], GIB).order.is_empty());
}

#[test]
fn who_gives_nothing_worth_it_goes_last_and_who_gives_nothing_stays() {
    let pods = [
        pod("tiny", -100, 12 * MIB, 0),
        pod("large", 100, GIB, 2 * GIB),
        pod("empty", -100, 0, 0),
        PodUse {
            whole: Use::default(),
            ..pod("unknown", -100, 0, 0)
        },
    ];
    assert_eq!(order(Signal::Memory, "", &pods, GIB), ["large", "tiny"]);
    // Where little is missing, little is worth it.
    assert_eq!(order(Signal::Memory, "", &pods, MIB), ["tiny", "large"]);
    let spared = rank(Signal::Memory, "", &pods, 0).spared;
    let spared: Vec<_> = spared
        .iter()
        .map(|(pod, why)| (pod.name.as_str(), why.as_str()))
        .collect();
    assert_eq!(
        spared,
        [
            ("empty", "would give nothing back"),
            ("unknown", "what it uses is not known")
        ]
    );
}

/// kubernetes#21546: many small files count where inodes are short, one large file where bytes are; and
/// a request in bytes is nothing to subtract inodes from.
#[test]
fn inodes_are_ranked_by_inodes() {
    let on = |name: &str, place: &str, bytes, inodes| {
        let mut pod = pod(name, 0, MIB, 0);
        pod.whole.disk_request = 2_000_000;
        pod.whole
            .disk
            .insert(place.to_owned(), DiskUse { bytes, inodes });
        pod
    };
    let pods = [
        on("many-files", "/state", 900_000 * 4096, 900_000),
        on("large-file", "/state", 10 * GIB, 20),
        on("elsewhere", "/logs", 50 * GIB, 5_000_000),
    ];
    assert_eq!(
        order(Signal::NodeFsInodes, "/state", &pods, 0),
        ["many-files", "large-file"]
    );
    assert_eq!(
        order(Signal::NodeFs, "/state", &pods, 0),
        ["large-file", "many-files"]
    );
    assert_eq!(order(Signal::NodeFs, "/logs", &pods, 0), ["elsewhere"]);
}

#[test]
fn tasks_go_by_priority_then_number() {
    let tasks = |name: &str, priority, tasks| {
        let mut pod = pod(name, priority, MIB, 0);
        pod.whole.tasks = Some(tasks);
        pod
    };
    let pods = [
        tasks("many", 10, 9000),
        tasks("few", 0, 3),
        tasks("some", 0, 40),
    ];
    assert_eq!(order(Signal::Pids, "", &pods, 0), ["some", "few", "many"]);
}

#[test]
fn messages_are_those_that_users_know() {
    let mut pods = [pod("web", 0, GIB, 0)];
    pods[0].containers[0].0 = "x".to_owned();
    pods[0].containers.push((
        "quiet".to_owned(),
        Use {
            memory: Some(5),
            memory_request: 6,
            ..Use::default()
        },
    ));
    let ranking = rank(Signal::Memory, "", &pods, 20 * MIB);
    assert_eq!(
        ranking.order[0].message(Signal::Memory, "", 100 * MIB, 80 * MIB),
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 80Mi. \
         Container x was using 1Gi, request is 0, has larger consumption of memory. "
    );
    let ranking = rank(Signal::Pids, "", &pods, 1);
    assert_eq!(
        ranking.order[0].message(Signal::Pids, "", 3000, 500),
        "The node was low on resource: pids. Threshold quantity: 3k, available: 500. The pod was using 1 pids. "
    );
}

proptest! {
    /// The first of any set is not beaten by any other in Kubernetes' order, and the order never loses
    /// or invents a pod.
    #[test]
    fn the_first_is_the_first_by_the_rules(
        pods in proptest::collection::vec((any::<bool>(), -2..3_i32, 0..64_u64, 0..64_u64), 0..12),
        missing in 0..2048_u64,
    ) {
        let pods: Vec<_> = pods
            .into_iter()
            .enumerate()
            .map(|(n, (is_critical, priority, used, request))| {
                let pod = pod(&n.to_string(), priority, used * MIB, request * MIB);
                if is_critical { critical(pod) } else { pod }
            })
            .collect();
        let ranking = rank(Signal::Memory, "", &pods, missing * MIB);
        prop_assert_eq!(ranking.order.len() + ranking.spared.len(), pods.len());
        let Some(first) = ranking.order.first() else { return Ok(()) };
        prop_assert!(first.used > 0 && first.pod.spared.is_none());
        for other in &ranking.order {
            prop_assert!(first.is_worth_it || !other.is_worth_it);
            if first.is_worth_it != other.is_worth_it { continue; }
            let exceeds = |it: &Ranked| it.pod.whole.memory > Some(it.pod.whole.memory_request);
            prop_assert!(exceeds(first) || !exceeds(other));
            if exceeds(first) != exceeds(other) { continue; }
            prop_assert!(first.pod.priority <= other.pod.priority);
            if first.pod.priority == other.pod.priority {
                prop_assert!(first.above() >= other.above());
            }
        }
    }
}
