//! The model kernel held to the real one: the same operations on both, and the same answers and trees.

pub mod random;
pub mod scripted;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use allotd::cgroup::{
    CgroupPath, Cgroupfs, Controller, ControllerSet, Counters, ErrorKind, Hierarchy, KernelError,
    ModelKernel, Op, Pid, Tree,
};

use allotd::units::CpuSet;

use crate::player::Player;

/// A difference between the two, or a failure of the test itself.
type Difference = Box<dyn std::error::Error>;

/// The two kernels, each with a top cgroup, and the same processes in both.
pub struct Pair {
    pub real: Cgroupfs,
    pub model: ModelKernel,
    directory: PathBuf,
}

impl Pair {
    /// Two kernels with nothing in them.
    pub fn new(name: &str) -> Result<Self, KernelError> {
        let directory = Path::new("/sys/fs/cgroup").join(name);
        let real = Cgroupfs::open(&directory, &ControllerSet::all(), |_| true)?;
        let possible = |path: &str| {
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|error| KernelError::new("read", path, error))?;
            text.trim().parse::<CpuSet>().map_err(|error| {
                let kind = ErrorKind::Other;
                KernelError::explained("read", path, kind, error.to_string())
            })
        };
        let model = ModelKernel::default()
            .with_huge_pages(real.huge_page_sizes())
            .with_cpus(
                possible("/sys/devices/system/cpu/possible")?,
                possible("/sys/devices/system/node/possible")?,
            );
        Ok(Self {
            real,
            model,
            directory,
        })
    }

    /// Does an operation on both. The answers must be of the same kind, which is returned.
    pub fn perform(&mut self, op: &Op) -> Result<Option<ErrorKind>, Difference> {
        let (real, model) = (self.real.perform(op), self.model.perform(op));
        same(op, real, model)
    }

    /// Another writer disables a controller in both.
    pub fn disable(&mut self, path: &CgroupPath, controller: Controller) -> Result<(), Difference> {
        let file = self
            .directory
            .join(path.as_str())
            .join("cgroup.subtree_control");
        let real = std::fs::OpenOptions::new()
            .write(true)
            .open(file)
            .and_then(|mut file| io_write(&mut file, &format!("-{controller}")))
            .map_err(|error| KernelError::new("disable", path.to_string(), error));
        let model = self.model.disable(path, controller);
        same(format!("disable {controller} in {path}"), real, model)?;
        Ok(())
    }

    /// Starts a process outside both trees.
    pub fn spawn(&mut self, player: &Player) {
        self.model.spawn(player.pid());
    }

    /// The trees, the processes in them and what is counted alike must be the same.
    pub fn compare(&mut self) -> Result<(), Difference> {
        let top = CgroupPath::top();
        let (real, model) = (self.real.found(&top)?, self.model.found(&top)?);
        if real != model {
            return Err(differ("tree", &shown(&real), &shown(&model)));
        }
        for (path, _) in real.iter() {
            let (real, model) = (self.inside(path)?, Inside::of(&mut self.model, path)?);
            if real != model {
                return Err(differ(path, &format!("{real:?}"), &format!("{model:?}")));
            }
        }
        Ok(())
    }

    fn inside(&mut self, path: &CgroupPath) -> Result<Inside, KernelError> {
        Inside::of(&mut self.real, path)
    }

    /// A process that the model has killed ends, and one that it has not still runs.
    pub fn lives_alike(&self, player: &mut Player) -> Result<bool, Difference> {
        let pid = player.pid();
        let alive = self.model.is_alive(pid);
        let end = Instant::now() + Duration::from_secs(5);
        while !alive && player.is_running()? && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        if player.is_running()? == alive {
            Ok(alive)
        } else {
            Err(format!("process {pid} lives in one kernel only; in the model: {alive}").into())
        }
    }
}

fn io_write(file: &mut std::fs::File, text: &str) -> std::io::Result<()> {
    std::io::Write::write_all(file, text.as_bytes())
}

/// What a cgroup holds, as far as both kernels tell it alike.
#[derive(Debug, PartialEq, Eq)]
struct Inside {
    processes: Vec<Pid>,
    populated: Option<bool>,
    pids_current: Option<u64>,
    counts_memory: bool,
    /// Whether the cgroup's own bound led to a kill; how often it is counted differs (see `Counters`).
    oom_local: Option<bool>,
    /// The same for all that lies below.
    oom: Option<bool>,
    oom_kills: [Option<u64>; 4],
}

impl Inside {
    fn of(kernel: &mut dyn Hierarchy, path: &CgroupPath) -> Result<Self, KernelError> {
        let mut processes = kernel.processes(path)?;
        processes.sort();
        let counters: Counters = kernel.counters(path)?;
        Ok(Self {
            processes,
            populated: counters.populated,
            pids_current: counters.pids_current,
            counts_memory: counters.memory_current.is_some(),
            oom_local: counters.oom_local.map(|count| count > 0),
            oom: counters.oom.map(|count| count > 0),
            oom_kills: [
                counters.oom_kill_local,
                counters.oom_kill,
                counters.oom_group_kill_local,
                counters.oom_group_kill,
            ],
        })
    }
}

fn same(
    what: impl fmt::Display,
    real: Result<(), KernelError>,
    model: Result<(), KernelError>,
) -> Result<Option<ErrorKind>, Difference> {
    let kind = |answer: &Result<(), KernelError>| answer.as_ref().err().map(|error| error.kind);
    if kind(&real) == kind(&model) {
        return Ok(kind(&real));
    }
    let text = |answer: Result<(), KernelError>| match answer {
        Ok(()) => "it is done".to_owned(),
        Err(error) => format!("{:?}: {error}", error.kind),
    };
    Err(differ(what, &text(real), &text(model)))
}

fn differ(what: impl fmt::Display, real: &str, model: &str) -> Difference {
    format!("{what}\n  real:  {real}\n  model: {model}").into()
}

fn shown(tree: &Tree) -> String {
    let cgroups = tree.iter().map(|(path, node)| {
        let settings: Vec<_> = node.settings.values().map(ToString::to_string).collect();
        format!("{path} [{}] {}", node.enabled, settings.join(", "))
    });
    cgroups.collect::<Vec<_>>().join("\n    ")
}
