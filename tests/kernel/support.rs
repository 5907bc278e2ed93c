//! What the tests of every topic share. Nothing here decides whether a test passes.

use nix::errno::Errno;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A cgroup. The runner removes every one after the test.
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// The root of the hierarchy.
    pub fn root() -> Self {
        Cgroup(PathBuf::from("/sys/fs/cgroup"))
    }

    /// Makes a cgroup below this one.
    pub fn child(&self, name: &str) -> io::Result<Self> {
        let path = self.0.join(name);
        fs::create_dir(&path)?;
        Ok(Cgroup(path))
    }

    /// Turns controllers on for the children.
    pub fn enable(&self, controllers: &[&str]) -> io::Result<()> {
        controllers.iter().try_for_each(|controller| {
            self.write("cgroup.subtree_control", &format!("+{controller}"))
        })
    }

    /// The content of an interface file, without the newline at its end.
    pub fn read(&self, file: &str) -> io::Result<String> {
        read(self.0.join(file))
    }

    /// Writes an interface file in one system call. Never creates one.
    pub fn write(&self, file: &str, value: &str) -> io::Result<()> {
        File::options()
            .write(true)
            .open(self.0.join(file))?
            .write_all(value.as_bytes())
    }
}

/// The content of a file, without white space at its end.
pub fn read(path: impl AsRef<Path>) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim_end().to_owned())
}

/// The kernel's answer as an error number.
pub fn errno(result: io::Result<()>) -> Result<(), Errno> {
    result.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or_default()))
}

/// The machine's disk, mounted below `/tmp`; everybody may write there.
pub fn disk() -> Result<PathBuf, Box<dyn std::error::Error>> {
    let target = PathBuf::from("/tmp/disk");
    fs::create_dir_all(&target)?;
    nix::mount::mount(
        Some("/dev/ext4"),
        &target,
        Some("ext4"),
        nix::mount::MsFlags::empty(),
        None::<&str>,
    )?;
    fs::set_permissions(&target, fs::Permissions::from_mode(0o1777))?;
    Ok(target)
}
