//! The agent's side of a program that is run beside a container's own: asked for as an errand, awaited
//! without a thread.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::time::timeout;

use super::errand::{Errands, read_answer};
use super::process::join;
use super::{AttemptId, Runtime, open_files};

/// So much of its output is kept (bytes), as the kubelet does.
pub const MAX_OUTPUT: usize = 10 << 10;
/// The longest answer: output in which each byte takes six of JSON, and what is around it.
const MAX_ANSWER: u64 = 128 << 10;
/// What comes on top of the program's own time: starting, killing, telling.
const PATIENCE: Duration = Duration::from_secs(30);

/// What became of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// It ended by itself.
    Exited {
        /// The exit code; 128 and the signal's number where a signal ended it.
        code: i32,
        /// The beginning of its output.
        output: String,
    },
    /// It took too long and was killed, with all that it had started.
    TimedOut {
        /// The beginning of its output.
        output: String,
    },
    /// It could not be run.
    NotRun {
        /// Why.
        why: String,
    },
}

impl Runtime {
    /// Runs a program beside the run `id` of a container, as the container's own would run: in its cgroup,
    /// with its environment, mounts and rights. Needs a tokio runtime. Dropped, the program goes on until
    /// its time is over.
    ///
    /// # Errors
    /// Nobody could be asked to do it, or gave an answer.
    pub async fn exec(
        &self,
        id: &AttemptId,
        words: &[String],
        time: Duration,
    ) -> io::Result<Outcome> {
        let dir = join(&self.state, &id.path());
        let asking = async {
            match &self.errands {
                Errands::Own(program) => call(program, &dir, time, words).await,
                Errands::Socket(socket) => ask(socket, &dir, time, words).await,
            }
        };
        let most = time.saturating_add(PATIENCE);
        let answer = timeout(most, asking)
            .await
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "the errand gave no answer"))??;
        Ok(serde_json::from_slice(&answer)?)
    }
}

fn milliseconds(time: Duration) -> String {
    u64::try_from(time.as_millis())
        .unwrap_or(u64::MAX)
        .to_string()
}

async fn call(program: &Path, dir: &Path, time: Duration, words: &[String]) -> io::Result<Vec<u8>> {
    let mut child = Command::new(program)
        .arg0("allotd")
        .arg("exec")
        .arg(dir)
        .arg(milliseconds(time))
        .arg("--")
        .args(words)
        .env_clear()
        .envs(open_files::before())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut answer = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(MAX_ANSWER).read_to_end(&mut answer).await?;
    }
    child.wait().await?;
    Ok(answer)
}

async fn ask(socket: &Path, dir: &Path, time: Duration, words: &[String]) -> io::Result<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;
    let time = milliseconds(time);
    let head = [b"exec", dir.as_os_str().as_bytes(), time.as_bytes()];
    let all: Vec<_> = head
        .into_iter()
        .chain(words.iter().map(String::as_bytes))
        .collect();
    let mut stream = UnixStream::connect(socket).await?;
    stream.write_all(&all.join(&0)).await?;
    stream.shutdown().await?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER).read_to_end(&mut answer).await?;
    read_answer(&answer)?.map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PodUid;
    use crate::runtime::ContainerId;
    use crate::runtime::errand::tests::exchange;

    /// What is asked through a socket, and what becomes of this answer.
    fn exec(answer: &'static [u8]) -> (Vec<u8>, io::Result<Outcome>) {
        exchange(answer, |errands| {
            let runtime = Runtime {
                state: "/state".into(),
                logs: "/logs".into(),
                errands,
                shim_cgroup: None,
            };
            let id = ContainerId::new("default", "web", PodUid::new("u").unwrap(), "c").unwrap();
            let words = ["cat".to_owned(), String::new(), "a b".to_owned()];
            let tokio = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let time = Duration::from_millis(1500);
            tokio.block_on(runtime.exec(&id.attempt(3), &words, time))
        })
    }

    #[test]
    fn a_program_is_asked_for_in_words_and_its_outcome_is_told() {
        let (asked, outcome) = exec(br#"0{"exited":{"code":7,"output":"no"}}"#);
        assert_eq!(asked, b"exec\0/state/pods/u/c/3\x001500\0cat\0\0a b");
        let expected = Outcome::Exited {
            code: 7,
            output: "no".to_owned(),
        };
        assert_eq!(outcome.unwrap(), expected);
        for (answer, expected) in [
            (&b"1no room"[..], "no room"),
            (b"", "without an answer"),
            (b"0nonsense", "expected"),
        ] {
            let error = exec(answer).1.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
