//! What holds for any LimitRanges and any pod.

use allotd::admission::{Code, Rule};
use allotd::model::{LimitRange, LimitRangeItem, LimitType, List, Resources};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{judge, pod_of, range_of};

fn amount() -> impl Strategy<Value = Value> {
    (1..20_u32).prop_map(|n| json!(format!("{}m", n * 100)))
}

/// Some of cpu and memory.
fn amounts() -> impl Strategy<Value = Value> {
    (
        proptest::option::of(amount()),
        proptest::option::of(amount()),
    )
        .prop_map(|(cpu, memory)| {
            let all = [("cpu", cpu), ("memory", memory)];
            let given = all
                .into_iter()
                .filter_map(|(name, amount)| Some((name.to_owned(), amount?)));
            Value::Object(given.collect())
        })
}

fn resources() -> impl Strategy<Value = Value> {
    (amounts(), amounts())
        .prop_map(|(requests, limits)| json!({"requests": requests, "limits": limits}))
}

fn range() -> impl Strategy<Value = (&'static str, Value)> {
    let kind = prop_oneof![3 => Just("Container"), 1 => Just("Pod")];
    (kind, amounts(), amounts(), amounts(), amounts(), amounts()).prop_map(
        |(kind, min, max, default, default_request, ratio)| {
            let mut item = json!({"min": min, "max": max, "maxLimitRequestRatio": ratio});
            if kind == "Container" {
                item["default"] = default;
                item["defaultRequest"] = default_request;
            }
            (kind, item)
        },
    )
}

fn ranges() -> impl Strategy<Value = Vec<LimitRange>> {
    proptest::collection::vec(range(), 0..5).prop_map(|items| {
        let named = items.into_iter().enumerate();
        named
            .map(|(index, (kind, mut item))| {
                item["type"] = json!(kind);
                range_of(&format!("r{index}"), &json!([item]))
            })
            .collect()
    })
}

/// Whether amounts keep all bounds of an item.
fn keeps(item: &LimitRangeItem, resources: &Resources) -> bool {
    let Resources { requests, limits } = resources;
    let min = item.min.iter().all(|(name, min)| {
        requests.get(name).is_some_and(|amount| amount >= min)
            && limits.get(name).is_none_or(|amount| amount >= min)
    });
    let max = item.max.iter().all(|(name, max)| {
        limits.get(name).is_some_and(|amount| amount <= max)
            && requests.get(name).is_none_or(|amount| amount <= max)
    });
    let ratio = item.max_limit_request_ratio.iter().all(|(name, ratio)| {
        let (Some(request), Some(limit)) = (requests.get(name), limits.get(name)) else {
            return false;
        };
        limit.milli() * 1000 <= ratio.milli() * request.milli()
    });
    min && max && ratio
}

proptest! {
    #[test]
    fn the_order_of_limit_ranges_does_not_matter(
        containers in proptest::collection::vec(resources(), 1..4),
        (ranges, shuffled) in ranges().prop_flat_map(|ranges| {
            let shuffled = Just(ranges.clone()).prop_shuffle();
            (Just(ranges), shuffled)
        }),
    ) {
        let pod = pod_of(&containers);
        prop_assert_eq!(judge(pod.clone(), &ranges), judge(pod, &shuffled));
    }

    /// What is refused is exactly what breaks a bound, whoever gave the amounts.
    #[test]
    fn what_breaks_no_bound_is_not_refused(
        containers in proptest::collection::vec(resources(), 1..4),
        ranges in ranges(),
    ) {
        let verdict = judge(pod_of(&containers), &ranges);
        let items: Vec<_> = ranges.iter().flat_map(|range| &range.items).collect();
        let within = |resources: &Resources| {
            items.iter().filter(|item| item.kind == LimitType::Container).all(|item| keeps(item, resources))
        };
        for (index, container) in verdict.pod().containers.iter().enumerate() {
            let path = format!("spec.containers[{index}].");
            let refused = verdict.reasons().iter().any(|reason| {
                reason.code == Code::LimitRange && reason.field.starts_with(&path)
            });
            prop_assert_eq!(!refused, within(&container.resources), "{:?}", container);
        }
    }

    /// Nothing that a container gives is changed; what is filled in is told once, and is nothing else.
    #[test]
    fn only_gaps_are_filled(
        containers in proptest::collection::vec(resources(), 1..4),
        ranges in ranges(),
    ) {
        let given = pod_of(&containers);
        let verdict = judge(given.clone(), &ranges);
        for (before, after) in given.containers.iter().zip(&verdict.pod().containers) {
            for list in [List::Requests, List::Limits] {
                for (name, amount) in after.resources.list(list).iter() {
                    let own = before.resources.list(list).get(name);
                    let told: Vec<_> = verdict.defaults().iter().filter(|told| {
                        told.container.as_ref() == Some(&after.name)
                            && told.list == list
                            && told.resource == *name
                    }).collect();
                    if let Some(own) = own {
                        prop_assert_eq!(own, amount);
                        prop_assert!(told.is_empty());
                    } else {
                        prop_assert_eq!(told.len(), 1);
                        prop_assert_eq!(told[0].amount, amount);
                        let is_ours = matches!(told[0].rule, Rule::LimitRange { .. });
                        prop_assert!(is_ours || told[0].rule == Rule::RequestFromLimit);
                    }
                }
            }
        }
    }
}
