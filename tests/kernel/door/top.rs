//! What the door's tests share: a top cgroup of their own.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use allotd::cgroup::{
    CgroupPath, Cgroupfs, Controller, ControllerSet, ErrorKind, Hierarchy, KernelError, Node, Op,
};

/// Where the machine has cgroup2.
pub const MOUNT: &str = "/sys/fs/cgroup";

/// The naming rule of these tests: `pod*` and one level below.
pub fn ours(path: &CgroupPath) -> bool {
    path.as_str().starts_with("pod") && path.depth() <= 2
}

/// A top cgroup and the door to it.
pub struct Top {
    pub kernel: Cgroupfs,
    pub directory: PathBuf,
}

impl Top {
    pub fn new(name: &str) -> Result<Self, KernelError> {
        Self::at(&Path::new(MOUNT).join(name))
    }

    pub fn at(directory: &Path) -> Result<Self, KernelError> {
        Ok(Self {
            kernel: Cgroupfs::open(directory, &ControllerSet::all(), ours)?,
            directory: directory.to_owned(),
        })
    }

    /// A top cgroup with `pod1/app`, which has all controllers.
    pub fn with_container(name: &str) -> Result<Self, KernelError> {
        let mut top = Self::new(name)?;
        top.perform(&Op::Enable(CgroupPath::top(), ControllerSet::all()))?;
        top.perform(&Op::Create(path("pod1")))?;
        top.perform(&Op::Enable(path("pod1"), ControllerSet::all()))?;
        top.perform(&Op::Create(path("pod1/app")))?;
        Ok(top)
    }

    pub fn perform(&mut self, op: &Op) -> Result<(), KernelError> {
        self.kernel.perform(op)
    }

    /// The refusal that an operation must meet, of this kind.
    pub fn refused(&mut self, op: &Op, kind: ErrorKind) -> Result<String, String> {
        refused(self.perform(op), kind).map_err(|error| format!("{op}: {error}"))
    }

    /// A cgroup that must be there.
    pub fn node(&mut self, path: &CgroupPath) -> Result<Node, Box<dyn Error>> {
        Ok(self.kernel.look(path)?.ok_or("there is no such cgroup")?)
    }

    /// The directory of a cgroup.
    pub fn dir(&self, path: &str) -> PathBuf {
        self.directory.join(path)
    }

    /// The text of a file, read past the door.
    pub fn text(&self, file: &str) -> io::Result<String> {
        crate::support::read(self.dir(file))
    }
}

/// The text of an answer that must be a refusal of this kind.
pub fn refused<T>(answer: Result<T, KernelError>, kind: ErrorKind) -> Result<String, String> {
    match answer {
        Err(error) if error.kind == kind => Ok(error.to_string()),
        Err(error) => Err(format!(
            "it is refused as {:?}, not {kind:?}: {error}",
            error.kind
        )),
        Ok(_) => Err(format!("it is not refused as {kind:?}")),
    }
}

/// A path from text with slashes.
pub fn path(text: &str) -> CgroupPath {
    let names = text.split('/');
    names.fold(CgroupPath::top(), |above, name| above.child(name).unwrap())
}

/// A set of controllers.
pub fn set(controllers: &[Controller]) -> ControllerSet {
    controllers.iter().copied().collect()
}

/// Tries again for a while: a killed process leaves its cgroup a moment later.
pub fn patiently<E>(mut attempt: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        match attempt() {
            Err(_) if Instant::now() < end => sleep(Duration::from_millis(5)),
            answer => return answer,
        }
    }
}
