//! `allot explain`: from a pod's spec to the bytes in the kernel, and why.
//!
//! With `-f` it needs no daemon and no privilege: the same pure stages that the daemon uses judge the
//! input. Otherwise the daemon tells of a pod that it keeps, with what the kernel holds.

pub mod offline;
mod security;
pub mod text;

use std::io::Write;
use std::path::PathBuf;

use super::error::{CliError, ERROR, WARNING};
use super::input::{self, Files};
use super::offline::Asked;
use super::render::clean;
use super::target::Target;
use super::{Context, OutputForm, pod_name};
use crate::exit;
use crate::report::explain::{Explanation, PodExplanation};

/// Show what a pod gets, down to each file of each cgroup, and why
///
/// With -f: every pod of the files is judged in order, as if sent to an empty node; nothing is sent and
/// no daemon is needed. A Node object says for which node; without one it is this machine with the
/// default reservations. LimitRanges and ResourceQuotas among the objects hold for the pods of their
/// namespace, ClusterResourceQuotas for those of the namespaces that they select by the labels and
/// annotations of Namespaces among the objects. With `pod NAME`: a pod that the daemon keeps, with what the kernel holds.
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The objects
    #[command(flatten)]
    pub files: Files,
    /// pod, then names such as web or NAMESPACE/web
    #[arg(value_name = "pod NAME", conflicts_with_all = ["filename", "config"])]
    pub names: Vec<String>,
    /// With -f: take policy and reservations from this configuration of allotd
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    pub output: OutputForm,
}

/// Explains.
///
/// # Errors
/// No daemon, no such pod, a configuration that cannot be read, or output that cannot be written.
pub fn run(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    if !args.files.filename.is_empty() {
        return run_offline(args, context, out);
    }
    let names = match args.names.split_first() {
        Some((kind, names)) if matches!(kind.as_str(), "pod" | "pods" | "po") => names,
        _ => &[],
    };
    if names.is_empty() {
        return Err(CliError::Usage(
            "nothing to explain: `allot explain -f FILE` or `allot explain pod NAME` is right"
                .to_owned(),
        ));
    }
    let client = context.client()?;
    let pods: Vec<PodExplanation> = names
        .iter()
        .map(|text| {
            let (namespace, name) = pod_name(text, context)?;
            client.get(&Target::own_pod(namespace, name).below("explain"))
        })
        .collect::<Result<_, _>>()?;
    let explanation = Explanation {
        pods,
        ..Explanation::default()
    };
    write(&explanation, args.output, out)?;
    Ok(exit::OK)
}

fn run_offline(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    let config = super::offline::config(args.config.as_deref())?;
    let manifest = input::read(&args.files);
    let asked = Asked {
        config: &config,
        namespace: context.namespace(),
    };
    let (explanation, remarks) = offline::explain(&manifest, &asked);
    for remark in remarks {
        context.warn(&remark);
    }
    if args.output == OutputForm::Text && !explanation.problems.is_empty() {
        return Err(CliError::Problems(explanation.problems));
    }
    write(&explanation, args.output, out)?;
    Ok(if !explanation.problems.is_empty() {
        exit::BAD_INPUT
    } else if explanation.pods.iter().any(|pod| !pod.admitted) {
        exit::REFUSED
    } else {
        exit::OK
    })
}

fn write(
    explanation: &Explanation,
    output: OutputForm,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    if output.write(explanation, out)? {
        return Ok(());
    }
    if let Some(node) = &explanation.node {
        writeln!(out, "{}", text::node(node))?;
    }
    for (index, pod) in explanation.pods.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        write!(out, "{}", text::head(pod))?;
        for reason in &pod.reasons {
            let reason = text::reason(reason);
            writeln!(out, "{ERROR}refused{ERROR:#}: {}", clean(&reason))?;
        }
        for warning in &pod.warnings {
            writeln!(out, "{WARNING}warning{WARNING:#}: {}", clean(warning))?;
        }
        write!(out, "{}", text::body(pod))?;
    }
    if !explanation.quotas.is_empty() {
        write!(out, "\n{}", text::quotas(&explanation.quotas))?;
    }
    Ok(())
}
