//! A node on the model kernel with one busy container, for tests of figures: it uses a quarter of a
//! CPU and 12 MiB, with 4 MiB of page cache that nobody needs.

use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Instant;

use allotd::cgroup::sample::{Device, Io};
use allotd::cgroup::{
    CgroupPath, ControllerSet, Counters, Descendants, Hierarchy, KernelError, ModelKernel, Node,
    Op, Pid, Reader, Sample, Tree,
};
use allotd::server::Bounds;
use allotd::units::{Bytes, HugePageSize, PageSize};
use serde_json::json;

use super::server::{Server, pod};

/// The process of the container.
pub struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server whose pod `web` has the busy container `c`, bounded to 500m.
pub fn server() -> (Server, Process) {
    let process = Process(Command::new("sleep").arg("600").spawn().unwrap());
    let pid = i32::try_from(process.0.id()).unwrap();
    let mut kernel = ModelKernel::default().reporting(allotd::translation::ours);
    kernel.spawn(Pid(pid));
    let busy = Busy {
        kernel,
        start: Instant::now(),
    };
    let server = Server::start_in(Bounds::default(), Box::new(busy));
    let mut web = pod("web", "500m");
    web["metadata"]["labels"] = json!({"app": "web"});
    assert_eq!(server.create(&web).status, 201);
    let attach = "/apis/allotd.dev/v1/namespaces/default/pods/web/attach";
    let body = json!({"container": "c", "pid": pid}).to_string();
    let attached = server.send("POST", attach, "", &body);
    assert_eq!(attached.status, 200, "{attached:?}");
    (server, process)
}

struct Busy {
    kernel: ModelKernel,
    start: Instant,
}

#[derive(Debug)]
struct BusyReader(Arc<dyn Reader>, Instant);

impl Reader for BusyReader {
    fn sample(&self, path: &CgroupPath) -> Result<Option<Sample>, KernelError> {
        let mut sample = self.0.sample(path)?;
        if let Some(sample) = &mut sample {
            let micros = u64::try_from(self.1.elapsed().as_micros()).unwrap();
            sample.cpu.usage_usec = Some(micros / 4);
            sample.memory.current = Some(Bytes::mib(16));
            sample.memory.anon = Some(Bytes::mib(12));
            sample.memory.inactive_file = Some(Bytes::mib(4));
            sample.pids.peak = Some(7);
            let io = Io {
                read_bytes: 4096,
                written_bytes: 8192,
                reads: 1,
                writes: 2,
            };
            sample.huge_pages_refused =
                vec![(HugePageSize::TWO_MIB, 3), (HugePageSize::ONE_GIB, 0)];
            // No machine has this device.
            sample.io = vec![(Device(4095, 3), io)];
        }
        Ok(sample)
    }

    fn descendants(&self, path: &CgroupPath) -> Result<Option<Descendants>, KernelError> {
        self.0.descendants(path)
    }

    fn processes(&self, path: &CgroupPath) -> Vec<Pid> {
        self.0.processes(path)
    }
}

impl Hierarchy for Busy {
    fn found(&mut self, above: &CgroupPath) -> Result<Tree, KernelError> {
        self.kernel.found(above)
    }
    fn look(&mut self, path: &CgroupPath) -> Result<Option<Node>, KernelError> {
        self.kernel.look(path)
    }
    fn counters(&mut self, path: &CgroupPath) -> Result<Counters, KernelError> {
        self.kernel.counters(path)
    }
    fn reader(&mut self) -> Arc<dyn Reader> {
        Arc::new(BusyReader(self.kernel.reader(), self.start))
    }
    fn processes(&mut self, path: &CgroupPath) -> Result<Vec<Pid>, KernelError> {
        self.kernel.processes(path)
    }
    fn perform(&mut self, op: &Op) -> Result<(), KernelError> {
        self.kernel.perform(op)
    }
    fn controllers(&mut self) -> Result<ControllerSet, KernelError> {
        self.kernel.controllers()
    }
    fn page_size(&self) -> PageSize {
        self.kernel.page_size()
    }
    fn huge_page_sizes(&self) -> &[HugePageSize] {
        self.kernel.huge_page_sizes()
    }
}
