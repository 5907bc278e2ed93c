//! Any pods, LimitRanges and quotas, as a manifest, all the way to cgroup values. The bytes choose what
//! stands in the fields.

use allotd::admission::{Situation, Verdict, admit, limit_range, quota};
use allotd::cgroup::Setting;
use allotd::manifest::convert::{self, placeholder_uid};
use allotd::manifest::{Object, Strictness, read};
use allotd::model::{
    LimitRange, LimitType, List, Node, Pod, Policy, ResourceList, ResourceName, ResourceQuota,
};
use allotd::translation::{Totals, levels, translate_pod};
use allotd::units::{Bytes, Limit, PageSize, Quantity};
use serde_json::{Map, Value, json};

use super::choices::Choices;

const RESOURCES: &[&str] = &[
    "cpu",
    "memory",
    "cpu",
    "memory",
    "ephemeral-storage",
    "hugepages-2Mi",
    "hugepages-2097152",
    "hugepages-1Gi",
    "example.com/foo",
    "pods",
];
const AMOUNTS: &[&str] = &[
    "0",
    "1",
    "2",
    "100m",
    "1500m",
    "64Mi",
    "1Gi",
    "2Mi",
    "3Mi",
    "1n",
    "-1",
    "1e3",
    "0.5",
    "1.5Gi",
    "9223372036854775807",
    "1e29",
    "-1e29",
    "999Ei",
    "abc",
    "4096",
];
const QUOTA_KEYS: &[&str] = &[
    "pods",
    "cpu",
    "requests.cpu",
    "limits.cpu",
    "memory",
    "requests.memory",
    "limits.memory",
    "requests.hugepages-2Mi",
    "requests.example.com/foo",
    "count/pods",
    "requests.ephemeral-storage",
    "example.com/foo",
];
const SCOPES: &[&str] = &[
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "Other",
];

/// A node on which usual pods fit.
pub fn node() -> Node {
    let amounts: ResourceList = [
        ("cpu", "16"),
        ("memory", "64Gi"),
        ("ephemeral-storage", "100Gi"),
        ("hugepages-2Mi", "1Gi"),
        ("example.com/foo", "5"),
        ("pods", "3"),
    ]
    .iter()
    .map(|(name, amount)| (ResourceName::from(*name), amount.parse().unwrap()))
    .collect();
    Node {
        name: "n".to_owned(),
        capacity: amounts.clone(),
        reserved: ResourceList::default(),
        allocatable: amounts,
        page_size: PageSize::FOUR_KIB,
        max_pids: Some(32_768),
        reserved_pids: 100,
        swap: Bytes(1 << 30),
    }
}

pub fn run(data: &[u8]) {
    let mut choices = Choices::new(data);
    let mut items = Vec::new();
    for index in 0..=choices.below(3) {
        items.push(pod(&mut choices, index));
    }
    for index in 0..choices.below(3) {
        items.push(range(&mut choices, index));
    }
    for index in 0..choices.below(3) {
        items.push(quota(&mut choices, index));
    }
    let text = json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    judge(text.as_bytes());
}

