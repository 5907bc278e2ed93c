//! `allot apply` and `allot create`: objects from files to the daemon.
//!
//! Nothing is sent of an input with problems. One object that is refused does not keep the others from
//! being sent; all refusals are told.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::Context;
use super::client::{Answer, Client};
use super::error::CliError;
use super::input::{self, Files};
use super::kinds::Lookup;
use super::target::Target;
use crate::admission::defaults;
use crate::exit;
use crate::manifest::convert;
use crate::manifest::{Located, Object};
use crate::model::security::Security;
use crate::model::{self, PodUid};

/// The annotation in which `apply` keeps what it sent, as `kubectl` does.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What to send.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The objects.
    #[command(flatten)]
    pub files: Files,
    /// Only say what would become of them
    #[arg(long)]
    pub dry_run: bool,
}

/// Sends objects that are not there yet; those that are there must be the same.
///
/// # Errors
/// Problems of the input, or no daemon. Refusals are told one by one; the last one's code is returned.
pub fn apply(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let objects = input::named(&args.files, context)?;
    for_each(args, context, out, &objects, |sender, located| {
        let Object::Pod(pod) = &located.object else {
            return sender.apply_other(&located.object);
        };
        match sender.existing(pod) {
            Ok(existing) if is_same(pod, &existing) => Ok(told(&located.object, "unchanged")),
            Ok(_) => Err(CliError::Failed(format!(
                "pod {} is there already and differs: a pod cannot be changed in place yet; \
                 delete it with `allot delete -f`, then apply again",
                located.object.name()
            ))),
            Err(error) if error.is_not_found() => {
                let written = serde_json::to_string(pod).unwrap_or_default();
                sender.create(&located.object, Some(&written))
            }
            Err(error) => Err(error),
        }
    })
}

/// Sends objects, none of which may be there already.
///
/// # Errors
/// As for `apply`.
pub fn create(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let objects = input::objects(&args.files, context)?;
    for_each(args, context, out, &objects, |sender, located| {
        sender.create(&located.object, None)
    })
}

/// Does the same for each object of the input; the greatest exit code of all counts.
fn for_each(
    args: &Args,
    context: &Context,
    out: &mut dyn Write,
    objects: &[Located<Object>],
    step: impl Fn(&Sender<'_>, &Located<Object>) -> Result<Told, CliError>,
) -> Result<u8, CliError> {
    let sender = Sender {
        client: context.client()?,
        kinds: RefCell::default(),
        context,
        dry_run: args.dry_run,
    };
    let mut code = exit::OK;
    for located in objects {
        let object = &located.object;
        match step(&sender, located) {
            Ok((name, what)) => {
                let remark = if args.dry_run { " (dry run)" } else { "" };
                let kind = object.kind().to_ascii_lowercase();
                writeln!(out, "{kind}/{name} {what}{remark}")?;
            }
            Err(error @ CliError::Unreachable { .. }) => return Err(error),
            Err(error) => {
                out.flush()?;
                context.tell(&error)?;
                code = code.max(error.code());
            }
        }
    }
    Ok(code)
}

/// The name of an object, and what became of it.
type Told = (String, &'static str);

fn told(object: &Object, what: &'static str) -> Told {
    (object.name().to_owned(), what)
}

/// What sends objects.
struct Sender<'a> {
    client: Client,
    /// Definitions that are sent make other kinds known.
    kinds: RefCell<Lookup>,
    context: &'a Context,
    dry_run: bool,
}

impl Sender<'_> {
    /// The namespace an object goes to.
    fn namespace<'o>(&'o self, own: Option<&'o str>) -> &'o str {
        let own = own.filter(|own| !own.is_empty());
        own.unwrap_or_else(|| self.context.namespace())
    }

    fn existing(&self, pod: &Pod) -> Result<Pod, CliError> {
        let meta = &pod.metadata;
        let namespace = self.namespace(meta.namespace.as_deref());
        let name = meta.name.as_deref().unwrap_or_default();
        self.client
            .get(&Target::objects(Some(namespace), "pods").below(name))
    }

    /// Sends an object that is no pod, unless it is there and the same.
    fn apply_other(&self, object: &Object) -> Result<Told, CliError> {
        let new = body(object)?;
        let written = new.to_string();
        let target = self.target(object)?.below(object.name());
        match self.client.get::<Value>(&target) {
            Ok(there) if same_object(&new, &there) => Ok(told(object, "unchanged")),
            Ok(_) => {
                let target = self.changing(target);
                self.send(new, Some(&written), |body| self.client.put(&target, body))?;
                Ok(told(object, "configured"))
            }
            Err(error) if error.is_not_found() => self.create(object, Some(&written)),
            Err(error) => Err(error),
        }
    }

    /// Where the objects of this kind are.
    fn target(&self, object: &Object) -> Result<Target, CliError> {
        let namespace = self.namespace(object.namespace());
        let kind = self.kinds.borrow_mut().object(object, &self.client)?;
        Ok(Target::kind(kind, Some(namespace)))
    }

    fn changing(&self, target: Target) -> Target {
        let target = target.with("fieldValidation", "Strict");
        if self.dry_run {
            target.with("dryRun", "All")
        } else {
            target
        }
    }

    /// Sends an object; `written` is what `apply` shall find again.
    fn create(&self, object: &Object, written: Option<&str>) -> Result<Told, CliError> {
        let target = self.changing(self.target(object)?);
        let made = self.send(body(object)?, written, |body| {
            self.client.post(&target, body)
        })?;
        // The name may have been made there.
        let name = made.pointer("/metadata/name").and_then(Value::as_str);
        Ok((name.unwrap_or(object.name()).to_owned(), "created"))
    }

    fn send(
        &self,
        mut body: Value,
        written: Option<&str>,
        send: impl FnOnce(&Value) -> Result<Answer<Value>, CliError>,
    ) -> Result<Value, CliError> {
        if let Some(written) = written {
            annotate(&mut body, written);
        }
        let answer = send(&body)?;
        for warning in &answer.warnings {
            self.context.warn(warning);
        }
        Ok(answer.object)
    }
}

