//! Strategic merge patches (tests/data/strategic.json), and what holds for all of them.

use allotd::manifest::strategic::merge;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

#[test]
fn patches_do_what_kubernetes_patches_do() {
    let table: Vec<Value> = serde_json::from_str(include_str!("../data/strategic.json")).unwrap();
    assert_eq!(table.len(), 50, "the table is not to be cut");
    for row in table {
        let name = row["name"].as_str().unwrap();
        let mut object = row["object"].clone();
        match merge(&mut object, &row["patch"]) {
            // As text, so that the order of fields counts too.
            Ok(()) => assert_eq!(object.to_string(), row["want"].to_string(), "{name}"),
            Err(error) => {
                assert_eq!(
                    error.to_string(),
                    row["error"].as_str().unwrap_or(""),
                    "{name}"
                );
                assert_eq!(
                    object, row["object"],
                    "{name}: changed in spite of the error"
                );
            }
        }
    }
}

#[test]
fn a_patch_that_is_too_deep_is_refused() {
    let nested = |levels| (0..levels).fold(json!({}), |inner, _| json!({ "a": inner }));
    let mut object = json!({});
    merge(&mut object, &nested(64)).unwrap();
    let error = merge(&mut object, &nested(65)).unwrap_err();
    assert_eq!(error.message, "the patch is deeper than 64 levels");
}

#[test]
fn what_a_patch_costs_grows_with_its_size() {
    let list = |name: &str| {
        let items = (0..50_000).map(|n| json!({ "name": format!("{name}{n}") }));
        json!({ "spec": { "containers": items.collect::<Value>() } })
    };
    let data = |value: Value| {
        let data = (0..50_000).map(|n| (n.to_string(), value.clone()));
        json!({ "data": data.collect::<Map<_, _>>() })
    };
    let mut object = list("a");
    merge(&mut object, &list("b")).unwrap();
    assert_eq!(
        object["spec"]["containers"].as_array().unwrap().len(),
        100_000
    );
    let mut object = data(json!("x"));
    merge(&mut object, &data(Value::Null)).unwrap();
    assert_eq!(object, json!({"data": {}}));
}

/// Any value that an object may hold, with names that have a meaning among others.
fn value() -> impl Strategy<Value = Value> {
    let plain = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4).prop_map(Value::from),
        "[ab]{1}".prop_map(Value::from),
    ];
    let name = prop_oneof![
        "[ab]",
        Just("spec".to_owned()),
        Just("metadata".to_owned()),
        Just("containers".to_owned()),
        Just("finalizers".to_owned()),
        Just("name".to_owned()),
    ];
    let words = prop_oneof![
        Just("$patch".to_owned()),
        Just("$retainKeys".to_owned()),
        Just("$setElementOrder/containers".to_owned()),
        Just("$deleteFromPrimitiveList/finalizers".to_owned()),
    ];
    let name = prop_oneof![8 => name, 1 => words];
    plain.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..4)
                .prop_map(|fields| fields.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

/// Objects in which nothing is null, a list or a directive: what a difference can tell.
fn maps() -> impl Strategy<Value = Value> {
    let plain = prop_oneof![(0..3).prop_map(Value::from), "[ab]".prop_map(Value::from)];
    let inner = plain.prop_recursive(3, 20, 4, fields);
    fields(inner)
}

fn fields(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[abc]", inner, 0..4)
        .prop_map(|fields| fields.into_iter().collect::<Map<_, _>>().into())
}

/// The patch that makes the second of the first.
fn difference(first: &Map<String, Value>, second: &Map<String, Value>) -> Value {
    let mut patch = Map::new();
    for name in first.keys().filter(|name| !second.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, after) in second {
        let change = match (first.get(name), after) {
            (Some(before), after) if before == after => continue,
            (Some(Value::Object(before)), Value::Object(after)) => difference(before, after),
            _ => after.clone(),
        };
        patch.insert(name.clone(), change);
    }
    patch.into()
}

proptest! {
    #[test]
    fn an_empty_patch_changes_nothing(object in value()) {
        prop_assume!(object.is_object());
        let mut after = object.clone();
        merge(&mut after, &json!({})).unwrap();
        prop_assert_eq!(after.to_string(), object.to_string());
    }

    #[test]
    fn the_difference_of_two_objects_makes_the_second_of_the_first(
        (first, second) in (maps(), maps())
    ) {
        let patch = difference(first.as_object().unwrap(), second.as_object().unwrap());
        let mut after = first;
        merge(&mut after, &patch).unwrap();
        prop_assert_eq!(after, second);
    }

    #[test]
    fn any_patch_is_answered_and_leaves_no_directive(patch in value()) {
        let mut object = json!({
            "metadata": {"finalizers": ["a", "b"]},
            "spec": {"containers": [{"name": "a", "b": 1}, {"name": "b"}, {"name": 1}]},
        });
        let before = object.clone();
        match merge(&mut object, &patch) {
            Ok(()) => prop_assert!(!object.to_string().contains('$'), "{object}"),
            Err(error) => {
                prop_assert!(!error.message.is_empty());
                prop_assert_eq!(object, before);
            }
        }
    }
}
