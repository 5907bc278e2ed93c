//! Every field of every table against the types of k8s-openapi, which know names and types but no numbers;
//! the numbers are tested with what Kubernetes' own encoders made (tests/manifest/protobuf.rs).

use k8s_openapi::api::apps::v1 as apps;
use k8s_openapi::api::batch::v1 as batch;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::api::networking::v1 as networking;
use k8s_openapi::api::policy::v1 as policy;
use k8s_openapi::api::rbac::v1 as rbac;
use k8s_openapi::api::scheduling::v1 as scheduling;
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::read;
use super::schema::{Message, Shape, Type, message_of};

fn block(number: u32, bytes: &[u8]) -> Vec<u8> {
    let varint = |mut value: usize| {
        let mut bytes = Vec::new();
        while value > 0x7f {
            bytes.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
            value >>= 7;
        }
        bytes.push(u8::try_from(value).unwrap());
        bytes
    };
    let tag = varint(usize::try_from(number << 3 | 2).unwrap());
    [tag, varint(bytes.len()), bytes.to_vec()].concat()
}

/// A value that is not zero.
fn value(number: u32, of: Type, depth: usize) -> Vec<u8> {
    match of {
        Type::Text | Type::Bytes => block(number, b"x"),
        Type::Quantity => block(number, &block(1, b"1")),
        Type::IntOrText => block(number, &[&[0x08, 1], &block(3, b"x")[..]].concat()),
        Type::Time => block(number, &[0x08, 1]),
        Type::Message(message) => block(number, &every_field(message, depth)),
        Type::Int | Type::Bool => {
            let mut field = block(number, &[]);
            let tag = field.len() - 2;
            // Wire type 0 in place of 2, and 1 in place of the length.
            field[0] &= !7;
            field.truncate(tag + 1);
            field.push(1);
            field
        }
    }
}

/// The message with each of its fields once; fails if a message can hold itself.
fn every_field(message: &Message, depth: usize) -> Vec<u8> {
    assert!(depth < 30, "{} is too deep", message.name);
    let numbers: Vec<_> = message.fields.iter().map(|field| field.number).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{}", message.name);
    let depth = depth + 1;
    let field = |field: &super::schema::Field| match field.shape {
        Shape::Skipped => Vec::new(),
        Shape::Inline(message) => block(field.number, &every_field(message, depth)),
        Shape::One(of) | Shape::Said(of) | Shape::List(of) => value(field.number, of, depth),
        Shape::Map(of) => {
            let entry = [block(1, b"k"), value(2, of, depth)].concat();
            block(field.number, &entry)
        }
    };
    message.fields.iter().flat_map(field).collect()
}

/// What of an object is not in another one.
fn missing(object: &Value, of: &Value, path: &str, into: &mut Vec<String>) {
    match (object, of) {
        (Value::Object(fields), Value::Object(of)) => {
            for (name, field) in fields {
                let of = of.get(name).unwrap_or(&Value::Null);
                missing(field, of, &format!("{path}.{name}"), into);
            }
        }
        (Value::Array(items), Value::Array(of)) if items.len() == of.len() => {
            for (item, of) in items.iter().zip(of) {
                missing(item, of, path, into);
            }
        }
        _ if object == of => {}
        _ => into.push(format!("{path}: {object}, not {of}")),
    }
}

fn check<T: DeserializeOwned + Serialize>(api_version: &str, kind: &str) {
    let message = message_of(api_version, kind).unwrap_or_else(|| panic!("no table for {kind}"));
    let of_type = [block(1, api_version.as_bytes()), block(2, kind.as_bytes())].concat();
    let object = [block(1, &of_type), block(2, &every_field(message, 0))].concat();
    let object = read(&[b"k8s\0", &object[..]].concat()).unwrap();
    let typed: T = serde_json::from_value(object.clone()).unwrap_or_else(|e| panic!("{kind}: {e}"));
    let mut lost = Vec::new();
    missing(
        &object,
        &serde_json::to_value(typed).unwrap(),
        kind,
        &mut lost,
    );
    // Kubernetes no longer knows it; older clients send it empty.
    lost.retain(|path| !path.ends_with("metadata.clusterName: \"x\", not null"));
    assert!(lost.is_empty(), "{lost:#?}");
}

#[test]
fn the_tables_name_and_type_fields_as_kubernetes_does() {
    check::<core::Pod>("v1", "Pod");
    check::<core::Namespace>("v1", "Namespace");
    check::<core::LimitRange>("v1", "LimitRange");
    check::<core::ResourceQuota>("v1", "ResourceQuota");
    check::<core::ConfigMap>("v1", "ConfigMap");
    check::<core::Secret>("v1", "Secret");
    check::<core::ServiceAccount>("v1", "ServiceAccount");
    check::<core::Service>("v1", "Service");
    check::<core::PersistentVolumeClaim>("v1", "PersistentVolumeClaim");
    check::<core::ReplicationController>("v1", "ReplicationController");
    check::<apps::Deployment>("apps/v1", "Deployment");
    check::<apps::ReplicaSet>("apps/v1", "ReplicaSet");
    check::<apps::StatefulSet>("apps/v1", "StatefulSet");
    check::<apps::DaemonSet>("apps/v1", "DaemonSet");
    check::<batch::Job>("batch/v1", "Job");
    check::<batch::CronJob>("batch/v1", "CronJob");
    check::<networking::Ingress>("networking.k8s.io/v1", "Ingress");
    check::<networking::NetworkPolicy>("networking.k8s.io/v1", "NetworkPolicy");
    check::<policy::PodDisruptionBudget>("policy/v1", "PodDisruptionBudget");
    let group = "rbac.authorization.k8s.io/v1";
    check::<rbac::Role>(group, "Role");
    check::<rbac::ClusterRole>(group, "ClusterRole");
    check::<rbac::RoleBinding>(group, "RoleBinding");
    check::<rbac::ClusterRoleBinding>(group, "ClusterRoleBinding");
    check::<scheduling::PriorityClass>("scheduling.k8s.io/v1", "PriorityClass");
    check::<meta::DeleteOptions>("v1", "DeleteOptions");
}
