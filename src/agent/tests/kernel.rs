//! The model kernel between two that use it: the agent, and a test that acts as everybody else.

use std::sync::{Arc, Mutex};

use crate::cgroup::{
    CgroupPath, ControllerSet, Counters, Hierarchy, KernelError, ModelKernel, Node, Op, Pid,
    Reader, Tree,
};
use crate::units::{HugePageSize, PageSize};

/// The model kernel that agent and test share, as two writers share the real one.
#[derive(Clone)]
pub struct Shared {
    kernel: Arc<Mutex<ModelKernel>>,
    /// What happens in the instant before counters are read.
    meanwhile: Arc<Mutex<Option<Meanwhile>>>,
}

type Meanwhile = Box<dyn FnMut(&CgroupPath, &mut ModelKernel) + Send>;

impl Shared {
    pub fn new() -> Self {
        let kernel = ModelKernel::default().reporting(crate::translation::ours);
        Self {
            kernel: Arc::new(Mutex::new(kernel)),
            meanwhile: Arc::default(),
        }
    }

    pub fn with<T>(&self, act: impl FnOnce(&mut ModelKernel) -> T) -> T {
        act(&mut self.kernel.lock().unwrap())
    }

    /// Lets something happen whenever the agent is about to read counters.
    pub fn meanwhile(&self, act: impl FnMut(&CgroupPath, &mut ModelKernel) + Send + 'static) {
        *self.meanwhile.lock().unwrap() = Some(Box::new(act));
    }
}

impl Hierarchy for Shared {
    fn found(&mut self, above: &CgroupPath) -> Result<Tree, KernelError> {
        self.with(|kernel| kernel.found(above))
    }
    fn look(&mut self, path: &CgroupPath) -> Result<Option<Node>, KernelError> {
        self.with(|kernel| kernel.look(path))
    }
    fn counters(&mut self, path: &CgroupPath) -> Result<Counters, KernelError> {
        if let Some(act) = &mut *self.meanwhile.lock().unwrap() {
            self.with(|kernel| act(path, kernel));
        }
        self.with(|kernel| kernel.counters(path))
    }
    fn reader(&mut self) -> Arc<dyn Reader> {
        self.with(Hierarchy::reader)
    }
    fn processes(&mut self, path: &CgroupPath) -> Result<Vec<Pid>, KernelError> {
        self.with(|kernel| kernel.processes(path))
    }
    fn perform(&mut self, op: &Op) -> Result<(), KernelError> {
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
