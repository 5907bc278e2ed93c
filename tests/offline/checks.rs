//! `allot check`: verdicts, order, options, exit codes, and what is no input.

use serde_json::{Value, json};

use super::{NODE, Place, pod};

fn sized(name: &str, resources: &str) -> String {
    pod(name).replace("inf]}", &format!("inf], resources: {resources}}}"))
}

const QUOTA: &str = "---\napiVersion: v1\nkind: ResourceQuota\nmetadata: {name: quota}\n\
                     spec: {hard: {requests.cpu: 1, count/configmaps: 1, resourcequotas: 2}}\n";

fn config_map(name: &str) -> String {
    format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
}

/// The answer as JSON and the exit code.
fn json_of(place: &Place, words: &str) -> (Value, i32) {
    let (out, err, code) = place.run(&format!("check -o json {words}"));
    assert_eq!(err, "", "{words}");
    (serde_json::from_str(&out).unwrap(), code)
}

fn verdicts(answer: &Value) -> Vec<(String, bool)> {
    let objects = answer["objects"].as_array().unwrap().iter();
    objects
        .map(|it| {
            let name = it["name"].as_str().unwrap().to_owned();
            (name, it["admitted"].as_bool().unwrap())
        })
        .collect()
}

#[test]
fn objects_are_judged_in_order_and_each_is_charged() {
    let input = [
        NODE,
        &sized("a", "{requests: {cpu: 600m}}"),
        &config_map("first"),
        &sized("b", "{requests: {cpu: 600m}}"),
        &config_map("second"),
        &sized("c", "{requests: {cpu: 400m}}"),
        QUOTA,
    ]
    .concat();
    let place = Place::new().with("in.yaml", &input);
    let (answer, code) = json_of(&place, "-f in.yaml");
    assert_eq!(code, 3);
    // Policies come first wherever they stand.
    let expected = [
        ("quota", true),
        ("a", true),
        ("first", true),
        ("b", false),
        ("second", false),
        ("c", true),
    ];
    assert_eq!(
        verdicts(&answer),
        expected.map(|(name, admitted)| (name.to_owned(), admitted))
    );
    let a = &answer["objects"][1];
    assert_eq!(a["source"], "in.yaml");
    assert_eq!(a["line"], 7);
    assert_eq!(
        a["quotas"],
        json!([{"namespace": "default", "name": "quota",
            "hard": {"requests.cpu": "1"}, "used": {"requests.cpu": "600m"}}])
    );
    assert_eq!(answer["objects"][3]["quotas"], json!([]));
    assert_eq!(
        answer["objects"][4]["reasons"][0]["message"],
        "exceeded quota: quota, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1; left: count/configmaps=0"
    );
    assert_eq!(
        answer["quotas"][0]["used"],
        json!({"count/configmaps": "1", "requests.cpu": "1", "resourcequotas": "1"})
    );
    assert_eq!(
        answer["summary"],
        json!({"objects": 6, "admitted": 4, "refused": 2, "warnings": 4,
            "kinds": {"configmap": 2, "pod": 3, "resourcequota": 1}})
    );
}

/// A policy that breaks its own rules is refused like any object, and then holds for nobody.
#[test]
fn unsound_policies_are_refused_with_all_reasons() {
    let input = [
        NODE,
        "---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: Range}\n\
         spec: {limits: [{type: Container, min: {cpu: 2}, max: {cpu: -1}}]}\n",
        &QUOTA
            .replace("name: quota", "name: two")
            .replace("requests.cpu: 1", "storage: 1"),
        &pod("a"),
    ]
    .concat();
    let place = Place::new().with("in.yaml", &input);
    let (answer, code) = json_of(&place, "-f in.yaml");
    assert_eq!(code, 3);
    assert_eq!(
        verdicts(&answer),
        [("Range", false), ("two", false), ("a", true)]
            .map(|(name, admitted)| (name.to_owned(), admitted))
    );
    let reasons = |index: usize| -> Vec<String> {
        let reasons = answer["objects"][index]["reasons"].as_array().unwrap();
        let field = |reason: &Value| reason["field"].as_str().unwrap().to_owned();
        reasons.iter().map(field).collect()
    };
    let fields = reasons(0);
    for field in [
        "metadata.name",
        "spec.limits[0].max[cpu]",
        "spec.limits[0].min[cpu]",
    ] {
        assert!(fields.contains(&field.to_owned()), "{field}: {fields:?}");
    }
    assert_eq!(reasons(1), ["spec.hard[storage]"]);
    assert_eq!(answer["quotas"], json!([]));
}