/// Whether an object that is there is what was written: it was made from the very same object, or it has
/// all that was written and nothing else but what every object gets.
fn same_object(written: &Value, there: &Value) -> bool {
    let last = there
        .pointer("/metadata/annotations")
        .and_then(|annotations| annotations.get(LAST_APPLIED))
        .and_then(Value::as_str)
        .and_then(|text| serde_json::from_str::<Value>(text).ok());
    if last.as_ref() == Some(written) {
        return true;
    }
    let rest = |object: &Value| {
        let mut object = object.clone();
        if let Some(fields) = object.as_object_mut() {
            fields.remove("metadata");
            fields.remove("status");
        }
        object
    };
    let labels = |object: &Value| object.pointer("/metadata/labels").cloned();
    last.is_none() && rest(written) == rest(there) && labels(written) == labels(there)
}

fn body(object: &Object) -> Result<Value, CliError> {
    let body = object.to_value();
    body.map_err(|error| CliError::Failed(format!("{} has no JSON form: {error}", object.name())))
}

fn annotate(body: &mut Value, written: &str) {
    let meta = body.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(meta) = meta {
        let annotations = meta.entry("annotations").or_insert_with(|| json!({}));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(LAST_APPLIED.to_owned(), Value::from(written));
        }
    }
}

/// Whether a pod that is there is what was written: it was made from the very same object, or the same
/// follows from both.
fn is_same(written: &Pod, existing: &Pod) -> bool {
    let annotations = existing.metadata.annotations.as_ref();
    let last: Option<Pod> = annotations
        .and_then(|annotations| annotations.get(LAST_APPLIED))
        .and_then(|text| serde_json::from_str(text).ok());
    if last.as_ref() == Some(written) {
        return true;
    }
    let last = last.as_ref().and_then(meaning);
    let (Some(mut there), Some(written)) = (meaning(existing), meaning(written)) else {
        return false;
    };
    // What neither was written now nor the last time is the daemon's own.
    if last
        .as_ref()
        .is_none_or(|last| users(last) == users(&written))
    {
        keep_users(&mut there, &written);
    }
    let last = |of: fn(&model::Pod) -> &BTreeMap<String, String>| last.as_ref().map(of);
    keep_known(&mut there.labels, &written.labels, last(|pod| &pod.labels));
    keep_known(
        &mut there.annotations,
        &written.annotations,
        last(|pod| &pod.annotations),
    );
    there == written
}

/// What a pod says to this node, defaults filled in, whatever its uid and place.
fn meaning(pod: &Pod) -> Option<model::Pod> {
    let uid = PodUid::new("same")?;
    let mut converted = convert::pod(pod, &uid);
    let mut pod = std::mem::take(&mut converted.problems)
        .is_empty()
        .then_some(converted.object)?;
    let _ = defaults::apply(&mut pod);
    pod.uid = uid;
    pod.namespace = String::new();
    pod.annotations.remove(LAST_APPLIED);
    Some(pod)
}

