//! The command line of `allot`: one file for each subcommand.
//!
//! Here words are parsed and answers laid out. What an object means is decided elsewhere: offline by
//! the same pure stages that the daemon uses, otherwise by the daemon.

pub mod apply;
pub mod attach;
pub mod check;
pub mod choice;
pub mod client;
pub mod create;
pub mod delete;
pub mod describe;
pub mod diff;
pub mod error;
pub mod events;
pub mod evict;
pub mod explain;
pub mod get;
pub mod input;
pub mod kinds;
pub mod logs;
pub mod offline;
pub mod oom;
pub mod orphans;
pub mod proxy;
pub mod quantity;
pub mod quota;
pub mod render;
pub mod resize;
pub mod status;
pub mod tables;
pub mod target;
pub mod top;

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anstream::AutoStream;
use clap::Parser;

use client::Client;
use error::{CliError, WARNING};
use render::{Clock, clean};

use crate::exit;

/// Run Kubernetes pods on this machine, and see why they get what they get
///
/// Exit codes: 0 done; 1 error, drift found, or warnings with check --strict; 2 command line or input not understood; 3 refused.
#[derive(Clone, Debug, Parser)]
#[command(name = "allot", version, max_term_width = 100)]
pub struct Cli {
    /// What every command knows.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What every command knows.
#[derive(Clone, Debug, clap::Args)]
pub struct Global {
    /// The daemon's socket
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        env = "ALLOT_SOCKET",
        default_value = "/run/allotd/allotd.sock"
    )]
    pub socket: PathBuf,
    /// The namespace of objects that do not say theirs [default: default]
    #[arg(short, long, global = true, value_name = "NAME")]
    pub namespace: Option<String>,
}

/// One subcommand.
#[derive(Clone, Debug, clap::Subcommand)]
#[allow(missing_docs)]
pub enum Command {
    /// Send objects; pods that are there already must be the same, other objects are changed
    Apply(apply::Args),
    Create(create::Args),
    Delete(delete::Args),
    Get(get::Args),
    Describe(describe::Args),
    Explain(explain::Args),
    Check(check::Args),
    Diff(diff::Args),
    Status(status::Args),
    Top(top::Args),
    Logs(logs::Args),
    Events(events::Args),
    Oom(oom::Args),
    Evict(evict::Args),
    Orphans(orphans::Args),
    Resize(resize::Args),
    Attach(attach::Args),
    Proxy(proxy::Args),
    Quota(quota::Args),
    Quantity(quantity::Args),
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputForm {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
    /// The same as YAML
    Yaml,
}

impl OutputForm {
    /// Writes an answer for programs; false: it is for people, and nothing was written.
    ///
    /// # Errors
    /// Output that cannot be written.
    pub fn write(
        self,
        answer: &impl serde::Serialize,
        out: &mut dyn Write,
    ) -> Result<bool, CliError> {
        match self {
            Self::Text => return Ok(false),
            Self::Json => {
                serde_json::to_writer_pretty(&mut *out, answer).map_err(io::Error::from)?;
                writeln!(out)?;
            }
            Self::Yaml => {
                let text = serde_saphyr::to_string(answer)
                    .map_err(|error| CliError::Failed(format!("no YAML form: {error}")))?;
                write!(out, "{text}")?;
            }
        }
        Ok(true)
    }
}

/// What commands share.
#[derive(Clone, Debug)]
pub struct Context {
    /// The options before and after the command.
    pub global: Global,
    /// The time, and where we are.
    pub clock: Clock,
}

impl Context {
    /// A client of the daemon.
    ///
    /// # Errors
    /// The system has no room for an event loop.
    pub fn client(&self) -> Result<Client, CliError> {
        Client::new(&self.global.socket)
    }

    /// The namespace of objects that do not say theirs.
    pub fn namespace(&self) -> &str {
        self.global.namespace.as_deref().unwrap_or("default")
    }

    /// Tells something beside the answer.
    pub fn say(&self, text: &str) {
        anstream::eprintln!("{}", clean(text));
    }

    /// Tells an error that does not end the command.
    ///
    /// # Errors
    /// The standard error output cannot be written.
    pub fn tell(&self, error: &CliError) -> io::Result<()> {
        error.write(&mut AutoStream::auto(io::stderr()))
    }

