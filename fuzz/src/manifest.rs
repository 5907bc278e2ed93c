//! A manifest of any bytes: read in bounded time, every problem in its place, and what is read without a
//! problem reads the same when it is written again.

use allotd::admission::{Situation, admit, definition, limit_range, quota};
use allotd::manifest::convert::{self, placeholder_uid};
use allotd::manifest::{Manifest, Object, Strictness, read};
use allotd::model::ResourceList;

pub fn run(data: &[u8]) {
    let strict = read("-", data, Strictness::Strict);
    // A carriage return ends a line of YAML too.
    let lines = data.split(|byte| b"\r\n".contains(byte)).count();
    assert!(strict.problems.len() <= 1001 && strict.warnings.is_empty());
    for problem in &strict.problems {
        assert!(problem.document >= 1);
        let in_text = problem.line.is_none_or(|line| (1..=lines).contains(&line));
        assert!(in_text, "{problem} of {lines} lines");
        assert!(!problem.message.is_empty());
    }
    let lenient = read("-", data, Strictness::Warn);
    if strict.problems.is_empty() {
        assert_eq!(lenient, strict);
        assert!(!strict.objects.is_empty());
        again(&strict);
    }
    for located in lenient.objects {
        use_up(&located.object);
    }
}

fn again(manifest: &Manifest) {
    for located in &manifest.objects {
        let json = match &located.object {
            Object::Pod(pod) => serde_json::to_vec(pod),
            Object::Node(node) => serde_json::to_vec(node),
            Object::LimitRange(range) => serde_json::to_vec(range),
            Object::ResourceQuota(quota) => serde_json::to_vec(quota),
            Object::ClusterResourceQuota(quota) => serde_json::to_vec(quota),
            Object::Namespace(namespace) => serde_json::to_vec(namespace),
            Object::Other(other) => serde_json::to_vec(&other.value),
        };
        let read = read("-", &json.unwrap(), Strictness::Strict);
        assert_eq!(read.problems, [], "{:?}", located.object);
        assert_eq!(read.objects.len(), 1);
        assert_eq!(read.objects[0].object, located.object);
    }
}

/// The stages behind: none of them may fail, whatever was read.
fn use_up(object: &Object) {
    match object {
        Object::Pod(pod) => {
            let uid = placeholder_uid("default", "web").unwrap();
            let pod = convert::pod(pod, &uid).object;
            let node = super::admission::node();
            let nothing = ResourceList::default();
            let verdict = admit(pod, &Situation::new(&node, &nothing, 0));
            for reason in verdict.reasons() {
                assert!(!reason.to_string().contains(char::is_control), "{reason:?}");
            }
        }
        Object::Node(node) => drop(convert::node(node)),
        Object::LimitRange(range) => {
            drop(limit_range::validate(&convert::limit_range(range).object));
        }
        Object::ResourceQuota(quota) => {
            drop(quota::validate(&convert::resource_quota(quota).object));
        }
        Object::ClusterResourceQuota(quota) => {
            let quota = convert::cluster_resource_quota(quota).object;
            drop(quota::validate_cluster(&quota));
        }
        Object::Other(other) => {
            let definition = convert::definition(&other.value).object;
            let reasons = definition::validate(&definition);
            for reason in &reasons {
                assert!(!reason.to_string().contains(char::is_control), "{reason:?}");
            }
            if reasons.is_empty() {
                // What the path of its objects is made of.
                assert!(definition.storage().is_some());
                for text in [&definition.plural, &definition.group] {
                    assert!(!text.contains(['/', '%']) && text.contains(char::is_alphanumeric));
                }
            }
        }
        Object::Namespace(_) => {}
    }
}
