//! What a configuration file may hold, and what is said of one that holds more.

use super::*;

#[test]
fn the_printed_defaults_are_the_defaults_and_name_every_setting() {
    assert_eq!(Config::parse(DEFAULT_TEXT).unwrap(), Config::default());
    let all = serde_json::to_value(Config::default()).unwrap();
    for key in all.as_object().unwrap().keys() {
        assert!(
            DEFAULT_TEXT
                .lines()
                .any(|line| line.starts_with(&format!("{key}:"))),
            "{key} is not documented"
        );
    }
    assert_eq!(Config::parse("").unwrap(), Config::default());
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let text = "maxPods: 0\ncpuCFSQuotaPeriod: 2s\npodPidsLimit: 0\nstateDir: var\n\
                kubeReserved: {gpu: 1}\nextendedResources: {foo: 1, a.b/c: 0.5}\n";
    let Err(ConfigError::Invalid(problems)) = Config::parse(text) else {
        panic!("accepted");
    };
    assert_eq!(problems.len(), 7, "{problems:#?}");
}

#[test]
fn what_needs_a_quota_is_spelt_as_in_kubernetes() {
    let text = "limitedResources:\n\
        - {resource: persistentvolumeclaims, matchContains: [gold.storageclass.storage.k8s.io/requests.storage]}\n\
        - apiGroup: batch\n  resource: jobs\n  matchContains: [count/]\n\
        - resource: pods\n  matchScopes: [{scopeName: PriorityClass, operator: In, values: [high]}]\n";
    let limited = Config::parse(text).unwrap().limited_resources();
    let resources: Vec<_> = limited.iter().map(|it| it.resource.as_str()).collect();
    assert_eq!(resources, ["persistentvolumeclaims", "jobs.batch", "pods"]);
    assert_eq!(
        limited[2].match_scopes[0].to_string(),
        "{PriorityClass In [high]}"
    );
}

#[test]
fn what_could_never_need_a_quota_is_refused() {
    for (item, expected) in [
        ("{matchContains: [cpu]}", "[0].resource is missing"),
        ("{resource: pods}", "[0] limits nothing"),
        (
            "{resource: pods, matchContains: [\"\"]}",
            "[0].matchContains has an empty text",
        ),
        (
            "{resource: pods, matchScopes: [{scopeName: Often, operator: Exists}]}",
            "scopeName is \"Often\"",
        ),
        (
            "{resource: pods, matchScopes: [{scopeName: BestEffort, operator: In, values: [a]}]}",
            "Exists is right for BestEffort",
        ),
        (
            "{resource: pods, matchScopes: [{scopeName: PriorityClass, operator: Is}]}",
            "operator is \"Is\"",
        ),
        (
            "{resource: pods, matchScopes: [{scopeName: PriorityClass, operator: In}]}",
            "has 0 values: one or more are right for In",
        ),
        (
            "{resource: pods, matchScopes: [{scopeName: PriorityClass, operator: Exists, values: [a]}]}",
            "has 1 values: none is right for Exists",
        ),
        ("{resource: pods, matchcontains: [cpu]}", "matchcontains"),
    ] {
        let error = Config::parse(&format!("limitedResources: [{item}]"))
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{item}: {error}");
    }
}

#[test]
fn a_misspelt_setting_is_refused_by_name() {
    let error = Config::parse("maxpods: 5\n").unwrap_err().to_string();
    assert!(error.contains("maxpods"), "{error}");
}
