//! What the stages cost, on plain data. `scripts/bench` runs this and holds the results to the promises
//! that it lists; whoever renames a benchmark renames it there.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    missing_docs,
    reason = "a benchmark fails by panicking"
)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Write as _;
use std::process::{Command, Stdio};

use allotd::admission::{AdmittedPod, Demand, Holder, Ledger, Situation, admit, fit};
use allotd::cgroup::{CgroupPath, ControllerSet, Node as Cgroup, Setting, Tree};
use allotd::cli::explain::offline;
use allotd::cli::offline::Asked;
use allotd::config::Config;
use allotd::enforcement::plan;
use allotd::manifest::convert::{self, placeholder_uid};
use allotd::manifest::{Manifest, Object, Strictness, read};
use allotd::model::{
    ClusterResourceQuota, Namespace, Node, Pod, Policy, QosClass, ResourceList, ResourceQuota,
};
use allotd::store::{Change, Expect, Store};
use allotd::translation::{pod_path, translate_pod};
use allotd::units::{
    Bytes, CpuMax, CpuWeight, Format, HugePageSize, Limit, Micros, PageSize, Quantity,
};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

const PAGE: PageSize = PageSize::FOUR_KIB;

const NODE: &str = "
apiVersion: v1
kind: Node
metadata: {name: node}
status:
  capacity: {cpu: 4k, memory: 16Ti, pods: 10k, ephemeral-storage: 16Ti, hugepages-2Mi: 1Gi}
---
";

/// Pods of two containers each, as a text, behind a node.
fn text(pods: usize) -> String {
    let mut text = NODE.to_owned();
    for index in 0..pods {
        write!(
            text,
            "
apiVersion: v1
kind: Pod
metadata: {{name: web-{index}, namespace: shop, labels: {{app: web, tier: front}}}}
spec:
  containers:
  - name: app
    image: registry.example.com/shop/app:1.2
    command: [/usr/bin/app, --listen, ':8080']
    env: [{{name: MODE, value: production}}]
    resources:
      requests: {{cpu: 250m, memory: 64Mi}}
      limits: {{cpu: 500m, memory: 128Mi}}
  - name: log
    image: registry.example.com/shop/log:1.2
    resources:
      limits: {{cpu: 100m, memory: 32Mi}}
---
"
        )
        .unwrap();
    }
    text
}

fn read_all(text: &str) -> Manifest {
    let manifest = read("-", text.as_bytes(), Strictness::Strict);
    assert_eq!(manifest.problems, []);
    manifest
}

fn model(manifest: &Manifest) -> (Node, Vec<Pod>) {
    let mut node = None;
    let mut pods = Vec::new();
    for located in &manifest.objects {
        match &located.object {
            Object::Node(object) => node = Some(convert::node(object).object),
            Object::Pod(object) => {
                let name = located.object.name();
                let uid = placeholder_uid("shop", name).unwrap();
                pods.push(convert::pod(object, &uid).object);
            }
            _ => {}
        }
    }
    (node.unwrap(), pods)
}

fn admitted(node: &Node, pods: Vec<Pod>) -> Vec<AdmittedPod> {
    let nothing = ResourceList::default();
    let judge = |pod| admit(pod, &Situation::new(node, &nothing, 0));
    pods.into_iter()
        .map(|pod| judge(pod).into_admitted().unwrap())
        .collect()
}

