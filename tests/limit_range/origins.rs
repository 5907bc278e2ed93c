//! Who gave an amount is told wherever the amount is: with the default and with every rule it breaks.

use serde_json::json;

use super::{judge, pod_of, range_of, refusals};

#[test]
fn a_default_names_its_limit_range_and_the_list_it_is_from() {
    let ranges = [
        range_of(
            "core",
            &json!([{"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}}]),
        ),
        range_of(
            "more",
            &json!([{"type": "Container", "max": {"memory": "1Gi"}, "min": {"ephemeral-storage": "1Mi"}}]),
        ),
    ];
    let verdict = judge(pod_of(&[json!({})]), &ranges);
    let told: Vec<_> = verdict.defaults().iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "container c0: requests.cpu = 100m: defaultRequest of LimitRange core",
            "container c0: requests.memory = 1Gi: max of LimitRange more",
            "container c0: requests.ephemeral-storage = 1Mi: min of LimitRange more",
            "container c0: limits.cpu = 500m: default of LimitRange core",
            "container c0: limits.memory = 1Gi: max of LimitRange more",
        ]
    );
    assert_eq!(refusals(&verdict), [""; 0]);
    assert_eq!(verdict.warnings(), [""; 0]);
}

#[test]
fn a_limit_given_alone_is_the_request_before_any_default_request() {
    let ranges = [range_of(
        "core",
        &json!([{"type": "Container", "default": {"memory": "512Mi"}, "defaultRequest": {"memory": "256Mi"}}]),
    )];
    let verdict = judge(pod_of(&[json!({"limits": {"memory": "1Gi"}})]), &ranges);
    let told: Vec<_> = verdict.defaults().iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        ["container c0: requests.memory = 1Gi: request defaults to the limit"]
    );
}

/// kubernetes#51430: a default limit acts as a hidden maximum, and the error is about a figure that
/// nobody wrote.
#[test]
fn a_request_above_a_default_limit_is_told_whose_limit_it_is() {
    let items = json!([{
        "type": "Container",
        "default": {"memory": "512Mi", "cpu": "1"},
        "defaultRequest": {"memory": "256Mi"},
    }]);
    let asked = json!({"requests": {"memory": "600Mi"}});
    let verdict = judge(
        pod_of(std::slice::from_ref(&asked)),
        &[range_of("core", &items)],
    );
    let told = "spec.containers[0].resources.requests: Invalid value: \"600Mi\": must be less than or \
                equal to memory limit of 512Mi; limits.memory 512Mi of container c0 is the default of \
                LimitRange core; what a container gives itself holds instead (container c0)";
    assert_eq!(refusals(&verdict), [told]);

    let bounded = range_of(
        "top",
        &json!([{"type": "Container", "max": {"memory": "550Mi"}}]),
    );
    let verdict = judge(pod_of(&[asked]), &[bounded, range_of("core", &items)]);
    assert_eq!(
        refusals(&verdict),
        [
            told,
            "spec.containers[0].resources.requests[memory]: maximum memory usage per Container is 550Mi, \
             but request is 600Mi; LimitRange top (container c0)"
        ]
    );
}

#[test]
fn a_rule_that_the_pod_breaks_by_itself_blames_nobody_else() {
    let ranges = [range_of(
        "core",
        &json!([{"type": "Container", "default": {"cpu": "1"}}]),
    )];
    let wrong = json!({"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}});
    let verdict = judge(pod_of(&[wrong]), &ranges);
    assert_eq!(
        refusals(&verdict),
        [
            "spec.containers[0].resources.requests: Invalid value: \"2Gi\": must be less than or equal to \
          memory limit of 1Gi (container c0)"
        ]
    );
}

#[test]
fn defaults_that_break_a_rule_of_the_whole_pod_are_named() {
    let pages = [range_of(
        "pages",
        &json!([{"type": "Container", "default": {"hugepages-2Mi": "4Mi"}}]),
    )];
    assert_eq!(
        refusals(&judge(pod_of(&[json!({})]), &pages)),
        [
            "spec.containers[0].resources: Forbidden: HugePages require cpu or memory; \
          requests.hugepages-2Mi 4Mi of container c0 is the default of LimitRange pages, \
          limits.hugepages-2Mi 4Mi of container c0 is the default of LimitRange pages; \
          what a container gives itself holds instead (container c0)"
        ]
    );

    let together = [range_of(
        "core",
        &json!([
            {"type": "Container", "default": {"memory": "200Mi"}},
            {"type": "Pod", "max": {"memory": "1Gi"}},
        ]),
    )];
    let six = vec![json!({}); 6];
    assert_eq!(
        refusals(&judge(pod_of(&six), &together)),
        [
            "spec.containers: maximum memory usage per Pod is 1Gi, but limit is 1200Mi; LimitRange core; \
          limits.memory 200Mi of container c0 is the default of LimitRange core, \
          limits.memory 200Mi of container c1 is the default of LimitRange core, \
          limits.memory 200Mi of container c2 is the default of LimitRange core and 3 more"
        ]
    );

    let mut pod = pod_of(&[json!({})]);
    pod.resources = Some(super::pods::resources(
        &json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "1"}}),
    ));
    let asked = [range_of(
        "core",
        &json!([{"type": "Container", "defaultRequest": {"cpu": "200m"}}]),
    )];
    assert_eq!(
        refusals(&judge(pod, &asked)),
        [
            "spec.resources.requests[cpu]: Invalid value: \"100m\": must be greater than or equal to \
          aggregate container requests of 200m; requests.cpu 200m of container c0 is the \
          defaultRequest of LimitRange core; what a container gives itself holds instead"
        ]
    );
}

