//! A new pod: judged, made durable, enforced, started.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::crash::Point;
use super::entry::{Accounted, PodEntry};
use super::events::{Severity, Subject};
use super::objects::NewNamespace;
use super::record::PodRecord;
use super::refuse::{Refused, invalid, refused, unreadable};
use super::request::{Cause, Kept, PodKey, Refusal};
use super::run::{Agent, put, store_key};
use crate::admission::privilege::Given;
use crate::admission::{self, Demand, Holder, Rule, Secured, Situation, Verdict, limit_range};
use crate::manifest::convert;
use crate::model::{Pod, PodUid};
use crate::observation::oom::OomSeen;
use crate::report::explain::DefaultRow;
use crate::store::{Change, Expect};

/// Where a new pod comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Somebody asked for it.
    Client,
    /// The file of this name holds it.
    File(String),
}

impl Origin {
    fn file(self) -> Option<String> {
        match self {
            Self::Client => None,
            Self::File(name) => Some(name),
        }
    }
}

impl Agent {
    /// Judges a pod and, unless it is a dry run, keeps it.
    pub(super) fn create_pod(
        &mut self,
        object: Box<v1::Pod>,
        dry_run: bool,
    ) -> Result<Kept, Refusal> {
        let Some(uid) = PodUid::new(&uuid::Uuid::new_v4().to_string()) else {
            return Err(Refusal::internal("no uid can be made"));
        };
        self.admit(object, &uid, Origin::Client, dry_run)
    }

    /// The same for a pod of this uid, wherever it comes from.
    pub(super) fn admit(
        &mut self,
        mut object: Box<v1::Pod>,
        uid: &PodUid,
        origin: Origin,
        dry_run: bool,
    ) -> Result<Kept, Refusal> {
        let now = Timestamp::now();
        complete_metadata(&mut object, uid, now);
        let key = PodKey::new(
            object.metadata.namespace.as_deref().unwrap_or("default"),
            object.metadata.name.as_deref().unwrap_or(""),
        );
        if self.pods.contains_key(&key) {
            return Err(Refusal::new(
                409,
                "AlreadyExists",
                format!("pods {:?} already exists", key.name),
            )
            .about("pods", &key.name));
        }
        let read = convert::pod(&object, uid);
        if !read.problems.is_empty() {
            return Err(unreadable(&subject(&key), read.problems, &[]));
        }
        let namespace = self.namespace_for(&key.namespace, &subject(&key))?;
        if read.object.is_static && origin == Origin::Client {
            return Err(invalid(
                &subject(&key),
                vec![Cause {
                    reason: "Forbidden".to_owned(),
                    field: "metadata.annotations[kubernetes.io/config.source]".to_owned(),
                    message: "Forbidden: says that a pod comes from a file of the node; this one does not".to_owned(),
                }],
            ));
        }
        let verdict = self.verdict_on(read.object);
        // Of a file it is told once, by who tries again and again.
        let tells = !dry_run && origin == Origin::Client;
        self.heed(&key, &verdict, &object, tells)?;
        apply_defaults(&mut object, &verdict);
        let mut warnings = verdict.warnings();
        warnings.extend(read.notes.iter().map(ToString::to_string));
        let record = PodRecord {
            object: *object,
            defaults: DefaultRow::all(&verdict),
            warnings,
            started_at: now,
            active: None,
            ended: None,
            ended_grace: None,
            projects: BTreeMap::new(),
            manifest: origin.file(),
            deletion: None,
            oom_seen: OomSeen::default(),
            pids_refused: 0,
            pending: None,
            resizing: None,
            adopted: BTreeMap::new(),
            conditions: Vec::new(),
            cpus: verdict.cpus().clone(),
            containers: BTreeMap::new(),
        };
        let admitted = verdict
            .into_admitted()
            .map_err(|reasons| refused(&subject(&key), &reasons))?;
        let translated = self.translate(&admitted, &record.cpus);
        let mut entry = PodEntry::new(record, 0, admitted, translated);
        let warnings = entry.record.warnings.clone();
        if dry_run {
            let object = self.shown_pod(&entry)?;
            return Ok(Kept { object, warnings });
        }
        let with = namespace.as_ref().map(NewNamespace::change);
        entry.record.projects = self.assign_projects(entry.admitted.pod());
        let committed = self.commit_record(&key, &entry.record, Expect::Absent, with);
        if committed.is_err() {
            self.projects.free(entry.record.projects.values().copied());
        }
        entry.revision = committed?;
        self.namespace_made(namespace, entry.revision);
        Self::crash_point(Point::StoreCommitted);
        self.tallies.admitted = self.tallies.admitted.saturating_add(1);
        self.by_uid.insert(entry.uid().clone(), key.clone());
        self.pods.insert(key.clone(), entry);
        self.account(&key);
        // What it gets to itself, the others leave before it begins.
        self.follow_cpus();
        let node = self.node.name.clone();
        self.event(
            &key,
            "",
            Severity::Normal,
            "Scheduled",
            &format!("Successfully assigned {key} to {node}"),
        );
        self.tell_of_storage(&key);
        for warning in &warnings {
            self.event(&key, "", Severity::Warning, "AdmissionWarning", warning);
        }
        self.drive(&key);
        Self::crash_point(Point::CgroupsCreated);
        self.publish_pod(&key);
        let object = self.pod_object(&key)?;
        Ok(Kept { object, warnings })
    }

