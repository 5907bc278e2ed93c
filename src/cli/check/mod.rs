//! `allot check`: what would become of the objects of an input on this node, without doing it.
//!
//! It needs no daemon and no privilege, and changes nothing.

pub mod judge;
pub mod text;

use std::io::Write;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::error::CliError;
use super::input::{self, Files};
use super::offline::{self, Asked};
use super::{Context, OutputForm};
use crate::admission::Lint;
use crate::exit;
use crate::manifest::{Manifest, Object};
use crate::report::check::Check;

/// Say what would become of objects on this node, and what is hardly meant, without sending them
///
/// No daemon is asked. First the policies (Namespaces, LimitRanges, quotas) are judged in
/// order, then all other objects in order; each that is admitted is counted in the quotas and
/// takes its part of the node. What the status of a quota says is used counts as used already.
/// The node is that of --node, or the Node in the input, or this machine with the default
/// reservations.
///
/// Exit codes: 0 all are admitted; 3 some are refused; 2 the input is not understood; 1 with
/// --strict, there are warnings.
#[derive(Clone, Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// The objects
    #[command(flatten)]
    pub files: Files,
    /// The Node to judge for, from a file of its own
    #[arg(long, value_name = "FILE")]
    pub node: Option<PathBuf>,
    /// Take policy and reservations from this configuration of allotd
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Fail if there are warnings
    #[arg(long)]
    pub strict: bool,
    /// Warnings to leave out
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = lints())]
    pub allow: Vec<Lint>,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    pub output: OutputForm,
}

/// Names of lints, each with what it is about.
fn lints() -> impl TypedValueParser<Value = Lint> {
    let values = Lint::ALL
        .iter()
        .map(|lint| PossibleValue::new(lint.id()).help(lint.summary()));
    PossibleValuesParser::new(values).try_map(|id| {
        let known = Lint::ALL.iter().find(|lint| lint.id() == id);
        known.copied().ok_or("it is the name of no warning")
    })
}

/// Checks.
///
/// # Errors
/// An input or a configuration that cannot be understood, or output that cannot be written.
pub fn run(args: &Args, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    if args.files.filename.is_empty() {
        return Err(CliError::Usage(
            "nothing to check: `allot check -f FILE` is right (- is the standard input)".to_owned(),
        ));
    }
    let config = offline::config(args.config.as_deref())?;
    let mut manifest = input::read(&args.files);
    if let Some(path) = &args.node {
        add_node(path, &mut manifest);
    }
    let asked = Asked {
        config: &config,
        namespace: context.namespace(),
    };
    let check = judge::check(&manifest, &asked, &args.allow);
    if args.output == OutputForm::Text && !check.problems.is_empty() {
        return Err(CliError::Problems(check.problems));
    }
    if !args.output.write(&check, out)? {
        text::write(&check, out)?;
    }
    Ok(code(&check, args.strict))
}

fn code(check: &Check, strict: bool) -> u8 {
    if !check.problems.is_empty() {
        exit::BAD_INPUT
    } else if check.summary.refused > 0 {
        exit::REFUSED
    } else if strict && check.summary.warnings > 0 {
        exit::ERROR
    } else {
        exit::OK
    }
}

/// Adds the node of a file that holds one and nothing else.
fn add_node(path: &std::path::Path, manifest: &mut Manifest) {
    let files = Files {
        filename: vec![path.to_owned()],
        recursive: false,
    };
    let given = input::read(&files);
    manifest.problems.extend(given.problems);
    for located in &given.objects {
        if !matches!(located.object, Object::Node(_)) {
            let kind = located.object.kind();
            let problem = located.problem("kind", format!("{kind} is no Node, as --node asks"));
            manifest.problems.push(problem);
        }
    }
    manifest.objects.extend(given.objects);
}