    /// Warns of something.
    pub fn warn(&self, text: &str) {
        anstream::eprintln!("{WARNING}warning{WARNING:#}: {}", clean(text));
    }
}

/// The namespace and name of a pod, from `[NAMESPACE/]NAME`.
///
/// # Errors
/// A part that is empty, a second slash, or another namespace than that of `-n`.
pub fn pod_name<'a>(text: &'a str, context: &'a Context) -> Result<(&'a str, &'a str), CliError> {
    let (namespace, name) = match text.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, text),
    };
    let wrong = |part: &str| part.is_empty() || part.contains('/');
    if wrong(name) || namespace.is_some_and(wrong) {
        return Err(CliError::Usage(format!(
            "{text:?} is no pod: NAME or NAMESPACE/NAME is right"
        )));
    }
    match (namespace, context.global.namespace.as_deref()) {
        (Some(here), Some(there)) if here != there => Err(CliError::Usage(format!(
            "{text:?} is in namespace {here}, but --namespace says {there}"
        ))),
        (Some(namespace), _) => Ok((namespace, name)),
        (None, _) => Ok((context.namespace(), name)),
    }
}

/// Runs a command line and returns the exit code; output goes to the standard streams.
pub fn main<I, T>(words: I) -> u8
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    let cli = match Cli::try_parse_from(words) {
        Ok(cli) => cli,
        Err(usage) => {
            let _ = usage.print();
            return if usage.use_stderr() {
                exit::BAD_INPUT
            } else {
                exit::OK
            };
        }
    };
    let context = Context {
        global: cli.global,
        clock: Clock::system(),
    };
    let mut out = BufWriter::new(AutoStream::auto(io::stdout()));
    let result =
        run(&cli.command, &context, &mut out).and_then(|code| Ok(out.flush().map(|()| code)?));
    result.unwrap_or_else(|error| {
        let _ = out.flush();
        if error.is_closed_pipe() {
            return exit::OK;
        }
        let mut err = AutoStream::auto(io::stderr());
        let _ = error.write(&mut err);
        error.code()
    })
}

/// Runs one command.
///
/// # Errors
/// Whatever keeps the command from its end.
pub fn run(command: &Command, context: &Context, out: &mut dyn Write) -> Result<u8, CliError> {
    match command {
        Command::Apply(args) => apply::apply(args, context, out),
        Command::Create(args) => create::run(args, context, out),
        Command::Delete(args) => delete::run(args, context, out),
        Command::Get(args) => get::run(args, context, out),
        Command::Describe(args) => describe::run(args, context, out),
        Command::Explain(args) => explain::run(args, context, out),
        Command::Check(args) => check::run(args, context, out),
        Command::Diff(args) => diff::run(args, context, out),
        Command::Status(args) => status::run(args, context, out),
        Command::Top(args) => top::run(args, context, out),
        Command::Logs(args) => logs::run(args, context, out),
        Command::Events(args) => events::run(args, context, out),
        Command::Oom(args) => oom::run(args, context, out),
        Command::Evict(args) => evict::run(args, context, out),
        Command::Orphans(args) => orphans::run(args, context, out),
        Command::Resize(args) => resize::run(args, context, out),
        Command::Attach(args) => attach::run(args, context, out),
        Command::Proxy(args) => proxy::run(args, context, out),
        Command::Quota(args) => quota::run(args, context, out),
        Command::Quantity(args) => Ok(quantity::run(args, out)?),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn context(namespace: Option<&str>) -> Context {
        Context {
            global: Global {
                socket: "/nonexistent".into(),
                namespace: namespace.map(str::to_owned),
            },
            clock: Clock::system(),
        }
    }

    #[test]
    fn the_command_line_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn pods_are_named_with_or_without_their_namespace() {
        let none = context(None);
        let some = context(Some("a"));
        assert_eq!(pod_name("web", &none).unwrap(), ("default", "web"));
        assert_eq!(pod_name("web", &some).unwrap(), ("a", "web"));
        assert_eq!(pod_name("b/web", &none).unwrap(), ("b", "web"));
        assert_eq!(pod_name("a/web", &some).unwrap(), ("a", "web"));
        for (text, context) in [
            ("b/web", &some),
            ("", &none),
            ("/web", &none),
            ("a/", &none),
            ("a/b/c", &none),
        ] {
            let error = pod_name(text, context).unwrap_err();
            assert_eq!(error.code(), exit::BAD_INPUT, "{text}");
        }
    }
}
