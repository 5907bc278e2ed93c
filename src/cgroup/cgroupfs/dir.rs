//! A directory of cgroupfs that is held open: the raw door.
//!
//! Everything is resolved beneath the directory, so that no path climbs, follows a symbolic link or
//! leaves the mount. Files are opened without O_CREAT and O_TRUNC: kernfs answers O_CREAT on a
//! missing file with EACCES, which would hide that the controller is off. It decides nothing and
//! answers with the bare errno.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;

/// The most that is read from one file of values (bytes). The largest the kernel has,
/// `memory.numa_stat` on a large machine, stays far below.
const MOST_VALUES: usize = 64 << 10;
/// The most that is read from `cgroup.procs` (bytes): 2^22 process ids, the kernel's limit.
const MOST_PROCESSES: usize = 32 << 20;

/// A cgroup's directory.
#[derive(Debug)]
pub(super) struct Dir(OwnedFd);

impl Dir {
    /// Opens a mount point; no part of its path may be a symbolic link.
    pub(super) fn of_mount(point: &Path) -> Result<Self, Errno> {
        rustix::fs::openat2(
            rustix::fs::CWD,
            point,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::NO_SYMLINKS,
        )
        .map(Self)
    }

    /// Whether the directory lies on cgroup2.
    pub(super) fn is_cgroup2(&self) -> Result<bool, Errno> {
        let magic = rustix::fs::fstatfs(&self.0)?.f_type;
        Ok(magic == libc::CGROUP2_SUPER_MAGIC)
    }

    /// The inode of the directory: no two cgroups have the same while the machine runs.
    pub(super) fn inode(&self) -> Result<u64, Errno> {
        Ok(rustix::fs::fstat(&self.0)?.st_ino)
    }

    /// Whether a service manager says that it has handed this cgroup over, with all below it: systemd marks it so.
    pub(super) fn is_delegated(&self) -> bool {
        // The second one is all that older versions set; it takes CAP_SYS_ADMIN.
        ["user.delegate", "trusted.delegate"].iter().any(|name| {
            let mut value = [0; 8];
            let read = rustix::fs::fgetxattr(&self.0, *name, &mut value[..]);
            read.is_ok_and(|length| value.get(..length) == Some(b"1"))
        })
    }

    /// A path through which this process reaches the directory, whatever happens to the mounts.
    pub(super) fn proc_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// Opens a cgroup below; the empty path is the directory itself.
    pub(super) fn below(&self, path: &str) -> Result<Self, Errno> {
        let path = if path.is_empty() { "." } else { path };
        self.open(path, OFlags::RDONLY | OFlags::DIRECTORY)
            .map(Self)
    }

    /// Opens the child called `name`, which may be any name the kernel took.
    pub(super) fn child(&self, name: &CStr) -> Result<Self, Errno> {
        self.open(name, OFlags::RDONLY | OFlags::DIRECTORY)
            .map(Self)
    }

    /// Opens the directory above; only for the way back from a `child`.
    pub(super) fn above(&self) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.0, c"..", flags, Mode::empty()).map(Self)
    }

    /// Reads a file of values.
    pub(super) fn read(&self, file: &str) -> Result<String, Errno> {
        // Such a file is one record: a read that leaves room in the buffer has all of it, and a
        // second system call to see the end is saved.
        self.read_until(file, MOST_VALUES, |got, room| got < room)
    }

    /// Reads a file of many records, `cgroup.procs`: only an empty read is its end.
    pub(super) fn read_records(&self, file: &str) -> Result<String, Errno> {
        self.read_until(file, MOST_PROCESSES, |got, _| got == 0)
    }

    /// Writes `text` with a single write.
    pub(super) fn write(&self, file: &str, text: &str) -> Result<(), Errno> {
        let fd = self.open(file, OFlags::WRONLY)?;
        let written = rustix::io::write(&fd, text.as_bytes())?;
        // kernfs takes all or nothing; half a value must not pass for the whole.
        if written == text.len() {
            Ok(())
        } else {
            Err(Errno::IO)
        }
    }

    /// The names of the child cgroups, in the kernel's order.
    pub(super) fn children(&self) -> Result<Vec<CString>, Errno> {
        let mut buffer = [const { MaybeUninit::uninit() }; 8 << 10];
        let fresh = self.below("")?;
        let mut entries = RawDir::new(&fresh.0, &mut buffer);
        let mut names = Vec::new();
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            if entry.file_type() == FileType::Directory && name != c"." && name != c".." {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Whether there is a cgroup at the path.
    pub(super) fn has(&self, path: &str) -> Result<bool, Errno> {
        match rustix::fs::statat(&self.0, path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT | Errno::NODEV) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    /// Makes a cgroup.
    pub(super) fn make(&self, path: &str) -> Result<(), Errno> {
        rustix::fs::mkdirat(&self.0, path, Mode::from_raw_mode(0o755))
    }

    /// Removes one cgroup.
    pub(super) fn remove(&self, name: &CStr) -> Result<(), Errno> {
        rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)
    }

    fn open(&self, path: impl rustix::path::Arg, flags: OFlags) -> Result<OwnedFd, Errno> {
        rustix::fs::openat2(
            &self.0,
            path,
            flags | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV,
        )
    }

    fn read_until(
        &self,
        file: &str,
        most: usize,
        ended: impl Fn(usize, usize) -> bool,
    ) -> Result<String, Errno> {
        let fd = self.open(file, OFlags::RDONLY)?;
        let mut buffer = [0_u8; 4 << 10];
        let mut bytes = Vec::new();
        loop {
            let got = rustix::io::read(&fd, &mut buffer)?;
            bytes.extend_from_slice(buffer.get(..got).unwrap_or_default());
            if ended(got, buffer.len()) {
                return Ok(String::from_utf8_lossy(&bytes).into_owned());
            }
            if bytes.len() > most {
                return Err(Errno::FBIG);
            }
        }
    }
}
