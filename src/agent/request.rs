//! What can be asked of the agent, and how it refuses.
//!
//! Each request carries the place its answer goes to. Nothing here decides anything.

use std::sync::Arc;

use k8s_openapi::api::core::v1;
use serde_json::Value;
use tokio::sync::oneshot;

use super::eviction::EvictionParts;
use crate::cgroup::Reader;
use crate::config::{Change as ConfigChange, Config};
use crate::model::Kind;
use crate::report::accounts::Accounts;
use crate::report::drift::Drift;
use crate::report::explain::PodExplanation;
use crate::report::oom::OomKill;
use crate::report::stats::{Census, PodPlace};
use crate::report::{DiffReport, Orphan, StatusReport};

/// Where an answer goes.
pub type Reply<T> = oneshot::Sender<Result<T, Refusal>>;

/// A pod by namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodKey {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl PodKey {
    /// A pod by namespace and name.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

impl std::fmt::Display for PodKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Where to look for what a pod uses: looking takes time and is left to the asker.
#[derive(Clone, Debug)]
pub struct UsageParts {
    /// The pod with its cgroups and its files.
    pub pod: PodPlace,
    /// Reads the cgroups.
    pub reader: Arc<dyn Reader>,
}

/// One request.
#[derive(Debug)]
pub enum Request {
    /// Admit a pod and keep it, or change what may be changed of one that is kept.
    PutPod {
        /// The pod as the client sent it.
        object: Box<v1::Pod>,
        /// Whether it is new.
        how: Put,
        /// The pod as it is kept.
        reply: Reply<Kept>,
    },
    /// Give the containers of a pod other amounts of cpu and memory while they run.
    ResizePod {
        /// The pod with its new amounts.
        object: Box<v1::Pod>,
        /// Only say what would become of it.
        dry_run: bool,
        /// The pod as it is kept.
        reply: Reply<Kept>,
    },
    /// Stop a pod and forget it.
    DeletePod {
        /// Which.
        key: PodKey,
        /// Seconds between SIGTERM and SIGKILL in place of the pod's own.
        grace_seconds: Option<u64>,
        /// The uid it must have.
        uid: Option<String>,
        /// Only say what would be stopped.
        dry_run: bool,
        /// The pod as it is when its end begins.
        reply: Reply<Value>,
    },
    /// Keep an object of another kind.
    PutObject {
        /// Its kind.
        kind: Kind,
        /// The object, with its namespace.
        object: Box<Value>,
        /// Whether it is new.
        how: Put,
        /// The object as it is kept.
        reply: Reply<Kept>,
    },
    /// Forget such an object.
    DeleteObject {
        /// The object.
        key: ObjectKey,
        /// The uid it must have.
        uid: Option<String>,
        /// Only say what would be forgotten.
        dry_run: bool,
        /// The object as it was last.
        reply: Reply<Value>,
    },
    /// Change `status.capacity` of the node: extended resources only.
    PatchNode(json_patch::Patch, Reply<Box<v1::Node>>),
    /// Put a running process into a container that has no command.
    Attach {
        /// The pod.
        key: PodKey,
        /// The container.
        container: String,
        /// The process.
        pid: i32,
        /// Its descendants too.
        children: bool,
        /// The processes that were moved.
        reply: Reply<Vec<i32>>,
    },
    /// From the pod's spec to the bytes in the kernel.
    Explain(PodKey, Reply<Box<PodExplanation>>),
    /// What a pod uses.
    Usage(PodKey, Reply<UsageParts>),
    /// Which cgroups there are, for those who read their figures.
    Census(Reply<Box<Census>>),
    /// What is charged to whom.
    Accounts(Reply<Box<Accounts>>),
    /// The processes that OOM kills took.
    OomKills {
        /// Of this namespace only.
        namespace: Option<String>,
        /// Of pods of this name only.
        pod: Option<String>,
        /// The oldest first.
        reply: Reply<Vec<Arc<OomKill>>>,
    },
    /// End a pod as evicted, because somebody says so.
    Evict {
        /// Which.
        key: PodKey,
        /// The most seconds between SIGTERM and SIGKILL; the pod's own unless given.
        grace_seconds: Option<u64>,
        /// Its end has begun.
        reply: Reply<()>,
    },
    /// What is known of eviction, for those who ask who would go.
    Eviction(Reply<Box<EvictionParts>>),
    /// Wanted against kernel.
    Diff(Reply<DiffReport>),
    /// The cgroups of pods without a record; whether they are to end.
    Orphans(bool, Reply<Vec<Orphan>>),
    /// What somebody else changed, after the drift of this number.
    Drifts(u64, Reply<Vec<Drift>>),
    /// The agent's own state.
    Status(Reply<(Box<StatusReport>, Arc<dyn Reader>)>),
    /// Whether the owner answers.
    Alive(Reply<()>),
    /// The configuration in force.
    Config(Reply<Box<Config>>),
    /// A configuration that was read again, or why it cannot be read.
    Reload {
        /// What was read.
        read: Result<Box<Config>, String>,
        /// What became of it.
        reply: Reply<ConfigChange>,
    },
    /// Where a container's log is: the path of its present or previous run.
    LogFile {
        /// The pod.
        key: PodKey,
        /// The container; the only one if not named.
        container: Option<String>,
        /// The run before the present one.
        previous: bool,
        /// The path of the log file.
        reply: Reply<std::path::PathBuf>,
    },
}

/// An object of any kind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    /// The plural of its kind, with the group unless that is the core.
    pub resource: String,
    /// Its namespace; empty for a kind that has none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl ObjectKey {
    /// An object of this kind; the namespace is passed over where the kind has none.
    pub fn of(kind: Kind, namespace: &str, name: &str) -> Self {
        let namespace = if kind.namespaced { namespace } else { "" };
        Self {
            resource: kind.resource(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }
}

/// How an object is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put {
    /// It must not be there yet; otherwise it must be.
    pub new: bool,
    /// Only say what would become of it.
    pub dry_run: bool,
}

/// An object that is kept.
#[derive(Clone, Debug)]
pub struct Kept {
    /// As readers see it.
    pub object: Value,
    /// What is allowed and yet is hardly meant.
    pub warnings: Vec<String>,
}

/// A request refused, in the shape of Kubernetes' `Status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status code.
    pub code: u16,
    /// One word, such as `NotFound`.
    pub reason: String,
    /// The whole in one sentence.
    pub message: String,
    /// The object it is about.
    pub about: Option<Box<About>>,
    /// Each reason on its own.
    pub causes: Vec<Cause>,
}

/// The object that a refusal is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// `pods`, with the group unless that is the core.
    pub resource: String,
    /// Its name.
    pub name: String,
}

/// One reason of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// One word.
    pub reason: String,
    /// The field at fault; may be empty.
    pub field: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl Refusal {
    /// A refusal without single causes.
    pub fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.to_owned(),
            message: message.into(),
            about: None,
            causes: Vec::new(),
        }
    }

    /// The same, about this object.
    #[must_use]
    pub fn about(mut self, resource: &str, name: &str) -> Self {
        self.about = Some(Box::new(About {
            resource: resource.to_owned(),
            name: name.to_owned(),
        }));
        self
    }

    /// There is no such object.
    pub fn not_found(resource: &str, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{resource} {name:?} not found")).about(resource, name)
    }

    /// The object or state does not allow it.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(409, "Conflict", message)
    }

    /// The request itself is wrong.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// What must survive a crash cannot be written.
    pub fn not_durable(message: impl Into<String>) -> Self {
        Self::new(507, "InsufficientStorage", message)
    }

    /// The agent failed, not the request.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "InternalError", message)
    }
}