    /// What admission makes of a pod as things stand.
    fn verdict_on(&self, pod: Pod) -> Verdict {
        let non_root = self.config.non_root();
        let situation = Situation {
            cpus: self.cpus.room(),
            non_root: non_root.as_ref(),
            ..self
                .ledger
                .situation(&self.node, &pod.namespace, &self.limited)
        };
        admission::admit(pod, &situation)
    }

    /// Keeps the ledger true to a pod: one that is over, and whose cgroups are gone, takes nothing of the
    /// node; quotas count it as ended once its last process has.
    pub(super) fn account(&mut self, key: &PodKey) {
        let Some(entry) = self.pods.get_mut(key) else {
            return;
        };
        let state = Accounted {
            of_node: entry.takes_of_node(),
            has_ended: entry.phase().is_terminal(),
        };
        if entry.accounted == Some(state) {
            return;
        }
        entry.accounted = Some(state);
        let demand = if state.has_ended {
            Demand::of_ended_pod(entry.admitted.pod())
        } else {
            entry.demand()
        };
        let of_node = state
            .of_node
            .then(|| entry.admitted.effective().requests.clone());
        self.ledger.hold(holder(key), demand, of_node);
        self.room = true;
        self.free_cpus(key);
        self.publish_accounts();
    }

    /// Makes a pod durable, be it new or changed, together with another change.
    pub(super) fn commit_record(
        &mut self,
        key: &PodKey,
        record: &PodRecord,
        expect: Expect,
        with: Option<Change>,
    ) -> Result<u64, Refusal> {
        let Some(Change::Put(store_key, value, _)) = put(&store_key(key), record) else {
            return Err(Refusal::internal("the pod has no JSON form"));
        };
        let mut changes = vec![Change::Put(store_key, value, expect)];
        changes.extend(with);
        self.commit(changes).map_err(|error| {
            Refusal::not_durable(format!("pod {key} cannot be made durable: {error}"))
        })
    }

    /// What speaks against a pod, be it the pod, a policy or the state of the node, refuses it.
    fn heed(
        &mut self,
        key: &PodKey,
        verdict: &Verdict,
        object: &v1::Pod,
        tells: bool,
    ) -> Result<(), Refusal> {
        let refusal = if verdict.is_admitted() {
            self.refuse_under_pressure(verdict, object).err()
        } else {
            Some(refused(&subject(key), verdict.reasons()))
        };
        let Some(refusal) = refusal else {
            return Ok(());
        };
        if tells {
            self.note_refusal(key, &refusal);
        }
        Err(refusal)
    }

