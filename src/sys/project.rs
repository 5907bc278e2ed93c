//! The project a directory belongs to (`FS_IOC_FSGETXATTR` and `FS_IOC_FSSETXATTR`, Linux 4.5).
//!
//! Only the directory itself is changed: what is made in it later belongs to its project, what is there
//! already does not.
#![allow(unsafe_code)] // an ioctl is an unsafe call in any library

use std::io;
use std::os::fd::AsFd;

use rustix::ioctl::{Getter, Setter, ioctl, opcode};

/// `FS_XFLAG_PROJINHERIT`: new entries belong to the directory's project.
const PROJINHERIT: u32 = 0x200;

/// `struct fsxattr`
#[repr(C)]
#[derive(Clone, Copy)]
struct Attributes {
    flags: u32,
    extent_size: u32,
    extents: u32,
    project: u32,
    cow_extent_size: u32,
    pad: [u8; 8],
}

const GET: rustix::ioctl::Opcode = opcode::read::<Attributes>(b'X', 31);
const SET: rustix::ioctl::Opcode = opcode::write::<Attributes>(b'X', 32);

/// The project of a directory that hands it on; 0: none.
///
/// # Errors
/// ENOTTY or EOPNOTSUPP where the file system knows no projects.
pub fn project(directory: impl AsFd) -> io::Result<u32> {
    let attributes = attributes(&directory)?;
    let hands_on = attributes.flags & PROJINHERIT != 0;
    Ok(if hands_on { attributes.project } else { 0 })
}

/// Makes a directory and all that is made in it from now on belong to `project`.
///
/// # Errors
/// As [`project`]; EPERM without CAP_FOWNER, EINVAL outside the first user namespace.
pub fn set_project(directory: impl AsFd, project: u32) -> io::Result<()> {
    let before = attributes(&directory)?;
    let after = Attributes {
        flags: before.flags | PROJINHERIT,
        project,
        ..before
    };
    set(directory, after)
}

fn set(directory: impl AsFd, attributes: Attributes) -> io::Result<()> {
    // SAFETY: the opcode is that of a call which reads one `struct fsxattr`.
    let set = unsafe { Setter::<SET, Attributes>::new(attributes) };
    // SAFETY: as above; nothing is kept after the call.
    Ok(unsafe { ioctl(directory, set) }?)
}

/// From now on what is made in a directory, or moved there, keeps the project it has.
///
/// # Errors
/// As [`set_project`].
pub fn stop_handing_on(directory: impl AsFd) -> io::Result<()> {
    let before = attributes(&directory)?;
    set(
        directory,
        Attributes {
            flags: before.flags & !PROJINHERIT,
            ..before
        },
    )
}

fn attributes(directory: impl AsFd) -> io::Result<Attributes> {
    // SAFETY: the opcode is that of a call which writes one `struct fsxattr`.
    let get = unsafe { Getter::<GET, Attributes>::new() };
    // SAFETY: as above.
    Ok(unsafe { ioctl(directory, get) }?)
}
