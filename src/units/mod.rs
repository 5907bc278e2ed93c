//! The numbers of the project, each with its unit in its type.
//!
//! Everything else is built from these: no other module may do arithmetic on bare integers
//! that stand for bytes, CPU or pages. Nothing here reads a file or a clock.

pub mod bytes;
pub mod cpu;
pub mod cpu_set;
pub mod limit;
pub mod quantity;

pub use bytes::{Bytes, HugePageSize, PageSize};
pub use cpu::{CpuMax, CpuWeight, Micros, MilliCpu};
pub use cpu_set::CpuSet;
pub use limit::Limit;
pub use quantity::{Format, Quantity, QuantityError};
