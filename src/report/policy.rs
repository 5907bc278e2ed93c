//! The status of quotas: what they bound and what is used of it.

use serde::Deserialize;
use serde_json::{Value, json};

use super::node::api_list;
use crate::manifest::openshift;
use crate::model::{ClusterResourceQuota, ResourceQuota};

/// `status` of a ResourceQuota.
pub fn quota_status(quota: &ResourceQuota) -> Value {
    json!({"hard": api_list(&quota.hard), "used": api_list(&quota.used_of_hard())})
}

/// `status` of a ClusterResourceQuota: what its namespaces use together, and each by itself.
pub fn cluster_quota_status(cluster: &ClusterResourceQuota) -> Value {
    let namespaces: Vec<_> = cluster
        .namespaces
        .keys()
        .map(|name| json!({"namespace": name, "status": quota_status(&cluster.share_of(name))}))
        .collect();
    json!({"total": quota_status(&cluster.quota), "namespaces": namespaces})
}

/// A ClusterResourceQuota as the members of one of its namespaces may see it: an
/// AppliedClusterResourceQuota, which names no other namespace. `None` if it does not count theirs.
pub fn applied_quota(cluster: &Value, namespace: &str) -> Option<Value> {
    let mut applied = openshift::ClusterResourceQuota::deserialize(cluster).ok()?;
    let parts = applied.status.as_mut()?.namespaces.as_mut()?;
    parts.retain(|part| part.namespace == namespace);
    if parts.is_empty() {
        return None;
    }
    "AppliedClusterResourceQuota".clone_into(&mut applied.kind);
    applied.metadata.namespace = Some(namespace.to_owned());
    serde_json::to_value(applied).ok()
}