fn judge(text: &[u8]) {
    let manifest = read("-", text, Strictness::Warn);
    let mut pods = Vec::new();
    let mut ranges = Vec::new();
    let mut quotas = Vec::new();
    for located in manifest.objects {
        match located.object {
            Object::Pod(pod) => {
                let name = pod.metadata.name.as_deref().unwrap_or_default();
                let uid = placeholder_uid("default", name).unwrap();
                pods.push(convert::pod(&pod, &uid).object);
            }
            Object::LimitRange(range) => {
                let range = convert::limit_range(&range).object;
                if limit_range::validate(&range).is_empty() {
                    ranges.push(range);
                }
            }
            Object::ResourceQuota(quota) => {
                let quota = convert::resource_quota(&quota).object;
                if quota::validate(&quota).is_empty() {
                    quotas.push(quota);
                }
            }
            _ => {}
        }
    }
    let node = node();
    let mut used = ResourceList::default();
    let mut count = 0;
    let mut totals = Totals::default();
    for pod in pods {
        let situation = Situation {
            limit_ranges: &ranges,
            quotas: &quotas,
            ..Situation::new(&node, &used, count)
        };
        let verdict = admit(pod, &situation);
        let twice = admit(verdict.pod().clone(), &situation);
        assert_eq!(twice.pod(), verdict.pod());
        assert_eq!(twice.is_admitted(), verdict.is_admitted());
        for reason in verdict.reasons() {
            assert!(!reason.to_string().contains(char::is_control), "{reason:?}");
        }
        if !verdict.is_admitted() {
            assert!(verdict.charges().is_empty());
            continue;
        }
        bounds_hold(verdict.pod(), &ranges);
        charge(&verdict, &mut quotas);
        used.add(&verdict.effective().requests);
        count += 1;
        for (name, amount) in verdict.effective().requests.iter() {
            let all = node.allocatable.get(name).unwrap_or(Quantity::ZERO);
            let sum = used.get(name).unwrap();
            assert!(amount.is_zero() || sum <= all, "{name}: {sum} of {all}");
        }
        let admitted = verdict.into_admitted().unwrap();
        let tree = translate_pod(&admitted, &node, &Policy::default());
        assert_eq!(tree.tree.len(), tree.cgroups.len());
        assert_eq!(tree.oom_scores.len() + 1, tree.cgroups.len());
        for (path, cgroup) in tree.tree.iter() {
            for setting in cgroup.settings.values() {
                assert!(is_in_range(*setting), "{path}: {setting}");
            }
        }
        totals.add(&tree.share);
        levels(&totals, &node, &Policy::default());
    }
    assert!(count <= 3);
}

/// No request is above its limit, nothing is negative, and LimitRanges hold.
fn bounds_hold(pod: &Pod, ranges: &[LimitRange]) {
    for (_, _, container) in pod.all_containers() {
        let resources = &container.resources;
        for (name, request) in resources.requests.iter() {
            assert!(!request.is_negative());
            if let Some(limit) = resources.limits.get(name) {
                assert!(request <= limit, "{name}: {request} above {limit}");
            }
        }
        let items = ranges.iter().flat_map(|range| &range.items);
        for item in items.filter(|item| item.kind == LimitType::Container) {
            for (name, most) in item.max.iter() {
                let limit = resources.limits.get(name).expect("limited by max");
                assert!(limit <= most, "{name}: {limit} above {most}");
            }
            for (name, least) in item.min.iter() {
                let request = resources.list(List::Requests).get(name);
                assert!(request.expect("asked for min") >= least, "{name}");
            }
        }
    }
}

/// No account rises above its bound.
fn charge(verdict: &Verdict, quotas: &mut [ResourceQuota]) {
    for charge in verdict.charges() {
        charge.apply(quotas);
        let own = quotas.iter().find(|quota| quota.name == charge.quota);
        let own = own.unwrap();
        for (name, more) in charge.amounts.iter() {
            assert!(more > Quantity::ZERO);
            let (used, hard) = (own.used.get(name).unwrap(), own.hard.get(name).unwrap());
            assert!(used <= hard, "{name}: {used} of {hard}");
        }
    }
}

/// What the kernel takes (Linux 6.12).
fn is_in_range(setting: Setting) -> bool {
    match setting {
        Setting::CpuWeight(weight) => (1..=10_000).contains(&weight.get()),
        Setting::CpuMax(max) => match max.quota {
            Limit::At(quota) => (1000..1 << 44).contains(&quota.0),
            Limit::Max => true,
        },
        Setting::PidsMax(Limit::At(tasks)) => tasks <= 4_194_304,
        _ => true,
    }
}

