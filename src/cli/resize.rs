//! `allot resize`: other amounts of cpu and memory for a pod that runs.
//!
//! Words to amounts, and what came of it; the daemon judges.

use std::collections::BTreeMap;
use std::io::Write;
use std::thread::sleep;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::client::{Answer, Client};
use super::error::CliError;
use super::target::Target;
use super::{Context, OutputForm, pod_name};
use crate::exit;
use crate::report::resize::Resize;

/// So often a resize is sent where the pod changes in between.
const TRIES: usize = 5;

/// How often is looked whether a resize is done.
const PAUSE: Duration = Duration::from_millis(200);

/// Give a container of a running pod other amounts of cpu and memory
///
/// An amount is REQUEST:LIMIT; REQUEST: and :LIMIT change one of them. A single AMOUNT is for a container whose
/// request and limit are the same, or which has only one of them. What is too much for the node at the moment
/// waits until there is room; memory is never taken below what is in use.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The pod
    #[arg(value_name = "[NAMESPACE/]POD")]
    pub pod: String,
    /// The container [default: the only one]
    #[arg(conflicts_with = "pod_level")]
    pub container: Option<String>,
    /// The amounts of the pod as a whole (spec.resources)
    #[arg(long)]
    pub pod_level: bool,
    /// Processors: 500m:1, 2, :1500m
    #[arg(long, value_name = "AMOUNT", required_unless_present = "memory")]
    pub cpu: Option<String>,
    /// Bytes: 64Mi:128Mi, 1Gi, :256Mi
    #[arg(long, value_name = "AMOUNT")]
    pub memory: Option<String>,
    /// Only say whether it is possible
    #[arg(long)]
    pub dry_run: bool,
    /// Wait so many seconds until it is done
    #[arg(long, value_name = "SECONDS", conflicts_with = "dry_run")]
    pub wait: Option<u64>,
    /// How to print the pod
    #[arg(short, long, value_enum, default_value_t)]
    pub output: OutputForm,
}

/// Resizes.
///
/// # Errors
/// No daemon, a refusal, amounts that cannot be read, or output that cannot be written.
pub fn run(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let (namespace, name) = pod_name(&args.pod, context)?;
    let client = context.client()?;
    let target = Target::objects(Some(namespace), "pods").below(name);
    let answer = send(&client, &target, args)?;
    for warning in &answer.warnings {
        context.warn(warning);
    }
    let pod = match args.wait {
        Some(seconds) => wait(&client, &target, answer.object, seconds)?,
        None => answer.object,
    };
    if args.output.write(&pod, out)? {
        return Ok(exit::OK);
    }
    if args.dry_run {
        writeln!(out, "pod/{name} can be resized (dry run)")?;
        return Ok(exit::OK);
    }
    let Some((kind, reason, message)) = unfinished(&pod) else {
        writeln!(out, "pod/{name} resized")?;
        return Ok(exit::OK);
    };
    let how = match (kind.as_str(), reason.as_str()) {
        (Resize::PENDING, "Infeasible") => "cannot be resized now",
        (Resize::PENDING, _) => "waits for its resize",
        _ => "is being resized",
    };
    match message.as_str() {
        "" => writeln!(out, "pod/{name} {how}")?,
        message => writeln!(out, "pod/{name} {how}: {message}")?,
    }
    Ok(match args.wait {
        Some(_) => exit::ERROR,
        None => exit::OK,
    })
}

/// Sends the pod with its new amounts; again, where it has changed meanwhile.
fn send(client: &Client, target: &Target, args: &Args) -> Result<Answer<v1::Pod>, CliError> {
    let mut resize = target.clone().below("resize");
    if args.dry_run {
        resize = resize.with("dryRun", "All");
    }
    let mut tries = 0;
    loop {
        tries += 1;
        let mut pod: v1::Pod = client.get(target)?;
        let resources = resources(&mut pod, args)?;
        for (resource, text) in [("cpu", &args.cpu), ("memory", &args.memory)] {
            if let Some(text) = text {
                set(resources, resource, text)?;
            }
        }
        match client.put(&resize, &pod) {
            Err(error) if error.is_conflict() && tries < TRIES => {}
            answer => return answer,
        }
    }
}

