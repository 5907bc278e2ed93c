//! Figures of cgroups for whoever asks, on any thread: reads and nothing else.
//!
//! It holds the top cgroup's directory open, as the door itself does, so that no path leaves it.

use std::path::PathBuf;
use std::sync::Arc;

use rustix::io::Errno;

use super::dir::Dir;
use crate::cgroup::{CgroupPath, Descendants, KernelError, Pid, Reader, Sample, parse};
use crate::units::HugePageSize;

/// The open top cgroup.
#[derive(Debug)]
pub(super) struct OpenTop {
    pub(super) top: Arc<Dir>,
    pub(super) shown: PathBuf,
    pub(super) huge_page_sizes: Vec<HugePageSize>,
}

impl Reader for OpenTop {
    fn sample(&self, path: &CgroupPath) -> Result<Option<Sample>, KernelError> {
        match self.read(path) {
            Ok(sample) => Ok(Some(sample)),
            Err((_, Errno::NOENT | Errno::NODEV)) => Ok(None),
            Err((file, errno)) => {
                let shown = self.shown.join(path.as_str()).join(file);
                Err(KernelError::new("read", shown.display().to_string(), errno))
            }
        }
    }

    fn descendants(&self, path: &CgroupPath) -> Result<Option<Descendants>, KernelError> {
        let read = self.top.below(path.as_str());
        match read.and_then(|dir| dir.read("cgroup.stat")) {
            Ok(text) => Ok(Some(Descendants::parse(&text))),
            Err(Errno::NOENT | Errno::NODEV) => Ok(None),
            Err(errno) => {
                let shown = self.shown.join(path.as_str()).join("cgroup.stat");
                Err(KernelError::new("read", shown.display().to_string(), errno))
            }
        }
    }

    fn processes(&self, path: &CgroupPath) -> Vec<Pid> {
        let mut pids = Vec::new();
        if let Ok(dir) = self.top.below(path.as_str()) {
            gather(&dir, 0, &mut pids);
        }
        pids
    }
}

/// Cgroups nested deeper than this are not looked for.
const MAX_DEPTH: usize = 32;

fn gather(dir: &Dir, depth: usize, pids: &mut Vec<Pid>) {
    // A threaded cgroup does not show its processes; those above it do.
    if let Ok(text) = dir.read_records("cgroup.procs") {
        pids.extend(parse::processes(&text));
    }
    if depth == MAX_DEPTH {
        return;
    }
    for name in dir.children().unwrap_or_default() {
        if let Ok(child) = dir.child(&name) {
            gather(&child, depth + 1, pids);
        }
    }
}

impl OpenTop {
    /// The figures, or the file that could not be read.
    fn read(&self, path: &CgroupPath) -> Result<Sample, (String, Errno)> {
        let at = |file: &str| {
            let file = file.to_owned();
            move |errno| (file, errno)
        };
        let dir = self.top.below(path.as_str()).map_err(at(""))?;
        let mut sample = Sample::read(&self.huge_page_sizes, |name| match dir.read(name) {
            Ok(text) => Ok(Some(text)),
            // A controller that is off, a kernel that is too old, or psi=0.
            Err(Errno::NOENT | Errno::OPNOTSUPP) => Ok(None),
            Err(errno) => Err(at(name)(errno)),
        })?;
        sample.identity = Some(dir.inode().map_err(at(""))?);
        // Read last: every cgroup has this file, so it proves that nothing above was absent because
        // the cgroup went away. A threaded cgroup does not show it its processes.
        sample.pids.processes = match dir.read_records("cgroup.procs") {
            Ok(text) => u64::try_from(parse::processes(&text).len()).ok(),
            Err(Errno::OPNOTSUPP) => None,
            Err(errno) => return Err(at("cgroup.procs")(errno)),
        };
        Ok(sample)
    }
}