fn pod(choices: &mut Choices, index: usize) -> Value {
    let mut spec = json!({
        "containers": containers(choices, "c", 3),
        "initContainers": containers(choices, "i", 2),
    });
    if choices.once_in(4) {
        spec["resources"] = resources(choices);
    }
    if choices.once_in(4) {
        spec["overhead"] = amounts(choices, RESOURCES, 2);
    }
    if choices.once_in(8) {
        spec["activeDeadlineSeconds"] = json!(choices.byte());
    }
    if choices.once_in(8) {
        spec["priorityClassName"] = json!(choices.text(6));
    }
    let name = if choices.once_in(8) {
        choices.text(12)
    } else {
        format!("web-{index}")
    };
    let mut annotations = Map::new();
    if choices.once_in(4) {
        let key = choices.of(&["allotd.dev/pids-limit", "allotd.dev/oom-policy", "a"]);
        let value = match choices.below(3) {
            0 => "max".to_owned(),
            1 => choices.byte().to_string(),
            _ => choices.text(20),
        };
        annotations.insert(key.to_owned(), json!(value));
    }
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": spec,
    })
}

fn containers(choices: &mut Choices, prefix: &str, most: usize) -> Value {
    let number = choices.below(most) + usize::from(prefix == "c");
    let one = |index| {
        let name = if choices.once_in(16) {
            choices.text(8)
        } else {
            format!("{prefix}{index}")
        };
        let mut container = json!({"name": name, "image": "i", "resources": resources(choices)});
        if prefix == "i" && choices.once_in(2) {
            container["restartPolicy"] = json!("Always");
        }
        container
    };
    (0..number).map(one).collect()
}

fn resources(choices: &mut Choices) -> Value {
    let mut requests = amounts(choices, RESOURCES, 4);
    let limits = amounts(choices, RESOURCES, 4);
    // Otherwise few pods would be admitted.
    if choices.once_in(2) {
        requests.clone_from(&limits);
    }
    json!({"requests": requests, "limits": limits})
}

fn amounts(choices: &mut Choices, names: &[&str], most: usize) -> Value {
    let mut list = Map::new();
    for _ in 0..choices.below(most) {
        let name = match choices.byte() {
            255 => choices.text(10),
            byte => names[usize::from(byte) % names.len()].to_owned(),
        };
        list.insert(name, amount(choices));
    }
    list.into()
}

fn amount(choices: &mut Choices) -> Value {
    match choices.below(8) {
        0..4 => json!(choices.of(AMOUNTS)),
        4 => json!(format!("{}m", choices.byte())),
        5 => json!(format!("{}Mi", choices.byte())),
        6 => json!(choices.byte()),
        _ => json!(choices.text(8)),
    }
}

fn range(choices: &mut Choices, index: usize) -> Value {
    let items = (0..=choices.below(2)).map(|_| {
        let kind = choices.of(&["Container", "Container", "Pod", "Other"]);
        let mut item = json!({"type": kind});
        for field in [
            "max",
            "min",
            "default",
            "defaultRequest",
            "maxLimitRequestRatio",
        ] {
            if choices.once_in(2) {
                item[field] = amounts(choices, RESOURCES, 3);
            }
        }
        item
    });
    let items: Value = items.collect();
    json!({
        "apiVersion": "v1", "kind": "LimitRange",
        "metadata": {"name": format!("range-{index}")}, "spec": {"limits": items},
    })
}

fn quota(choices: &mut Choices, index: usize) -> Value {
    let mut spec = json!({"hard": amounts(choices, QUOTA_KEYS, 6)});
    if choices.once_in(3) {
        spec["scopes"] = json!([choices.of(SCOPES)]);
    }
    if choices.once_in(3) {
        let operator = choices.of(&["In", "NotIn", "Exists", "DoesNotExist", "x"]);
        let mut term = json!({"scopeName": choices.of(SCOPES), "operator": operator});
        if choices.once_in(2) {
            term["values"] = json!([choices.text(6)]);
        }
        spec["scopeSelector"] = json!({"matchExpressions": [term]});
    }
    json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": format!("quota-{index}")},
        "spec": spec, "status": {"used": amounts(choices, QUOTA_KEYS, 3)},
    })
}
