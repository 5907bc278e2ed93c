//! `allot delete`: objects by name or by file, and the wait for the end of pods.

use std::io::Write;
use std::thread::sleep;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use super::client::Client;
use super::error::CliError;
use super::input::{self, Files};
use super::kinds::Lookup;
use super::target::Target;
use super::{Context, pod_name};
use crate::exit;
use crate::model::Kind;
use crate::model::kind::POD;

/// How often a pod that is ending is looked at.
const PAUSE: Duration = Duration::from_millis(50);
/// How much longer than its grace period a pod may take before we stop waiting.
const MARGIN: Duration = Duration::from_secs(30);

/// Stop pods and forget them, or forget other objects
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The objects of these files
    #[command(flatten)]
    pub files: Files,
    /// What it is (pod, quota, limits, configmap …), then names such as web or NAMESPACE/web
    #[arg(value_name = "KIND NAME", conflicts_with = "filename")]
    pub names: Vec<String>,
    /// Seconds between SIGTERM and SIGKILL, in place of the pod's own
    #[arg(long, value_name = "SECONDS")]
    pub grace_period: Option<u32>,
    /// Wait until the pods are gone
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1,
        default_missing_value = "true", action = clap::ArgAction::Set)]
    pub wait: bool,
    /// How many seconds to wait [default: the grace period and 30 s]
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u32>,
    /// A pod that is not there is no error
    #[arg(long)]
    pub ignore_not_found: bool,
}

/// Deletes.
///
/// # Errors
/// Problems of the input, no daemon, or a pod that does not end in time.
pub fn run(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let client = context.client()?;
    let named = named(args, context, &client)?;
    let mut code = exit::OK;
    let mut ending = Vec::new();
    for one in &named {
        match one.delete(args, &client) {
            Ok(last) => {
                writeln!(out, "{}/{} deleted", one.kind.singular(), one.name)?;
                ending.extend(last);
            }
            Err(error) if error.is_not_found() && args.ignore_not_found => {}
            Err(error @ CliError::Unreachable { .. }) => return Err(error),
            Err(error) => {
                out.flush()?;
                context.tell(&error)?;
                code = code.max(error.code());
            }
        }
    }
    out.flush()?;
    if args.wait {
        for pod in &ending {
            wait(args, &client, pod)?;
        }
    }
    Ok(code)
}

/// An object to delete.
struct Named {
    kind: Kind,
    namespace: String,
    name: String,
}

impl Named {
    fn new(kind: Kind, (namespace, name): (&str, &str)) -> Self {
        Self {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Deletes it; a pod, which takes time to end, is returned.
    fn delete(&self, args: &Args, client: &Client) -> Result<Option<Pod>, CliError> {
        let mut target = Target::kind(self.kind, Some(&self.namespace)).below(&self.name);
        if self.kind != POD {
            return client.delete::<Value>(&target).map(|_| None);
        }
        if let Some(seconds) = args.grace_period {
            target = target.with("gracePeriodSeconds", &seconds.to_string());
        }
        client.delete(&target).map(Some)
    }
}

/// The objects that are meant.
fn named(args: &Args, context: &Context, client: &Client) -> Result<Vec<Named>, CliError> {
    let mut kinds = Lookup::default();
    if !args.files.filename.is_empty() {
        let objects = input::named(&args.files, context)?;
        let objects = objects.iter().map(|located| &located.object);
        return objects
            .map(|object| {
                let own = object.namespace().filter(|own| !own.is_empty());
                let place = (own.unwrap_or_else(|| context.namespace()), object.name());
                Ok(Named::new(kinds.object(object, client)?, place))
            })
            .collect();
    }
    let usage = "nothing to delete: `allot delete pod NAME` or `allot delete -f FILE` is right";
    let usage = || CliError::Usage(usage.to_owned());
    let (word, names) = args.names.split_first().ok_or_else(usage)?;
    if names.is_empty() {
        return Err(usage());
    }
    let kind = kinds.word(word, client)?;
    if kind.is_own() {
        return Err(usage());
    }
    let names = names.iter();
    names
        .map(|text| Ok(Named::new(kind, pod_name(text, context)?)))
        .collect()
}

/// Waits until the pod is gone or another one has its name.
fn wait(args: &Args, client: &Client, pod: &Pod) -> Result<(), CliError> {
    let meta = &pod.metadata;
    let (namespace, name) = (
        meta.namespace.as_deref().unwrap_or_default(),
        meta.name.as_deref().unwrap_or_default(),
    );
    let grace = u64::try_from(meta.deletion_grace_period_seconds.unwrap_or(30)).unwrap_or(0);
    let limit = match args.timeout {
        Some(seconds) => Duration::from_secs(seconds.into()),
        None => Duration::from_secs(grace).saturating_add(MARGIN),
    };
    let begin = Instant::now();
    let target = Target::objects(Some(namespace), "pods").below(name);
    loop {
        match client.get::<Pod>(&target) {
            Ok(there) if there.metadata.uid == meta.uid => {}
            Ok(_) => return Ok(()),
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error),
        }
        if begin.elapsed() >= limit {
            return Err(CliError::Failed(format!(
                "pod {namespace}/{name} is not gone after {} s; see `allot describe pod {namespace}/{name}`",
                limit.as_secs()
            )));
        }
        sleep(PAUSE);
    }
}