#[test]
fn exit_codes_tell_refusals_from_warnings() {
    let good = [
        NODE,
        &sized(
            "a",
            "{requests: {cpu: 1, memory: 1Mi}, limits: {cpu: 1, memory: 1Mi}}",
        ),
    ]
    .concat();
    let odd = [NODE, &sized("a", "{limits: {cpu: 1}}")].concat();
    let bad = [NODE, &sized("a", "{limits: {cpu: 3}}")].concat();
    let place = Place::new()
        .with("good.yaml", &good)
        .with("odd.yaml", &odd)
        .with("bad.yaml", &bad);
    for (words, code) in [
        ("-f good.yaml", 0),
        ("-f good.yaml --strict", 0),
        ("-f odd.yaml", 0),
        ("-f odd.yaml --strict", 1),
        ("-f odd.yaml --strict --allow request-from-limit", 0),
        ("-f odd.yaml --strict --allow no-limit", 1),
        ("-f bad.yaml", 3),
        ("-f bad.yaml --strict", 3),
        ("-f bad.yaml good.yaml", 2),
        ("-f odd.yaml --allow no-such-lint", 2),
        ("", 2),
    ] {
        let (_, err, got) = place.run(&format!("check {words}"));
        assert_eq!(got, code, "{words}: {err}");
    }
}

#[test]
fn the_node_may_be_given_apart() {
    let place = Place::new()
        .with("node.yaml", NODE)
        .with("pod.yaml", &sized("a", "{requests: {cpu: 2}}"))
        .with("both.yaml", &[NODE, &pod("b")].concat());
    let (answer, code) = json_of(&place, "-f pod.yaml --node node.yaml");
    assert_eq!((answer["node"]["name"].as_str(), code), (Some("node"), 0));
    let (answer, code) = json_of(&place, "-f pod.yaml --node both.yaml");
    assert_eq!(code, 2);
    assert_eq!(
        answer["problems"][0]["message"],
        "Pod is no Node, as --node asks"
    );
    let (answer, code) = json_of(&place, "-f both.yaml --node node.yaml");
    assert_eq!(code, 2);
    let message = answer["problems"][0]["message"].as_str().unwrap();
    assert!(message.contains("one too many"), "{message}");
    let (answer, code) = json_of(&place, "-f pod.yaml");
    assert_eq!(
        (&answer["node"]["source"], code == 0 || code == 3),
        (&json!("machine"), true)
    );
}

/// What is no input is told as `explain` tells it.
#[test]
fn what_is_no_input_is_told_with_its_place() {
    let place = Place::new()
        .with(
            "typo.yaml",
            &[NODE, &sized("a", "{limit: {cpu: 1}}")].concat(),
        )
        .with("kind.yaml", &pod("a").replace("Pod", "Pods"))
        .with("amount.yaml", &QUOTA.replace("cpu: 1", "cpu: lots"))
        .with(
            "twice.yaml",
            &[NODE, &config_map("a"), &config_map("a")].concat(),
        )
        .with("node.yaml", NODE)
        .with("binary.yaml", "\u{0}\u{1}\u{2}")
        .with("many.yaml", &"---\na: 1\n".repeat(10_002));
    for (words, says) in [
        (
            "-f typo.yaml",
            "typo.yaml: document 2, line 12: spec.containers[0].resources.limit: \"limit\" is not a field of ResourceRequirements; did you mean limits?",
        ),
        (
            "-f kind.yaml",
            "kind.yaml: document 1, line 3: kind: \"Pods\" is not a kind of v1; did you mean Pod?",
        ),
        (
            "-f amount.yaml",
            "amount.yaml: document 1, line 5: spec.hard[requests.cpu]: ",
        ),
        ("-f twice.yaml", "ConfigMap a is given twice"),
        ("-f node.yaml", "there is no object in the input but a Node"),
        ("-f binary.yaml", "binary.yaml: document 1, line 1: "),
        (
            "-f missing.yaml",
            "missing.yaml: document 1: cannot be read: No such file",
        ),
        ("-f many.yaml", "many.yaml: document "),
    ] {
        let (out, err, code) = place.run(&format!("check {words}"));
        assert_eq!((out.as_str(), code), ("", 2), "{words}: {err}");
        assert!(err.contains(says), "{words}: {err}");
        assert!(err.lines().all(|line| line.starts_with("error: ")), "{err}");
    }
}

#[test]
fn what_allotd_does_not_keep_is_refused() {
    let input = [
        NODE,
        "---\napiVersion: example.com/v1\nkind: Gadget\nmetadata: {name: g}\n",
        "---\napiVersion: v1\nkind: Event\nmetadata: {name: e}\n",
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: D}\n",
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n",
    ]
    .concat();
    let place = Place::new().with("in.yaml", &input);
    let (answer, code) = json_of(&place, "-f in.yaml");
    assert_eq!(code, 3);
    assert_eq!(
        verdicts(&answer),
        [("g", false), ("e", false), ("D", false), ("d", true)]
            .map(|(name, admitted)| (name.to_owned(), admitted))
    );
    assert_eq!(
        answer["objects"][0]["reasons"][0]["message"],
        "allotd keeps objects of this kind only once a CustomResourceDefinition says what it is"
    );
}

/// Pods that are named when they are made may be given twice, as by `allot create`.
#[test]
fn generated_names_are_no_twins() {
    let job = pod("x").replace("name: x", "generateName: job-");
    let place = Place::new().with("in.yaml", &[NODE, &job, &job, &pod("a")].concat());
    let (answer, code) = json_of(&place, "-f in.yaml");
    assert_eq!(code, 0, "{answer}");
    assert_eq!(
        verdicts(&answer),
        ["job-", "job-", "a"].map(|name| (name.to_owned(), true))
    );
}
