//! The kernel's vocabulary of cgroup v2, and the one door through which the project touches it.
//!
//! Names and values here are the kernel's; nothing here knows what a pod is. Only `cgroupfs` does
//! I/O; `model_kernel` keeps the kernel's rules in memory and is held to the real one in the VM.

pub mod cgroupfs;
pub mod controller;
mod descendants;
mod hierarchy;
pub mod model_kernel;
pub mod op;
pub mod parse;
pub mod path;
mod reader;
pub mod sample;
pub mod setting;
pub mod tree;

pub use cgroupfs::Cgroupfs;
pub use controller::{Controller, ControllerSet};
pub use descendants::Descendants;
pub use hierarchy::{Counters, ErrorKind, Hierarchy, KernelError};
pub use model_kernel::ModelKernel;
pub use op::{Op, Pid};
pub use path::CgroupPath;
pub use reader::Reader;
pub use sample::Sample;
pub use setting::{InterfaceFile, Setting};
pub use tree::{Node, Tree};
