//! What can go wrong in `allot`, with its exit code and what to do next.
//!
//! An error says what was tried, what happened and, where that helps, what to do about it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;

use super::render::clean;
use crate::exit;
use crate::manifest::Problem;

/// `error` in front of a message.
pub const ERROR: Style = AnsiColor::Red.on_default().bold();
/// `warning` in front of a message.
pub const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Nobody answers at the socket.
    #[error(
        "cannot reach allotd at {}: {source}; is it running? systemctl status allotd",
        socket.display()
    )]
    Unreachable {
        /// Where it was tried.
        socket: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The daemon took too long.
    #[error("allotd at {} did not {what} within {} s", socket.display(), limit.as_secs())]
    Slow {
        /// Where it was asked.
        socket: PathBuf,
        /// What it did not do.
        what: String,
        /// How long was waited.
        limit: Duration,
    },
    /// The daemon's answer is none that a client can use.
    #[error("allotd at {} gave no usable answer: {why}", socket.display())]
    Answer {
        /// Where it was asked.
        socket: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The daemon refused.
    #[error("{}", .0.message.as_deref().unwrap_or("no message"))]
    Refused(Box<Status>),
    /// The input holds problems; all are told.
    #[error("{} problems in the input", .0.len())]
    Problems(Vec<Problem>),
    /// The command line asks for something that cannot be.
    #[error("{0}")]
    Usage(String),
    /// Something did not work out.
    #[error("{0}")]
    Failed(String),
    /// Output cannot be written.
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
}

impl CliError {
    /// The exit code that belongs to the error.
    pub fn code(&self) -> u8 {
        match self {
            Self::Problems(_) | Self::Usage(_) => exit::BAD_INPUT,
            Self::Refused(status) => match status.code {
                Some(400) => exit::BAD_INPUT,
                Some(422) => exit::REFUSED,
                // Without causes it is the caller who may not, not the object.
                Some(403 | 409) if !causes(status).is_empty() => exit::REFUSED,
                _ => exit::ERROR,
            },
            _ => exit::ERROR,
        }
    }

    /// Whether the daemon said that there is no such object.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code == Some(404))
    }

    /// Whether the object has changed since it was read.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code == Some(409))
    }

    /// Whether the reader of our output went away, which is no error.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Writes the error for people: one line, then one for each cause.
    ///
    /// # Errors
    /// Whatever the writer reports.
    pub fn write(&self, err: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Problems(problems) => {
                for problem in problems {
                    writeln!(
                        err,
                        "{ERROR}error{ERROR:#}: {}",
                        clean(&problem.to_string())
                    )?;
                }
                Ok(())
            }
            Self::Refused(status) => {
                let reason = clean(status.reason.as_deref().unwrap_or("Unknown"));
                let message = self.to_string();
                let head = clean(without_causes(&message, status));
                writeln!(err, "{ERROR}error{ERROR:#} ({reason}): {head}")?;
                for cause in causes(status) {
                    writeln!(err, "  {}", clean(&cause))?;
                }
                Ok(())
            }
            _ => writeln!(err, "{ERROR}error{ERROR:#}: {}", clean(&self.to_string())),
        }
    }
}

/// The message up to where it repeats the causes, which follow line by line.
fn without_causes<'a>(message: &'a str, status: &Status) -> &'a str {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    let first = causes.next().and_then(|causes| causes.first());
    let field = first.and_then(|first| first.field.as_deref());
    let text = first.and_then(|first| first.message.as_deref());
    let repeated = [field, text]
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty())
        .find_map(|part| message.split_once(part));
    match repeated {
        Some((head, _)) if !head.is_empty() => head.trim_end_matches([' ', ':', '[']),
        _ => message,
    }
}

/// Each cause in one line: `FIELD: MESSAGE (REASON)`.
fn causes(status: &Status) -> Vec<String> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes
        .flatten()
        .map(|cause| {
            let mut line = String::new();
            for part in [&cause.field, &cause.message].into_iter().flatten() {
                if !part.is_empty() {
                    if !line.is_empty() {
                        line.push_str(": ");
                    }
                    line.push_str(part);
                }
            }
            if let Some(reason) = cause.reason.as_deref().filter(|reason| !reason.is_empty()) {
                line.push_str(" (");
                line.push_str(reason);
                line.push(')');
            }
            line
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> CliError {
        CliError::Refused(serde_json::from_str(text).unwrap())
    }

    fn written(error: &CliError) -> String {
        let mut out = Vec::new();
        error.write(&mut out).unwrap();
        anstream::adapter::strip_bytes(&out)
            .into_vec()
            .try_into()
            .unwrap()
    }

    #[test]
    fn refusals_are_told_with_every_cause() {
        let error = refused(
            r#"{"code":422,"reason":"Invalid","message":"Pod \"a\" is invalid: [spec.containers[0].name: bad, 1 asked]","details":{"causes":[
                {"reason":"FieldValueInvalid","field":"spec.containers[0].name","message":"bad"},
                {"reason":"OutOfcpu","message":"1\u001b[31m asked"}]}}"#,
        );
        assert_eq!(
            written(&error),
            "error (Invalid): Pod \"a\" is invalid\n  \
             spec.containers[0].name: bad (FieldValueInvalid)\n  \
             1\\u{1b}[31m asked (OutOfcpu)\n"
        );
        assert_eq!(error.code(), exit::REFUSED);
    }

    #[test]
    fn exit_codes_tell_who_is_at_fault() {
        for (status, code) in [
            (r#"{"code":400,"reason":"BadRequest"}"#, exit::BAD_INPUT),
            (r#"{"code":403,"reason":"Forbidden"}"#, exit::ERROR),
            (
                r#"{"code":403,"reason":"Forbidden","details":{"causes":[{"message":"m"}]}}"#,
                exit::REFUSED,
            ),
            (r#"{"code":404,"reason":"NotFound"}"#, exit::ERROR),
            (r#"{"code":500}"#, exit::ERROR),
        ] {
            assert_eq!(refused(status).code(), code, "{status}");
        }
        assert_eq!(CliError::Usage(String::new()).code(), exit::BAD_INPUT);
    }

    #[test]
    fn a_missing_daemon_is_told_with_what_to_do() {
        let error = CliError::Unreachable {
            socket: "/run/allotd/allotd.sock".into(),
            source: io::Error::from_raw_os_error(libc::ENOENT),
        };
        assert_eq!(
            written(&error),
            "error: cannot reach allotd at /run/allotd/allotd.sock: No such file or directory \
             (os error 2); is it running? systemctl status allotd\n"
        );
    }
}
