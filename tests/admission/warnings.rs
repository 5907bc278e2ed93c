//! What is allowed and told nevertheless.

use serde_json::{Value, json};

use crate::judge;
use crate::pods::pod;

fn warnings(resources: &Value) -> Vec<String> {
    let verdict = judge(pod(&json!({"containers": [{"resources": resources}]})));
    verdict.warnings()
}

#[test]
fn slips_of_notation_are_told() {
    for (given, expected) in [
        (
            json!({"requests": {"memory": "400m"}}),
            "requests.memory of 400m is 0.4 bytes; did you mean 400Mi?",
        ),
        (
            json!({"limits": {"memory": "512"}}),
            "limits.memory of 512 is 512 bytes; did you mean 512Mi?",
        ),
        (
            json!({"limits": {"memory": "512Ki"}}),
            "limits.memory of 512Ki is less than any process needs",
        ),
        (
            json!({"requests": {"ephemeral-storage": "1"}}),
            "requests.ephemeral-storage of 1 is 1 byte; did you mean 1Mi?",
        ),
        (
            json!({"requests": {"cpu": "500Mi"}}),
            "requests.cpu of 500Mi is 524288000 CPUs; did you mean 500m?",
        ),
        (
            json!({"limits": {"cpu": "5m"}}),
            "limits.cpu of 5m is kept as 10m: the kernel takes no less than 1 ms in each 100 ms",
        ),
        (
            json!({"limits": {"cpu": "0"}}),
            "limits.cpu of 0 is no limit: leave it out if that is meant",
        ),
    ] {
        assert_eq!(
            warnings(&given),
            [format!("container c0: {expected}")],
            "{given}"
        );
    }
}

#[test]
fn usual_amounts_are_not_commented_on() {
    for given in [
        json!({}),
        json!({"requests": {"cpu": "5m", "memory": "0"}, "limits": {"cpu": "10m", "memory": "1Mi"}}),
        json!({"requests": {"cpu": "256", "memory": "1.1Gi", "ephemeral-storage": "512Ki"}}),
    ] {
        assert_eq!(warnings(&given), Vec::<String>::new(), "{given}");
    }
}

#[test]
fn what_has_no_effect_is_told() {
    let mut pod = pod(&json!({"containers": [{}]}));
    pod.annotations
        .insert("allotd.dev/pid-limit".into(), "5".into());
    pod.containers[0].command.clear();
    pod.containers[0].args = vec!["-v".into()];
    assert_eq!(
        judge(pod).warnings(),
        [
            "annotation allotd.dev/pid-limit is not known: allotd.dev/pids-limit, allotd.dev/oom-policy, allotd.dev/storage-policy, allotd.dev/cpu-burst are",
            "container c0: args are not used without a command",
        ]
    );
}
