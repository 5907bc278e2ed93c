//! OpenShift's ClusterResourceQuota as it is written (`quota.openshift.io/v1`). `k8s-openapi` has only
//! Kubernetes' own types; what OpenShift takes from those is taken here too.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ResourceQuotaSpec, ResourceQuotaStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use serde::{Deserialize, Serialize};

/// `apiVersion` of these objects.
pub const API_VERSION: &str = "quota.openshift.io/v1";

/// A quota of several namespaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterResourceQuota {
    /// `apiVersion`
    pub api_version: String,
    /// `kind`
    pub kind: String,
    /// `metadata`
    pub metadata: ObjectMeta,
    /// `spec`
    pub spec: ClusterResourceQuotaSpec,
    /// `status`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ClusterResourceQuotaStatus>,
}

/// What it asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterResourceQuotaSpec {
    /// Whose objects are counted.
    pub selector: NamespaceSelector,
    /// Bounds and scopes.
    pub quota: ResourceQuotaSpec,
}

/// A choice of namespaces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamespaceSelector {
    /// By their labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<LabelSelector>,
    /// By their annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<BTreeMap<String, String>>,
}

/// What is used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterResourceQuotaStatus {
    /// By all together.
    pub total: ResourceQuotaStatus,
    /// By each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<NamespaceStatus>>,
}

/// What one namespace uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamespaceStatus {
    /// Its name.
    pub namespace: String,
    /// What it uses.
    pub status: ResourceQuotaStatus,
}
