//! The kinds of object that the API serves without being told of them.
//!
//! Pods are run, LimitRanges and quotas are obeyed; all others that are kept are only counted, never acted
//! on. It is `kinds` that finds one.

use super::name;

/// One kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The API group; empty for the core.
    pub group: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Kubernetes' word: `ConfigMap`.
    pub kind: &'static str,
    /// The word in paths: `configmaps`.
    pub plural: &'static str,
    /// Shorter words people use.
    pub short: &'static [&'static str],
    /// Words that mean this kind together with others: `all`.
    pub categories: &'static [&'static str],
    /// Whether its objects belong to a namespace.
    pub namespaced: bool,
    /// What a definition says of it; nothing if it is built in.
    pub defined: Option<Defined>,
}

/// What only those kinds have that a CustomResourceDefinition made known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defined {
    /// The word in front of names.
    pub singular: &'static str,
    /// What a list of them says it is.
    pub list: &'static str,
}

const fn core(kind: &'static str, plural: &'static str, short: &'static [&'static str]) -> Kind {
    grouped("", "v1", kind, plural, short)
}

const fn grouped(
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
) -> Kind {
    Kind {
        group,
        version,
        kind,
        plural,
        short,
        categories: &[],
        namespaced: true,
        defined: None,
    }
}

/// The same kind, which `get all` means too: what runs, and what would run or serve something.
const fn in_all(kind: Kind) -> Kind {
    Kind {
        categories: &[ALL],
        ..kind
    }
}

/// The same kind, whose objects belong to no namespace.
const fn global(kind: Kind) -> Kind {
    Kind {
        namespaced: false,
        ..kind
    }
}

/// The category of what runs, and what would run or serve something.
pub const ALL: &str = "all";

/// What is run.
pub const POD: Kind = in_all(core("Pod", "pods", &["po"]));

/// What it runs on.
pub const NODE: Kind = global(core("Node", "nodes", &["no"]));

/// What happened.
pub const EVENT: Kind = core("Event", "events", &["ev"]);

/// What other objects belong to.
pub const NAMESPACE: Kind = global(core("Namespace", "namespaces", &["ns"]));

/// What each object of a namespace may ask for.
pub const LIMIT_RANGE: Kind = core("LimitRange", "limitranges", &["limits"]);

/// What the objects of a namespace may use together.
pub const RESOURCE_QUOTA: Kind = core("ResourceQuota", "resourcequotas", &["quota"]);

/// What the objects of several namespaces may use together (OpenShift).
pub const CLUSTER_QUOTA: Kind = global(grouped(
    OPENSHIFT_QUOTA,
    "v1",
    "ClusterResourceQuota",
    "clusterresourcequotas",
    &["clusterquota"],
));

/// The same, as the members of one namespace may see it: made of it whenever somebody asks.
pub const APPLIED_QUOTA: Kind = grouped(
    OPENSHIFT_QUOTA,
    "v1",
    "AppliedClusterResourceQuota",
    "appliedclusterresourcequotas",
    &["appliedclusterquota"],
);

/// What asks for storage.
pub const CLAIM: Kind = core("PersistentVolumeClaim", "persistentvolumeclaims", &["pvc"]);

/// What would lead to pods; its ports are counted.
pub const SERVICE: Kind = in_all(core("Service", "services", &["svc"]));

/// What must not be shown.
pub const SECRET: Kind = core("Secret", "secrets", &[]);

/// What may be shown.
pub const CONFIG_MAP: Kind = core("ConfigMap", "configmaps", &["cm"]);

/// What leads to images (OpenShift).
pub const IMAGE_STREAM: Kind = in_all(grouped(
    "image.openshift.io",
    "v1",
    "ImageStream",
    "imagestreams",
    &["is"],
));

/// What makes other kinds known.
pub const DEFINITION: Kind = global(grouped(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    &["crd", "crds"],
));

const OPENSHIFT_QUOTA: &str = "quota.openshift.io";
const RBAC: &str = "rbac.authorization.k8s.io";