fn explain(c: &mut Criterion) {
    let one = text(1);
    let config = Config::default();
    let asked = Asked {
        config: &config,
        namespace: "shop",
    };
    let mut group = c.benchmark_group("explain");
    group.bench_function("library", |b| {
        b.iter(|| {
            let (explanation, _) = offline::explain(&read_all(black_box(&one)), &asked);
            assert_eq!(explanation.pods.len(), 1);
            explanation
        });
    });
    group.bench_function("process", |b| {
        b.iter(|| {
            let mut child = Command::new(env!("CARGO_BIN_EXE_allot"))
                .args(["explain", "-f", "-"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            child
                .stdin
                .take()
                .unwrap()
                .write_all(one.as_bytes())
                .unwrap();
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success());
            output.stdout
        });
    });
    group.finish();
}

fn reading(c: &mut Criterion) {
    let texts = [
        "100m",
        "1.5Gi",
        "1e3",
        "0.000000001",
        "9223372036854775807",
        "134217728",
    ];
    c.bench_function("quantity/six", |b| {
        b.iter(|| black_box(texts).map(|text| text.parse::<Quantity>().unwrap()));
    });
    let mut group = c.benchmark_group("manifest");
    for pods in [1, 100] {
        let text = text(pods);
        group.bench_function(pods.to_string(), |b| b.iter(|| read_all(black_box(&text))));
    }
    group.finish();
}

fn stages(c: &mut Criterion) {
    let (node, mut pods) = model(&read_all(&text(1001)));
    let new = pods.pop().unwrap();
    let there = admitted(&node, pods);
    let mut group = c.benchmark_group("admission");
    for count in [100, 1000] {
        let (there, _) = there.split_at(count);
        let used = fit::used(there);
        let situation = Situation::new(&node, &used, u64::try_from(count).unwrap());
        group.bench_function(format!("among-{count}"), |b| {
            b.iter_batched(
                || new.clone(),
                |pod| admit(pod, black_box(&situation)),
                BatchSize::SmallInput,
            );
        });
        group.bench_function(format!("sum-of-{count}"), |b| {
            b.iter(|| fit::used(black_box(there)));
        });
    }
    group.finish();
    let policy = Policy::default();
    c.bench_function("translation/one", |b| {
        b.iter(|| translate_pod(black_box(&there[0]), &node, &policy));
    });
}

/// 2000 cgroups of 8 files each, below 500 pods.
fn tree() -> Tree {
    let huge = HugePageSize::TWO_MIB;
    let settings = [
        Setting::CpuWeight(CpuWeight::clamped(35)),
        Setting::CpuMax(CpuMax {
            quota: Limit::At(Micros(50_000)),
            period: CpuMax::DEFAULT_PERIOD,
        }),
        Setting::MemoryMin(Limit::At(Bytes::mib(64))),
        Setting::MemoryMax(Limit::At(Bytes::mib(128))),
        Setting::MemorySwapMax(Limit::At(Bytes::ZERO)),
        Setting::HugetlbMax(huge, Limit::At(Bytes::ZERO)),
        Setting::HugetlbRsvdMax(huge, Limit::At(Bytes::ZERO)),
        Setting::PidsMax(Limit::Max),
    ];
    let cgroup = |enabled| Cgroup {
        enabled,
        ..settings.into_iter().collect()
    };
    let mut tree = Tree::default();
    tree.insert(CgroupPath::top(), cgroup(ControllerSet::all()));
    for index in 0..500 {
        let pod = pod(index);
        for name in ["app", "log", "proxy"] {
            tree.insert(pod.child(name).unwrap(), cgroup(ControllerSet::default()));
        }
        tree.insert(pod, cgroup(ControllerSet::all()));
    }
    tree
}

fn pod(index: usize) -> CgroupPath {
    let uid = placeholder_uid("shop", &format!("web-{index}")).unwrap();
    pod_path(QosClass::Guaranteed, &uid)
}

fn planning(c: &mut Criterion) {
    let top = CgroupPath::top();
    let wanted = tree();
    assert_eq!(wanted.len(), 2001);
    let nothing = Tree::default();
    let mut changed = wanted.clone();
    let one = pod(250);
    let less = Setting::MemoryMax(Limit::At(Bytes::mib(96)));
    changed.get_mut(&one).unwrap().set(less);

    let mut group = c.benchmark_group("plan");
    group.bench_function("new", |b| {
        b.iter(|| plan(&top, black_box(&wanted), &nothing, &nothing, PAGE));
    });
    group.bench_function("no-change", |b| {
        b.iter(|| plan(&top, black_box(&wanted), &wanted, &wanted, PAGE));
    });
    for (name, scope) in [("one-change", &top), ("one-change-in-its-pod", &one)] {
        group.bench_function(name, |b| {
            b.iter(|| {
                let plan = plan(scope, black_box(&wanted), &changed, &wanted, PAGE);
                assert_eq!(plan.steps().len(), 1);
                plan
            });
        });
    }
    group.finish();
}

/// A quota and a cluster quota that both count a namespace of so many pods: another pod comes and goes.
fn charging(c: &mut Criterion) {
    let (node, pods) = model(&read_all(&text(1001)));
    let there = admitted(&node, pods);
    let holder = |index: usize| Holder {
        namespace: "shop".to_owned(),
        resource: "pods".to_owned(),
        name: format!("web-{index}"),
    };
    let demand = |pod: &AdmittedPod| Demand::of_pod(pod.pod(), pod.effective());
    let most = |key: &str| (key.into(), Quantity::from_units(1 << 40, Format::DecimalSi));
    let quota = || ResourceQuota {
        namespace: "shop".to_owned(),
        name: "q".to_owned(),
        hard: ["pods", "requests.cpu", "limits.memory"]
            .map(most)
            .into_iter()
            .collect(),
        ..ResourceQuota::default()
    };
    let mut group = c.benchmark_group("ledger");
    for count in [10, 1000] {
        let mut ledger = Ledger::default();
        ledger.put_namespace(Namespace::named("shop"));
        for (index, pod) in there[..count].iter().enumerate() {
            ledger.hold(
                holder(index),
                demand(pod),
                Some(pod.effective().requests.clone()),
            );
        }
        ledger.put_quota(quota());
        ledger.put_cluster_quota(ClusterResourceQuota {
            quota: ResourceQuota {
                namespace: String::new(),
                ..quota()
            },
            ..ClusterResourceQuota::default()
        });
        let new = &there[count];
        group.bench_function(format!("one-among-{count}"), |b| {
            b.iter(|| {
                let demand = demand(black_box(new));
                ledger.judge(&holder(count), &demand, &[]).unwrap();
                ledger.hold(
                    holder(count),
                    demand,
                    Some(new.effective().requests.clone()),
                );
                ledger.release(&holder(count));
                ledger.take_touched().len()
            });
        });
        assert_eq!(ledger.recount(), []);
    }
    group.finish();
}

fn storing(c: &mut Criterion) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let store = Store::open(&dir.path().join("store"), &[]).unwrap();
    let value = vec![b'x'; 2048];
    c.bench_function("store/commit", |b| {
        b.iter(|| {
            let key = "pods/shop/web".to_owned();
            store
                .commit(&[Change::Put(key, value.clone(), Expect::Any)])
                .unwrap()
        });
    });
}

criterion_group!(
    benches, explain, reading, stages, planning, charging, storing
);
criterion_main!(benches);