/// Who the containers are.
fn users(pod: &model::Pod) -> Vec<&Security> {
    let all = pod.all_containers();
    all.map(|(.., container)| &container.security).collect()
}

/// Who a container is that does not say so is the daemon's to say.
fn keep_users(there: &mut model::Pod, written: &model::Pod) {
    let all = there
        .init_containers
        .iter_mut()
        .chain(&mut there.containers);
    for (there, written) in all.zip(users(written)) {
        let there = &mut there.security;
        if written.user.is_none() {
            there.user = None;
            there.group = written.group.and(there.group);
        }
        if !written.said.wants_to_gain {
            there.no_new_privileges = written.no_new_privileges;
        }
    }
}

fn keep_known(
    there: &mut BTreeMap<String, String>,
    written: &BTreeMap<String, String>,
    last: Option<&BTreeMap<String, String>>,
) {
    there.retain(|key, _| {
        written.contains_key(key) || last.is_some_and(|last| last.contains_key(key))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(spec: &str, annotations: &Value) -> Pod {
        let spec: Value = serde_json::from_str(spec).unwrap();
        let metadata = json!({"name": "a", "annotations": annotations, "uid": "u"});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    const WRITTEN: &str =
        r#"{"containers":[{"name":"a","resources":{"limits":{"cpu":"0.5","memory":"1024Ki"}}}]}"#;
    const KEPT: &str = r#"{"restartPolicy":"Always","nodeName":"n","containers":[{"name":"a","resources":{
        "limits":{"cpu":"500m","memory":"1Mi"},"requests":{"cpu":"500m","memory":"1Mi"}}}]}"#;
    const OTHER: &str =
        r#"{"containers":[{"name":"a","resources":{"limits":{"cpu":"600m","memory":"1Mi"}}}]}"#;

    #[test]
    fn a_pod_is_the_same_if_the_same_follows_from_it() {
        let written = pod(WRITTEN, &json!({}));
        assert!(is_same(
            &written,
            &pod(KEPT, &json!({"allotd.dev/x": "added"}))
        ));
        assert!(!is_same(&written, &pod(OTHER, &json!({}))));
        assert!(!is_same(
            &pod(WRITTEN, &json!({"allotd.dev/pids-limit": "5"})),
            &pod(KEPT, &json!({}))
        ));
    }

    #[test]
    fn who_a_silent_pod_is_makes_it_no_other_one() {
        let of = |context: Value| {
            let mut written = pod(KEPT, &json!({}));
            let spec = written.spec.as_mut().unwrap();
            spec.containers[0].security_context = serde_json::from_value(context).unwrap();
            written
        };
        let filled =
            json!({"runAsUser": 65534, "runAsGroup": 65534, "allowPrivilegeEscalation": false});
        let mut kept = of(filled);
        for (written, same) in [
            (Value::Null, true),
            (json!({"runAsUser": 65534}), false),
            (json!({"runAsUser": 5}), false),
            (json!({"runAsGroup": 5}), false),
            (json!({"readOnlyRootFilesystem": true}), false),
            (json!({"allowPrivilegeEscalation": true}), false),
        ] {
            assert_eq!(is_same(&of(written.clone()), &kept), same, "{written}");
        }
        // A user that was taken out since.
        let last = serde_json::to_string(&of(json!({"runAsUser": 65534}))).unwrap();
        kept.metadata.annotations = Some([(LAST_APPLIED.to_owned(), last)].into());
        assert!(!is_same(&of(Value::Null), &kept));
    }

    #[test]
    fn what_was_applied_last_is_remembered() {
        let written = pod(WRITTEN, &json!({}));
        let kept = |last: &Pod, annotations: Value| {
            let mut annotations = annotations;
            annotations[LAST_APPLIED] = json!(serde_json::to_string(last).unwrap());
            pod(KEPT, &annotations)
        };
        assert!(is_same(&written, &kept(&written, json!({}))));
        // What was printed may be sent again.
        let printed = kept(&written, json!({}));
        assert!(is_same(&printed, &printed));
        // An annotation that was taken out since.
        let limit = json!({"allotd.dev/pids-limit": "5"});
        let earlier = pod(WRITTEN, &limit);
        assert!(!is_same(&written, &kept(&earlier, limit)));
    }
}