#[test]
fn every_violation_of_every_limit_range_is_told_at_once() {
    let ranges = [
        range_of("b", &json!([{"type": "Container", "min": {"cpu": "200m"}}])),
        range_of(
            "a",
            &json!([
                {"type": "Container", "max": {"cpu": "100m"}, "maxLimitRequestRatio": {"memory": "2"}},
                {"type": "Pod", "max": {"cpu": "250m"}},
            ]),
        ),
    ];
    let resources = json!({
        "requests": {"cpu": "150m", "memory": "1Gi"},
        "limits": {"cpu": "150m", "memory": "3Gi"},
    });
    let verdict = judge(pod_of(&[resources.clone(), resources]), &ranges);
    assert_eq!(
        refusals(&verdict),
        [
            "spec.containers[0].resources.limits[cpu]: maximum cpu usage per Container is 100m, \
             but limit is 150m; LimitRange a (container c0)",
            "spec.containers[0].resources.limits[memory]: memory max limit to request ratio per \
             Container is 2, but provided ratio is 3.000000; LimitRange a (container c0)",
            "spec.containers[1].resources.limits[cpu]: maximum cpu usage per Container is 100m, \
             but limit is 150m; LimitRange a (container c1)",
            "spec.containers[1].resources.limits[memory]: memory max limit to request ratio per \
             Container is 2, but provided ratio is 3.000000; LimitRange a (container c1)",
            "spec.containers: maximum cpu usage per Pod is 250m, but limit is 300m; LimitRange a",
            "spec.containers[0].resources.requests[cpu]: minimum cpu usage per Container is 200m, \
             but request is 150m; LimitRange b (container c0)",
            "spec.containers[1].resources.requests[cpu]: minimum cpu usage per Container is 200m, \
             but request is 150m; LimitRange b (container c1)",
        ]
    );
}

#[test]
fn of_two_defaults_the_first_by_name_holds_and_that_is_told() {
    let default = |cpu| json!([{"type": "Container", "default": {"cpu": cpu}}]);
    let ranges = [
        range_of("b", &default("2")),
        range_of("a", &default("1")),
        range_of("c", &default("1")),
    ];
    let verdict = judge(pod_of(&[json!({})]), &ranges);
    assert_eq!(verdict.defaults()[0].amount.to_string(), "1");
    assert_eq!(
        verdict.warnings(),
        [
            "by default requests.cpu is 1 of LimitRange a, the first by name; not 2 of LimitRange b",
            "by default limits.cpu is 1 of LimitRange a, the first by name; not 2 of LimitRange b",
        ]
    );
    // Nothing to say where the container gives it itself.
    let own = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1"}});
    assert_eq!(judge(pod_of(&[own]), &ranges).warnings(), [""; 0]);
}

#[test]
fn limit_ranges_of_other_namespaces_say_nothing() {
    let mut other = range_of(
        "core",
        &json!([{"type": "Container", "default": {"cpu": "1"}, "max": {"memory": "1Gi"}}]),
    );
    other.namespace = "elsewhere".to_owned();
    let verdict = judge(pod_of(&[json!({})]), &[other]);
    assert_eq!(verdict.defaults(), []);
    assert!(verdict.is_admitted());
    assert!(verdict.pod().annotations.is_empty());
}

#[test]
fn hostile_limit_ranges_cost_little() {
    let many: serde_json::Map<_, _> = (0..64)
        .map(|n| (format!("example.com/r{n}"), json!("1")))
        .collect();
    let ranges: Vec<_> = (0..8)
        .map(|n| {
            let mut items = json!([{"type": "Container", "default": {}, "min": {}}]);
            for (name, one) in &many {
                items[0]["default"][format!("{name}-{n}")] = one.clone();
                items[0]["min"][format!("{name}-min-{n}")] = json!("2");
            }
            range_of(&format!("r{n}"), &items)
        })
        .collect();
    let verdict = judge(pod_of(&vec![json!({}); 512]), &ranges);
    assert!(!verdict.is_admitted());
    assert!(
        verdict.defaults().len() <= 4096,
        "{}",
        verdict.defaults().len()
    );
    assert!(
        verdict.reasons().len() < 6000,
        "{}",
        verdict.reasons().len()
    );
    let bound = "LimitRanges give it 4096 amounts or more by default";
    assert!(refusals(&verdict).contains(&bound.to_owned()));
}

/// Found by fuzzing: a restart of the agent took up another pod than the one that was admitted.
#[test]
fn what_a_limit_range_adds_is_counted_at_pod_level_at_once() {
    let ranges = [range_of(
        "core",
        &json!([{"type": "Container", "default": {"memory": "1Gi"}}]),
    )];
    let mut whole = pod_of(&[json!({}), json!({})]);
    let cpu = allotd::model::ResourceName::Cpu;
    let mut resources = allotd::model::Resources::default();
    resources.limits.set(cpu, "2".parse().unwrap());
    whole.resources = Some(resources);
    let once = judge(whole, &ranges);
    assert_eq!(refusals(&once), [""; 0]);
    let memory = once.pod().resources.as_ref().unwrap().requests.memory();
    assert_eq!(memory.unwrap().0, 2 << 30);
    let again = allotd::admission::readmit(once.pod().clone()).unwrap();
    assert_eq!(again.pod(), once.pod());
}
