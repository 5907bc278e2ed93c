//! Errands: what must be done among the host's own mounts and without the limits that a service manager
//! puts on the agent, because containers would inherit them: starting a shim, mounting a volume.
//!
//! An errand is a few words, and carried out by this program called with them. The agent calls it
//! itself, or asks for it through a socket behind which the service manager starts one `allotd errand`
//! for each connection. Decides which words are errands; must never keep state or run anything else.
//!
//! ```text
//! asked:    shim NUL DIRECTORY, exec NUL DIRECTORY NUL MILLISECONDS NUL WORD NUL WORD …, mount-volume NUL DIRECTORY NUL BYTES, or unmount-volume NUL DIRECTORY
//! answered: `0` for done and what is to be told of it, or `1` and why not
//! ```

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{open_files, space};

/// The words that are errands.
const ERRANDS: [&str; 4] = ["shim", "exec", "mount-volume", "unmount-volume"];
/// Longer ones are refused (bytes): a path and the longest command of a probe fit.
const LONGEST: u64 = 128 << 10;
/// How long an answer may take. A shim answers within 10 s; the service manager may be busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// What is said of a failure is cut here (characters).
const SAID: usize = 1024;

/// Who does errands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Errands {
    /// The agent, with this program; usually `/proc/self/exe`.
    Own(PathBuf),
    /// Whoever answers on this socket.
    Socket(PathBuf),
}

/// How an errand went: done, or why not.
type Answer = Result<(), String>;

impl Errands {
    /// Starts the shim of the run in `dir`.
    ///
    /// # Errors
    /// Outside, nobody could be asked; inside, what the shim said.
    pub(super) fn shim(&self, dir: &Path) -> io::Result<Answer> {
        let words = ["shim".as_ref(), dir.as_os_str()];
        match self {
            Self::Own(program) => call(program, &words),
            Self::Socket(socket) => ask(socket, &words),
        }
    }

    /// Mounts a file system in memory on a directory, of so many bytes at the most.
    ///
    /// # Errors
    /// As [`Self::shim`].
    pub(super) fn mount_volume(&self, dir: &Path, bytes: Option<u64>) -> io::Result<Answer> {
        let Self::Socket(socket) = self else {
            return Ok(space::mount_memory(dir, bytes).map_err(|error| error.to_string()));
        };
        let bytes = bytes.map(|bytes| bytes.to_string());
        let words = [Some("mount-volume".as_ref()), Some(dir.as_os_str())];
        let words = words
            .into_iter()
            .chain([bytes.as_ref().map(OsStr::new)])
            .flatten();
        ask(socket, &words.collect::<Vec<_>>())
    }

    /// Detaches whatever file system in memory is mounted on a directory.
    ///
    /// # Errors
    /// As [`Self::shim`].
    pub(super) fn unmount_volume(&self, dir: &Path) -> io::Result<Answer> {
        match self {
            Self::Own(_) => Ok(space::unmount_memory(dir).map_err(|error| error.to_string())),
            Self::Socket(socket) => ask(socket, &["unmount-volume".as_ref(), dir.as_os_str()]),
        }
    }
}

/// Does an errand by calling a program.
fn call(program: &Path, words: &[&OsStr]) -> io::Result<Answer> {
    Ok(call_for(program, words, Stdio::null())?.map(drop))
}

/// The same; what the errand tells comes with the answer where `told` is a pipe.
fn call_for(program: &Path, words: &[&OsStr], told: Stdio) -> io::Result<Result<Vec<u8>, String>> {
    let output = Command::new(program)
        .arg0("allotd")
        .args(words)
        .env_clear()
        .envs(open_files::before())
        .stdin(Stdio::null())
        .stdout(told)
        .stderr(Stdio::piped())
        .output()?;
    if output.status.success() {
        return Ok(Ok(output.stdout));
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Ok(Err(match said.trim() {
        "" => output.status.to_string(),
        said => said.chars().take(SAID).collect(),
    }))
}

/// Lets an errand be done by who answers on a socket.
fn ask(socket: &Path, words: &[&OsStr]) -> io::Result<Answer> {
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&words.join(&0))?;
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut answer = Vec::new();
    stream.take(LONGEST).read_to_end(&mut answer)?;
    Ok(read_answer(&answer)?.map(drop))
}

