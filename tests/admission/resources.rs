//! What is refused of resources, in which words and at which path.

use serde_json::{Value, json};

use crate::pods::{data, pod};
use crate::{judge, refusals};

/// Resources of the only container, and what is refused of them below `spec.containers[0].resources`.
#[test]
fn resources_of_a_container() {
    let integer = |value: &str| {
        ["limits", "requests"].map(|list| {
            format!(".{list}[example.com/gpu]: Invalid value: \"{value}\": must be an integer")
        })
    };
    let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    let rows = [
        (json!({"limits": {"example.com/gpu": "0.5"}}), integer("500m").to_vec()),
        (json!({"limits": {"example.com/gpu": "1500m"}}), integer("1500m").to_vec()),
        (
            json!({"requests": {"example.com/gpu": "1"}}),
            texts(&[".limits: Required value: Limit must be set for non overcommitable resources (example.com/gpu)"]),
        ),
        (
            json!({"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "2"}}),
            texts(&[".requests: Invalid value: \"1\": must be equal to example.com/gpu limit of 2"]),
        ),
        (
            json!({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
            texts(&[".requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1"]),
        ),
        (json!({"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}}), texts(&[])),
        (
            json!({"limits": {"hugepages-2Mi": "4Mi"}}),
            texts(&[": Forbidden: HugePages require cpu or memory"]),
        ),
        (
            json!({"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}}),
            texts(&[
                ".limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi",
                ".requests[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi",
            ]),
        ),
        (
            json!({"limits": {"hugepages-2MB": "2Mi", "cpu": "1"}}),
            ["limits", "requests"]
                .map(|list| format!(
                    ".{list}[hugepages-2MB]: Invalid value: \"hugepages-2MB\": must name a size of huge page, \
                     as hugepages-2Mi and hugepages-1Gi do"
                ))
                .to_vec(),
        ),
        (json!({"requests": {"memory": "400m"}}), texts(&[])),
        (
            json!({"limits": {"memory": "400m"}}),
            texts(&[".limits[memory]: Invalid value: \"400m\": is 0.4 bytes, and must be whole bytes; did you mean 400M or 400Mi?"]),
        ),
        (json!({"limits": {"memory": "1181116006400m"}}), texts(&[])),
        (json!({"requests": {"cpu": "0.0001"}}), texts(&[])),
        (json!({"limits": {"cpu": "0"}}), texts(&[])),
        (
            json!({"requests": {"cpu": "-1"}}),
            texts(&[".requests[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"]),
        ),
        (
            json!({"requests": {"storage": "1Gi"}}),
            texts(&[".requests[storage]: Invalid value: \"storage\": must be a standard resource for containers"]),
        ),
        (
            json!({"requests": {"pods": "1"}}),
            texts(&[".requests[pods]: Invalid value: \"pods\": must be a standard resource for containers"]),
        ),
        (
            json!({"requests": {"network": "1"}}),
            texts(&[
                ".requests[network]: Invalid value: \"network\": must be a standard resource type or fully qualified",
            ]),
        ),
        (
            json!({"requests": {"requests.example.com/x": "0"}}),
            texts(&[
                ".requests[requests.example.com/x]: Invalid value: \"requests.example.com/x\": \
                 doesn't follow extended resource name standard",
            ]),
        ),
        (
            json!({"requests": {"Example.com/-x": "0"}}),
            texts(&[
                ".requests[Example.com/-x]: Invalid value: \"Example.com/-x\": prefix part a lowercase RFC 1123 \
                 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end \
                 with an alphanumeric character (e.g. 'example.com')",
                ".requests[Example.com/-x]: Invalid value: \"Example.com/-x\": name part must consist of \
                 alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character \
                 (e.g. 'MyName', or 'my.name', or '123-abc')",
                ".limits: Required value: Limit must be set for non overcommitable resources (Example.com/-x)",
            ]),
        ),
        // A name in Kubernetes' own domain is neither whole nor equal to a limit.
        (json!({"requests": {"foo.kubernetes.io/x": "0"}}), texts(&[])),
    ];
    for (given, expected) in rows {
        let expected: Vec<_> = expected
            .iter()
            .map(|text| format!("spec.containers[0].resources{text} (container c0)"))
            .collect();
        let spec = json!({"containers": [{"resources": given}]});
        assert_eq!(refusals(pod(&spec)), expected, "{given}");
    }
}

#[test]
fn whole_numbers_are_whole_in_any_notation() {
    for amount in ["3", "3000m", "3Ki"] {
        let spec = json!({"containers": [{"resources": {"limits": {"example.com/gpu": amount}}}]});
        let codes: Vec<_> = judge(pod(&spec))
            .reasons()
            .iter()
            .map(|r| r.code.to_string())
            .collect();
        assert_eq!(codes, ["OutOfexample.com/gpu"], "{amount}");
    }
}

#[test]
fn huge_pages_are_judged_as_by_kubernetes() {
    let data = data(include_str!("../data/huge_pages.json"));
    for row in data["hugepage_validation"].as_array().unwrap() {
        let mut given = row["input"].clone();
        // The rows speak of a container as it is after defaulting.
        let limits = given.get("limits").cloned().unwrap_or(json!({}));
        given["limits"] = limits;
        let verdict = judge(pod(&json!({"containers": [{"resources": given}]})));
        assert_eq!(
            verdict.is_admitted(),
            row["expected"]["valid"],
            "{}",
            row["name"]
        );
    }
}

/// Pod-level resources, those of the containers, and what is refused.
#[test]
fn resources_at_pod_level() {
    let rows = [
        (
            json!({"limits": {"ephemeral-storage": "1Gi"}, "requests": {"cpu": "1"}}),
            json!([{}]),
            vec![
                "spec.resources.limits[ephemeral-storage]: Unsupported value: \"ephemeral-storage\": \
                 supported values: \"cpu\", \"hugepages-\", \"memory\"",
            ],
        ),
        (
            json!({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
            json!([{}]),
            vec![
                "spec.resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1",
            ],
        ),
        (
            json!({"requests": {"cpu": "2"}}),
            json!([{"requests": {"cpu": "1500m"}}, {"requests": {"cpu": "1"}}]),
            vec![
                "spec.resources.requests[cpu]: Invalid value: \"2\": must be greater than or equal to \
                 aggregate container requests of 2500m",
            ],
        ),
        (
            json!({"requests": {"cpu": "2", "hugepages-2Mi": "2Mi"}, "limits": {"hugepages-2Mi": "2Mi"}}),
            json!([{"limits": {"cpu": "1", "hugepages-2Mi": "4Mi"}}]),
            vec![
                "spec.resources.requests[hugepages-2Mi]: Invalid value: \"2Mi\": must be greater than or \
                 equal to aggregate container requests of 4Mi",
                "spec.resources.limits[hugepages-2Mi]: Invalid value: \"2Mi\": must be greater than or \
                 equal to aggregate container limits of 4Mi",
                "spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: \"4Mi\": must be less \
                 than or equal to pod limits of 2Mi (container c0)",
            ],
        ),
        (
            json!({"limits": {"memory": "1Gi"}}),
            json!([{"limits": {"memory": "600Mi"}, "requests": {"memory": "1Mi"}}, {"limits": {"memory": "600Mi"}, "requests": {"memory": "1Mi"}}]),
            vec![],
        ),
        (
            json!({"limits": {"memory": "1Gi"}}),
            json!([{"limits": {"memory": "2Gi"}, "requests": {"memory": "1Mi"}}]),
            vec![
                "spec.containers[0].resources.limits[memory]: Invalid value: \"2Gi\": must be less than or \
                 equal to pod limits of 1Gi (container c0)",
            ],
        ),
        (
            json!({"limits": {"cpu": "1", "memory": "1Gi"}}),
            json!([{"limits": {"cpu": "1", "memory": "1Gi"}}]),
            vec![],
        ),
        (
            json!({"requests": {"cpu": "1", "hugepages-2Mi": "2Mi"}}),
            json!([{"limits": {"cpu": "1", "hugepages-2Mi": "2Mi"}}]),
            vec![
                "spec.resources.limits: Required value: Limit must be set for non overcommitable resources \
                 (hugepages-2Mi)",
            ],
        ),
        (
            json!({"limits": {"hugepages-2Mi": "2Mi"}}),
            json!([{}]),
            vec!["spec.resources: Forbidden: HugePages require cpu or memory"],
        ),
        (
            json!({"requests": {"cpu": "-1"}}),
            json!([{}]),
            vec![
                "spec.resources.requests[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
            ],
        ),
    ];
    for (own, containers, expected) in rows {
        let containers: Vec<Value> = containers
            .as_array()
            .unwrap()
            .iter()
            .map(|resources| json!({"resources": resources}))
            .collect();
        let given = json!({"resources": own, "containers": containers});
        assert_eq!(refusals(pod(&given)), expected, "{given}");
    }
}

#[test]
fn overhead_is_held_to_the_rules_of_limits() {
    let spec = json!({
        "containers": [{}],
        "overhead": {"cpu": "-1", "network": "1", "example.com/x": "500m"},
    });
    let fields: Vec<_> = judge(pod(&spec))
        .reasons()
        .iter()
        .map(|r| r.field.clone())
        .collect();
    assert_eq!(
        fields,
        [
            "spec.overhead[cpu]",
            "spec.overhead[example.com/x]",
            "spec.overhead[network]",
            ""
        ]
    );
}
