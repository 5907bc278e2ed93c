//! Taking in a process that runs already: `allot attach --pid`.
//!
//! It looks and refuses; moving the process into its cgroup is enforcement's work, with the identity
//! found here, so that no other process of the same number is moved.

use std::collections::BTreeSet;
use std::io;

use procfs::ProcError;
use procfs::process::{Process, Stat, StatFlags};

use super::identity::{ProcessId, boot_id};

/// The most descendants that are looked for.
pub const MAX_DESCENDANTS: usize = 10_000;

/// A process that may be attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachable {
    /// The process.
    pub process: ProcessId,
    /// Its name, as `ps -o comm` shows it.
    pub name: String,
    /// Its command line; empty where it has wiped that.
    pub command: Vec<String>,
    /// Its cgroup v2 path from the root of the hierarchy; `None` where there is no cgroup v2.
    pub cgroup: Option<String>,
    /// Its descendants at this instant, which stay where they are unless moved as well.
    pub descendants: BTreeSet<i32>,
    /// Whether there are more than [`MAX_DESCENDANTS`].
    pub more_descendants: bool,
}

/// Why a process may not be attached.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// There is no such process, or it has ended.
    #[error("there is no process {0}")]
    Gone(i32),
    /// A thread was named, not a process.
    #[error("{tid} is a thread of process {pid}")]
    Thread {
        /// As given.
        tid: i32,
        /// The process it belongs to.
        pid: i32,
    },
    /// A kernel thread, which limits do not bind.
    #[error("process {0} is a kernel thread")]
    Kernel(i32),
    /// The init process, whose limits would bind the whole machine.
    #[error("process 1 is the machine's init")]
    Init,
    /// The agent, which must not limit itself.
    #[error("process {0} is allotd itself")]
    Agent(i32),
    /// `/proc` could not be read.
    #[error("cannot read /proc/{pid}: {source}")]
    Proc {
        /// The process.
        pid: i32,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Looks at process `pid` and says whether it may be attached.
///
/// # Errors
/// Why it may not.
pub fn look(pid: i32) -> Result<Attachable, AttachError> {
    let failed = |error| match error {
        ProcError::NotFound(_) => AttachError::Gone(pid),
        ProcError::Io(source, _) if source.raw_os_error() == Some(libc::ESRCH) => {
            AttachError::Gone(pid)
        }
        ProcError::Io(source, _) => AttachError::Proc { pid, source },
        other => AttachError::Proc {
            pid,
            source: io::Error::other(other),
        },
    };
    if pid == 1 {
        return Err(AttachError::Init);
    }
    // One descriptor of /proc/PID for all that is read: it never means another process.
    let process = Process::new(pid).map_err(failed)?;
    let stat = process.stat().map_err(failed)?;
    let status = process.status().map_err(failed)?;
    if status.tgid != pid {
        let (tid, pid) = (pid, status.tgid);
        return Err(AttachError::Thread { tid, pid });
    }
    if pid == std::process::id().cast_signed() {
        return Err(AttachError::Agent(pid));
    }
    if is_kernel_thread(&stat) {
        return Err(AttachError::Kernel(pid));
    }
    if matches!(stat.state, 'Z' | 'X' | 'x') {
        return Err(AttachError::Gone(pid));
    }
    let cgroups = process.cgroups().map_err(failed)?;
    let mut descendants = BTreeSet::new();
    collect(pid, &mut descendants);
    let more_descendants = descendants.len() > MAX_DESCENDANTS;
    Ok(Attachable {
        process: ProcessId {
            pid,
            start_ticks: stat.starttime,
            boot_id: boot_id().map_err(|source| AttachError::Proc { pid, source })?,
        },
        name: stat.comm,
        command: process.cmdline().unwrap_or_default(),
        cgroup: cgroups
            .into_iter()
            .find(|group| group.hierarchy == 0)
            .map(|group| group.pathname),
        descendants,
        more_descendants,
    })
}

fn is_kernel_thread(stat: &Stat) -> bool {
    StatFlags::from_bits_truncate(stat.flags).contains(StatFlags::PF_KTHREAD)
}

/// Gathers the descendants of `pid`. Processes that come or go meanwhile may be missed, which is why
/// whoever moves them looks again afterwards.
fn collect(pid: i32, found: &mut BTreeSet<i32>) {
    let mut open = vec![pid];
    while let Some(parent) = open.pop() {
        for child in children(parent) {
            if found.len() > MAX_DESCENDANTS {
                return;
            }
            if found.insert(child) {
                open.push(child);
            }
        }
    }
}

fn children(pid: i32) -> Vec<i32> {
    let tasks = Process::new(pid).and_then(|process| process.tasks());
    tasks
        .into_iter()
        .flatten()
        .filter_map(|task| task.ok()?.children().ok())
        .flatten()
        .filter_map(|child| i32::try_from(child).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_with_children_is_described() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 1000 & sleep 1001 & wait"])
            .spawn()
            .unwrap();
        let pid = child.id().cast_signed();
        let seen = loop {
            let seen = look(pid).unwrap();
            if seen.descendants.len() == 2 {
                break seen;
            }
        };
        assert_eq!(seen.process.pid, pid);
        assert!(seen.process.is_alive().unwrap());
        assert_eq!(seen.name, "sh");
        assert_eq!(seen.command[..2], ["sh", "-c"]);
        assert!(!seen.more_descendants);
        for pid in seen.descendants {
            let kill = ProcessId::of(pid).unwrap().unwrap();
            kill.signal(rustix::process::Signal::KILL).unwrap();
        }
        child.wait().unwrap();
        assert!(matches!(look(pid), Err(AttachError::Gone(_))));
    }

    #[test]
    fn what_may_not_be_attached() {
        assert!(matches!(look(1), Err(AttachError::Init)));
        assert!(matches!(look(0), Err(AttachError::Gone(0))));
        assert!(matches!(look(-5), Err(AttachError::Gone(-5))));
        let me = std::process::id().cast_signed();
        assert!(matches!(look(me), Err(AttachError::Agent(_))));
        let thread = std::thread::spawn(|| nix::unistd::gettid().as_raw());
        let (tell, tid) = std::sync::mpsc::channel();
        let (stop, wait) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            tell.send(nix::unistd::gettid().as_raw()).unwrap();
            let _ = wait.recv();
        });
        let tid = tid.recv().unwrap();
        assert!(matches!(look(tid), Err(AttachError::Thread { pid, .. }) if pid == me));
        drop(stop);
        other.join().unwrap();
        thread.join().unwrap();
        let mut zombie = Command::new("true").spawn().unwrap();
        let pid = zombie.id().cast_signed();
        while !matches!(look(pid), Err(AttachError::Gone(_))) {}
        zombie.wait().unwrap();
    }

    #[test]
    fn kernel_threads_are_known_by_their_flag() {
        // kthreadd is process 2 wherever /proc shows the whole machine.
        match look(2) {
            Err(AttachError::Kernel(2)) => {}
            other => {
                let name = std::fs::read_to_string("/proc/2/comm").unwrap_or_default();
                assert_ne!(name.trim(), "kthreadd", "{other:?}");
            }
        }
    }
}