/// Reads an answer: what is told of what was done, or why it was not.
pub(super) fn read_answer(answer: &[u8]) -> io::Result<Result<Vec<u8>, String>> {
    match answer.split_first() {
        Some((b'0', told)) => Ok(Ok(told.to_vec())),
        Some((b'1', why)) => Ok(Err(String::from_utf8_lossy(why).into_owned())),
        _ => Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the errand ended without an answer",
        )),
    }
}

/// `allotd errand`: does what standard input says and answers on standard output, where it knows how to.
/// The exit code is 0 once an answer is given.
pub fn main() -> u8 {
    let mut asked = Vec::new();
    let read = io::stdin().take(LONGEST + 1).read_to_end(&mut asked);
    let answer = read.and_then(|length| {
        if u64::try_from(length).is_ok_and(|length| length > LONGEST) {
            return Ok(Err(format!("an errand is longer than {LONGEST} bytes")));
        }
        carry_out(&asked)
    });
    let text = match answer.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(told) => [b"0", told.as_slice()].concat(),
        Err(why) => format!("1{why}").into_bytes(),
    };
    u8::from(io::stdout().write_all(&text).is_err())
}

fn carry_out(asked: &[u8]) -> io::Result<Result<Vec<u8>, String>> {
    let words: Vec<OsString> = asked
        .split(|&byte| byte == 0)
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect();
    let known = |word: &OsString| ERRANDS.iter().any(|errand| word == errand);
    if !words.first().is_some_and(known) {
        return Ok(Err(format!("errands are {}", ERRANDS.join(", "))));
    }
    let mut words: Vec<&OsStr> = words.iter().map(OsString::as_os_str).collect();
    let program = Path::new("/proc/self/exe");
    if words.first().is_some_and(|word| *word == "exec") {
        // What follows is the program's, whatever it looks like.
        words.insert(words.len().min(3), "--".as_ref());
        return call_for(program, &words, Stdio::piped());
    }
    call_for(program, &words, Stdio::null())
}

/// `allotd mount-volume`; returns the exit code.
pub fn mount_volume(dir: &Path, bytes: Option<u64>) -> u8 {
    told(space::mount_memory(dir, bytes))
}

/// `allotd unmount-volume`; returns the exit code.
pub fn unmount_volume(dir: &Path) -> u8 {
    told(space::unmount_memory(dir))
}

fn told(result: io::Result<()>) -> u8 {
    match result {
        Ok(()) => 0,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}");
            1
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// What is asked through a socket, and what becomes of this answer.
    pub(in crate::runtime) fn exchange<T>(
        answer: &'static [u8],
        ask: impl FnOnce(Errands) -> T,
    ) -> (Vec<u8>, T) {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let served = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = Vec::new();
            stream.read_to_end(&mut asked).unwrap();
            stream.write_all(answer).unwrap();
            asked
        });
        let answer = ask(Errands::Socket(path));
        (served.join().unwrap(), answer)
    }

    fn mount(answer: &'static [u8]) -> (Vec<u8>, io::Result<Answer>) {
        exchange(answer, |errands| {
            errands.mount_volume(Path::new("/a b"), Some(7))
        })
    }

    #[test]
    fn an_errand_is_asked_in_words_and_its_answer_is_told() {
        let (asked, answer) = mount(b"0");
        assert_eq!(asked, b"mount-volume\0/a b\x007");
        assert_eq!(answer.unwrap(), Ok(()));
        assert_eq!(mount(b"1no room").1.unwrap(), Err("no room".to_owned()));
        assert!(mount(b"").1.is_err(), "no answer is not done");
    }

    #[test]
    fn nothing_but_errands_is_carried_out() {
        for words in [&b""[..], b"errand", b"--version", b"shims\0/", b"\0shim"] {
            assert!(carry_out(words).unwrap().is_err(), "{words:?}");
        }
    }

    #[test]
    fn where_nobody_answers_nothing_is_done() {
        let nobody = Errands::Socket("/nowhere/socket".into());
        assert!(nobody.shim(Path::new("/")).is_err());
    }
}