/// Where the amounts stand that shall change.
fn resources<'a>(
    pod: &'a mut v1::Pod,
    args: &Args,
) -> Result<&'a mut v1::ResourceRequirements, CliError> {
    let spec = pod.spec.get_or_insert_default();
    if args.pod_level {
        return Ok(spec.resources.get_or_insert_default());
    }
    let init = spec.init_containers.iter_mut().flatten();
    let all: Vec<_> = init.chain(&mut spec.containers).collect();
    let names: Vec<_> = all.iter().map(|container| container.name.clone()).collect();
    let is_meant = |container: &v1::Container| match &args.container {
        Some(name) => container.name == *name,
        None => names.len() == 1,
    };
    let found = all.into_iter().find(|container| is_meant(container));
    let Some(container) = found else {
        let what = match &args.container {
            Some(name) => format!("pod {} has no container {name:?}", args.pod),
            None => format!("pod {} has {} containers", args.pod, names.len()),
        };
        let message = format!("{what}: one of {} is right", names.join(", "));
        return Err(CliError::Usage(message));
    };
    Ok(container.resources.get_or_insert_default())
}

/// Reads `REQUEST:LIMIT` and its shorter forms.
fn set(
    resources: &mut v1::ResourceRequirements,
    resource: &str,
    text: &str,
) -> Result<(), CliError> {
    let (request, limit) = match text.split_once(':') {
        Some(both) => both,
        None => both_or_one(resources, resource, text)?,
    };
    for (list, amount) in [
        (&mut resources.requests, request),
        (&mut resources.limits, limit),
    ] {
        if !amount.is_empty() {
            list.get_or_insert_default()
                .insert(resource.to_owned(), Quantity(amount.to_owned()));
        }
    }
    Ok(())
}

/// Request and limit where only one amount is given; an empty one stays as it is.
fn both_or_one<'a>(
    resources: &v1::ResourceRequirements,
    resource: &str,
    text: &'a str,
) -> Result<(&'a str, &'a str), CliError> {
    let of = |list: &Option<BTreeMap<String, Quantity>>| list.as_ref()?.get(resource).cloned();
    let meanings = match (of(&resources.requests), of(&resources.limits)) {
        (Some(_), None) => return Ok((text, "")),
        (None, Some(_)) => return Ok(("", text)),
        (Some(request), Some(limit)) if request == limit => return Ok((text, text)),
        (Some(Quantity(request)), Some(Quantity(limit))) => {
            format!("the request, {request}, or the limit, {limit}")
        }
        (None, None) => "a request or a limit, and there is neither".to_owned(),
    };
    Err(CliError::Usage(format!(
        "--{resource}={text} may mean {meanings}: {text}: or :{text} or REQUEST:LIMIT is right"
    )))
}

/// The condition of a resize that is not done: its type, reason and message.
fn unfinished(pod: &v1::Pod) -> Option<(String, String, String)> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let found = conditions
        .iter()
        .find(|condition| matches!(&*condition.type_, Resize::PENDING | Resize::IN_PROGRESS))?;
    Some((
        found.type_.clone(),
        found.reason.clone().unwrap_or_default(),
        found.message.clone().unwrap_or_default(),
    ))
}

fn wait(
    client: &Client,
    target: &Target,
    mut pod: v1::Pod,
    seconds: u64,
) -> Result<v1::Pod, CliError> {
    let start = Instant::now();
    while unfinished(&pod).is_some() && start.elapsed() < Duration::from_secs(seconds) {
        sleep(PAUSE);
        pod = client.get(target)?;
    }
    Ok(pod)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_alone_is_for_both_only_where_both_are_the_same() {
        let resources = |request: Option<&str>, limit: Option<&str>| {
            let list = |amount: Option<&str>| {
                let amount = Quantity(amount?.to_owned());
                Some([("cpu".to_owned(), amount)].into())
            };
            v1::ResourceRequirements {
                requests: list(request),
                limits: list(limit),
                claims: None,
            }
        };
        for ((request, limit), text, expected) in [
            ((Some("1"), Some("1")), "2", Some((Some("2"), Some("2")))),
            ((Some("1"), None), "2", Some((Some("2"), None))),
            ((None, Some("1")), "2", Some((None, Some("2")))),
            ((Some("1"), Some("2")), "3", None),
            ((None, None), "3", None),
            ((Some("1"), Some("2")), "3:4", Some((Some("3"), Some("4")))),
            ((Some("1"), Some("2")), "3:", Some((Some("3"), Some("2")))),
            ((Some("1"), Some("2")), ":4", Some((Some("1"), Some("4")))),
            ((None, None), ":4", Some((None, Some("4")))),
        ] {
            let mut given = resources(request, limit);
            match (set(&mut given, "cpu", text), expected) {
                (Ok(()), Some((request, limit))) => assert_eq!(given, resources(request, limit)),
                (Err(CliError::Usage(told)), None) => assert!(told.contains("3:"), "{told}"),
                (answer, _) => panic!("{text}: {answer:?}"),
            }
        }
    }
}