/// The kinds that clients may keep here, beside pods.
#[rustfmt::skip] // one kind, one line
pub const KEPT: [Kind; 38] = [
    NAMESPACE,
    LIMIT_RANGE,
    RESOURCE_QUOTA,
    CLAIM,
    SERVICE,
    SECRET,
    CONFIG_MAP,
    core("ServiceAccount", "serviceaccounts", &["sa"]),
    in_all(core("ReplicationController", "replicationcontrollers", &["rc"])),
    core("Endpoints", "endpoints", &["ep"]),
    core("PodTemplate", "podtemplates", &[]),
    global(core("PersistentVolume", "persistentvolumes", &["pv"])),
    in_all(grouped("apps", "v1", "Deployment", "deployments", &["deploy"])),
    in_all(grouped("apps", "v1", "ReplicaSet", "replicasets", &["rs"])),
    in_all(grouped("apps", "v1", "StatefulSet", "statefulsets", &["sts"])),
    in_all(grouped("apps", "v1", "DaemonSet", "daemonsets", &["ds"])),
    in_all(grouped("batch", "v1", "Job", "jobs", &[])),
    in_all(grouped("batch", "v1", "CronJob", "cronjobs", &["cj"])),
    in_all(grouped("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", &["hpa"])),
    grouped("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", &["pdb"]),
    grouped("networking.k8s.io", "v1", "Ingress", "ingresses", &["ing"]),
    grouped("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", &["netpol"]),
    grouped("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", &[]),
    grouped("coordination.k8s.io", "v1", "Lease", "leases", &[]),
    grouped(RBAC, "v1", "Role", "roles", &[]),
    grouped(RBAC, "v1", "RoleBinding", "rolebindings", &[]),
    global(grouped(RBAC, "v1", "ClusterRole", "clusterroles", &[])),
    global(grouped(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", &[])),
    global(grouped("storage.k8s.io", "v1", "StorageClass", "storageclasses", &["sc"])),
    global(grouped("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", &["pc"])),
    DEFINITION,
    CLUSTER_QUOTA,
    IMAGE_STREAM,
    in_all(grouped("apps.openshift.io", "v1", "DeploymentConfig", "deploymentconfigs", &["dc"])),
    in_all(grouped("build.openshift.io", "v1", "BuildConfig", "buildconfigs", &["bc"])),
    in_all(grouped("build.openshift.io", "v1", "Build", "builds", &[])),
    in_all(grouped("route.openshift.io", "v1", "Route", "routes", &[])),
    grouped("template.openshift.io", "v1", "Template", "templates", &[]),
];

impl Kind {
    /// All that are known without a definition.
    pub fn built_in() -> impl Iterator<Item = Self> {
        [POD, NODE, EVENT, APPLIED_QUOTA].into_iter().chain(KEPT)
    }

    /// Whether a word means it: singular, plural, short or with the group, in lower case.
    pub fn is_called(&self, word: &str) -> bool {
        word == self.plural
            || word == self.singular()
            || self.short.contains(&word)
            || word == self.resource()
    }

    /// Whether its changes can be followed.
    pub fn is_watched(self) -> bool {
        self != APPLIED_QUOTA
    }

    /// Why an object of this kind may not have this name; empty if it may.
    pub fn name_problems(self, name: &str) -> Vec<String> {
        match self {
            NAMESPACE | SERVICE => name::dns_label(name),
            // `system:node` is a right name there.
            Self { group: RBAC, .. } => name::path_segment(name),
            _ => name::dns_subdomain(name),
        }
    }

    /// Whether only the agent itself makes objects of this kind: clients read them.
    pub fn is_own(self) -> bool {
        self == NODE || self == EVENT || self == APPLIED_QUOTA
    }

    /// `v1` or `GROUP/VERSION`.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Where the paths of its group begin: `api/v1` or `apis/GROUP/VERSION`.
    pub fn root(&self) -> String {
        match self.group {
            "" => format!("api/{}", self.version),
            group => format!("apis/{group}/{}", self.version),
        }
    }

    /// The plural, followed by a point and the group unless that is the core: as quotas count it.
    pub fn resource(&self) -> String {
        match self.group {
            "" => self.plural.to_owned(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// The word in front of names.
    pub fn singular(&self) -> String {
        match self.defined {
            Some(defined) => defined.singular.to_owned(),
            None => self.kind.to_ascii_lowercase(),
        }
    }

    /// What a list of its objects says it is: `ConfigMapList`.
    pub fn list(&self) -> String {
        match self.defined {
            Some(defined) => defined.list.to_owned(),
            None => format!("{}List", self.kind),
        }
    }
}
