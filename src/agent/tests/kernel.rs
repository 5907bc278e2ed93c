//! The model kernel between two that use it: the agent, and a test that acts as everybody else.

use std::sync::{Arc, Mutex};

use crate::cgroup::{
    CgroupPath, ControllerSet, Counters, ErrorKind, Hierarchy, KernelError, ModelKernel, Node, Op,
    Pid, Reader, Tree,
};
use crate::model::ResourceList;
use crate::units::{HugePageSize, PageSize};

/// What a machine has of whose CPUs four are on.
pub fn capacity() -> ResourceList {
    let capacity = [
        ("cpu", "4"),
        ("memory", "4Gi"),
        ("ephemeral-storage", "9Gi"),
    ];
    let amounts = capacity.map(|(name, amount)| (name.into(), amount.parse().unwrap()));
    amounts.into_iter().collect()
}

/// The model kernel that agent and test share, as two writers share the real one.
#[derive(Clone)]
pub struct Shared {
    kernel: Arc<Mutex<ModelKernel>>,
    /// What happens in the instant before counters are read.
    meanwhile: Arc<Mutex<Option<Meanwhile>>>,
    fault: Arc<Mutex<Option<Fault>>>,
}

/// The call of the agent that fails, and how; earlier ones are still let through.
struct Fault {
    calls_left: usize,
    kind: ErrorKind,
}

type Meanwhile = Box<dyn FnMut(&CgroupPath, &mut ModelKernel) + Send>;

impl Shared {
    pub fn new() -> Self {
        let kernel = ModelKernel::default().reporting(crate::translation::ours);
        Self {
            kernel: Arc::new(Mutex::new(kernel)),
            meanwhile: Arc::default(),
            fault: Arc::default(),
        }
    }

    pub fn with<T>(&self, act: impl FnOnce(&mut ModelKernel) -> T) -> T {
        act(&mut self.kernel.lock().unwrap())
    }

    /// Lets something happen whenever the agent is about to read counters.
    pub fn meanwhile(&self, act: impl FnMut(&CgroupPath, &mut ModelKernel) + Send + 'static) {
        *self.meanwhile.lock().unwrap() = Some(Box::new(act));
    }

    /// The `nth` call of the agent from now on fails once; the next one is number 0.
    pub fn fail_call(&self, nth: usize, kind: ErrorKind) {
        let calls_left = nth;
        *self.fault.lock().unwrap() = Some(Fault { calls_left, kind });
    }

    /// Whether a call that shall fail has not come yet; from now on none will.
    pub fn no_fault(&self) -> bool {
        self.fault.lock().unwrap().take().is_some()
    }

    fn door(&self, operation: &str, path: &CgroupPath) -> Result<(), KernelError> {
        let mut fault = self.fault.lock().unwrap();
        match &mut *fault {
            Some(Fault {
                calls_left: 0,
                kind,
            }) => {
                let error = KernelError::explained(
                    operation,
                    path.to_string(),
                    *kind,
                    "the test lets it fail".to_owned(),
                );
                *fault = None;
                Err(error)
            }
            Some(Fault { calls_left, .. }) => {
                *calls_left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl Hierarchy for Shared {
    fn found(&mut self, above: &CgroupPath) -> Result<Tree, KernelError> {
        self.door("find", above)?;
        self.with(|kernel| kernel.found(above))
    }
    fn look(&mut self, path: &CgroupPath) -> Result<Option<Node>, KernelError> {
        self.door("look at", path)?;
        self.with(|kernel| kernel.look(path))
    }
    fn counters(&mut self, path: &CgroupPath) -> Result<Counters, KernelError> {
        self.door("count", path)?;
        if let Some(act) = &mut *self.meanwhile.lock().unwrap() {
            self.with(|kernel| act(path, kernel));
        }
        self.with(|kernel| kernel.counters(path))
    }
    fn reader(&mut self) -> Arc<dyn Reader> {
        self.with(Hierarchy::reader)
    }
    fn processes(&mut self, path: &CgroupPath) -> Result<Vec<Pid>, KernelError> {
        self.door("read processes of", path)?;
        self.with(|kernel| kernel.processes(path))
    }
    fn perform(&mut self, op: &Op) -> Result<(), KernelError> {
        self.door("perform", op.path())?;
        self.with(|kernel| kernel.perform(op))
    }
    fn controllers(&mut self) -> Result<ControllerSet, KernelError> {
        self.with(ModelKernel::controllers)
    }
    fn page_size(&self) -> PageSize {
        PageSize::FOUR_KIB
    }
    fn huge_page_sizes(&self) -> &[HugePageSize] {
        &[HugePageSize::TWO_MIB, HugePageSize::ONE_GIB]
    }
}