    /// Tells of a pod that was refused.
    pub(super) fn note_refusal(&mut self, key: &PodKey, refusal: &Refusal) {
        let causes: std::collections::BTreeSet<_> = refusal
            .causes
            .iter()
            .map(|cause| cause.reason.as_str())
            .collect();
        self.tallies.refuse(causes.into_iter());
        // There is no such pod, so it has no uid; whoever tries again and again is counted up.
        let subject = Subject {
            kind: "Pod",
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            uid: String::new(),
            field_path: String::new(),
        };
        tracing::info!(
            POD = key.name,
            NAMESPACE = key.namespace,
            reason = refusal.reason,
            "{}",
            refusal.message
        );
        self.events.note(
            &subject,
            Severity::Warning,
            &refusal.reason,
            &refusal.message,
            Timestamp::now(),
        );
    }
}

/// What a pod is called in the ledger.
pub(super) fn holder(key: &PodKey) -> Holder {
    Holder {
        namespace: key.namespace.clone(),
        resource: "pods".to_owned(),
        name: key.name.clone(),
    }
}

/// What a pod is called in refusals.
pub(super) fn subject(key: &PodKey) -> Refused<'_> {
    Refused {
        kind: "Pod",
        resource: "pods",
        name: &key.name,
    }
}

/// What every object gets that is kept.
fn complete_metadata(object: &mut v1::Pod, uid: &PodUid, now: Timestamp) {
    object.metadata.uid = Some(uid.to_string());
    object.metadata.creation_timestamp = Some(Time(now));
    object.metadata.generation = Some(1);
    object.metadata.resource_version = None;
    object.metadata.deletion_timestamp = None;
    object.metadata.deletion_grace_period_seconds = None;
    object
        .metadata
        .namespace
        .get_or_insert_with(|| "default".to_owned());
    object.status = None;
    default_spec(object);
}

/// Kubernetes' defaults of the fields that matter here.
pub(super) fn default_spec(object: &mut v1::Pod) {
    if let Some(spec) = object.spec.as_mut() {
        spec.restart_policy
            .get_or_insert_with(|| "Always".to_owned());
        spec.termination_grace_period_seconds.get_or_insert(30);
        spec.priority.get_or_insert(0);
        convert::fill_in_probes(spec);
    }
}

/// Writes what defaulting added into the object, so that its readers see what is in force.
fn apply_defaults(object: &mut v1::Pod, verdict: &Verdict) {
    if let Some(text) = verdict.pod().annotations.get(limit_range::ANNOTATION) {
        let annotations = object.metadata.annotations.get_or_insert_default();
        annotations.insert(limit_range::ANNOTATION.to_owned(), text.clone());
    }
    let Some(spec) = object.spec.as_mut() else {
        return;
    };
    apply_users(spec, verdict.secured());
    for default in verdict.defaults() {
        if matches!(
            default.rule,
            Rule::ContainerLimitFromPod | Rule::OverheadRoundedUp { .. }
        ) {
            continue;
        }
        let resources = match &default.container {
            None => spec.resources.get_or_insert_default(),
            Some(name) => {
                let found = spec
                    .containers
                    .iter_mut()
                    .chain(spec.init_containers.iter_mut().flatten())
                    .find(|container| container.name == *name);
                match found {
                    Some(container) => container.resources.get_or_insert_default(),
                    None => continue,
                }
            }
        };
        let list = match default.list {
            crate::model::resource::List::Requests => &mut resources.requests,
            crate::model::resource::List::Limits => &mut resources.limits,
        };
        list.get_or_insert_default().insert(
            default.resource.to_string(),
            ApiQuantity(default.amount.to_string()),
        );
    }
}

/// The same for who its containers are.
fn apply_users(spec: &mut v1::PodSpec, secured: &[Secured]) {
    for Secured { container, given } in secured {
        let all = spec.init_containers.iter_mut().flatten();
        let mut all = all.chain(&mut spec.containers);
        let Some(own) = all.find(|own| own.name == *container) else {
            continue;
        };
        let context = own.security_context.get_or_insert_default();
        match given {
            Given::User(id) => context.run_as_user = Some((*id).into()),
            Given::Group(id) => context.run_as_group = Some((*id).into()),
            Given::NoEscalation => context.allow_privilege_escalation = Some(false),
        }
    }
}

/// The uid in an object's metadata.
pub(super) fn uid_of(object: &v1::Pod) -> Option<PodUid> {
    PodUid::new(object.metadata.uid.as_deref()?)
}
