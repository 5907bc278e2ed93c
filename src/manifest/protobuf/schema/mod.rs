//! The messages of Kubernetes' types: which number is which field, and what it holds.
//!
//! Decides nothing but that. What a table does not name is refused by its reader, so a table must never
//! name a field in a wrong way for the sake of another one: rather it leaves it out.

pub(super) use meta::{IntOrString, Quantity, Time, TypeMeta};

/// A message.
#[derive(Debug)]
pub(super) struct Message {
    /// Kubernetes' name of the type.
    pub name: &'static str,
    /// Its fields, by number.
    pub fields: &'static [Field],
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    /// Its number in the message.
    pub number: u32,
    /// Its name in JSON.
    pub name: &'static str,
    /// How its values become JSON.
    pub shape: Shape,
}

/// How the values of a field become JSON.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    /// One value. Zero is the same as nothing, and Kubernetes' encoders always write it.
    One(Type),
    /// One value whose zero means something; written only where it is meant.
    Said(Type),
    /// A list, one value after the other.
    List(Type),
    /// A map from texts, one entry after the other.
    Map(Type),
    /// A message whose fields stand among those of the message around it.
    Inline(&'static Message),
    /// What the agent does not keep whoever says it: a status, and who manages which field.
    Skipped,
}

/// What one value is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Type {
    /// UTF-8.
    Text,
    /// A signed number.
    Int,
    /// A truth value.
    Bool,
    /// Bytes, in JSON as base64.
    Bytes,
    /// `resource.Quantity`
    Quantity,
    /// `intstr.IntOrString`
    IntOrText,
    /// `meta/v1.Time`
    Time,
    /// Another message.
    Message(&'static Message),
}

/// Tables of messages. After the number and the name of a field stands its type: alone for one value, in
/// parentheses where zero is said and not left out, in brackets for a list, in braces for a map.
/// A field named `inline` has no name in JSON: the fields of its message have.
macro_rules! messages {
    ($($message:ident { $($number:literal $name:ident: $shape:tt,)* })*) => {$(
        #[allow(non_upper_case_globals, reason = "Kubernetes' names of types")]
        pub(in super::super) static $message: Message = Message {
            name: stringify!($message),
            fields: &[$(Field {
                number: $number,
                name: stringify!($name),
                shape: messages!(@shape $name $shape),
            },)*],
        };
    )*};
    (@shape inline $message:ident) => { super::Shape::Inline(&$message) };
    (@shape $name:ident skipped) => { super::Shape::Skipped };
    (@shape $name:ident [$type:ident]) => { super::Shape::List(messages!(@type $type)) };
    (@shape $name:ident {$type:ident}) => { super::Shape::Map(messages!(@type $type)) };
    (@shape $name:ident ($type:ident)) => { super::Shape::Said(messages!(@type $type)) };
    (@shape $name:ident $type:ident) => { super::Shape::One(messages!(@type $type)) };
    (@type text) => { super::Type::Text };
    (@type int) => { super::Type::Int };
    (@type bool) => { super::Type::Bool };
    (@type bytes) => { super::Type::Bytes };
    (@type quantity) => { super::Type::Quantity };
    (@type int_or_text) => { super::Type::IntOrText };
    (@type time) => { super::Type::Time };
    (@type $message:ident) => { super::Type::Message(&$message) };
}

mod access;
mod meta;
mod network;
mod pod;
mod policy;
mod volume;
mod workload;

/// What an object of this kind is.
pub(super) fn message_of(api_version: &str, kind: &str) -> Option<&'static Message> {
    use {access as a, meta as m, network as n, pod as p, policy as o, volume as v, workload as w};
    if kind == m::DeleteOptions.name {
        // Clients write them in the group of what they delete.
        return Some(&m::DeleteOptions);
    }
    let known: &[&Message] = match api_version {
        "v1" => &[
            &p::Pod,
            &o::Namespace,
            &o::LimitRange,
            &o::ResourceQuota,
            &o::ConfigMap,
            &o::Secret,
            &o::ServiceAccount,
            &n::Service,
            &v::PersistentVolumeClaim,
            &w::ReplicationController,
        ],
        "apps/v1" => &[
            &w::Deployment,
            &w::ReplicaSet,
            &w::StatefulSet,
            &w::DaemonSet,
        ],
        "batch/v1" => &[&w::Job, &w::CronJob],
        "policy/v1" => &[&a::PodDisruptionBudget],
        "rbac.authorization.k8s.io/v1" => &[
            &a::Role,
            &a::RoleBinding,
            &a::ClusterRole,
            &a::ClusterRoleBinding,
        ],
        "scheduling.k8s.io/v1" => &[&a::PriorityClass],
        "networking.k8s.io/v1" => &[&n::Ingress, &n::NetworkPolicy],
        _ => &[],
    };
    known.iter().copied().find(|message| message.name == kind)
}

impl Message {
    /// The field of this number.
    pub(super) fn field(&self, number: u32) -> Option<&'static Field> {
        let at = self
            .fields
            .binary_search_by_key(&number, |field| field.number);
        self.fields.get(at.ok()?)
    }
}
